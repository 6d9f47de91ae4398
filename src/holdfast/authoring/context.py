"""What an activity sees while it executes, and the few values that pass between it and the engine.

`ActivityContext` is a Protocol on purpose: an activity is tested by handing it any object that
behaves like one, and the engine's own is private to the engine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.errors import HoldfastError
from holdfast.expression import Scope
from holdfast.message import Effect

T = TypeVar("T")


class Fault(HoldfastError):
    """Raise it to fault an activity on purpose, with a code that a policy can recognise."""

    code = "activity.fault"

    def __init__(self, message: str, *, fault_code: str | None = None, category: str | None = None) -> None:
        super().__init__(message)
        self.fault_code = fault_code
        self.category = category


class Child(Protocol):
    """A nested activity: something to schedule. Made when the definition is compiled."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def type_name(self) -> str: ...
    @property
    def is_terminal(self) -> bool:
        """Break, Complete, End, Finish: completing it ends the container."""
        ...


class Completed(msgspec.Struct, frozen=True):
    """What a container hears when a child has completed."""

    child: Any
    """The `Child`."""
    outcomes: tuple[str, ...] | None
    """Named outcomes, or None when the child just completed."""
    tag: Any = None
    execution: int = 0
    backward: bool = False
    """It had been scheduled over a backward connection."""

    def follows(self, port: str | None) -> bool:
        """Whether a connection from that port is taken. No outcome counts as `Done` and as no port."""
        if self.outcomes is None:
            return port is None or port == "Done"
        return port in self.outcomes


class Signal:
    """Travels from an activity up its ancestors until one of them stops it. Subclass for your own."""

    __slots__ = ("stopped",)

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        """Nobody further out shall see it."""
        self.stopped = True


class BreakLoop(Signal):
    """Leave the nearest loop."""

    __slots__ = ()


class CompleteComposite(Signal):
    """Complete the nearest workflow or workflow-activity, with these outcomes."""

    __slots__ = ("cancels", "execution_id", "outcomes")

    def __init__(self, outcomes: tuple[str, ...], execution_id: str) -> None:
        super().__init__()
        self.outcomes = outcomes
        self.execution_id = execution_id
        """Of the activity that sent it."""
        self.cancels: set[str] = set()
        """Executions on the way that count as cancelled, not as completed: loops put themselves here."""


class Faulted(Signal):
    """A descendant raised. Whoever stops the signal owns what happens next; no incident is recorded."""

    __slots__ = ("child", "code", "error", "execution")

    def __init__(self, error: BaseException, child: Child, execution: int) -> None:
        super().__init__()
        self.error = error
        self.child = child
        self.execution = execution
        self.code = getattr(error, "fault_code", None) or getattr(error, "code", None) or type(error).__name__


class Canceled(Signal):
    """A nested activity was cancelled. Only its owner hears it."""

    __slots__ = ("backward", "child", "execution")

    def __init__(self, child: Child, execution: int, backward: bool) -> None:
        super().__init__()
        self.child = child
        self.execution = execution
        self.backward = backward


class ScheduleChild(Signal):
    """An operator wants a nested activity executed. A container that does so stops the signal."""

    __slots__ = ("child",)

    def __init__(self, child: Child) -> None:
        super().__init__()
        self.child = child


class Console(Protocol):
    """Where WriteLine writes and ReadLine reads."""

    def write_line(self, text: str) -> None: ...
    def read_line(self) -> str: ...


class ChildResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a child executed inside its parent's burst came out, so far."""

    instance_id: str
    status: str
    sub_status: str
    output: Mapping[str, Any]


class Children(Protocol):
    """Other workflows that an activity can start."""

    async def is_published(self, definition_id: str) -> bool:
        """Whether a version of that definition can be started."""
        ...

    async def execute(
        self,
        *,
        definition_id: str,
        instance_id: str,
        parent_id: str,
        input: Mapping[str, Any],  # noqa: A002  Elsa's word, and ours
        correlation_id: str | None,
        reply_to: str | None,
    ) -> ChildResult:
        """Run the first burst of a child inside this one. Raises NotFound when it is not published."""
        ...


class TriggerContext(Protocol):
    """What a trigger sees when its version is published: no instance, only its own inputs."""

    @property
    def definition_id(self) -> str: ...
    @property
    def now(self) -> datetime: ...


class Source(Protocol):
    """One activity's JSON while it is compiled, for types whose shape annotations cannot say."""

    @property
    def json(self) -> Mapping[str, Any]:
        """The activity as written, member names in lower case."""
        ...

    @property
    def at(self) -> str:
        """Where the activity stands in the document, for messages."""
        ...

    def port(self, attribute: str) -> Any:
        """What was compiled for a `Port` or `Ports` member."""
        ...

    def child(self, json: Any, at: str) -> Child | None:
        """Compile a nested activity; None for null. `at` is its path, for messages."""
        ...

    def expression(self, json: Any, target: Any, at: str) -> Callable[[Scope], Any]:
        """Compile `{type, value}` to something `context.evaluate` takes; the result is a `target`."""
        ...


class ActivityContext(Protocol):
    """All that an activity can ask of the engine while it executes."""

    @property
    def instance_id(self) -> str: ...
    @property
    def definition_id(self) -> str: ...
    @property
    def activity_id(self) -> str: ...
    @property
    def execution_id(self) -> str:
        """This one execution of the activity. The same when the burst is done again."""
        ...

    @property
    def idempotency_key(self) -> str:
        """`instance/activity/execution`: give it to whoever must not do a thing twice."""
        ...

    @property
    def attempt(self) -> int:
        """1 the first time, one more at each retry. The idempotency key stays the same."""
        ...

    @property
    def now(self) -> datetime: ...
    @property
    def input(self) -> Mapping[str, Any]:
        """The workflow's input; while resuming, what came with the stimulus as well."""
        ...

    @property
    def state(self) -> dict[str, Any]:
        """This execution's own memory. It is kept while the instance waits; put JSON values in."""
        ...

    @property
    def properties(self) -> dict[str, Any]:
        """The instance's properties, kept with it."""
        ...

    @property
    def correlation_id(self) -> str | None: ...
    @correlation_id.setter
    def correlation_id(self, value: str | None) -> None: ...
    @property
    def instance_name(self) -> str | None: ...
    @instance_name.setter
    def instance_name(self, value: str | None) -> None: ...

    @property
    def started_here(self) -> bool:
        """Whether this activity's trigger started the instance, in this burst: complete, do not wait."""
        ...

    def new_id(self) -> str:
        """An id derived from this execution, the same again when the burst is done again."""
        ...

    def use(self, port: type[T]) -> T:
        """Something from the outside, by its Protocol. Raises NotFound when the host has none."""
        ...

    def get_variable(self, name: str) -> Any: ...
    def set_variable(self, name: str, value: Any) -> None: ...
    def set_variable_by_id(self, variable_id: str, value: Any) -> None:
        """Raises Fault when no scope has it."""
        ...

    def set_output(self, name: str, value: Any) -> None:
        """Write an output: to where it is bound, and for `getOutputFrom` to find."""
        ...

    def evaluate(self, expression: Any, arguments: Mapping[str, Any] | None = None) -> Any:
        """An on-demand input by its member name, or what `Source.expression` made."""
        ...

    def evaluate_script(self, expression: Any) -> tuple[Any, tuple[str, ...] | None]:
        """The same for scripts that may set outcomes: the value, and the outcomes if any were set."""
        ...

    def log(self, name: str, value: Any) -> None:
        """Put a value into this execution's journal record."""
        ...

    def complete(self, *outcomes: str) -> None:
        """Done. Without names the outcome is `Done`."""
        ...

    def schedule(
        self,
        child: Child | None,
        done: Callable[[Any, Completed], Any] | None = None,
        *,
        tag: Any = None,
        variables: Mapping[str, Any] | None = None,
        backward: bool = False,
    ) -> None:
        """Queue a nested activity. `done` is a method of this activity; it hears of the completion."""
        ...

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
        """Wait here. `resume` is a method of this activity that carries on; without it, it completes.

        A private bookmark can only be hit by its id or by naming this execution; others are hit by
        any stimulus with the same name and payload. With `due`, a timer hits it.
        """
        ...

    def ask(self, effect: Effect) -> None:
        """Have the host do something when this burst is kept."""
        ...

    def signal(self, signal: Signal) -> None:
        """Send a signal to this activity and then to each ancestor, until one stops it."""
        ...

    def open_children(self) -> Sequence[tuple[Child, int]]:
        """Nested activities under way, each with its execution number, oldest first."""
        ...

    def has_pending(self, child: Child | None = None) -> bool:
        """Whether work is queued for that nested activity, or for any."""
        ...

    def cancel_children(self, children: Iterable[Child] | None = None) -> None:
        """Cancel those nested activities that are under way, or all of them."""
        ...

    def withdraw(self, children: Iterable[Child]) -> None:
        """Take queued work for those nested activities off the queue."""
        ...

    def recover(self, execution: int, *outcomes: str) -> None:
        """Take a faulted nested execution as completed with these outcomes."""
        ...

    def abandon(self, execution: int) -> None:
        """Close a nested execution, faulted or not, without hearing of it."""
        ...

    def declare(self, variables: Mapping[str, Any]) -> None:
        """Give this execution variables of its own, by name, for what is nested in it to see."""
        ...

    def fault(self, error: Exception) -> None:
        """Fault this activity, from a method that hears of a child. Elsewhere just raise."""
        ...

    def cancel(self) -> None:
        """Cancel this activity."""
        ...

    def finish(self, output: Mapping[str, Any] | None = None) -> None:
        """End the whole instance here and now, as finished."""
        ...
