"""A machine: a workflow as typed code. Statuses are an Enum, steps are functions from a run to a status.

    orders = Machine("orders", object=Order, status=Status)

    @orders.step(Status.PLACED)
    async def bill(run: Run[Order, Status]) -> Literal[Status.BILLED]: ...

What a function returns is declared by its annotation alone: type checkers refuse any other status, and
the machine reads the same annotation for its graph. `machine.check()` finds what does not hold together;
whoever uses the machine calls it first.
"""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from holdfast.machines.built import Built, build
from holdfast.machines.handler import Given, MachineInvalid
from holdfast.machines.mermaid import draw
from holdfast.machines.objects import Objects, is_object_type
from holdfast.machines.options import Choices, Options, merged
from holdfast.machines.results import Control
from holdfast.machines.run import ObjectT, Run, StatusT

R = TypeVar("R", bound=Enum | Control | Awaitable[Enum | Control])
P = TypeVar("P")
H = TypeVar("H", bound=Awaitable[None] | None)
D = TypeVar("D", bound=datetime | Awaitable[datetime | None] | None)
B = TypeVar("B", bound=bool | Awaitable[bool])

CHANGE, PAUSE, CANCEL, COMPLETE, DELETE = "change", "pause", "cancel", "complete", "delete"
"""What hooks are for."""


class Taking(Generic[ObjectT, StatusT]):
    """A decorator for functions of a run."""

    def __init__(self, take: Callable[[Callable[..., Any]], None]) -> None:
        self._take = take

    def __call__(
        self, function: Callable[[Run[ObjectT, StatusT]], R], /
    ) -> Callable[[Run[ObjectT, StatusT]], R]:
        self._take(function)
        return function


class TakingPayload(Generic[ObjectT, StatusT]):
    """A decorator for functions of a run and what came from outside."""

    def __init__(self, take: Callable[[Callable[..., Any]], None]) -> None:
        self._take = take

    @overload
    def __call__(
        self, function: Callable[[Run[ObjectT, StatusT], P], R], /
    ) -> Callable[[Run[ObjectT, StatusT], P], R]: ...
    @overload
    def __call__(
        self, function: Callable[[Run[ObjectT, StatusT]], R], /
    ) -> Callable[[Run[ObjectT, StatusT]], R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        self._take(function)
        return function


class Machine(Generic[ObjectT, StatusT]):
    def __init__(
        self,
        name: str,
        *,
        object: type[ObjectT],  # noqa: A002  as the run calls it
        status: type[StatusT],
        start: StatusT | tuple[StatusT, ...] = (),
        defaults: Options | None = None,
        keeps: timedelta = timedelta(days=30),
        unique: bool = True,
    ) -> None:
        """`start` is where a run begins unless its trigger says otherwise; of several, the first. Without,
        it is the status of the first function that is declared.

        `keeps` is how long a callback that came too early waits for its run. With `unique=False` there may
        be several unfinished runs of one foreign id.
        """
        if not name or len(name) > 100:
            raise MachineInvalid("A machine has a name, of 100 characters at most.")
        if not is_object_type(object):
            raise MachineInvalid(
                f"The object of the machine {name!r} is {object!r}. Use a dataclass, a msgspec Struct or a "
                f"pydantic model."
            )
        self.name = name
        self.object = object
        self.status = status
        self.keeps = keeps
        self.is_unique = unique
        self.hooks: dict[str, list[Callable[..., Any]]] = {}
        self.scrubber: Callable[..., Any] | None = None
        self.conditions: dict[str, Callable[..., Any]] = {}
        self._starts = start if isinstance(start, tuple) else (start,)
        self._defaults = defaults or Options()
        self._given: list[Given] = []

    def __repr__(self) -> str:
        return f"<Machine {self.name!r}>"

    # --- what it is made of -----------------------------------------------------------------------

    def step(
        self, status: StatusT, *, to: Iterable[StatusT] = (), **options: Unpack[Choices]
    ) -> Taking[ObjectT, StatusT]:
        """The function that is called when a run comes to the status."""
        return Taking(lambda function: self._add("step", status, function, to=to, options=options))

    def callback(
        self, status: StatusT, *, name: str = "", to: Iterable[StatusT] = (), **options: Unpack[Choices]
    ) -> TakingPayload[ObjectT, StatusT]:
        """The function that is called when something from outside comes for a run in the status.

        Its second parameter is the payload; its type says how to read it, `bytes` takes it raw.
        """
        return TakingPayload(
            lambda function: self._add("callback", status, function, name=name, to=to, options=options)
        )

    def timeout(
        self,
        status: StatusT,
        *,
        after: timedelta | None = None,
        at: datetime | None = None,
        due: Callable[[Run[ObjectT, StatusT], datetime], D] | None = None,
        name: str = "",
        to: Iterable[StatusT] = (),
        **options: Unpack[Choices],
    ) -> Taking[ObjectT, StatusT]:
        """The function that is called when a run has been in the status for so long, or at that instant.

        `due` is asked with the run and the time when it comes to the status; None is no timeout.
        """
        if sum(one is not None for one in (after, at, due)) != 1:
            raise MachineInvalid(f"A timeout of {status!r} needs one of `after=`, `at=` and `due=`.")
        if at is not None and at.tzinfo is None:
            raise MachineInvalid(f"`at=` of a timeout of {status!r} needs a time zone, such as UTC.")

        def take(function: Callable[..., Any]) -> None:
            name_of = name or function.__name__
            self._add(
                "timeout", status, function, name=name_of, to=to, options=options, after=after, at=at, due=due
            )

        return Taking(take)

    def on_pause(
        self, function: Callable[[Run[ObjectT, StatusT]], H]
    ) -> Callable[[Run[ObjectT, StatusT]], H]:
        return self._hook(PAUSE, function)

    def on_cancel(
        self, function: Callable[[Run[ObjectT, StatusT]], H]
    ) -> Callable[[Run[ObjectT, StatusT]], H]:
        return self._hook(CANCEL, function)

    def on_complete(
        self, function: Callable[[Run[ObjectT, StatusT]], H]
    ) -> Callable[[Run[ObjectT, StatusT]], H]:
        return self._hook(COMPLETE, function)

    def on_delete(
        self, function: Callable[[Run[ObjectT, StatusT]], H]
    ) -> Callable[[Run[ObjectT, StatusT]], H]:
        return self._hook(DELETE, function)

    def on_change(
        self, function: Callable[[Run[ObjectT, StatusT]], H]
    ) -> Callable[[Run[ObjectT, StatusT]], H]:
        """Called after a run has come to another status."""
        return self._hook(CHANGE, function)

    def scrub(self, function: Callable[[ObjectT], ObjectT]) -> Callable[[ObjectT], ObjectT]:
        """The function that makes of an object what stays of it when its data are deleted."""
        if self.scrubber is not None:
            raise MachineInvalid(f"The machine {self.name!r} has two functions for `scrub`.")
        self.scrubber = function
        return function

    def condition(self, function: Callable[[datetime], B]) -> Callable[[datetime], B]:
        """A function that decides whether an occurrence of a schedule starts a run. Its name is kept."""
        if self.conditions.setdefault(function.__name__, function) is not function:
            raise MachineInvalid(
                f"The machine {self.name!r} has two conditions called {function.__name__!r}."
            )
        return function

    # --- what it says -----------------------------------------------------------------------------

    def check(self) -> "Machine[ObjectT, StatusT]":
        """Raises MachineInvalid when it does not hold together."""
        _ = self.built, self.objects
        return self

    @cached_property
    def built(self) -> Built:
        return build(self.name, self.status, self._starts, self._given)

    @cached_property
    def objects(self) -> Objects[ObjectT]:
        try:
            return Objects(self.object)
        except TypeError as problem:
            raise MachineInvalid(
                f"{self.object.__name__}, the object of the machine {self.name!r}, has no JSON: {problem}"
            ) from problem

    @property
    def start(self) -> StatusT:
        """Where a run begins."""
        return self.status(self.built.start)

    def mermaid(self, *, direction: Literal["TB", "LR", "RL", "BT"] = "LR") -> str:
        """The machine as a Mermaid diagram."""
        return draw(self.name, self.built, direction)

    def _add(self, kind: str, status: StatusT, function: Callable[..., Any], **more: Any) -> None:
        options = merged(self._defaults, more.pop("options"))
        name = more.pop("name", None)
        name = function.__name__ if name is None else name
        to = tuple(more.pop("to"))
        if kind == "step":
            for other in self._given:
                if other.kind == "step" and other.status == status:
                    raise MachineInvalid(
                        f"{status} has two steps, {other.function.__qualname__!r} and "
                        f"{function.__qualname__!r}. Give one of them another status."
                    )
        self._given.append(
            Given(kind=kind, status=status, name=name, function=function, to=to, options=options, **more)
        )
        self.__dict__.pop("built", None)

    def _hook(
        self, event: str, function: Callable[[Run[ObjectT, StatusT]], H]
    ) -> Callable[[Run[ObjectT, StatusT]], H]:
        names = [one.__name__ for one in self.hooks.setdefault(event, [])]
        if function.__name__ in names:
            raise MachineInvalid(
                f"The machine {self.name!r} has two functions {function.__name__!r} for `on_{event}`."
            )
        self.hooks[event].append(function)
        return function
