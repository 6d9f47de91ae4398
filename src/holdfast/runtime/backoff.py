"""Waiting a little, and longer each time: while a database is away, and between attempts of a message."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar
from zlib import crc32

from holdfast.errors import Unavailable

T = TypeVar("T")

SHORTEST, LONGEST = 0.05, 5.0


class Backoff:
    """50 ms, twice as long each time, 5 s at most."""

    def __init__(self) -> None:
        self._next = SHORTEST

    def reset(self) -> None:
        self._next = SHORTEST

    async def wait(self) -> None:
        await asyncio.sleep(self._next)
        self._next = min(self._next * 2, LONGEST)


async def surely(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer. What is asked for must be the same however often it is asked."""
    backoff = Backoff()
    while True:
        try:
            return await ask()
        except Unavailable:
            await backoff.wait()


def until_retry(attempts: int, seed: str) -> timedelta:
    """250 ms, twice as long each time, 5 minutes at most; spread by what it is for, not by chance."""
    seconds = min(0.25 * 2.0**attempts, 300.0)
    return timedelta(seconds=seconds * (0.75 + (crc32(seed.encode()) % 1000) / 2000))
