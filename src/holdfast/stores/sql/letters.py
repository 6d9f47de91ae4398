"""Dead letters in SQL: showing them, sending them again, throwing them away."""

from typing import Any

import sqlalchemy as sa

from holdfast.commit import DeadLetter, Envelope, Lane, Place
from holdfast.store import LetterNotFound, Page
from holdfast.stores.sql.inbox import raw, send
from holdfast.stores.sql.records import page
from holdfast.stores.sql.tables import dead_letters


def letters_page(
    connection: sa.Connection, tenant: str | None, instance_id: str | None, skip: int, limit: int
) -> Page[DeadLetter]:
    """The latest first."""
    conditions: list[sa.ColumnElement[bool]] = []
    if tenant is not None:
        conditions.append(dead_letters.c.tenant == tenant)
    if instance_id is not None:
        conditions.append(dead_letters.c.instance_id == instance_id)
    query = (
        sa.select(dead_letters)
        .where(*conditions)
        .order_by(dead_letters.c.died_at.desc(), dead_letters.c.tenant.desc(), dead_letters.c.id.desc())
        .offset(skip)
        .limit(limit)
    )
    items = tuple(_letter(row) for row in connection.execute(query).mappings())
    matching = sa.select(sa.literal(1)).select_from(dead_letters).where(*conditions)
    return page(connection, items, matching, skip, limit)


def _letter(row: Any, lane: Lane = Lane.ORDINARY) -> DeadLetter:
    envelope = Envelope(
        tenant=row["tenant"],
        instance_id=row["instance_id"],
        shard=row["shard"],
        kind=row["kind"],
        payload=raw(row["payload"]),
        lane=lane,
        reply=row["reply"],
        trace=row["trace"],
    )
    return DeadLetter(
        id=row["id"],
        envelope=envelope,
        error=row["error"],
        attempts=row["attempts"],
        deaths=row["deaths"],
        at=row["died_at"],
        sent_at=row["sent_at"],
    )


def _row_of(tenant: str, letter_id: str) -> list[sa.ColumnElement[bool]]:
    return [dead_letters.c.tenant == tenant, dead_letters.c.id == letter_id]


def letter(connection: sa.Connection, tenant: str, letter_id: str) -> DeadLetter:
    return _letter(_found(connection, sa.select(dead_letters).where(*_row_of(tenant, letter_id)), letter_id))


def _found(connection: sa.Connection, query: sa.Select[Any], letter_id: str) -> Any:
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        raise LetterNotFound(letter_id)
    return row


def replay(connection: sa.Connection, tenant: str, letter_id: str, payload: bytes | None) -> Place:
    locked = sa.select(dead_letters).where(*_row_of(tenant, letter_id)).with_for_update()
    row = {**_found(connection, locked, letter_id)}
    if payload is not None:
        row["payload"] = payload.decode()
    connection.execute(sa.delete(dead_letters).where(*_row_of(tenant, letter_id)))
    return send(connection, [_letter(row, Lane.BULK).envelope])[0]


def discard(connection: sa.Connection, tenant: str, letter_id: str) -> None:
    if not connection.execute(sa.delete(dead_letters).where(*_row_of(tenant, letter_id))).rowcount:
        raise LetterNotFound(letter_id)
