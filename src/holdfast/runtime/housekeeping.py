"""What one node does for all: looks for those who died before theirs, and ends what has expired.

Retention takes its time, so it runs beside the looks and not between them.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.matching import Matching
from holdfast.runtime.retention import Retention
from holdfast.store import Store

ROLE = "housekeeping"
"""The lease of whoever does it."""
YOUNG = timedelta(seconds=30)
EVERY = 10.0
BATCH = 500
RETAIN_AFTER = 5.0
"""Seconds until retention is thought of, and between two such thoughts."""
RETAIN_EVERY = timedelta(minutes=10)
FIRINGS = timedelta(days=30)
"""How long is known which occurrences fired."""


class Housekeeping:
    def __init__(
        self, store: Store, matching: Matching, clock: Clock, *, has_role: Callable[[], bool]
    ) -> None:
        self._store = store
        self._matching = matching
        self._clock = clock
        self._has_role = has_role
        self._round = 0
        self.news = asyncio.Event()
        """Set after an unclean takeover: somebody died, perhaps before a look."""
        self.retention: Retention | None = None
        """Given by whoever wants finished instances to go."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look())
            tasks.create_task(self._retain())

    async def _retain(self) -> None:
        last: datetime | None = None
        while True:
            await asyncio.sleep(RETAIN_AFTER)
            now = self._clock.now()
            if self.retention is None or not self._has_role():
                continue
            if last is not None and now - last < RETAIN_EVERY:
                continue
            try:
                await self.retention.clean()
                last = now
            except Unavailable:
                continue
            except OSError as problem:  # the disk of the archive is full or away: nothing is deleted
                self.retention.note_problem(f"The archive cannot be written: {problem}")

    async def _look(self) -> None:
        backoff = Backoff()
        while True:
            self.news.clear()
            if self._has_role():
                try:
                    await self.clean(thoroughly=self._round % 6 == 0)
                    self._round += 1
                    backoff.reset()
                except Unavailable:
                    await backoff.wait()
                    continue
            try:
                async with asyncio.timeout(EVERY if self._has_role() else 1.0):
                    await self.news.wait()
                self._round = 0
            except TimeoutError:
                pass

    async def clean(self, *, thoroughly: bool) -> None:
        """The young every time, everything now and then."""
        now = self._clock.now()
        await self._store.tune()
        await self._matching.sweep(None if thoroughly else now - YOUNG)
        for expire in (self._store.expire_stimuli, self._store.forget_keys):
            while await expire(BATCH) == BATCH:
                await asyncio.sleep(0)
        if thoroughly:
            while await self._store.forget_firings(now - FIRINGS, BATCH) == BATCH:
                await asyncio.sleep(0)
