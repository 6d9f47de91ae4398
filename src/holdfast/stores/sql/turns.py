"""Instances in SQL: loading them, and the commit of a group of turns.

A group is one transaction. Its turns are taken in the order of their instances, so that two groups
wait for each other in one direction only and never deadlock. Each turn first locks its instance and
the messages it has in hand, and is left out, before its first write, when one of them is not as it
must be. A savepoint around each lets a turn fail alone when an id it bears was taken meanwhile.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from holdfast.commit import CONTINUE, Birth, Columns, Commit, Envelope, InHand, Place, Then
from holdfast.instance import SubStatus
from holdfast.store import Committed, Loaded, StaleTurn
from holdfast.stores.sql.inbox import at, raw, send, text, timer_of
from holdfast.stores.sql.tables import (
    activations,
    bookmarks,
    dead_letters,
    dedupe,
    inbox,
    instances,
    journal,
    outbox,
    timers,
)
from holdfast.stores.sql.waits import keep


class _Stale(Exception):
    """A turn that must not be written; why."""


def load(connection: sa.Connection, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
    found: list[Loaded] = []
    for tenant, instance_id in keys:
        query = sa.select(instances).where(instances.c.tenant == tenant, instances.c.id == instance_id)
        row = connection.execute(query).mappings().one_or_none()
        if row is not None:
            found.append(_loaded(row))
    return found


def _loaded(row: Any) -> Loaded:
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
    return Loaded(
        tenant=row["tenant"],
        instance_id=row["id"],
        shard=row["shard"],
        revision=row["revision"],
        turn=row["turn"] or "",
        columns=columns,
        state=raw(row["state"]),
    )


def commit(connection: sa.Connection, commits: Sequence[Commit], shards: int) -> list[Committed | StaleTurn]:
    results: dict[int, Committed | StaleTurn] = {}
    changed: set[tuple[str, str]] = set()
    in_order = sorted(enumerate(commits), key=lambda entry: (entry[1].tenant, entry[1].instance_id, entry[0]))
    for index, one in in_order:
        owner = (one.tenant, one.instance_id)
        if owner in changed:
            results[index] = StaleTurn(one.instance_id, "it was changed in the same group")
            continue
        try:
            with connection.begin_nested():
                results[index] = _write(connection, one, shards)
            changed.add(owner)
        except _Stale as reason:
            results[index] = StaleTurn(one.instance_id, str(reason))
        except IntegrityError:
            results[index] = StaleTurn(one.instance_id, "an id it wanted to use was taken meanwhile")
    return [results[index] for index in range(len(commits))]


def _write(connection: sa.Connection, one: Commit, shards: int) -> Committed:
    revision, shard = _prove(connection, one)
    for birth in one.births:
        bear(connection, one.tenant, birth, one.turn)
    if one.change is not None:
        connection.execute(
            sa.update(instances)
            .where(instances.c.tenant == one.tenant, instances.c.id == one.instance_id)
            .values(
                revision=revision,
                turn=one.turn,
                state=text(one.change.state),
                **_columns(one.change.columns),
            )
        )
    continued: Place | None = None
    for message in one.in_hand:
        continued = _settle(connection, one, message, shard) or continued
    _keep_waits(connection, one, shard)
    _keep_records(connection, one, shard, shards)
    return Committed(revision, tuple(send(connection, one.messages)), continued)


def _prove(connection: sa.Connection, one: Commit) -> tuple[int, int]:
    """The revision to write and the shard, once everything the turn began from is still so."""
    change = one.change
    if change is not None:
        row = connection.execute(
            sa.select(instances.c.revision, instances.c.finished_at)
            .where(instances.c.tenant == one.tenant, instances.c.id == one.instance_id)
            .with_for_update()
        ).one_or_none()
        if row is None:
            raise _Stale("it does not exist")
        if row.revision != change.expects:
            raise _Stale(f"it is at revision {row.revision}, the turn began at {change.expects}")
        if row.finished_at is not None and not change.reopens:
            raise _Stale("it has ended")
    for message in one.in_hand:
        if message.place is not None:
            query = sa.select(inbox.c.seq).where(*at(message.place))
            if message.kind is not None:
                query = query.where(inbox.c.kind == message.kind)
        elif message.timer is not None:
            query = sa.select(timers.c.due).where(*timer_of(one.tenant, one.instance_id, message.timer))
        else:
            continue
        if connection.execute(query.with_for_update()).one_or_none() is None:
            raise _Stale("a message in hand is gone")
    if change is not None:
        return change.expects + 1, change.shard
    return 1, one.births[0].shard if one.births else 0


def bear(connection: sa.Connection, tenant: str, birth: Birth, turn: str) -> None:
    """A new row. An id that exists raises IntegrityError."""
    connection.execute(
        sa.insert(instances).values(
            tenant=tenant,
            id=birth.instance_id,
            shard=birth.shard,
            revision=0 if birth.state is None else 1,
            turn=turn,
            format=1,
            state=text(birth.state),
            **_columns(birth.columns),
        )
    )


def _columns(columns: Columns) -> dict[str, Any]:
    return {
        "definition_id": columns.definition_id,
        "version_id": columns.version_id,
        "version": columns.version,
        "status": columns.sub_status.status.value,
        "sub_status": columns.sub_status.value,
        "created_at": columns.created_at,
        "updated_at": columns.updated_at,
        "finished_at": columns.finished_at,
        "correlation_id": columns.correlation_id,
        "name": columns.name,
        "parent_id": columns.parent_id,
        "incident_count": columns.incident_count,
        "paused": columns.is_paused,
    }


def _settle(connection: sa.Connection, one: Commit, message: InHand, shard: int) -> Place | None:
    """What becomes of a message in hand; where it lies now, if it goes on as a `continue`."""
    if message.then is Then.KEEP:
        return None
    if message.place is not None:
        if message.then is Then.CONSUME:
            connection.execute(sa.delete(inbox).where(*at(message.place)))
            return None
        afresh = {
            "kind": CONTINUE,
            "payload": None,
            "attempts": 0,
            "deaths": 0,
            "retry_at": None,
            "error": None,
        }
        connection.execute(sa.update(inbox).where(*at(message.place)).values(afresh))
        return message.place
    if message.timer is not None:
        connection.execute(sa.delete(timers).where(*timer_of(one.tenant, one.instance_id, message.timer)))
    if message.then is Then.CONSUME:
        return None
    onward = Envelope(tenant=one.tenant, instance_id=one.instance_id, shard=shard, kind=CONTINUE)
    return send(connection, [onward])[0]


def _keep_waits(connection: sa.Connection, one: Commit, shard: int) -> None:
    """Timers and bookmarks that came and went."""
    owner = {"tenant": one.tenant, "instance_id": one.instance_id}
    for timer_id in one.timers_gone:
        connection.execute(sa.delete(timers).where(*timer_of(one.tenant, one.instance_id, timer_id)))
    for wait_id in one.waits_gone:
        connection.execute(
            sa.delete(bookmarks).where(
                bookmarks.c.tenant == one.tenant,
                bookmarks.c.instance_id == one.instance_id,
                bookmarks.c.id == wait_id,
            )
        )
    _insert(
        connection,
        timers,
        [
            {
                **owner,
                "timer": timer.id,
                "shard": shard,
                "due": timer.due,
                "kind": timer.kind,
                "payload": text(timer.payload),
                "trace": timer.trace,
            }
            for timer in one.timers
        ],
    )
    _insert(
        connection,
        bookmarks,
        [{**owner, "id": wait.id, "key": wait.key, "shard": shard} for wait in one.waits],
    )


def _keep_records(connection: sa.Connection, one: Commit, shard: int, shards: int) -> None:
    """What the turn leaves for others: journal, outbox, stimuli, dead letters, answers, freed keys."""
    owner = {"tenant": one.tenant, "instance_id": one.instance_id}
    _insert(
        connection,
        journal,
        [
            {
                **owner,
                "seq": segment.sequence,
                "records": segment.records,
                "version": segment.version,
                "summary": text(segment.summary),
                "body": segment.body,
            }
            for segment in one.journal
        ],
    )
    _insert(
        connection,
        outbox,
        [
            {"shard": shard, "stream": out.stream, "instance_id": one.instance_id, "body": text(out.body)}
            for out in one.outbox
        ],
    )
    for stimulus in one.put_back:
        keep(connection, stimulus, shards)
    _insert(
        connection,
        dead_letters,
        [
            {
                "tenant": one.tenant,
                "id": letter.id,
                "instance_id": letter.envelope.instance_id,
                "shard": letter.envelope.shard,
                "kind": letter.envelope.kind,
                "payload": text(letter.envelope.payload),
                "reply": letter.envelope.reply,
                "attempts": letter.attempts,
                "deaths": letter.deaths,
                "error": letter.error,
                "died_at": letter.at,
                "trace": letter.envelope.trace,
            }
            for letter in one.dead_letters
        ],
    )
    for answer in one.answers:
        connection.execute(
            sa.update(dedupe)
            .where(dedupe.c.tenant == one.tenant, dedupe.c.key == answer.key)
            .values(answer=text(answer.body))
        )
    if one.frees_activations:
        connection.execute(
            sa.delete(activations).where(
                activations.c.tenant == one.tenant, activations.c.instance_id == one.instance_id
            )
        )


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)
