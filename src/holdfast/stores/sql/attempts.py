"""Background work in SQL.

A claim is a write, because the work is long; it counts the attempt up. The outcome is accepted by the
delete that compares this number, with the message in the same transaction.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from holdfast.commit import Envelope, Place
from holdfast.store import Attempt
from holdfast.stores.sql.inbox import raw, send
from holdfast.stores.sql.nodes import surely_dead
from holdfast.stores.sql.tables import attempts, nodes
from holdfast.stores.sql.time import database_now


def idle(connection: sa.Connection, shards: Sequence[int], limit: int) -> list[Attempt]:
    is_at_work = sa.exists().where(nodes.c.id == attempts.c.node, nodes.c.expires > database_now(connection))
    query = (
        sa.select(attempts)
        .where(attempts.c.shard.in_(shards), ~is_at_work)
        .order_by(attempts.c.tenant, attempts.c.instance_id, attempts.c.execution)
        .limit(limit)
    )
    return [_attempt(row) for row in connection.execute(query).mappings()]


def _attempt(row: Any) -> Attempt:
    return Attempt(
        tenant=row["tenant"],
        instance_id=row["instance_id"],
        execution=row["execution"],
        shard=row["shard"],
        number=row["attempt"],
        payload=raw(row["payload"]) or b"",
    )


def _work_of(attempt: Attempt) -> list[sa.ColumnElement[bool]]:
    return [
        attempts.c.tenant == attempt.tenant,
        attempts.c.instance_id == attempt.instance_id,
        attempts.c.execution == attempt.execution,
    ]


def _row_of(attempt: Attempt) -> list[sa.ColumnElement[bool]]:
    return [*_work_of(attempt), attempts.c.attempt == attempt.number]


def claim(connection: sa.Connection, node_id: str, attempt: Attempt) -> Attempt | None:
    query = sa.select(attempts).where(*_work_of(attempt)).with_for_update()
    row = connection.execute(query).mappings().one_or_none()
    number = attempt.number + 1
    if row is not None and (row["node"], row["attempt"]) == (node_id, number):
        return _attempt(row)
    if row is None or row["attempt"] != attempt.number:
        return None
    if row["node"] is not None and not surely_dead(connection, [row["node"]]):
        return None
    connection.execute(sa.update(attempts).where(*_row_of(attempt)).values(node=node_id, attempt=number))
    return _attempt({**row, "attempt": number})


def conclude(connection: sa.Connection, attempt: Attempt, message: Envelope) -> Place | None:
    deleted = connection.execute(sa.delete(attempts).where(*_row_of(attempt)))
    return send(connection, [message])[0] if deleted.rowcount else None
