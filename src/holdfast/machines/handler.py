"""A function of a machine, and what its annotations say: where it leads, and what payload it takes.

Annotations are read when the machine is checked, not when the function is decorated, so that they may
name what is defined further down.
"""

import types
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import Enum
from inspect import Parameter, iscoroutinefunction, signature
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from zlib import crc32

import msgspec

from holdfast.errors import Invalid
from holdfast.machines.options import Settled
from holdfast.machines.results import Again, Cancel, Pause, Skip

CONTROLS = (Pause, Skip, Cancel, Again)


class MachineInvalid(Invalid):
    """A machine does not hold together. The message names the function, and says how to mend it."""

    code = "machine.invalid"


class Given(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A function as it was handed to a decorator."""

    kind: str
    status: Any
    name: str
    function: Callable[..., Any]
    to: tuple[Any, ...] = ()
    options: Settled = Settled()
    after: timedelta | None = None
    at: datetime | None = None
    due: Callable[..., Any] | None = None

    @property
    def said(self) -> str:
        """How messages call it."""
        return f"{self.kind} {self.function.__qualname__!r}"


class Handler(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A function whose annotations were read."""

    given: Given
    status: Enum
    to: tuple[Enum, ...]
    """Where it may lead, in the order it is written."""
    controls: frozenset[type]
    payload: Any = None
    """The type of a callback's second parameter; None when it has none."""
    is_async: bool
    number: int
    """By which the journal names it: the same however functions are reordered."""

    @property
    def name(self) -> str:
        return self.given.name

    @property
    def options(self) -> Settled:
        return self.given.options


def _number(given: Given, status: Enum) -> int:
    return crc32(f"{given.kind}:{status.value}:{given.name}".encode()) or 1


def read_handler(given: Given, statuses: type[Enum]) -> Handler:
    """Raises MachineInvalid."""
    function = given.function
    status = _member(given.status, statuses, f"The {given.said} is declared for")
    hints = _hints(given)
    to, controls = _destinations(given, hints, statuses)
    takes = [p for p in signature(function).parameters.values() if p.kind in _POSITIONAL]
    payload: Any = None
    if given.kind == "callback":
        if not 1 <= len(takes) <= 2:
            raise MachineInvalid(f"The {given.said} takes the run, and a payload if it wants one.")
        if len(takes) == 2:
            payload = hints.get(takes[1].name, Any)
    elif len(takes) != 1:
        raise MachineInvalid(f"The {given.said} takes one argument, the run; it has {len(takes)}.")
    return Handler(
        given=given,
        status=status,
        to=to,
        controls=controls,
        payload=payload,
        is_async=iscoroutinefunction(function),
        number=_number(given, status),
    )


def _hints(given: Given) -> dict[str, Any]:
    try:
        return get_type_hints(given.function)
    except Exception as problem:  # whatever evaluating an annotation raises
        raise MachineInvalid(
            f"The annotations of the {given.said} cannot be read: {problem}. Define what they name at the "
            f"top level of the module, outside `if TYPE_CHECKING`."
        ) from problem


def _destinations(
    given: Given, hints: dict[str, Any], statuses: type[Enum]
) -> tuple[tuple[Enum, ...], frozenset[type]]:
    said = f"The {given.said} leads to"
    if given.to:
        named = (_member(one, statuses, said) for one in given.to)
        return tuple(dict.fromkeys(named)), frozenset(CONTROLS)
    if "return" not in hints:
        raise MachineInvalid(
            f"The {given.said} does not say where it leads. Annotate what it returns, such as "
            f"`-> Literal[{statuses.__name__}.{next(iter(statuses)).name}]`, or pass `to=`."
        )
    to: list[Enum] = []
    controls: set[type] = set()
    for part in _parts(hints["return"]):
        if isinstance(part, type) and part in CONTROLS:
            controls.add(part)
        elif get_origin(part) is Literal:
            to += [_member(one, statuses, said) for one in get_args(part)]
        elif part is statuses:
            raise MachineInvalid(
                f"The {given.said} returns any {statuses.__name__}. Say which: "
                f"`-> Literal[{statuses.__name__}.{next(iter(statuses)).name}, ...]`, or pass `to=`."
            )
        else:
            raise MachineInvalid(
                f"The {given.said} returns {_shown(part)}, which is no status. It may return members of "
                f"{statuses.__name__} in a Literal, and Pause, Skip, Cancel or Again."
            )
    return tuple(dict.fromkeys(to)), frozenset(controls)


def _parts(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [part for one in get_args(annotation) for part in _parts(one)]
    return [annotation]


def _member(value: Any, statuses: type[Enum], said: str) -> Enum:
    if isinstance(value, statuses):
        return value
    known = ", ".join(statuses.__members__)
    raise MachineInvalid(f"{said} {_shown(value)}, which is not among {statuses.__name__}: {known}.")


def _shown(value: Any) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return value.__name__ if isinstance(value, type) else repr(value)


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
