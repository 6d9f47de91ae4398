"""Time and identity, handed in from outside.

Nothing below the assembly asks the machine what time it is or draws a random number: whoever needs
either takes a `Clock` or `Ids` as an argument. The system's own live here; clocks that tests move
by hand are in `holdfast.testing`.
"""

import asyncio
import secrets
from datetime import UTC, datetime
from itertools import product
from typing import Protocol


class Clock(Protocol):
    """Aware UTC time with microseconds."""

    def now(self) -> datetime:
        """The present instant, in UTC."""
        ...

    async def sleep_until(self, when: datetime) -> None:
        """Return when that instant has come, never before it."""
        ...


class Ids(Protocol):
    """New identities. They are URL-safe, at most 64 characters, and sort by the time they were made."""

    def new(self) -> str:
        """An id that nobody has drawn before."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251  the one place that may

    async def sleep_until(self, when: datetime) -> None:
        while (left := (when - self.now()).total_seconds()) > 0:
            await asyncio.sleep(left)


class TimeOrderedIds:
    """26 characters: 48 bits of milliseconds, then 80 random bits, in an alphabet that sorts."""

    _ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
    _PAIRS = tuple(map("".join, product(_ALPHABET, repeat=2)))

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def new(self) -> str:
        milliseconds = int(self._clock.now().timestamp() * 1000)
        number = milliseconds << 80 | secrets.randbits(80)
        return "".join([self._PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
