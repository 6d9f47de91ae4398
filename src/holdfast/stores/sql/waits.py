"""Bookmarks, triggers and kept stimuli in SQL."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import sqlalchemy as sa

from holdfast.bookmark import Trigger
from holdfast.codec import decode_payload, encode_payload
from holdfast.commit import Envelope, KeptStimulus, Place
from holdfast.store import Waiting
from holdfast.stores.sql.inbox import raw, send, text
from holdfast.stores.sql.tables import bookmarks, instances, stimuli, triggers
from holdfast.stores.sql.time import database_now


def find(connection: sa.Connection, tenant: str, key: str) -> tuple[list[Trigger], list[Waiting]]:
    indexed = sa.select(triggers).where(triggers.c.tenant == tenant, triggers.c.key == key)
    waiting = (
        sa.select(bookmarks.c.instance_id, instances.c.shard, bookmarks.c.id, instances.c.correlation_id)
        .join(
            instances,
            sa.and_(instances.c.tenant == bookmarks.c.tenant, instances.c.id == bookmarks.c.instance_id),
        )
        .where(bookmarks.c.tenant == tenant, bookmarks.c.key == key, instances.c.finished_at.is_(None))
        .order_by(bookmarks.c.instance_id, bookmarks.c.id)
    )
    return (
        [_trigger(row) for row in connection.execute(indexed).mappings()],
        [Waiting(*row) for row in connection.execute(waiting)],
    )


def _trigger(row: Any) -> Trigger:
    payload = row["payload"]
    return Trigger(
        definition_id=row["definition_id"],
        version_id=row["version_id"],
        activity_id=row["activity_id"],
        name=row["name"],
        key=row["key"],
        payload=None if payload is None else decode_payload(payload),
    )


def replace_triggers(
    connection: sa.Connection, tenant: str, definition_id: str, indexed: Sequence[Trigger]
) -> None:
    connection.execute(
        sa.delete(triggers).where(triggers.c.tenant == tenant, triggers.c.definition_id == definition_id)
    )
    rows = [
        {
            "tenant": tenant,
            "key": trigger.key,
            "definition_id": definition_id,
            "version_id": trigger.version_id,
            "activity_id": trigger.activity_id,
            "name": trigger.name,
            "payload": None if trigger.payload is None else encode_payload(trigger.payload).decode(),
        }
        for trigger in indexed
    ]
    if rows:
        connection.execute(sa.insert(triggers), rows)


def keep(connection: sa.Connection, stimulus: KeptStimulus, shards: int) -> None:
    connection.execute(
        sa.insert(stimuli).values(
            id=stimulus.id,
            tenant=stimulus.tenant,
            key=stimulus.key,
            shard=crc32(stimulus.key.encode()) % shards,
            instance_id=stimulus.instance_id,
            correlation_id=stimulus.correlation_id,
            payload=text(stimulus.payload),
            tries=stimulus.tries,
            sent_at=database_now(connection),
            expires=stimulus.expires,
        )
    )


def kept(connection: sa.Connection, tenant: str, key: str) -> list[KeptStimulus]:
    query = (
        sa.select(stimuli)
        .where(stimuli.c.tenant == tenant, stimuli.c.key == key, stimuli.c.expires > database_now(connection))
        .order_by(stimuli.c.sent_at, stimuli.c.id)
    )
    return [
        KeptStimulus(
            id=row["id"],
            tenant=row["tenant"],
            key=row["key"],
            payload=raw(row["payload"]) or b"",
            expires=row["expires"],
            instance_id=row["instance_id"],
            correlation_id=row["correlation_id"],
            tries=row["tries"],
        )
        for row in connection.execute(query).mappings()
    ]


def pair(
    connection: sa.Connection, tenant: str, stimulus_id: str, messages: Sequence[Envelope]
) -> list[Place] | None:
    # Whoever deletes the row has it: of two that pair the same stimulus the second deletes nothing.
    deleted = connection.execute(
        sa.delete(stimuli).where(stimuli.c.tenant == tenant, stimuli.c.id == stimulus_id)
    )
    return send(connection, messages) if deleted.rowcount else None
