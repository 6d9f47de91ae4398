"""Writes the commits of many turns together.

Turns finish whenever they finish; while one group is being written the next one gathers. So a lone turn
never waits for company, and under load one transaction, one round trip and one wait for the disk are
shared by many. Two groups may be under way: one writes while the other waits for the disk.
"""

import asyncio
from types import TracebackType

from holdfast.commit import Commit
from holdfast.errors import Unavailable
from holdfast.store import Committed, StaleTurn, Turns
from holdfast.telemetry import Figures

MOST = 300
"""Turns in one group."""
GROUPS = 2
"""Groups under way at a time."""


class Committer:
    """Use it with `async with`; leaving it waits for what was asked to be written."""

    def __init__(
        self, store: Turns, *, most: int = MOST, groups: int = GROUPS, figures: Figures | None = None
    ) -> None:
        figures = figures or Figures()
        self._sizes = figures.histogram("commit_turns")
        self._times = figures.histogram("commit_seconds")
        self._store = store
        self._most = most
        self._groups = groups
        self._pending: list[tuple[Commit, asyncio.Future[Committed]]] = []
        self._news = asyncio.Event()
        self._is_closing = False
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "Committer":
        await self._tasks.__aenter__()
        for _ in range(self._groups):
            self._tasks.create_task(self._write_groups())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        self._news.set()
        await self._tasks.__aexit__(kind, error, trace)

    async def write(self, commit: Commit) -> Committed:
        """Durable when it returns. Raises StaleTurn, or Unavailable when nobody knows if it was written."""
        if self._is_closing:
            raise Unavailable("This node is stopping; another one will take the turn.")
        written: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        self._pending.append((commit, written))
        self._news.set()
        return await written

    async def _write_groups(self) -> None:
        while True:
            group = self._gather()
            if group:
                await self._write(group)
            elif self._is_closing:
                return
            else:
                self._news.clear()
                await self._news.wait()

    def _gather(self) -> list[tuple[Commit, asyncio.Future[Committed]]]:
        """Those who are waiting now, but never two turns of one instance."""
        taken: dict[tuple[str, str], tuple[Commit, asyncio.Future[Committed]]] = {}
        left: list[tuple[Commit, asyncio.Future[Committed]]] = []
        for commit, written in self._pending:
            key = (commit.tenant, commit.instance_id)
            if key in taken or len(taken) >= self._most:
                left.append((commit, written))
            elif not written.cancelled():  # whoever asked has given up before it was begun
                taken[key] = commit, written
        self._pending = left
        return list(taken.values())

    async def _write(self, group: list[tuple[Commit, asyncio.Future[Committed]]]) -> None:
        began = asyncio.get_running_loop().time()
        try:
            outcomes = await self._store.commit([commit for commit, _ in group])
        except Exception as error:  # whatever it was, those who wait must hear of it; the next group goes on
            for _, written in group:
                if not written.done():
                    written.set_exception(error)
            return
        self._sizes.observe(len(group))
        self._times.observe(asyncio.get_running_loop().time() - began)
        for (_, written), outcome in zip(group, outcomes, strict=True):
            if written.done():
                continue
            if isinstance(outcome, StaleTurn):
                written.set_exception(outcome)
            else:
                written.set_result(outcome)
