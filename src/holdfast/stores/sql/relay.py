"""The outbox in SQL: reading what waits to be published, forgetting what has arrived."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from holdfast.store import OutboxRow
from holdfast.stores.sql.inbox import raw
from holdfast.stores.sql.tables import outbox

BRANCHES = 100
"""Shards that one query asks for; SQLite takes no more than 500 parts."""
TOGETHER = 500
"""Rows that one statement deletes."""


def outgoing(
    connection: sa.Connection, stream: str, after: Sequence[tuple[int, int]], limit: int
) -> list[OutboxRow]:
    found: list[OutboxRow] = []
    for first in range(0, len(after), BRANCHES):
        found += _behind(connection, stream, after[first : first + BRANCHES], limit)
    return found


def _behind(
    connection: sa.Connection, stream: str, after: Sequence[tuple[int, int]], limit: int
) -> Iterable[OutboxRow]:
    """One limited range per shard, as one query."""
    ranges = [
        sa.select(outbox, sa.literal(number).label("number"))
        .where(outbox.c.shard == shard, outbox.c.stream == stream, outbox.c.seq > seq)
        .order_by(outbox.c.seq)
        .limit(limit)
        .subquery()
        .select()
        for number, (shard, seq) in enumerate(after)
    ]
    rows = sa.union_all(*ranges).subquery()
    return map(_row, connection.execute(sa.select(rows).order_by(rows.c.number, rows.c.seq)))


def _row(row: Any) -> OutboxRow:
    return OutboxRow(
        shard=row.shard,
        stream=row.stream,
        seq=row.seq,
        tenant=row.tenant,
        instance_id=row.instance_id,
        body=raw(row.body) or b"",
        attempts=row.attempts,
        retry_at=row.retry_at,
    )


def relayed(connection: sa.Connection, rows: Sequence[OutboxRow]) -> None:
    lines: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        lines.setdefault((row.shard, row.stream), []).append(row.seq)
    for (shard, stream), seqs in sorted(lines.items()):
        for first in range(0, len(seqs), TOGETHER):
            some = outbox.c.seq.in_(sorted(seqs)[first : first + TOGETHER])
            connection.execute(
                sa.delete(outbox).where(outbox.c.shard == shard, outbox.c.stream == stream, some)
            )


def postpone(connection: sa.Connection, row: OutboxRow, retry_at: datetime) -> None:
    where = outbox.c.shard == row.shard, outbox.c.stream == row.stream, outbox.c.seq == row.seq
    values = {"attempts": outbox.c.attempts + 1, "retry_at": retry_at}
    connection.execute(sa.update(outbox).where(*where).values(values))
