"""What operators see and do: lists, journals, retention, dead letters, pauses, the outbox."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

import msgspec

from holdfast.commit import DeadLetter, Lane, Place, Segment
from holdfast.errors import Invalid
from holdfast.store import (
    Burial,
    InstanceFilter,
    LetterNotFound,
    Loaded,
    Orphan,
    OutboxRow,
    Page,
    Pause,
    Summary,
    Vitals,
)
from holdfast.store.records import COUNTED
from holdfast.stores.memory.tables import Subject

T = TypeVar("T")

ORDERS = ("created_at", "updated_at", "finished_at", "name")


class MemoryRecords(Subject):
    # --- instances --------------------------------------------------------------------------------

    async def instances(
        self,
        wanted: InstanceFilter,
        *,
        order: str = "created_at",
        descending: bool = True,
        skip: int = 0,
        limit: int = 100,
    ) -> Page[Summary]:
        if order not in ORDERS:
            raise Invalid(f"Instances cannot be ordered by {order!r}, only by {', '.join(ORDERS)}.")

        def place(summary: Summary) -> tuple[Any, str]:
            return getattr(summary.columns, order), summary.instance_id

        found = [_summary(row) for row in self._tables.instances.values() if _is_wanted(row, wanted)]
        with_value = sorted(
            (one for one in found if place(one)[0] is not None), key=place, reverse=descending
        )
        without = sorted(
            (one for one in found if place(one)[0] is None),
            key=lambda one: one.instance_id,
            reverse=descending,
        )
        return _page([*with_value, *without], skip, limit)

    async def open_children(self, tenant: str, parent_id: str, limit: int, after: str = "") -> list[Summary]:
        children = self._tables.instances.by("open_parent", (tenant, parent_id))
        behind = ((key, child) for key, child in sorted(children.items()) if key[1] > after)
        return [_summary(child) for _, child in islice(behind, limit)]

    async def journal_of(
        self, tenant: str, instance_id: str, *, after: int = -1, limit: int = 100
    ) -> list[Segment]:
        segments = self._tables.journal.get((tenant, instance_id), [])
        return [segment for segment in segments if segment.sequence > after][:limit]

    async def journal_summaries(self, tenant: str, instance_id: str) -> list[tuple[int, int, bytes]]:
        segments = self._tables.journal.get((tenant, instance_id), [])
        return [(segment.sequence, segment.records, segment.summary) for segment in segments]

    async def finished(self, before: datetime, limit: int, definition_id: str | None = None) -> list[Burial]:
        over = [
            (row.columns.finished_at, key, row)
            for key, row in self._tables.instances.items()
            if row.columns.finished_at is not None
            and row.columns.finished_at < before
            and definition_id in (None, row.columns.definition_id)
        ]
        return [
            Burial(
                summary=_summary(row),
                state=row.state,
                journal=tuple(self._tables.journal.get(key, ())),
            )
            for _, key, row in sorted(over, key=lambda entry: entry[:2])[:limit]
        ]

    async def retired(self, before: datetime) -> list[tuple[str, str]]:
        return sorted(
            {
                (row.tenant, row.columns.definition_id)
                for row in self._tables.instances.values()
                if row.columns.finished_at is not None and row.columns.finished_at < before
            }
        )

    async def erase(self, keys: Sequence[tuple[str, str]], before: datetime) -> int:
        return sum(self._erase(key, before) for key in set(keys))

    def _erase(self, key: tuple[str, str], before: datetime) -> bool:
        tables = self._tables
        row = tables.instances.get(key)
        if row is None or row.columns.finished_at is None or row.columns.finished_at >= before:
            return False
        del tables.instances[key]
        tables.journal.pop(key, None)
        for belongings in (tables.timers, tables.waits, tables.attempts, tables.activations):
            for one in list(belongings.by("instance", key)):
                del belongings[one]  # type: ignore[arg-type]  # each table has keys of its own kind
        for one, stimulus in list(tables.stimuli.items()):
            if (stimulus.tenant, stimulus.instance_id) == key:
                del tables.stimuli[one]
        for letter in list(tables.dead_letters.values()):
            if (letter.envelope.tenant, letter.envelope.instance_id) == key:
                del tables.dead_letters[letter.id]
        return True

    async def stuck(self, limit: int) -> list[tuple[Summary, bytes | None]]:
        tables = self._tables
        addressed = {
            (one.envelope.tenant, one.envelope.instance_id)
            for one in (*tables.inbox.values(), *tables.dead_letters.values())
        }

        def has_cause(key: tuple[str, str], row: Loaded) -> bool:
            waiting = (tables.waits, tables.timers, tables.attempts)
            return (
                row.columns.is_paused
                or key in addressed
                or any(table.by("instance", key) for table in waiting)
                or bool(tables.instances.by("open_parent", key))
            )

        stuck = (
            (_summary(row), row.state)
            for key, row in sorted(tables.instances.items())
            if row.columns.finished_at is None and not has_cause(key, row)
        )
        return list(islice(stuck, limit))

    async def orphans(self, limit: int) -> list[Orphan]:
        tables = self._tables
        found: list[Orphan] = []
        activations = [(tenant, holder, key) for (tenant, key), holder in tables.activations.items()]
        belongings: tuple[tuple[str, Iterable[tuple[str, str, object]]], ...] = (
            ("bookmark", tables.waits),
            ("timer", tables.timers),
            ("attempt", tables.attempts),
            ("activation", activations),
        )
        for kind, names in belongings:
            lost = (name for name in names if name[:2] not in tables.instances)
            found += (
                Orphan(kind=kind, tenant=tenant, instance_id=owner, name=str(name))
                for tenant, owner, name in islice(lost, limit)
            )
        lost_children = (
            Orphan(kind="child", tenant=row.tenant, instance_id=parent, name=row.instance_id)
            for _, row in sorted(tables.instances.items())
            if row.columns.finished_at is None
            and (parent := row.columns.parent_id) is not None
            and (row.tenant, parent) not in tables.instances
        )
        return [*found, *islice(lost_children, limit)]

    # --- dead letters -----------------------------------------------------------------------------

    async def dead_letters(
        self, tenant: str | None, *, instance_id: str | None = None, skip: int = 0, limit: int = 100
    ) -> Page[DeadLetter]:
        found = [
            letter
            for letter in self._tables.dead_letters.values()
            if tenant in (None, letter.envelope.tenant) and instance_id in (None, letter.envelope.instance_id)
        ]
        found.sort(key=lambda letter: (letter.at, letter.envelope.tenant, letter.id), reverse=True)
        return _page(found, skip, limit)

    async def dead_letter(self, tenant: str, letter_id: str) -> DeadLetter:
        letter = self._tables.dead_letters.get(letter_id)
        if letter is None or letter.envelope.tenant != tenant:
            raise LetterNotFound(letter_id)
        return letter

    async def replay(self, tenant: str, letter_id: str, payload: bytes | None = None) -> Place:
        letter = await self.dead_letter(tenant, letter_id)
        del self._tables.dead_letters[letter_id]
        said = letter.envelope.payload if payload is None else payload
        return self._tables.send(msgspec.structs.replace(letter.envelope, payload=said, lane=Lane.BULK))

    async def discard(self, tenant: str, letter_id: str) -> None:
        await self.dead_letter(tenant, letter_id)
        del self._tables.dead_letters[letter_id]

    # --- pauses -----------------------------------------------------------------------------------

    async def pause(self, pause: Pause) -> int:
        self._tables.pauses[pause.tenant, pause.scope] = pause
        return self._count_pauses()

    async def lift(self, tenant: str, scope: str) -> int:
        self._tables.pauses.pop((tenant, scope), None)
        return self._count_pauses()

    def _count_pauses(self) -> int:
        self._tables.counters["pauses"] += 1
        return self._tables.counters["pauses"]

    async def pauses(self) -> list[Pause]:
        now = self._tables.now()
        pauses = [pause for _, pause in sorted(self._tables.pauses.items())]
        return [pause for pause in pauses if pause.until is None or pause.until > now]

    # --- outbox -----------------------------------------------------------------------------------

    async def outgoing(self, stream: str, after: Sequence[tuple[int, int]], limit: int) -> list[OutboxRow]:
        found: list[OutboxRow] = []
        for shard, seq in after:
            rows = self._tables.outbox.by("line", (shard, stream)).values()
            found += islice((row for row in rows if row.seq > seq), limit)
        return found

    async def relayed(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            self._tables.outbox.pop((row.shard, row.stream, row.seq), None)

    async def postpone_relay(self, row: OutboxRow, retry_at: datetime) -> None:
        key = (row.shard, row.stream, row.seq)
        present = self._tables.outbox.get(key)
        if present is not None:
            self._tables.outbox[key] = msgspec.structs.replace(
                present, attempts=present.attempts + 1, retry_at=retry_at
            )

    # --- figures ----------------------------------------------------------------------------------

    async def tune(self) -> list[str]:
        return []

    async def depth(self) -> list[tuple[int, int, datetime | None]]:
        sent: dict[int, list[datetime]] = {}
        for place, delivery in self._tables.inbox.items():
            sent.setdefault(place.shard, []).append(delivery.sent_at or self._tables.now())
        return [(shard, len(times), min(times)) for shard, times in sorted(sent.items())]

    async def vitals(self) -> Vitals:
        return Vitals()


def _summary(row: Loaded) -> Summary:
    return Summary(
        tenant=row.tenant,
        instance_id=row.instance_id,
        shard=row.shard,
        revision=row.revision,
        columns=row.columns,
    )


def _page(found: Sequence[T], skip: int, limit: int) -> Page[T]:
    return Page(tuple(found[skip : skip + limit]), min(len(found), COUNTED), len(found) > COUNTED)


def _is_wanted(row: Loaded, wanted: InstanceFilter) -> bool:
    columns = row.columns

    def is_one_of(value: T, values: Iterable[T]) -> bool:
        return not values or value in values

    def is_in(value: datetime | None, since: datetime | None, until: datetime | None) -> bool:
        if value is None:
            return since is None and until is None
        return (since is None or value >= since) and (until is None or value < until)

    texts = (row.instance_id, columns.name, columns.correlation_id, columns.definition_id)
    claims: tuple[Callable[[], bool], ...] = (
        lambda: row.tenant == wanted.tenant,
        lambda: is_one_of(row.instance_id, wanted.ids),
        lambda: is_one_of(columns.definition_id, wanted.definition_ids),
        lambda: is_one_of(columns.version_id, wanted.version_ids),
        lambda: is_one_of(columns.sub_status, wanted.sub_statuses),
        lambda: wanted.version in (None, columns.version),
        lambda: wanted.status in (None, columns.sub_status.status),
        lambda: wanted.correlation_id in (None, columns.correlation_id),
        lambda: wanted.parent_id in (None, columns.parent_id),
        lambda: wanted.name in (None, columns.name),
        lambda: wanted.has_incidents in (None, columns.incident_count > 0),
        lambda: wanted.is_paused in (None, columns.is_paused),
        lambda: is_in(columns.created_at, wanted.created_from, wanted.created_until),
        lambda: is_in(columns.updated_at, wanted.updated_from, wanted.updated_until),
        lambda: is_in(columns.finished_at, wanted.finished_from, wanted.finished_until),
        lambda: not wanted.search or any(wanted.search.lower() in (text or "").lower() for text in texts),
    )
    return all(claim() for claim in claims)
