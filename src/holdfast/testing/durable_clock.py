"""Time for the durable runtime in a test: it stands still until the test moves it.

A node learns the time from its store and counts on from there; here it asks the test's clock instead.
Leases are not about the test: the store in memory lets its one node live however far the clock moves.
"""

import asyncio
import time
from datetime import datetime, timedelta

from holdfast.clock import Clock
from holdfast.runtime.membership import StoreClock
from holdfast.store import Renewal
from holdfast.stores.memory import MemoryStore

LIFE = timedelta(days=365_000)


class FollowingClock(StoreClock):
    """The clock of a node: it says what the test's clock says."""

    def __init__(self, followed: Clock) -> None:
        super().__init__(time.monotonic, followed.now())
        self._followed = followed
        self._moved = asyncio.Event()
        self._seen = followed.now()

    def learn(self, now: datetime) -> None:
        """A store's own time is none of the test's."""

    def now(self) -> datetime:
        return self._followed.now()

    def notice(self) -> bool:
        """Whether the clock was moved since this was asked last; then whoever sleeps looks again."""
        was, self._seen = self._seen, self.now()
        if was == self._seen:
            return False
        self._moved.set()
        self._moved = asyncio.Event()
        return True

    async def sleep_until(self, when: datetime) -> None:
        while self.now() < when:
            await self._moved.wait()


class TimelessStore(MemoryStore):
    """In memory, on a clock that leaps: whoever joins does not expire."""

    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        return await super().join(node_id, place, LIFE)

    async def renew(self, node_id: str, ttl: timedelta, *, seen: int = 0) -> Renewal:
        return await super().renew(node_id, LIFE, seen=seen)
