"""Schedules and their firings in SQL.

Whoever fires locks the schedule's row first and compares what it finds there with what it had read: of
two nodes the second finds another cursor, and a node that slept through a publication another version.
Under that lock nobody else can write firings of the same schedule, so a look decides whether this one
was there before. The start is admitted in the same transaction.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
import sqlalchemy as sa

from holdfast.store import Cursor, Firing, Refused, Schedule, Verdict
from holdfast.stores.sql.inbox import raw, text
from holdfast.stores.sql.intake import admit
from holdfast.stores.sql.tables import firings, schedules

STARTED, WAITING, SKIPPED = "started", "waiting", "skipped"
"""What became of an occurrence. One that waits may still become another."""

_times = msgspec.json.Decoder(tuple[datetime, ...])


def due(connection: sa.Connection, shards: Sequence[int], until: datetime, limit: int) -> list[Schedule]:
    wanted = schedules.c.shard.in_(shards), schedules.c.next_at <= until
    return _found(connection, *wanted, order=(schedules.c.next_at, *_NAME), limit=limit)


def waiting(connection: sa.Connection, shards: Sequence[int], limit: int) -> list[Schedule]:
    wanted = schedules.c.shard.in_(shards), schedules.c.waiting.is_not(None)
    return _found(connection, *wanted, order=_NAME, limit=limit)


def of_tenant(connection: sa.Connection, tenant: str, definition_id: str | None) -> list[Schedule]:
    if definition_id is not None:
        return of_definition(connection, tenant, definition_id)
    return _found(connection, schedules.c.tenant == tenant, order=_NAME)


def of_definition(
    connection: sa.Connection, tenant: str, definition_id: str, *, locks: bool = False
) -> list[Schedule]:
    wanted = schedules.c.tenant == tenant, schedules.c.definition_id == definition_id
    return _found(connection, *wanted, order=_NAME, locks=locks)


_NAME = (schedules.c.tenant, schedules.c.definition_id, schedules.c.activity_id)


def _found(
    connection: sa.Connection,
    *wanted: sa.ColumnElement[bool],
    order: Sequence[sa.Column[Any]],
    limit: int | None = None,
    locks: bool = False,
) -> list[Schedule]:
    query = sa.select(schedules).where(*wanted).order_by(*order).limit(limit)
    rows = connection.execute(query.with_for_update() if locks else query).mappings()
    return [_schedule(row) for row in rows]


def _schedule(row: Any) -> Schedule:
    return Schedule(
        tenant=row["tenant"],
        definition_id=row["definition_id"],
        activity_id=row["activity_id"],
        shard=row["shard"],
        version_id=row["version_id"],
        spec=raw(row["spec"]) or b"",
        zone=row["zone"],
        policies=raw(row["policies"]) or b"{}",
        anchor=row["anchor"],
        cursor=Cursor(
            next_at=row["next_at"],
            last_at=row["last_at"],
            waiting=() if row["waiting"] is None else _times.decode(row["waiting"]),
        ),
    )


def replace(connection: sa.Connection, present: Sequence[Schedule], wanted: Sequence[Schedule]) -> None:
    """A part of publishing: of a definition's rows, which are locked, only the wanted ones stay."""
    known = {_name_of(schedule): schedule for schedule in present}
    rows = {_name_of(schedule): _row(schedule) for schedule in wanted}
    for name in known.keys() - rows.keys():
        connection.execute(sa.delete(schedules).where(*_at(name)))
    for name, row in rows.items():
        if name in known:
            connection.execute(sa.update(schedules).where(*_at(name)).values(row))
        else:
            connection.execute(sa.insert(schedules).values(row))


def _row(schedule: Schedule) -> dict[str, Any]:
    return {
        "tenant": schedule.tenant,
        "definition_id": schedule.definition_id,
        "activity_id": schedule.activity_id,
        "shard": schedule.shard,
        "version_id": schedule.version_id,
        "spec": text(schedule.spec),
        "zone": schedule.zone,
        "policies": text(schedule.policies),
        "anchor": schedule.anchor,
        **_place(schedule.cursor),
    }


def _place(cursor: Cursor) -> dict[str, Any]:
    times = text(msgspec.json.encode(cursor.waiting)) if cursor.waiting else None
    return {"next_at": cursor.next_at, "last_at": cursor.last_at, "waiting": times}


def fire(connection: sa.Connection, firing: Firing) -> Verdict | None:
    read, name = firing.schedule, _name_of(firing.schedule)
    found = connection.execute(sa.select(schedules).where(*_at(name)).with_for_update()).mappings()
    row = found.one_or_none()
    present = None if row is None else _schedule(row)
    if present is None or (present.version_id, present.cursor) != (read.version_id, read.cursor):
        return None
    fired = firings.c.schedule == _digest(name), firings.c.nominal == firing.nominal
    before = connection.execute(sa.select(firings.c.outcome).where(*fired)).scalar_one_or_none()
    if before not in (None, WAITING):
        return None
    cursor, verdict, instance_id = firing.then, Refused(""), None
    outcome = SKIPPED
    if firing.start is not None:
        (verdict,) = admit(connection, [firing.start])
        if not isinstance(verdict, Refused):
            outcome, instance_id = STARTED, firing.start.message.instance_id
        elif firing.if_refused is not None:
            cursor = firing.if_refused
    if firing.nominal in cursor.waiting:
        outcome = WAITING
    note = {"instance_id": instance_id, "outcome": outcome}
    if before is None:
        key = {"schedule": _digest(name), "nominal": firing.nominal}
        connection.execute(sa.insert(firings).values(**key, **note))
    else:
        connection.execute(sa.update(firings).where(*fired).values(note))
    connection.execute(sa.update(schedules).where(*_at(name)).values(_place(cursor)))
    return verdict


def forget_firings(connection: sa.Connection, before: datetime, limit: int) -> int:
    old = connection.execute(
        sa.select(firings.c.schedule, firings.c.nominal).where(firings.c.nominal < before).limit(limit)
    ).all()
    for schedule, nominal in old:
        connection.execute(
            sa.delete(firings).where(firings.c.schedule == schedule, firings.c.nominal == nominal)
        )
    return len(old)


_Name = tuple[str, str, str]


def _name_of(schedule: Schedule) -> _Name:
    return schedule.tenant, schedule.definition_id, schedule.activity_id


def _at(name: _Name) -> list[sa.ColumnElement[bool]]:
    return [column == value for column, value in zip(_NAME, name, strict=True)]


def _digest(name: _Name) -> str:
    # Names that people chose are longer together than a key may be, and in any alphabet.
    return sha256(msgspec.json.encode(name)).hexdigest()
