"""What expressions see: names looked up from one execution outwards.

Each frame that declares variables holds their values by id. Reading walks from the activity to the
workflow and takes the nearest; so does writing. A workflow-activity's inputs are variables of its
own frame, which is how the workflow inside it sees them first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from holdfast.definitions.document import variable_id
from holdfast.errors import Invalid

if TYPE_CHECKING:
    from holdfast.engine.burst import Burst
    from holdfast.engine.frame import Frame

_NOTHING: Mapping[str, Any] = {}


class FrameScope:
    """The scope of one evaluation. See `expression.Scope` for the promises."""

    __slots__ = ("_arguments", "_burst", "_frame", "_outcomes")

    def __init__(
        self,
        burst: Burst,
        frame: Frame,
        arguments: Mapping[str, Any] | None = None,
        outcomes: list[str] | None = None,
    ) -> None:
        self._burst = burst
        self._frame = frame
        self._arguments = arguments
        self._outcomes = outcomes

    @property
    def definition_id(self) -> str:
        return self._burst.graph.definition.definition_id

    @property
    def version_id(self) -> str:
        return self._burst.graph.definition.id

    @property
    def version(self) -> int:
        return self._burst.graph.definition.version

    @property
    def instance_id(self) -> str:
        return self._burst.instance_id

    @property
    def correlation_id(self) -> str | None:
        return self._burst.correlation_id

    @correlation_id.setter
    def correlation_id(self, value: str | None) -> None:
        self._burst.correlation_id = value

    @property
    def instance_name(self) -> str | None:
        return self._burst.name

    @instance_name.setter
    def instance_name(self, value: str | None) -> None:
        self._burst.name = value

    def variable_names(self) -> Iterable[str]:
        names: dict[str, None] = {}
        frame: Frame | None = self._frame
        while frame is not None:
            if frame.dynamic is not None:
                names.update(dict.fromkeys(frame.dynamic.values()))
            names.update(dict.fromkeys(frame.node.variable_ids))
            frame = frame.parent
        return names

    def get_variable(self, name: str) -> Any:
        found = find_by_name(self._frame, name)
        return None if found is None else found[0].memory[found[1]]  # type: ignore[index]  # it has memory

    def get_variable_by_id(self, variable_id: str) -> Any:
        frame: Frame | None = self._frame
        while frame is not None:
            memory = frame.memory
            if memory is not None and variable_id in memory:
                return memory[variable_id]
            frame = frame.parent
        raise Invalid(
            f"No variable with the id {variable_id!r} is in scope here. Was it deleted, or does it belong to "
            f"another container?"
        )

    def set_variable(self, name: str, value: Any) -> None:
        found = find_by_name(self._frame, name)
        if found is not None:
            write(found[0], found[1], value)
            return
        frame: Frame | None = self._frame
        while frame is not None and not frame.node.declares_variables:
            frame = frame.parent
        if frame is not None:
            declare(frame, {name: value}, variable_id(name))

    def inputs(self) -> Mapping[str, Any]:
        inner: dict[str, Any] = {}
        frame = self._frame.parent
        while frame is not None:
            composite = frame.node.definition
            if composite is not None and frame.node.parent is not None and frame.dynamic is not None:
                for parameter in composite.inputs:
                    if frame.memory is not None and parameter.name in frame.memory:
                        inner.setdefault(parameter.name, frame.memory[parameter.name])
            frame = frame.parent
        return {**self._burst.input, **inner} if inner else self._burst.input

    def input_names(self) -> Iterable[str]:
        return [parameter.name for parameter in self._burst.graph.definition.inputs]

    def get_input(self, name: str) -> Any:
        inputs = self.inputs()
        if name in inputs:
            value = inputs[name]
        else:
            lowered = name.lower()
            value = next((v for k, v in inputs.items() if k.lower() == lowered), None)
        for parameter in self._burst.graph.definition.inputs:
            if parameter.name.lower() == name.lower():
                return value if parameter.type.is_object else parameter.type.convert(value)
        return value

    def get_output(self, activity: str, output: str | None = None) -> Any:
        node = self._burst.graph.find(activity)
        key = (activity if node is None else node.id, output or "Result")
        frame = self._frame.parent
        while frame is not None:
            if frame.results is not None and key in frame.results:
                return frame.results[key]
            frame = frame.parent
        return None

    def output_accessor(self, accessor: str) -> tuple[str, str] | None:
        return self._burst.graph.output_accessor(accessor)

    @property
    def last_result(self) -> Any:
        return self._burst.last_result

    @property
    def arguments(self) -> Mapping[str, Any]:
        return _NOTHING if self._arguments is None else self._arguments

    def set_outcomes(self, outcomes: list[str]) -> None:
        if self._outcomes is None:
            raise Invalid("Only a script activity can set outcomes; this expression is an ordinary input.")
        self._outcomes[:] = outcomes

    def new_guid(self) -> str:
        frame = self._frame
        frame.ids += 1
        digest = sha256(f"{self._burst.instance_id}/{frame.number}/{frame.ids}".encode()).digest()
        return str(UUID(bytes=digest[:16], version=4))

    def utc_now_ms(self) -> float:
        return self._burst.clock.now().timestamp() * 1000

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        return self._burst.environment.functions

    @property
    def configuration(self) -> Mapping[str, Any]:
        return self._burst.environment.configuration


def find_by_name(frame: Frame | None, name: str) -> tuple[Frame, str] | None:
    """The nearest frame that holds a variable of that name, and the variable's id."""
    while frame is not None:
        memory = frame.memory
        if memory is not None:
            if frame.dynamic is not None:
                for dynamic_id, dynamic_name in frame.dynamic.items():
                    if dynamic_name == name and dynamic_id in memory:
                        return frame, dynamic_id
            found = frame.node.variable_ids.get(name)
            if found is not None and found in memory:
                return frame, found
        frame = frame.parent
    return None


def write_by_id(frame: Frame | None, wanted: str, value: Any) -> bool:
    """Write into the nearest frame that holds a variable with that id. False when none does."""
    while frame is not None:
        if frame.memory is not None and wanted in frame.memory:
            write(frame, wanted, value)
            return True
        frame = frame.parent
    return False


def write(frame: Frame, wanted: str, value: Any) -> None:
    variable = frame.node.variables.get(wanted)
    if variable is not None and not variable.type.is_object:
        value = variable.type.convert(value)
    assert frame.memory is not None
    frame.memory[wanted] = value


def declare(frame: Frame, variables: Mapping[str, Any], as_id: str | None = None) -> None:
    """Give a frame variables that its activity does not declare."""
    memory = frame.memory if frame.memory is not None else {}
    dynamic = frame.dynamic if frame.dynamic is not None else {}
    for name, value in variables.items():
        memory[as_id or name] = value
        dynamic[as_id or name] = name
    frame.memory = memory
    frame.dynamic = dynamic
