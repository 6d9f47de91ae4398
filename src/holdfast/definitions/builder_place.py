"""`place`: any activity type, put into a workflow with its inputs, ports and outputs.

What the type is made of is read from its descriptor, so that a wrong name or a value that does not
fit is an error on the line that says it, not one in an instance next week.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard, cast

from holdfast.authoring import ActivityType, InputDescriptor, OutputDescriptor, PortDescriptor, activity_type
from holdfast.authoring.activity import ActivityInvalid, camel_case
from holdfast.definitions.builder_tree import (
    ABOUT,
    About,
    BuilderInvalid,
    Path,
    Placed,
    Use,
    in_sequence,
    listed,
    nested,
    suggest,
)
from holdfast.definitions.builder_values import (
    Computed,
    Plain,
    Reference,
    VariableHandle,
    captured,
    uses_of,
    write_input,
    write_literal,
)
from holdfast.definitions.reader import Json


def place(made: Callable[..., Any] | ActivityType | str, /, *given: object, **members: object) -> Placed:
    """An activity at its place: `place(charge, card, amount=total, retry=3)`.

    `made` is something decorated with `@activity`; a type's bare name will do where the code is not at
    hand, but then nothing is checked. Values by position are inputs in the order they were written
    down, placed activities by position go where the type has room for them. By name: inputs, ports,
    outputs with the variable or workflow output that shall get them, and what `About` lists. Where a
    type has an input with such a name, the input is meant, and `Placed.about` says the other.
    """
    if isinstance(made, str):
        return _Placing(made, None).place(given, members)
    try:
        kind = activity_type(made)
    except ActivityInvalid as problem:
        raise BuilderInvalid(str(problem)) from None
    return _Placing(kind.name, kind).place(given, members)


class _Placing:
    """One activity on its way to its place."""

    def __init__(self, type_name: str, kind: ActivityType | None) -> None:
        self._type_name = type_name
        self._kind = kind
        self._members: Json = {}
        self._uses: list[Use] = []
        self._declares: list[Use] = []
        self._about: dict[str, Any] = {}
        descriptor = kind.descriptor if kind is not None else None
        self._inputs = _in_order(kind) if kind is not None else []
        self._outputs = descriptor.outputs if descriptor is not None else ()
        self._ports = descriptor.ports if descriptor is not None else ()

    def place(self, given: tuple[object, ...], members: Mapping[str, object]) -> Placed:
        activities = [value for value in given if isinstance(value, Path)]
        values = [value for value in given if not isinstance(value, Path)]
        if len(values) > len(self._inputs):
            names = listed(map(_name, self._inputs))
            raise BuilderInvalid(f"{self._short} takes {len(self._inputs)} values by position: {names}.")
        for value, descriptor in zip(values, self._inputs, strict=False):
            self._input(_name(descriptor), descriptor, value)
        if activities:
            self._port(self._room(), activities)
        for name, value in members.items():
            self._member(name, value)
        self._check_required()
        definition = self._kind.definition if self._kind is not None else None
        if definition is not None:
            self._members |= {
                "workflowDefinitionId": definition.definition_id,
                "workflowDefinitionVersionId": definition.id,
            }
        return Placed(
            self._type_name,
            self._members,
            version=self._kind.descriptor.version if self._kind is not None else None,
            outcomes=self._outcomes(),
            uses=self._uses,
            declares=self._declares,
            about=cast("About", self._about),
        )

    @property
    def _short(self) -> str:
        return self._type_name.rpartition(".")[2]

    def _member(self, name: str, value: object) -> None:
        for descriptor in self._inputs:
            if _is_called(name, descriptor.json_name, descriptor.attribute):
                return self._input(name, descriptor, value)
        for port in self._ports:
            if _is_called(name, port.json_name, port.attribute):
                return self._port(port, value)
        for output in self._outputs:
            if _is_called(name, output.json_name, output.name):
                return self._output(output, value)
        if name in ABOUT:
            self._about[name] = value
        elif name == "variables" and self._declares_variables:
            self._variables(value)
        elif isinstance(value, Plain):
            self._put(camel_case(name), value.value, name)
        elif self._kind is None:
            self._guess(name, value)
        else:
            raise self._unknown(name)
        return None

    def _input(self, name: str, descriptor: InputDescriptor, value: object) -> None:
        where = f"{self._short}.{name}"
        if isinstance(value, Plain):
            written = value.value
        elif descriptor.wrapped:
            self._uses += uses_of(value)
            written = write_input(value, descriptor.type, where)
        elif isinstance(value, VariableHandle):
            handle = cast("VariableHandle[Any]", value)
            self._uses.append(handle.declared)
            written = handle.reference
        elif isinstance(value, Computed):
            raise BuilderInvalid(f"{where} is fixed when the workflow is written: it takes no expression.")
        else:
            written = write_literal(value, descriptor.type, where)
        self._put(descriptor.json_name, written, name)

    def _port(self, port: PortDescriptor, value: object) -> None:
        where = f"{self._short}.{port.attribute}"
        if port.many:
            self._put(port.json_name, nested(value, where), port.attribute)
        elif value is None or isinstance(value, Placed):
            self._put(port.json_name, value, port.attribute)
        else:
            self._put(port.json_name, in_sequence(nested(value, where), where), port.attribute)

    def _output(self, output: OutputDescriptor, target: object) -> None:
        name = output.json_name
        if not isinstance(target, Reference) or target.target is None:
            raise BuilderInvalid(
                f"{self._short}.{name} is an output: give it the variable or workflow output that shall get "
                f"it, not {target!r}."
            )
        self._uses += target.uses
        self._put(name, captured(target, output.type.name), name)

    def _variables(self, value: object) -> None:
        handles = [value] if not isinstance(value, Iterable) else list(cast("Iterable[object]", value))
        declared = [cast("VariableHandle[Any]", h) for h in handles if isinstance(h, VariableHandle)]
        if len(declared) < len(handles):
            raise BuilderInvalid(f"{self._short}.variables takes what variable() returned.")
        self._declares += [handle.declared for handle in declared]
        self._put("variables", [handle.declaration(in_workflow=False) for handle in declared], "variables")

    def _guess(self, name: str, value: object) -> None:
        """A member of a type nobody here knows: nested activities are ports, an output is captured."""
        where = f"{self._short}.{name}"
        written: Any
        if isinstance(value, Placed) or value is None:
            written = value
        elif _has_activities(value):
            written = nested(value, where)
        elif _is_captured(value, name):
            written = captured(value, "Object")
        else:
            written = write_input(value, None, where)
        self._uses += uses_of(value)
        self._put(camel_case(name), written, name)

    def _put(self, json_name: str, value: Any, name: str) -> None:
        if json_name in self._members:
            raise BuilderInvalid(f"{self._short}.{name} is given twice.")
        self._members[json_name] = value

    def _room(self) -> PortDescriptor:
        lists = [port for port in self._ports if port.many] or list(self._ports)
        if len(lists) == 1:
            return lists[0]
        if self._kind is None:
            return PortDescriptor(
                name="", json_name="activities", attribute="activities", display_name="", many=True
            )
        ports = listed(port.attribute for port in self._ports)
        raise BuilderInvalid(
            f"{self._short} cannot tell where the activities belong. Name the port: {ports}."
        )

    def _check_required(self) -> None:
        missing = [_name(i) for i in self._inputs if i.required and i.json_name not in self._members]
        if missing:
            raise BuilderInvalid(f"{self._short} needs a value for {listed(missing)}.")

    def _outcomes(self) -> tuple[str, ...] | None:
        if self._kind is None:
            return None
        descriptor = self._kind.descriptor
        if descriptor.dynamic_outcomes is not None:
            return tuple(descriptor.dynamic_outcomes(self._members))
        return descriptor.outcomes

    @property
    def _declares_variables(self) -> bool:
        return self._kind is None or bool(self._kind.implementation.declares_variables)

    def _unknown(self, name: str) -> BuilderInvalid:
        inputs = [_name(i) for i in self._inputs]
        ports = [port.attribute for port in self._ports]
        outputs = [output.json_name for output in self._outputs]
        has = "; ".join(
            f"{kind}: {', '.join(names)}"
            for kind, names in (("inputs", inputs), ("ports", ports), ("outputs", outputs))
            if names
        )
        advice = suggest(name, [*inputs, *ports, *outputs, *ABOUT])
        return BuilderInvalid(f"{self._short} has no {name!r}. {advice}It has {has or 'no inputs at all'}.")


def _in_order(kind: ActivityType) -> list[InputDescriptor]:
    """Inputs by position: the type's own before what it inherits."""
    own = list(getattr(kind.implementation, "__annotations__", {}))
    inputs = list(kind.descriptor.inputs)
    return sorted(inputs, key=lambda i: own.index(i.attribute) if i.attribute in own else len(own))


def _name(descriptor: InputDescriptor) -> str:
    """What to call an input in Python. A workflow's inputs have no attribute that could be written."""
    return descriptor.attribute if descriptor.attribute.isidentifier() else descriptor.json_name


def _has_activities(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, Path) for v in cast("list[object]", value))


def _is_captured(value: object, name: str) -> TypeGuard[Reference]:
    """Whether a member of an unknown type is an output: a variable might be read as well."""
    is_target = isinstance(value, Reference) and value.target is not None
    return is_target and (name == "result" or not isinstance(value, Computed))


def _is_called(name: str, json_name: str, attribute: str) -> bool:
    return name == attribute or camel_case(name).lower() == json_name.lower()
