"""Messages and timers in SQL: sending, reading, counting what went wrong."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from holdfast.commit import Delivery, Envelope, Lane, Place
from holdfast.stores.sql.tables import inbox, timers
from holdfast.stores.sql.time import database_now


def text(payload: bytes | None) -> str | None:
    """Payloads are JSON, so text in the database: readable, and small where it is compressed."""
    return None if payload is None else payload.decode()


def raw(payload: str | None) -> bytes | None:
    return None if payload is None else payload.encode()


def send(connection: sa.Connection, envelopes: Sequence[Envelope]) -> list[Place]:
    """Insert messages in their order; where each lies."""
    if not envelopes:
        return []
    now = database_now(connection)
    rows = [
        {
            "shard": envelope.shard,
            "lane": int(envelope.lane),
            "tenant": envelope.tenant,
            "instance_id": envelope.instance_id,
            "kind": envelope.kind,
            "payload": text(envelope.payload),
            "reply": envelope.reply,
            "sent_at": now,
            "trace": envelope.trace,
        }
        for envelope in envelopes
    ]
    inserted = connection.execute(sa.insert(inbox).returning(inbox.c.seq, sort_by_parameter_order=True), rows)
    return [
        Place(envelope.shard, int(envelope.lane), seq)
        for envelope, seq in zip(envelopes, inserted.scalars(), strict=True)
    ]


def read(connection: sa.Connection, after: Sequence[Place], limit: int) -> list[Delivery]:
    """One limited range per shard and lane: asked for all together, the whole backlog would be sorted."""
    found: list[Delivery] = []
    for position in after:
        query = (
            sa.select(inbox)
            .where(inbox.c.shard == position.shard, inbox.c.lane == position.lane, inbox.c.seq > position.seq)
            .order_by(inbox.c.seq)
            .limit(limit)
        )
        found += [_delivered(row) for row in connection.execute(query).mappings()]
    return found


def _delivered(row: Any) -> Delivery:
    return Delivery(
        envelope=_envelope(row, Lane(row["lane"]), row["reply"]),
        place=Place(row["shard"], row["lane"], row["seq"]),
        attempts=row["attempts"],
        deaths=row["deaths"],
        retry_at=row["retry_at"],
        error=row["error"],
        sent_at=row["sent_at"],
    )


def due(connection: sa.Connection, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
    query = (
        sa.select(timers)
        .where(timers.c.shard.in_(shards), timers.c.due <= until)
        .order_by(timers.c.due)
        .limit(limit)
    )
    return [_timed(row) for row in connection.execute(query).mappings()]


def _timed(row: Any) -> Delivery:
    return Delivery(
        envelope=_envelope(row, Lane.ORDINARY, None),
        timer=row["timer"],
        due=row["due"],
        attempts=row["attempts"],
        deaths=row["deaths"],
        retry_at=row["retry_at"],
    )


def _envelope(row: Any, lane: Lane, reply: str | None) -> Envelope:
    return Envelope(
        tenant=row["tenant"],
        instance_id=row["instance_id"],
        shard=row["shard"],
        kind=row["kind"],
        payload=raw(row["payload"]),
        lane=lane,
        reply=reply,
        trace=row["trace"],
    )


def postpone(connection: sa.Connection, delivery: Delivery, retry_at: datetime, error: str) -> None:
    table, where = _row_of(delivery)
    values: dict[str, Any] = {"attempts": table.c.attempts + 1, "retry_at": retry_at}
    if table is inbox:
        values["error"] = error
    connection.execute(sa.update(table).where(*where).values(values))


def count_deaths(connection: sa.Connection, deliveries: Sequence[Delivery]) -> list[Delivery]:
    counted: list[Delivery] = []
    for delivery in deliveries:
        table, where = _row_of(delivery)
        connection.execute(sa.update(table).where(*where).values(deaths=table.c.deaths + 1))
        row = connection.execute(sa.select(table).where(*where)).mappings().one_or_none()
        if row is not None:
            counted.append(_delivered(row) if table is inbox else _timed(row))
    return counted


def _row_of(delivery: Delivery) -> tuple[sa.Table, list[sa.ColumnElement[bool]]]:
    if delivery.place is not None:
        return inbox, at(delivery.place)
    return timers, timer_of(delivery.envelope.tenant, delivery.envelope.instance_id, delivery.timer or "")


def at(place: Place) -> list[sa.ColumnElement[bool]]:
    """The condition that means one message."""
    return [inbox.c.shard == place.shard, inbox.c.lane == place.lane, inbox.c.seq == place.seq]


def timer_of(tenant: str, instance_id: str, timer: str) -> list[sa.ColumnElement[bool]]:
    """The condition that means one timer."""
    return [timers.c.tenant == tenant, timers.c.instance_id == instance_id, timers.c.timer == timer]
