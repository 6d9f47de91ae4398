"""A machine that was checked: its functions by status, and the graph they make.

Everything that is wrong is found here, before a run begins: statuses nobody knows or nothing leads to,
a machine that never ends, two steps for one status.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec

from holdfast.machines.handler import Given, Handler, MachineInvalid, read_handler
from holdfast.machines.objects import Objects
from holdfast.machines.options import problems_of
from holdfast.machines.results import Cancel, Skip


class Built(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    statuses: type[Enum]
    start: Enum
    steps: Mapping[Enum, Handler]
    callbacks: Mapping[Enum, Mapping[str, Handler]]
    timeouts: Mapping[Enum, Mapping[str, Handler]]
    handlers: tuple[Handler, ...]
    payloads: Mapping[int, Objects[Any]]
    """Of callbacks that take one, by the number of the callback."""
    terminal: frozenset[Enum]
    reach: Mapping[Enum, frozenset[Enum]]
    """From each status those that a run may still come to."""

    def named(self, number: int) -> Handler | None:
        return next((handler for handler in self.handlers if handler.number == number), None)


def build(machine: str, statuses: type[Enum], starts: Sequence[Enum], given: Iterable[Given]) -> Built:
    """Raises MachineInvalid."""
    for member in statuses:
        if not isinstance(member.value, int | str) or isinstance(member.value, bool):
            raise MachineInvalid(
                f"{statuses.__name__}.{member.name} has the value {member.value!r}. The value is what is "
                f"kept: use an IntEnum or a StrEnum."
            )
    handlers = [read_handler(one, statuses) for one in given]
    if not handlers:
        raise MachineInvalid(f"The machine {machine!r} has no steps. Decorate functions with `.step(...)`.")
    for handler in handlers:
        for problem in problems_of(handler.options):
            raise MachineInvalid(f"The {handler.given.said}: {problem}")
    by_kind = {
        kind: [h for h in handlers if h.given.kind == kind] for kind in ("step", "callback", "timeout")
    }
    steps = _one_each(by_kind["step"])
    callbacks = _by_name(by_kind["callback"])
    timeouts = _by_name(by_kind["timeout"])
    first = list(starts) or [handlers[0].status]
    for start in first:
        if not isinstance(start, statuses):
            raise MachineInvalid(f"`start=` of the machine {machine!r} is no {statuses.__name__}: {start!r}.")
    edges = _edges(statuses, handlers)
    reach = {status: _reached(edges, [status]) for status in statuses}
    _check_graph(machine, statuses, first, handlers, edges)
    return Built(
        statuses=statuses,
        start=first[0],
        steps=steps,
        callbacks=callbacks,
        timeouts=timeouts,
        handlers=tuple(handlers),
        payloads={h.number: _payload(h) for h in by_kind["callback"] if h.payload is not None},
        terminal=frozenset(status for status in statuses if status not in edges),
        reach=reach,
    )


def _one_each(handlers: Iterable[Handler]) -> dict[Enum, Handler]:
    found: dict[Enum, Handler] = {}
    for handler in handlers:
        other = found.setdefault(handler.status, handler)
        if other is not handler:
            raise MachineInvalid(
                f"{_name(handler.status)} has two steps, {other.given.function.__qualname__!r} and "
                f"{handler.given.function.__qualname__!r}. Give one of them another status."
            )
    return found


def _by_name(handlers: Iterable[Handler]) -> dict[Enum, dict[str, Handler]]:
    found: dict[Enum, dict[str, Handler]] = {}
    for handler in handlers:
        other = found.setdefault(handler.status, {}).setdefault(handler.name, handler)
        if other is not handler:
            raise MachineInvalid(
                f"{_name(handler.status)} has two {handler.given.kind}s called {handler.name!r}: "
                f"{other.given.function.__qualname__!r} and {handler.given.function.__qualname__!r}. "
                f"Give one of them a `name=`."
            )
    return found


def _edges(statuses: type[Enum], handlers: Iterable[Handler]) -> dict[Enum, list[Enum]]:
    """From every status that has a function to where those lead."""
    found: dict[Enum, list[Enum]] = {}
    for handler in handlers:
        leads = found.setdefault(handler.status, [])
        leads += [status for status in handler.to if status not in leads]
    return found


def _reached(edges: Mapping[Enum, Sequence[Enum]], starts: Iterable[Enum]) -> frozenset[Enum]:
    """What may come after, at any distance."""
    found: set[Enum] = set()
    line = deque(starts)
    while line:
        for status in edges.get(line.popleft(), ()):
            if status not in found:
                found.add(status)
                line.append(status)
    return frozenset(found)


def _check_graph(
    machine: str,
    statuses: type[Enum],
    starts: Sequence[Enum],
    handlers: Sequence[Handler],
    edges: Mapping[Enum, Sequence[Enum]],
) -> None:
    for start in starts:
        if start not in edges:
            raise MachineInvalid(
                f"The machine {machine!r} begins in {_name(start)}, which has no step, callback or timeout. "
                f"Begin elsewhere with `start=`, or declare what happens there."
            )
    known = _reached(edges, starts) | set(starts)
    for status in statuses:
        if status not in known:
            functions = [h.given.function.__qualname__ for h in handlers if h.status == status]
            about = f" Its functions, such as {functions[0]!r}, are never called." if functions else ""
            raise MachineInvalid(
                f"Nothing leads to {_name(status)} in the machine {machine!r}.{about} Let a function return "
                f"it, begin there with `start=`, or remove it from {statuses.__name__}."
            )
    if all(status in edges for status in statuses):
        functions = ", ".join(sorted({h.given.function.__qualname__ for h in handlers}))
        raise MachineInvalid(
            f"The machine {machine!r} has no terminal status: every one has functions ({functions}), so a "
            f"run never ends. Add a status that has none, and let a function return it."
        )
    for status, leads in edges.items():
        here = [handler for handler in handlers if handler.status == status]
        if not leads and all(Cancel not in handler.controls for handler in here):
            raise MachineInvalid(
                f"No function of {_name(status)} leads anywhere: {here[0].given.function.__qualname__!r} "
                f"returns no other status. Let it return one."
            )
        only = here[0]
        if len(here) == 1 and only.given.kind == "step" and Skip in only.controls and not only.given.to:
            raise MachineInvalid(
                f"The {only.given.said} may return Skip, but {_name(status)} has no callback or timeout: the "
                f"run would wait for nothing. Return Pause or Again, or declare what it shall wait for."
            )


def _payload(handler: Handler) -> Objects[Any]:
    try:
        return Objects(handler.payload)
    except TypeError as problem:
        raise MachineInvalid(
            f"The payload of the {handler.given.said} cannot be read from JSON: {problem}. Take `bytes`, and "
            f"read it yourself."
        ) from problem


def _name(status: Enum) -> str:
    return f"{type(status).__name__}.{status.name}"
