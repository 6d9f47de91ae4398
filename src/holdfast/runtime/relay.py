"""Brings what commits left in the outbox to where it is meant to go, in order, from the shards a node owns.

Each stream goes its own pace: a destination that fails is asked again, later each time, and holds back
nobody else. A row is forgotten when its destination has taken it. So it arrives at least once: whoever
reads a stream sorts and deduplicates by the instance, revision and number that every event carries.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from holdfast.commit import Commit
from holdfast.errors import Unavailable
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.positions import Position
from holdfast.store import OutboxRow, Records
from holdfast.telemetry import Figures

PAGE, FEWEST = 500, 10
"""Rows in one call, shared by the shards that have some; and of each at least so many."""
TICK = 1.0
"""Seconds after which new shards are looked at."""
SWEEP = 5.0
"""Seconds after which all of them are, for those who died between a commit and its relay."""
THOROUGHLY = 60.0
"""Seconds after which they are read from their beginning, whatever was read before."""

_log = logging.getLogger("holdfast")


class Destination(Protocol):
    async def publish(self, rows: Sequence[OutboxRow]) -> None:
        """They have arrived when it returns. Raises when they have not: all of them come again."""
        ...


Publish = Callable[[Sequence[OutboxRow]], Awaitable[None]]


class Relay:
    """The streams of one node, in the shards it owns."""

    def __init__(
        self,
        store: Records,
        destinations: Mapping[str, Destination | Publish],
        *,
        shards: Callable[[], Collection[int]],
        monotonic: Callable[[], float],
        figures: Figures | None = None,
    ) -> None:
        self._lines = [
            _Line(name, _publish_of(destination), store, shards, monotonic, figures or Figures())
            for name, destination in destinations.items()
        ]

    def committed(self, commit: Commit) -> None:
        """A commit of this node left something in the outbox."""
        if commit.change is not None:
            streams = {outgoing.stream for outgoing in commit.outbox}
            for line in self._lines:
                if line.stream in streams:
                    line.wake({commit.change.shard})

    def look(self) -> None:
        """Somebody else may have left something."""
        for line in self._lines:
            line.wake(None)

    async def settled(self) -> None:
        """Returns when nothing is known to wait; never while a destination fails."""
        for line in self._lines:
            await line.settled()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for line in self._lines:
                tasks.create_task(line.run())


class _Line:
    """One stream: what is known of the outbox, and what waits to be looked at."""

    def __init__(
        self,
        stream: str,
        publish: Publish,
        store: Records,
        shards: Callable[[], Collection[int]],
        monotonic: Callable[[], float],
        figures: Figures,
    ) -> None:
        self.stream = stream
        self._publish = publish
        self._store = store
        self._shards = shards
        self._monotonic = monotonic
        self._figures = figures
        self._positions: dict[int, Position] = {}
        self._woken: set[int] = set()
        self._swept = self._cleared = float("-inf")
        self._news = asyncio.Event()
        self._is_idle = asyncio.Event()

    def wake(self, shards: Collection[int] | None) -> None:
        """There is something in these shards; None: perhaps in any."""
        if shards is None:
            self._swept = float("-inf")
        else:
            self._woken |= set(shards)
        self._is_idle.clear()
        self._news.set()

    async def settled(self) -> None:
        """Returns when nothing is known to wait."""
        await self._is_idle.wait()

    async def run(self) -> None:
        backoff = Backoff()
        more: set[int] = set()
        while True:
            self._news.clear()
            due = self._due() | (more & self._positions.keys())
            try:
                more = await self._relay(due) if due else set()
                backoff.reset()
            except Exception as error:  # a destination may raise anything, and is asked again
                more = due
                self._complain(error)
                await backoff.wait()
            if more or self._woken:
                continue
            self._is_idle.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._news.wait()

    def _due(self) -> set[int]:
        """The shards to look at now."""
        owned, moment = set(self._shards()), self._monotonic()
        new = owned - self._positions.keys()
        for gone in self._positions.keys() - owned:
            del self._positions[gone]
        for shard in new:
            self._positions[shard] = Position(shard, 0)
        due = (self._woken & owned) | new
        self._woken.clear()
        if moment - self._swept >= SWEEP:
            self._swept, due = moment, owned
        if moment - self._cleared >= THOROUGHLY:
            self._cleared = moment
            self._positions = {shard: Position(shard, 0) for shard in owned}
        return due

    async def _relay(self, shards: set[int]) -> set[int]:
        """One page of each; those that may have more."""
        moment = self._monotonic()
        limit = max(PAGE // len(shards), FEWEST)
        positions = {shard: self._positions[shard] for shard in sorted(shards)}
        after = [(shard, position.trailing(moment)) for shard, position in positions.items()]
        found = await self._store.outgoing(self.stream, after, limit)
        owned = set(self._shards())
        rows = [row for row in found if row.shard in owned]
        if not rows:
            return set()
        await self._publish(rows)
        await self._store.relayed(rows)
        self._figures.count("relayed", self.stream, len(rows))
        counts: dict[int, int] = {}
        for row in rows:
            counts[row.shard] = counts.get(row.shard, 0) + 1
            positions[row.shard].advance(row.seq)
        for shard in counts:
            positions[shard].mark(moment)
        return {shard for shard, count in counts.items() if count == limit}

    def _complain(self, error: Exception) -> None:
        self._figures.count("relay_failures", self.stream)
        if not isinstance(error, Unavailable):  # the store is away, and everybody says so
            _log.warning(
                "Stream %s could not be published to, and is tried again: %s: %s",
                self.stream,
                type(error).__name__,
                error,
                extra={"stream": self.stream},
            )


def _publish_of(destination: Any) -> Publish:
    """A destination may be an async function of its rows."""
    return cast("Publish", getattr(destination, "publish", destination))
