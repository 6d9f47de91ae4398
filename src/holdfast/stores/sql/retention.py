"""What ends in SQL: finished instances that go, and open ones that nothing will ever wake."""

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from holdfast.commit import Segment
from holdfast.store import Burial, Summary
from holdfast.stores.sql.inbox import raw
from holdfast.stores.sql.records import SUMMARY, segment, summary
from holdfast.stores.sql.tables import (
    activations,
    attempts,
    blobs,
    bookmarks,
    dead_letters,
    inbox,
    instances,
    journal,
    stimuli,
    timers,
)


def finished(
    connection: sa.Connection, before: datetime, limit: int, definition_id: str | None
) -> list[Burial]:
    query = sa.select(*SUMMARY, instances.c.state).where(instances.c.finished_at < before)
    if definition_id is not None:
        query = query.where(instances.c.definition_id == definition_id)
    oldest = query.order_by(instances.c.finished_at, instances.c.tenant, instances.c.id).limit(limit)
    rows = connection.execute(oldest).mappings().all()
    journals = _journals(connection, [(row["tenant"], row["id"]) for row in rows])
    return [
        Burial(
            summary=summary(row),
            state=raw(row["state"]),
            journal=tuple(journals.get((row["tenant"], row["id"]), ())),
        )
        for row in rows
    ]


def retired(connection: sa.Connection, before: datetime) -> list[tuple[str, str]]:
    query = (
        sa.select(instances.c.tenant, instances.c.definition_id)
        .where(instances.c.finished_at < before)
        .distinct()
        .order_by(instances.c.tenant, instances.c.definition_id)
    )
    return [(tenant, definition_id) for tenant, definition_id in connection.execute(query)]


def _journals(
    connection: sa.Connection, keys: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[Segment]]:
    found: dict[tuple[str, str], list[Segment]] = {}
    for tenant, ids in _by_tenant(keys):
        query = sa.select(journal).where(journal.c.tenant == tenant, journal.c.instance_id.in_(ids))
        for row in connection.execute(query.order_by(journal.c.instance_id, journal.c.seq)).mappings():
            found.setdefault((tenant, row["instance_id"]), []).append(segment(row))
    return found


def _by_tenant(keys: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    # Sorted, so that two that erase the same instances wait for each other in one direction.
    return [
        (tenant, [instance_id for _, instance_id in same])
        for tenant, same in groupby(sorted(set(keys)), lambda key: key[0])
    ]


def erase(connection: sa.Connection, keys: Sequence[tuple[str, str]], before: datetime) -> int:
    """What lies in their inboxes comes too late and goes with its turn, what lies in the outbox is sent."""
    return sum(_erase(connection, tenant, ids, before) for tenant, ids in _by_tenant(keys))


def _erase(connection: sa.Connection, tenant: str, ids: list[str], before: datetime) -> int:
    over = instances.c.tenant == tenant, instances.c.id.in_(ids), instances.c.finished_at < before
    locked = sa.select(instances.c.id).where(*over).order_by(instances.c.id).with_for_update()
    gone = connection.execute(locked).scalars().all()
    if not gone:
        return 0
    connection.execute(sa.delete(blobs).where(blobs.c.tenant == tenant, blobs.c.owner.in_(gone)))
    for table in (timers, bookmarks, attempts, activations, stimuli, dead_letters, journal):
        connection.execute(sa.delete(table).where(table.c.tenant == tenant, table.c.instance_id.in_(gone)))
    connection.execute(sa.delete(instances).where(*over))
    return len(gone)


def stuck(connection: sa.Connection, limit: int) -> list[tuple[Summary, bytes | None]]:
    child = instances.alias("child")
    # Joined as a whole: an inbox has no index by instance, and would be searched for each of them.
    told = sa.select(inbox.c.tenant, inbox.c.instance_id).distinct().subquery("told")

    def is_of(table: sa.FromClause) -> sa.ColumnElement[bool]:
        return sa.and_(table.c.tenant == instances.c.tenant, table.c.instance_id == instances.c.id)

    def has(table: sa.Table) -> sa.Exists:
        return sa.exists().where(is_of(table))

    has_open_child = sa.exists().where(
        child.c.tenant == instances.c.tenant,
        child.c.parent_id == instances.c.id,
        child.c.finished_at.is_(None),
    )
    query = (
        sa.select(*SUMMARY, instances.c.state)
        .outerjoin_from(instances, told, is_of(told))
        .where(
            told.c.instance_id.is_(None),
            instances.c.finished_at.is_(None),
            instances.c.paused.is_(sa.false()),
            ~has(bookmarks),
            ~has(timers),
            ~has(attempts),
            ~has(dead_letters),
            ~has_open_child,
        )
        .order_by(instances.c.tenant, instances.c.id)
        .limit(limit)
    )
    rows: Any = connection.execute(query).mappings()
    return [(summary(row), raw(row["state"])) for row in rows]
