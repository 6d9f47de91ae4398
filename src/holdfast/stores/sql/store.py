"""The store on a SQL database: SQLite in one process, PostgreSQL and MariaDB over many.

Each method is one function of a connection in the module of its subject, run in a transaction or as a
plain read. What differs between databases is in `types`, `time` and `engines`; nothing here asks which
one it is.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from holdfast.bookmark import Trigger
from holdfast.commit import Commit, Delivery, Envelope, KeptStimulus, Place
from holdfast.store import (
    Admission,
    Committed,
    LiveNode,
    Loaded,
    Renewal,
    StaleTurn,
    Taken,
    Verdict,
    Waiting,
)
from holdfast.stores.sql import inbox, intake, nodes, turns, waits
from holdfast.stores.sql.engines import Database
from holdfast.stores.sql.failures import TryAgain

P = ParamSpec("P")
T = TypeVar("T")

SHARDS = 64
TRIES = 6
"""How often a transaction that others were in the way of is done; after that it is `Unavailable`."""


class SqlStore:
    """See `holdfast.store.Store` for the promises."""

    def __init__(self, database: Database, *, shards: int = SHARDS) -> None:
        self._database = database
        self._shards = shards

    async def _write(
        self, work: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run it in a transaction, again while others are in the way; it was taken back wholly then."""
        for attempt in range(1, TRIES):
            try:
                return await self._database.write(work, *args, **kwargs)
            except TryAgain:
                await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311  jitter is no secret
        return await self._database.write(work, *args, **kwargs)

    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        return await self._write(nodes.join, node_id, place, ttl)

    async def renew(self, node_id: str, ttl: timedelta) -> Renewal:
        return await self._write(nodes.renew, node_id, ttl)

    async def take(self, node_id: str, names: Sequence[str]) -> list[Taken]:
        return await self._write(nodes.take, node_id, names)

    async def release(self, node_id: str, names: Sequence[str]) -> None:
        await self._write(nodes.release, node_id, names)

    async def leave(self, node_id: str) -> None:
        await self._write(nodes.leave, node_id)

    async def nodes(self) -> list[LiveNode]:
        return await self._database.read(nodes.living)

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        return await self._database.read(inbox.read, after, limit)

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        return await self._database.read(inbox.due, shards, until, limit)

    async def postpone(self, delivery: Delivery, retry_at: datetime, error: str) -> None:
        await self._write(inbox.postpone, delivery, retry_at, error)

    async def count_deaths(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        return await self._write(inbox.count_deaths, deliveries)

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        return await self._database.read(turns.load, keys)

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        return await self._write(turns.commit, commits, self._shards)

    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        return await self._write(intake.admit, admissions)

    async def answer(self, tenant: str, key: str) -> bytes | None:
        return await self._database.read(intake.answer, tenant, key)

    async def find(self, tenant: str, key: str) -> tuple[list[Trigger], list[Waiting]]:
        return await self._database.read(waits.find, tenant, key)

    async def keep(self, stimulus: KeptStimulus) -> None:
        await self._write(waits.keep, stimulus, self._shards)

    async def kept(self, tenant: str, key: str) -> list[KeptStimulus]:
        return await self._database.read(waits.kept, tenant, key)

    async def pair(self, tenant: str, stimulus_id: str, messages: Sequence[Envelope]) -> list[Place] | None:
        return await self._write(waits.pair, tenant, stimulus_id, messages)

    async def replace_triggers(self, tenant: str, definition_id: str, triggers: Sequence[Trigger]) -> None:
        await self._write(waits.replace_triggers, tenant, definition_id, triggers)

    async def close(self) -> None:
        await self._database.close()
