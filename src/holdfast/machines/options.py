"""How a machine treats errors of its functions: how soon they are called again, and when a run is paused.

Options are merged field by field: what a step does not say, the machine's defaults say, and what those
do not say is standard.
"""

from datetime import timedelta
from typing import Any, TypedDict, cast
from zlib import crc32

import msgspec
from msgspec import UNSET, UnsetType


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is not given is taken from what stands behind it."""

    backoff: timedelta | UnsetType = UNSET
    """Before the first repetition; twice as long before each further one."""
    longest: timedelta | UnsetType = UNSET
    """The backoff is never longer than this."""
    jitter: float | UnsetType = UNSET
    """By which part a wait may be shorter, so that many do not come back at the same moment."""
    pause_after: int | UnsetType | None = UNSET
    """The error at which the run is paused; None is never."""
    pause_retry: timedelta | UnsetType | None = UNSET
    """After this a run that errors have paused is tried again; None is never."""
    fatal: tuple[type[Exception], ...] | UnsetType = UNSET
    """Errors after which trying again is useless, as if the step had raised `GiveUp`."""
    lag: timedelta | UnsetType = UNSET
    """How long a run is in a status at least before its step is called."""


class Choices(TypedDict, total=False):
    """The same, as arguments of a decorator."""

    backoff: timedelta
    longest: timedelta
    jitter: float
    pause_after: int | None
    pause_retry: timedelta | None
    fatal: tuple[type[Exception], ...]
    lag: timedelta


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """Options with nothing left open."""

    backoff: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    jitter: float = 0.25
    pause_after: int | None = 10
    pause_retry: timedelta | None = timedelta(hours=1)
    fatal: tuple[type[Exception], ...] = ()
    lag: timedelta = timedelta(0)

    def delay(self, attempt: int, seed: str) -> timedelta:
        """How long to wait after so many errors. Spread by whose it is, not by chance: a turn done again
        waits for the same instant."""
        doublings = min(attempt - 1, (self.longest // self.backoff).bit_length())
        whole = min(self.backoff * 2**doublings, self.longest)
        share = crc32(f"{seed}#{attempt}".encode()) % 1000 / 1000
        return whole * (1 - self.jitter * share)


def merged(*layers: Options | Choices) -> Settled:
    """The standard, overlaid by each of these in turn."""
    said: dict[str, Any] = {}
    for layer in layers:
        given = msgspec.structs.asdict(layer) if isinstance(layer, Options) else cast("dict[str, Any]", layer)
        said |= {name: value for name, value in given.items() if value is not UNSET}
    return Settled(**said)


def problems_of(options: Settled) -> list[str]:
    """What is wrong with them, each in a sentence."""
    found: list[str] = []
    if options.backoff <= timedelta(0) or options.longest < options.backoff:
        found.append("`backoff` must be longer than nothing, and `longest` at least as long.")
    if not 0 <= options.jitter <= 1:
        found.append("`jitter` is a part of the wait: from 0 to 1.")
    if options.pause_after is not None and options.pause_after < 1:
        found.append("`pause_after` counts errors: 1 or more, or None for never.")
    if options.pause_retry is not None and options.pause_retry <= timedelta(0):
        found.append("`pause_retry` must be longer than nothing, or None for never.")
    if options.lag < timedelta(0):
        found.append("`lag` cannot be negative.")
    return found
