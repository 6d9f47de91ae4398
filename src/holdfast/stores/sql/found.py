"""Rows as they are read: which columns are asked for, and the values they become.

Rows come as tuples in the order of the columns here, since three drivers agree on nothing more. Each
says how it brings back an instant.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from holdfast.commit import Columns, Delivery, Envelope, Lane, Place
from holdfast.instance import SubStatus
from holdfast.store import Loaded
from holdfast.stores.sql.rows import raw

Back = Callable[[Any], datetime]

LOADED = (
    "tenant",
    "id",
    "shard",
    "revision",
    "turn",
    "state",
    "definition_id",
    "version_id",
    "version",
    "sub_status",
    "created_at",
    "updated_at",
    "finished_at",
    "correlation_id",
    "name",
    "parent_id",
    "incident_count",
    "paused",
)
DELIVERED = (
    "shard",
    "lane",
    "seq",
    "tenant",
    "instance_id",
    "kind",
    "payload",
    "reply",
    "trace",
    "attempts",
    "deaths",
    "retry_at",
    "error",
    "sent_at",
)
TIMED = (
    "tenant",
    "instance_id",
    "timer",
    "shard",
    "due",
    "kind",
    "payload",
    "trace",
    "attempts",
    "deaths",
    "retry_at",
)


def loaded(row: Sequence[Any], back: Back) -> Loaded:
    (
        tenant,
        instance_id,
        shard,
        revision,
        turn,
        state,
        definition_id,
        version_id,
        version,
        sub_status,
        created_at,
        updated_at,
        finished_at,
        correlation_id,
        name,
        parent_id,
        incident_count,
        paused,
    ) = row
    columns = Columns(
        definition_id=definition_id,
        version_id=version_id,
        version=version,
        sub_status=SubStatus(sub_status),
        created_at=back(created_at),
        updated_at=back(updated_at),
        finished_at=None if finished_at is None else back(finished_at),
        correlation_id=correlation_id,
        name=name,
        parent_id=parent_id,
        incident_count=incident_count,
        is_paused=bool(paused),
    )
    return Loaded(
        tenant=tenant,
        instance_id=instance_id,
        shard=shard,
        revision=revision,
        turn=turn or "",
        columns=columns,
        state=raw(state),
    )


def delivered(row: Sequence[Any], back: Back) -> Delivery:
    """A message in an inbox."""
    (
        shard,
        lane,
        seq,
        tenant,
        instance_id,
        kind,
        payload,
        reply,
        trace,
        attempts,
        deaths,
        retry_at,
        error,
        sent_at,
    ) = row
    envelope = Envelope(
        tenant=tenant,
        instance_id=instance_id,
        shard=shard,
        kind=kind,
        payload=raw(payload),
        lane=Lane(lane),
        reply=reply,
        trace=trace,
    )
    return Delivery(
        envelope=envelope,
        place=Place(shard, lane, seq),
        attempts=attempts,
        deaths=deaths,
        retry_at=None if retry_at is None else back(retry_at),
        error=error,
        sent_at=back(sent_at),
    )


def timed(row: Sequence[Any], back: Back) -> Delivery:
    """A timer."""
    tenant, instance_id, timer, shard, due, kind, payload, trace, attempts, deaths, retry_at = row
    envelope = Envelope(
        tenant=tenant, instance_id=instance_id, shard=shard, kind=kind, payload=raw(payload), trace=trace
    )
    return Delivery(
        envelope=envelope,
        timer=timer,
        due=back(due),
        attempts=attempts,
        deaths=deaths,
        retry_at=None if retry_at is None else back(retry_at),
    )
