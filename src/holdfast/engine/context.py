"""The engine's side of `ActivityContext`: one execution's view of its burst."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.authoring import Child, CompleteComposite, Completed, Fault, Signal
from holdfast.bookmark import Bookmark
from holdfast.codec import without_structs
from holdfast.engine.frame import PENDING, RUNNING
from holdfast.engine.journal import shows_output
from holdfast.engine.scope import FrameScope, declare, write_by_id
from holdfast.errors import Invalid, NotFound
from holdfast.message import Effect

if TYPE_CHECKING:
    from holdfast.definitions.document import Definition
    from holdfast.engine.burst import Burst
    from holdfast.engine.frame import Frame

T = TypeVar("T")


class Context:
    """What an activity sees while it executes. See `authoring.ActivityContext` for the promises."""

    __slots__ = ("_burst", "_frame")

    def __init__(self, burst: Burst, frame: Frame) -> None:
        self._burst = burst
        self._frame = frame

    @property
    def instance_id(self) -> str:
        return self._burst.instance_id

    @property
    def definition_id(self) -> str:
        return self._burst.graph.definition.definition_id

    @property
    def activity_id(self) -> str:
        return self._frame.node.id

    @property
    def activity_type(self) -> str:
        return self._frame.node.type_name

    @property
    def execution_id(self) -> str:
        return f"{self._burst.instance_id}-{self._frame.number}"

    @property
    def idempotency_key(self) -> str:
        return f"{self._burst.instance_id}/{self._frame.node.id}/{self._frame.number}"

    @property
    def attempt(self) -> int:
        return self._frame.attempt

    @property
    def now(self) -> datetime:
        return self._burst.clock.now()

    @property
    def input(self) -> Mapping[str, Any]:
        return self._burst.input

    @property
    def state(self) -> dict[str, Any]:
        state = self._frame.state
        if state is None:
            state = self._frame.state = {}
        return state

    @property
    def properties(self) -> dict[str, Any]:
        return self._burst.properties

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

    @property
    def started_here(self) -> bool:
        return self._burst.trigger is not None and self._burst.trigger == self._frame.node.id

    @property
    def trigger(self) -> str | None:
        """The activity whose trigger started this instance, while its first burst lasts."""
        return self._burst.trigger

    @property
    def flowchart_mode(self) -> str:
        burst = self._burst
        own = burst.properties.get("Flowchart:ExecutionMode")
        return str(own or burst.graph.mode or burst.environment.flowchart_mode)

    def new_id(self) -> str:
        frame = self._frame
        frame.ids += 1
        digest = sha256(f"{self._burst.instance_id}/{frame.number}/{frame.ids}".encode()).digest()
        return b32encode(digest[:16]).decode().rstrip("=").lower()

    def use(self, port: type[T]) -> T:
        found = self._burst.environment.services.get(port)
        if found is None:
            raise NotFound(
                f"{self._frame.node.type_name} needs a {port.__name__}, and this host provides none. "
                f"Give the host one in `services`."
            )
        return found

    def get_variable(self, name: str) -> Any:
        return FrameScope(self._burst, self._frame).get_variable(name)

    def set_variable(self, name: str, value: Any) -> None:
        FrameScope(self._burst, self._frame).set_variable(name, without_structs(value))

    def set_variable_by_id(self, variable_id: str, value: Any) -> None:
        if not write_by_id(self._frame, variable_id, value):
            raise Fault(f"Variable '{variable_id}' not found.")

    @property
    def own_definition(self) -> Definition:
        """For a workflow-activity: the definition it stands for."""
        definition = self._frame.node.definition
        assert definition is not None
        return definition

    def composite_with_output(self, name: str) -> Context | None:
        """The nearest workflow-activity around this one that declares an output of that name."""
        frame = self._frame.parent
        while frame is not None:
            node = frame.node
            if node.parent is not None and node.definition is not None and name in node.outputs:
                return Context(self._burst, frame)
            frame = frame.parent
        return None

    def compile(self, language: str, source: str) -> Callable[[Any], Any]:
        """A script that is only known now that the activity executes."""
        found = self._burst.environment.expressions.get(language)
        if found is None:
            raise Invalid(f"This host has no expression language {language!r}.")
        return found.compile(source)

    def read_bound(self, target: str) -> Any:
        """The value where an output of this activity is bound; None while nobody has written it."""
        frame = self._frame.parent
        while frame is not None:
            if frame.memory is not None and target in frame.memory:
                value = frame.memory[target]
                declared = frame.node.variables.get(target)
                is_untouched = declared is not None and not declared.is_given and value == declared.default
                return None if is_untouched else value
            frame = frame.parent
        return None

    def declare(self, variables: Mapping[str, Any]) -> None:
        """Give this execution variables of its own, by name."""
        declare(self._frame, variables)

    def read_own(self, variable_id: str) -> Any:
        """A variable this execution itself holds."""
        return (self._frame.memory or {}).get(variable_id)

    def set_output(self, name: str, value: Any) -> None:
        frame = self._frame
        binding = frame.node.outputs.get(name) or frame.node.outputs.get(name[:1].upper() + name[1:])
        if binding is None:
            known = ", ".join(frame.node.outputs) or "none"
            raise Invalid(f"{frame.node.type_name} has no output {name!r}. Its outputs: {known}.")
        value = without_structs(value)
        if binding.target is not None:
            self.write_bound(binding.target, value)
        self.record_output(binding.name, value)

    def write_bound(self, target: str, value: Any) -> None:
        """Write where an output is bound: a variable in scope, and a workflow output of that name."""
        burst, frame = self._burst, self._frame
        write_by_id(frame, target, value)
        node = frame.node.parent
        while node is not None and node.definition is None:
            node = node.parent
        if node is not None and node.parent is None and node.definition is not None:
            for output in node.definition.outputs:
                if output.name == target:
                    burst.output[target] = output.type.convert(value)

    def output_target(self, name: str) -> str | None:
        """Where an output of this activity is bound; None when it is not captured."""
        binding = self._frame.node.outputs.get(name)
        return None if binding is None else binding.target

    def record_output(self, name: str, value: Any) -> None:
        """Note an output for `getOutputFrom` and for the journal."""
        burst, frame = self._burst, self._frame
        if frame.node.unlogged is None or shows_output(burst, frame, name):
            if frame.outputs is None:
                frame.outputs = {name: value}
            else:
                frame.outputs[name] = value
        container = frame.parent
        while container is not None and not container.node.declares_variables:
            container = container.parent
        if container is not None:
            if container.results is None:
                container.results = {}
            container.results.setdefault((frame.node.id, name), value)
        if name == "Result":
            burst.last_result = value

    def set_workflow_output(self, name: str, value: Any) -> None:
        self._burst.output[name] = value

    def evaluate(self, expression: Any, arguments: Mapping[str, Any] | None = None) -> Any:
        if isinstance(expression, str):
            expression = self._frame.node.on_demand[expression]
        return expression(FrameScope(self._burst, self._frame, arguments))

    def evaluate_script(self, expression: Any) -> tuple[Any, tuple[str, ...] | None]:
        outcomes: list[str] = []
        scope = FrameScope(self._burst, self._frame, None, outcomes)
        if isinstance(expression, str):
            expression = self._frame.node.on_demand[expression]
        value = expression(scope)
        return value, tuple(outcomes) if outcomes else None

    def log(self, name: str, value: Any) -> None:
        frame = self._frame
        if frame.log is None:
            frame.log = {}
        frame.log[name] = value

    def record(self, event: str, message: str | None = None) -> None:
        """Write a line of its own to the journal."""
        self._burst.record(event, self._frame, message)

    def complete(self, *outcomes: str) -> None:
        self._burst.complete(self._frame, outcomes or None)

    def complete_with(self, outcomes: tuple[str, ...] | None) -> None:
        """Complete with exactly these outcomes; an empty tuple means that nothing follows."""
        self._burst.complete(self._frame, outcomes)

    def complete_around(self, signal: CompleteComposite) -> None:
        """Close everything from the sender outwards up to here, telling nobody, then complete."""
        burst = self._burst
        frame = burst.frames.get(int(signal.execution_id.rpartition("-")[2]))
        while frame is not None and frame is not self._frame:
            if f"{burst.instance_id}-{frame.number}" in signal.cancels:
                burst.cancel(frame, quietly=True)
            else:
                burst.complete(frame, quietly=True)
            frame = frame.parent
        burst.complete(self._frame, signal.outcomes)

    def schedule(
        self,
        child: Child | None,
        done: Callable[[Any, Completed], Any] | None = None,
        *,
        tag: Any = None,
        variables: Mapping[str, Any] | None = None,
        backward: bool = False,
    ) -> None:
        name = None if done is None else done.__name__
        if child is None:
            if done is not None:
                done(self, Completed(None, None, tag))
            return
        self._burst.schedule(self._frame, child, name, tag, variables, backward)  # type: ignore[arg-type]

    def wait(
        self,
        resume: Callable[[Any], Any] | None = None,
        *,
        payload: Any = None,
        name: str | None = None,
        private: bool = False,
        burns: bool = True,
        due: datetime | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Bookmark:
        return self._burst.bookmark(
            self._frame,
            name=name,
            payload=payload,
            resume=None if resume is None else resume.__name__,
            private=private,
            burns=burns,
            due=due,
            metadata=metadata,
        )

    def ask(self, effect: Effect) -> None:
        self._burst.effects.append(effect)

    def signal(self, signal: Signal) -> None:
        self._burst.signal(self._frame, signal)

    def open_children(self) -> list[tuple[Child, int]]:
        return [(child.node, number) for number, child in (self._frame.children or {}).items()]

    def is_idle(self) -> bool:
        """Whether nothing nested is queued, under way or faulted."""
        frame = self._frame
        if frame.queued:
            return False
        return not frame.children or all(c.status is PENDING for c in frame.children.values())

    def is_running(self, child: Child) -> bool:
        """Whether a nested activity is under way and not faulted."""
        return any(c.node is child and c.status is RUNNING for c in (self._frame.children or {}).values())

    def own_child(self, execution: int) -> tuple[Child, int] | None:
        """The nested execution of this one in which that execution happens, at whatever depth."""
        frame = self._burst.frames.get(execution)
        while frame is not None and frame.parent is not self._frame:
            frame = frame.parent
        return None if frame is None else (frame.node, frame.number)

    def input_of(self, child: Any, attribute: str) -> Any:
        """An input of a nested activity that is not executing, evaluated from here."""
        if attribute in child.constants:
            return child.constants[attribute]
        found = next(entry for entry in child.dynamic if entry.attribute == attribute)
        return found.evaluate(FrameScope(self._burst, self._frame))

    def has_pending(self, child: Child | None = None) -> bool:
        frame = self._frame
        if child is None or not frame.queued:
            return frame.queued > 0
        return any(
            q.parent is frame and q.node is child and q.number == 0 and q.status != "Canceled"
            for q in self._burst.queue
        )

    def cancel_children(self, children: Iterable[Child] | None = None) -> None:
        wanted = None if children is None else set(children)
        for child in list((self._frame.children or {}).values()):
            if wanted is None or child.node in wanted:
                self._burst.cancel(child)

    def withdraw(self, children: Iterable[Child]) -> None:
        self._burst.withdraw(self._frame, frozenset(children))

    def recover(self, execution: int, *outcomes: str) -> None:
        """Take a faulted nested execution as completed with these outcomes."""
        frame = self._burst.frames.get(execution)
        if frame is not None:
            frame.status = RUNNING
            self._burst.complete(frame, outcomes or None)

    def abandon(self, execution: int) -> None:
        """Close a nested execution, faulted or not, without telling its owner."""
        frame = self._burst.frames.get(execution)
        if frame is not None:
            frame.done = None
            self._burst.cancel(frame)

    def fault(self, error: Exception) -> None:
        self._burst.fault(self._frame, error)

    def cancel(self) -> None:
        self._burst.cancel(self._frame)

    def finish(self, output: Mapping[str, Any] | None = None) -> None:
        if output:
            self._burst.output.update(output)
        self._burst.finish()
