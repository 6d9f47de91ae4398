"""Messages and timers in SQL, beside the hot path: sending one, counting what went wrong.

Reading them is done all the time, so each kind of database does it in its own way, in `dialects`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from holdfast.commit import Delivery, Envelope, Place
from holdfast.stores.sql.found import DELIVERED, TIMED, delivered, timed
from holdfast.stores.sql.rows import aware, raw, text
from holdfast.stores.sql.tables import inbox, timers
from holdfast.stores.sql.time import database_now

__all__ = ["count_deaths", "postpone", "raw", "send", "text"]


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
        columns = DELIVERED if table is inbox else TIMED
        query = sa.select(*(table.c[column] for column in columns)).where(*where)
        row = connection.execute(query).one_or_none()
        if row is not None:
            counted.append(delivered(tuple(row), aware) if table is inbox else timed(tuple(row), aware))
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
