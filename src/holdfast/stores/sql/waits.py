"""Bookmarks, triggers and kept stimuli in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zlib import crc32

import sqlalchemy as sa

from holdfast.bookmark import Trigger
from holdfast.codec import decode_payload, encode_payload
from holdfast.commit import DeadLetter, Envelope, KeptStimulus, Place
from holdfast.store import Waiting
from holdfast.stores.expiry import letter_of
from holdfast.stores.sql.inbox import raw, send, text
from holdfast.stores.sql.tables import bookmarks, dead_letters, instances, stimuli, triggers
from holdfast.stores.sql.time import database_now

_OWNER = sa.and_(instances.c.tenant == bookmarks.c.tenant, instances.c.id == bookmarks.c.instance_id)


def find(
    connection: sa.Connection, tenant: str, key: str, instance_id: str | None, correlation_id: str | None
) -> tuple[list[Trigger], list[Waiting]]:
    indexed = sa.select(triggers).where(triggers.c.tenant == tenant, triggers.c.key == key)
    waiting = (
        sa.select(bookmarks.c.instance_id, instances.c.shard, bookmarks.c.id, instances.c.correlation_id)
        .join(instances, _OWNER)
        .where(bookmarks.c.tenant == tenant, bookmarks.c.key == key, instances.c.finished_at.is_(None))
        .order_by(bookmarks.c.instance_id, bookmarks.c.id)
    )
    if instance_id is not None:
        # Ids are ASCII, and MariaDB refuses to compare them with anything else.
        waiting = waiting.where(
            bookmarks.c.instance_id == instance_id if instance_id.isascii() else sa.false()
        )
    if correlation_id is not None:
        waiting = waiting.where(instances.c.correlation_id == correlation_id)
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
    """A part of publishing: these are the triggers of a definition from now on."""
    connection.execute(
        sa.delete(triggers).where(triggers.c.tenant == tenant, triggers.c.definition_id == definition_id)
    )
    rows = {
        (trigger.key, trigger.version_id, trigger.activity_id): {
            "tenant": tenant,
            "key": trigger.key,
            "definition_id": definition_id,
            "version_id": trigger.version_id,
            "activity_id": trigger.activity_id,
            "name": trigger.name,
            "payload": None if trigger.payload is None else encode_payload(trigger.payload).decode(),
        }
        for trigger in indexed
    }
    if rows:
        connection.execute(sa.insert(triggers), list(rows.values()))


def keep(connection: sa.Connection, stimulus: KeptStimulus, shards: int) -> None:
    connection.execute(
        sa.insert(stimuli).values(
            id=stimulus.id,
            tenant=stimulus.tenant,
            key=stimulus.key,
            shard=crc32(stimulus.key.encode()) % shards,
            instance_id=stimulus.instance_id,
            correlation_id=stimulus.correlation_id,
            only=stimulus.only,
            payload=text(stimulus.payload),
            tries=stimulus.tries,
            sent_at=stimulus.sent_at or database_now(connection),
            expires=stimulus.expires,
        )
    )


def kept(connection: sa.Connection, tenant: str, keys: Sequence[str]) -> list[KeptStimulus]:
    if not keys:
        return []
    return _oldest(
        connection,
        sa.select(stimuli).where(
            stimuli.c.tenant == tenant,
            stimuli.c.key.in_(set(keys)),
            stimuli.c.expires > database_now(connection),
        ),
    )


def meetings(connection: sa.Connection, since: datetime | None, limit: int) -> list[KeptStimulus]:
    meant = (
        sa.select(bookmarks.c.id)
        .join(instances, _OWNER)
        .where(
            bookmarks.c.tenant == stimuli.c.tenant,
            bookmarks.c.key == stimuli.c.key,
            instances.c.finished_at.is_(None),
            sa.or_(stimuli.c.instance_id.is_(None), stimuli.c.instance_id == bookmarks.c.instance_id),
            sa.or_(
                stimuli.c.correlation_id.is_(None), stimuli.c.correlation_id == instances.c.correlation_id
            ),
        )
        .correlate(stimuli)
    )
    query = sa.select(stimuli).where(stimuli.c.expires > database_now(connection), meant.exists())
    if since is not None:
        query = query.where(stimuli.c.sent_at >= since)
    return _oldest(connection, query.limit(limit))


def _oldest(connection: sa.Connection, query: sa.Select[Any]) -> list[KeptStimulus]:
    in_order = query.order_by(stimuli.c.sent_at, stimuli.c.id)
    return [_stimulus(row) for row in connection.execute(in_order).mappings()]


def _stimulus(row: Any) -> KeptStimulus:
    return KeptStimulus(
        id=row["id"],
        tenant=row["tenant"],
        key=row["key"],
        payload=raw(row["payload"]) or b"",
        expires=row["expires"],
        instance_id=row["instance_id"],
        correlation_id=row["correlation_id"],
        only=row["only"],
        tries=row["tries"],
        sent_at=row["sent_at"],
    )


def pair(
    connection: sa.Connection, tenant: str, stimulus_id: str, messages: Sequence[Envelope]
) -> list[Place] | None:
    # Whoever deletes the row has it: of two that pair the same stimulus the second deletes nothing.
    deleted = connection.execute(
        sa.delete(stimuli).where(stimuli.c.tenant == tenant, stimuli.c.id == stimulus_id)
    )
    return send(connection, messages) if deleted.rowcount else None


def expire_stimuli(connection: sa.Connection, limit: int, shards: int) -> int:
    now = database_now(connection)
    # What somebody is just pairing is left to them; it is not there any more, or comes up again.
    query = (
        sa.select(stimuli)
        .where(stimuli.c.expires <= now)
        .order_by(stimuli.c.expires)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    expired = [_stimulus(row) for row in connection.execute(query).mappings()]
    for stimulus in expired:
        connection.execute(
            sa.delete(stimuli).where(stimuli.c.tenant == stimulus.tenant, stimuli.c.id == stimulus.id)
        )
        if stimulus.instance_id is not None:
            shard = _shard(connection, stimulus.tenant, stimulus.instance_id, shards)
            _bury(connection, letter_of(stimulus, stimulus.instance_id, shard, now))
    return len(expired)


def _shard(connection: sa.Connection, tenant: str, instance_id: str, shards: int) -> int:
    """Where an instance lives, or would if there was one."""
    query = sa.select(instances.c.shard).where(instances.c.tenant == tenant, instances.c.id == instance_id)
    found = connection.execute(query).scalar_one_or_none()
    return crc32(instance_id.encode()) % shards if found is None else found


def _bury(connection: sa.Connection, letter: DeadLetter) -> None:
    connection.execute(
        sa.insert(dead_letters).values(
            tenant=letter.envelope.tenant,
            id=letter.id,
            instance_id=letter.envelope.instance_id,
            shard=letter.envelope.shard,
            kind=letter.envelope.kind,
            payload=text(letter.envelope.payload),
            attempts=letter.attempts,
            deaths=letter.deaths,
            error=letter.error,
            sent_at=letter.sent_at,
            died_at=letter.at,
        )
    )
