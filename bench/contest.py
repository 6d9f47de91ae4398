"""Who is measured on a database, how much of everything, and what it took.

Processor time is that of the contender's process and of the database's processes for it, together;
seconds on the clock depend on who else uses the machine.
"""

import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from bench.child import Answer, Child
from bench.databases import Server
from bench.measure import Effort, Stopwatch, Timing

CALLERS = 128


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much of everything."""

    rounds: int = 4
    workflows: int = 2_000
    by_dbos: int = 200
    one_by_one: int = 200
    waiting: int = 10_000
    timers: int = 10_000
    first: float = 8.0
    """Seconds until the first timer is due: all of them are set by then."""
    spread: float = 15.0
    """Seconds in which they are due."""
    finished: int = 50_000
    idle: int = 5_000
    """Instances in the full tables: those that have finished, and those that wait."""
    reads: int = 1_500
    workers: tuple[int, ...] = (1, 2, 4)


USUAL = Size()
FULL = Size(finished=1_000_000, idle=100_000)
SMALL = Size(
    rounds=1,
    workflows=100,
    by_dbos=5,
    one_by_one=5,
    waiting=100,
    timers=100,
    first=0.5,
    spread=0.5,
    finished=500,
    idle=100,
    reads=50,
    workers=(1, 2),
)


def size_for(effort: Effort) -> Size:
    if effort.counts_the_first:
        return SMALL
    return FULL if effort.is_full else USUAL


class Spent(msgspec.Struct, frozen=True):
    """Seconds for one workflow."""

    wall: float
    client: float
    server: float

    @property
    def processor(self) -> float:
        return self.client + self.server


class Contender:
    """One process, its database, and what each round of it took."""

    def __init__(self, child: Child, url: str, server: Server | None) -> None:
        self.child = child
        self.url = url
        self._server = server
        self._spent: dict[str, list[Spent]] = {}

    async def measure(self, what: str, operations: int, do: str, /, **more: Any) -> Answer:
        """Ask for so many workflows, and keep what they took under this word."""
        before = await self._served()
        answer = await self.child.ask(do, **more)
        served = await self._served() - before
        seconds = answer["seconds"], answer["processor"], served
        self._spent.setdefault(what, []).append(Spent(*(one / operations for one in seconds)))
        return answer

    async def _served(self) -> float:
        return 0.0 if self._server is None else await self._server.processor(self.url)

    def has(self, name: str) -> bool:
        return name in self._spent

    def wall(self, name: str) -> Timing:
        return _timing([spent.wall for spent in self._spent[name]])

    def processor(self, name: str) -> Timing:
        return _timing([spent.processor for spent in self._spent[name]])

    def parts(self, name: str) -> Spent:
        """Of the cheapest round."""
        return min(self._spent[name], key=lambda spent: spent.processor)


def _timing(seconds: Sequence[float]) -> Timing:
    return Timing(min(seconds), statistics.median(seconds))


@asynccontextmanager
async def contending(module: str, url: str, server: Server | None = None) -> AsyncIterator[Contender]:
    """In a process of its own."""
    async with Child(module, url) as child:
        yield Contender(child, url, server)


class Steps:
    """How far it is, for the progress line."""

    def __init__(self, stopwatch: Stopwatch, total: int) -> None:
        self._stopwatch = stopwatch
        self._total = total
        self._done = 0

    def __call__(self) -> None:
        self._done += 1
        self._stopwatch.tell(min(self._done, self._total), self._total)


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
