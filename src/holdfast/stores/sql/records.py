"""Lists of instances, journals and figures in SQL.

A list is two queries: one page, and a count that stops soon after `COUNTED`, so that a tenant with
millions of instances is counted no longer than one with thousands. Retention, dead letters, pauses and
the outbox have modules of their own.
"""

from typing import Any

import sqlalchemy as sa

from holdfast.commit import Columns, Segment
from holdfast.errors import Invalid
from holdfast.instance import SubStatus
from holdfast.store import InstanceFilter, Page, Summary
from holdfast.store.records import COUNTED
from holdfast.stores.sql.inbox import raw
from holdfast.stores.sql.tables import inbox, instances, journal

ORDERS = {
    "created_at": instances.c.created_at,
    "updated_at": instances.c.updated_at,
    "finished_at": instances.c.finished_at,
    "name": instances.c.name,
}

SUMMARY = [column for column in instances.c if column.name not in ("state", "format", "turn")]


def instances_page(
    connection: sa.Connection,
    wanted: InstanceFilter,
    *,
    order: str,
    descending: bool,
    skip: int,
    limit: int,
) -> Page[Summary]:
    if order not in ORDERS:
        raise Invalid(f"Instances cannot be ordered by {order!r}, only by {', '.join(ORDERS)}.")
    conditions = _conditions(wanted)
    query = (
        sa.select(*SUMMARY)
        .where(*conditions)
        .order_by(*_ordered(ORDERS[order], descending=descending))
        .offset(skip)
        .limit(limit)
    )
    items = tuple(summary(row) for row in connection.execute(query).mappings())
    return page(
        connection, items, sa.select(sa.literal(1)).select_from(instances).where(*conditions), skip, limit
    )


def _ordered(column: sa.Column[Any], *, descending: bool) -> list[sa.ColumnElement[Any]]:
    """By the column, what has no value last, then by id in the same direction, as the indexes are."""
    nothing_last = [sa.case((column.is_(None), 1), else_=0)] if column.nullable else []
    return [*nothing_last, *(one.desc() if descending else one.asc() for one in (column, instances.c.id))]


def page(
    connection: sa.Connection, items: tuple[Any, ...], matching: sa.Select[Any], skip: int, limit: int
) -> Page[Any]:
    """A page with its total, which is counted only when the page does not say it by itself."""
    total = skip + len(items)
    if len(items) == limit or (skip and not items):
        some = matching.limit(COUNTED + 1).subquery()
        total = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    return Page(items, min(total, COUNTED), total > COUNTED)


def _conditions(wanted: InstanceFilter) -> list[sa.ColumnElement[bool]]:
    at = instances.c
    conditions = [at.tenant == wanted.tenant]
    for column, values in (
        (at.id, wanted.ids),
        (at.definition_id, wanted.definition_ids),
        (at.version_id, wanted.version_ids),
        (at.sub_status, tuple(sub_status.value for sub_status in wanted.sub_statuses)),
    ):
        if values:
            conditions.append(column.in_(_sayable(values) if column is at.id else values))
    for column, value in (
        (at.version, wanted.version),
        (at.status, None if wanted.status is None else wanted.status.value),
        (at.correlation_id, wanted.correlation_id),
        (at.name, wanted.name),
        (at.paused, wanted.is_paused),
    ):
        if value is not None:
            conditions.append(column == value)
    if wanted.parent_id is not None:
        conditions.append(at.parent_id.in_(_sayable((wanted.parent_id,))))
    if wanted.has_incidents is not None:
        conditions.append(at.incident_count > 0 if wanted.has_incidents else at.incident_count == 0)
    for column, since, until in (
        (at.created_at, wanted.created_from, wanted.created_until),
        (at.updated_at, wanted.updated_from, wanted.updated_until),
        (at.finished_at, wanted.finished_from, wanted.finished_until),
    ):
        if since is not None:
            conditions.append(column >= since)
        if until is not None:
            conditions.append(column < until)
    if wanted.search:
        conditions.append(_mentions(wanted.search))
    return conditions


def _sayable(ids: tuple[str, ...]) -> list[str]:
    """Ids are ASCII, and MariaDB refuses to compare them with anything else."""
    return [one for one in ids if one.isascii()]


def _mentions(search: str) -> sa.ColumnElement[bool]:
    columns = [instances.c.name, instances.c.correlation_id, instances.c.definition_id]
    if search.isascii():
        columns.append(instances.c.id)
    return sa.or_(*(column.icontains(search, autoescape=True) for column in columns))


def summary(row: Any) -> Summary:
    columns = Columns(
        definition_id=row["definition_id"],
        version_id=row["version_id"],
        version=row["version"],
        sub_status=SubStatus(row["sub_status"]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        finished_at=row["finished_at"],
        correlation_id=row["correlation_id"],
        name=row["name"],
        parent_id=row["parent_id"],
        incident_count=row["incident_count"],
        is_paused=row["paused"],
    )
    return Summary(
        tenant=row["tenant"],
        instance_id=row["id"],
        shard=row["shard"],
        revision=row["revision"],
        columns=columns,
    )


def open_children(
    connection: sa.Connection, tenant: str, parent_id: str, limit: int, after: str
) -> list[Summary]:
    query = (
        sa.select(*SUMMARY)
        .where(
            instances.c.tenant == tenant,
            instances.c.parent_id == parent_id,
            instances.c.finished_at.is_(None),
            instances.c.id > after,
        )
        .order_by(instances.c.id)
        .limit(limit)
    )
    return [summary(row) for row in connection.execute(query).mappings()]


def journal_of(
    connection: sa.Connection, tenant: str, instance_id: str, after: int, limit: int
) -> list[Segment]:
    query = (
        sa.select(journal)
        .where(journal.c.tenant == tenant, journal.c.instance_id == instance_id, journal.c.seq > after)
        .order_by(journal.c.seq)
        .limit(limit)
    )
    return [segment(row) for row in connection.execute(query).mappings()]


def segment(row: Any) -> Segment:
    return Segment(
        sequence=row["seq"],
        records=row["records"],
        version=row["version"],
        summary=raw(row["summary"]) or b"",
        body=bytes(row["body"]),
    )


def journal_summaries(
    connection: sa.Connection, tenant: str, instance_id: str
) -> list[tuple[int, int, bytes]]:
    query = (
        sa.select(journal.c.seq, journal.c.records, journal.c.summary)
        .where(journal.c.tenant == tenant, journal.c.instance_id == instance_id)
        .order_by(journal.c.seq)
    )
    return [(row.seq, row.records, raw(row.summary) or b"") for row in connection.execute(query)]


def depth(connection: sa.Connection) -> list[tuple[int, int, Any]]:
    oldest = sa.func.min(inbox.c.sent_at, type_=inbox.c.sent_at.type)
    query = sa.select(inbox.c.shard, sa.func.count(), oldest).group_by(inbox.c.shard)
    return [
        (shard, waiting, sent_at)
        for shard, waiting, sent_at in connection.execute(query.order_by(inbox.c.shard))
    ]
