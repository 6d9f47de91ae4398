"""The store on a SQL database: SQLite in one process, PostgreSQL and MariaDB over many.

Each method is one function of a connection in the module of its subject, run in a transaction or as a
plain read; what is done all the time is `dialect`'s. What differs between databases is in `types`,
`time`, `engines` and `dialects`; nothing here asks which one it is.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from holdfast.bookmark import Trigger
from holdfast.commit import Commit, DeadLetter, Delivery, Envelope, KeptStimulus, Place, Segment
from holdfast.store import (
    Activation,
    Admission,
    Attempt,
    Burial,
    Committed,
    Edition,
    Firing,
    InstanceFilter,
    KeyReused,
    LiveNode,
    Loaded,
    Orphan,
    OutboxRow,
    Page,
    Pause,
    Placement,
    Posted,
    Posting,
    Publication,
    Refused,
    Renewal,
    Repeated,
    Schedule,
    ShardGroup,
    StaleTurn,
    StoredVersion,
    Summary,
    Taken,
    Verdict,
    VersionHeader,
    Vitals,
    Waiting,
)
from holdfast.stores.sql import (
    attempts,
    definitions,
    dialect,
    inbox,
    intake,
    letters,
    nodes,
    orphans,
    pauses,
    placements,
    records,
    relay,
    retention,
    schedules,
    tuning,
    turns,
    waits,
)
from holdfast.stores.sql.bell import bell_of
from holdfast.stores.sql.dialects import dialect_of
from holdfast.stores.sql.engines import Database, create

P = ParamSpec("P")
T = TypeVar("T")


class SqlStore:
    """See `holdfast.store.Store` for the promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dialect = dialect_of(database)
        self._bell = bell_of(database.url)
        self._shards: int | None = None

    async def _write(
        self, work: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run it in a transaction, again while others are in the way; it was taken back wholly then."""
        return await self._try(lambda: self._database.write(work, *args, **kwargs))

    async def _write_at_once(
        self, work: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._try(lambda: self._database.write_at_once(work, *args, **kwargs))

    async def _try(self, write: Callable[[], Awaitable[T]]) -> T:
        with self._bell.writing():
            return await dialect.again(write)

    async def _shard_count(self) -> int:
        if self._shards is None:
            self._shards = await self._database.read(placements.shard_count)
        return self._shards

    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        return await self._write(nodes.join, node_id, place, ttl)

    async def renew(self, node_id: str, ttl: timedelta, *, seen: int = 0) -> Renewal:
        return await self._write_at_once(nodes.renew, node_id, ttl, seen)

    async def take(self, node_id: str, names: Sequence[str]) -> list[Taken]:
        return await self._write(nodes.take, node_id, names)

    async def release(self, node_id: str, names: Sequence[str]) -> None:
        await self._write(nodes.release, node_id, names)

    async def leave(self, node_id: str) -> None:
        await self._write(nodes.leave, node_id)

    async def nodes(self) -> list[LiveNode]:
        return await self._database.read(nodes.living)

    async def leases(self) -> Mapping[str, tuple[str, int]]:
        return await self._database.read(nodes.owned)

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        return await self._dialect.read(after, limit)

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        return await self._dialect.due(shards, until, limit)

    async def postpone(self, delivery: Delivery, retry_at: datetime, error: str) -> None:
        await self._write(inbox.postpone, delivery, retry_at, error)

    async def count_deaths(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        return await self._write(inbox.count_deaths, deliveries)

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        return await self._dialect.load(keys)

    async def shards(self, tenant: str, instance_ids: Sequence[str]) -> Mapping[str, int]:
        return await self._database.read(turns.shards, tenant, instance_ids)

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        shards = await self._shard_count()
        with self._bell.writing():
            return await dialect.commit(self._dialect, commits, shards)

    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        with self._bell.writing():
            return await dialect.admit(self._dialect, admissions, partial(self._write, intake.admit))

    async def post(self, posting: Posting) -> Posted | Repeated | KeyReused:
        return await self._write(intake.post, posting, await self._shard_count())

    async def activate(
        self, tenant: str, instance_id: str, activations: Sequence[Activation]
    ) -> Refused | None:
        return await self._write(intake.activate, tenant, instance_id, activations)

    async def forget_keys(self, limit: int) -> int:
        return await self._try(partial(self._dialect.forget_keys, limit))

    async def answer(self, tenant: str, key: str) -> bytes | None:
        return await self._database.read(intake.answer, tenant, key)

    async def find(
        self, tenant: str, key: str, *, instance_id: str | None = None, correlation_id: str | None = None
    ) -> tuple[list[Trigger], list[Waiting]]:
        return await self._database.read(waits.find, tenant, key, instance_id, correlation_id)

    async def keep(self, stimulus: KeptStimulus) -> None:
        await self._write(waits.keep, stimulus, await self._shard_count())

    async def kept(self, tenant: str, keys: Sequence[str]) -> list[KeptStimulus]:
        return await self._database.read(waits.kept, tenant, keys)

    async def pair(self, tenant: str, stimulus_id: str, messages: Sequence[Envelope]) -> list[Place] | None:
        return await self._write(waits.pair, tenant, stimulus_id, messages)

    async def meetings(self, since: datetime | None, limit: int) -> list[KeptStimulus]:
        return await self._database.read(waits.meetings, since, limit)

    async def expire_stimuli(self, limit: int) -> int:
        return await self._write(waits.expire_stimuli, limit, await self._shard_count())

    async def edition(self, tenant: str, definition_id: str) -> Edition:
        return await self._database.read(definitions.edition, tenant, definition_id)

    async def publish(self, publications: Sequence[Publication]) -> None:
        await self._write(definitions.publish, publications)

    async def version(self, tenant: str, version_id: str) -> StoredVersion | None:
        return await self._database.read(definitions.version, tenant, version_id)

    async def published(self, tenant: str, definition_id: str) -> StoredVersion | None:
        return await self._database.read(definitions.published, tenant, definition_id)

    async def usable(self, tenant: str) -> list[StoredVersion]:
        return await self._database.read(definitions.usable, tenant)

    async def headers(
        self, tenant: str, *, published: bool | None = None, after: str = "", limit: int = 1000
    ) -> list[VersionHeader]:
        return await self._database.read(definitions.headers, tenant, published, after, limit)

    async def due_schedules(self, shards: Sequence[int], until: datetime, limit: int) -> list[Schedule]:
        return await self._database.read(schedules.due, shards, until, limit)

    async def waiting_schedules(self, shards: Sequence[int], limit: int) -> list[Schedule]:
        return await self._database.read(schedules.waiting, shards, limit)

    async def schedules(self, tenant: str, definition_id: str | None = None) -> list[Schedule]:
        return await self._database.read(schedules.of_tenant, tenant, definition_id)

    async def fire(self, firing: Firing) -> Verdict | None:
        return await self._write(schedules.fire, firing)

    async def forget_firings(self, before: datetime, limit: int) -> int:
        return await self._write(schedules.forget_firings, before, limit)

    async def idle_attempts(self, shards: Sequence[int], limit: int) -> list[Attempt]:
        return await self._database.read(attempts.idle, shards, limit)

    async def claim(self, node_id: str, attempt: Attempt) -> Attempt | None:
        return await self._write(attempts.claim, node_id, attempt)

    async def conclude(self, attempt: Attempt, message: Envelope) -> Place | None:
        return await self._write(attempts.conclude, attempt, message)

    async def instances(
        self,
        wanted: InstanceFilter,
        *,
        order: str = "created_at",
        descending: bool = True,
        skip: int = 0,
        limit: int = 100,
    ) -> Page[Summary]:
        return await self._database.read(
            records.instances_page, wanted, order=order, descending=descending, skip=skip, limit=limit
        )

    async def open_children(self, tenant: str, parent_id: str, limit: int, after: str = "") -> list[Summary]:
        return await self._database.read(records.open_children, tenant, parent_id, limit, after)

    async def journal_of(
        self, tenant: str, instance_id: str, *, after: int = -1, limit: int = 100
    ) -> list[Segment]:
        return await self._database.read(records.journal_of, tenant, instance_id, after, limit)

    async def journal_summaries(self, tenant: str, instance_id: str) -> list[tuple[int, int, bytes]]:
        return await self._database.read(records.journal_summaries, tenant, instance_id)

    async def finished(self, before: datetime, limit: int, definition_id: str | None = None) -> list[Burial]:
        return await self._database.read(retention.finished, before, limit, definition_id)

    async def retired(self, before: datetime) -> list[tuple[str, str]]:
        return await self._database.read(retention.retired, before)

    async def erase(self, keys: Sequence[tuple[str, str]], before: datetime) -> int:
        return await self._write(retention.erase, keys, before)

    async def stuck(self, limit: int) -> list[tuple[Summary, bytes | None]]:
        return await self._database.read(retention.stuck, limit)

    async def orphans(self, limit: int) -> list[Orphan]:
        return await self._database.read(orphans.orphans, limit)

    async def dead_letters(
        self, tenant: str | None, *, instance_id: str | None = None, skip: int = 0, limit: int = 100
    ) -> Page[DeadLetter]:
        return await self._database.read(letters.letters_page, tenant, instance_id, skip, limit)

    async def dead_letter(self, tenant: str, letter_id: str) -> DeadLetter:
        return await self._database.read(letters.letter, tenant, letter_id)

    async def replay(self, tenant: str, letter_id: str, payload: bytes | None = None) -> Place:
        return await self._write(letters.replay, tenant, letter_id, payload)

    async def discard(self, tenant: str, letter_id: str) -> None:
        await self._write(letters.discard, tenant, letter_id)

    async def pause(self, pause: Pause) -> int:
        return await self._write(pauses.pause, pause)

    async def lift(self, tenant: str, scope: str) -> int:
        return await self._write(pauses.lift, tenant, scope)

    async def pauses(self) -> list[Pause]:
        return await self._database.read(pauses.in_force)

    async def outgoing(self, stream: str, after: Sequence[tuple[int, int]], limit: int) -> list[OutboxRow]:
        return await self._database.read(relay.outgoing, stream, after, limit)

    async def relayed(self, rows: Sequence[OutboxRow]) -> None:
        await self._write(relay.relayed, rows)

    async def postpone_relay(self, row: OutboxRow, retry_at: datetime) -> None:
        await self._write(relay.postpone, row, retry_at)

    async def depth(self) -> list[tuple[int, int, datetime | None]]:
        return await self._database.read(records.depth)

    async def tune(self) -> list[str]:
        return await self._write(tuning.tune)

    async def vitals(self) -> Vitals:
        return await self._database.read(orphans.vitals)

    async def shard_groups(self) -> Mapping[str, ShardGroup]:
        return await self._database.read(placements.groups)

    async def create_group(self, name: str, count: int) -> ShardGroup:
        return await self._write(placements.create_group, name, count)

    async def place(self, placement: Placement) -> None:
        await self._write(placements.place, placement)

    async def unplace(self, tenant: str, definition_id: str = "") -> None:
        await self._write(placements.unplace, tenant, definition_id)

    async def placements(self) -> list[Placement]:
        return await self._database.read(placements.placed)

    async def ring(self, words: Sequence[str]) -> None:
        await self._bell.ring(words)

    async def listen(self, hear: Callable[[str], None]) -> None:
        await self._bell.listen(hear)

    def apart(self) -> "SqlStore":
        return SqlStore(create(self._database.url, writers=1, readers=1))

    async def close(self) -> None:
        await self._bell.close()
        await self._database.close()
