"""What a state becomes in the tables: columns for lists, rows for what it waits for, journal segments."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.codec import encode_payload, write_payload
from holdfast.commit import Birth, Columns, Segment, Task, Timer, Wait
from holdfast.instance import Record, SubStatus
from holdfast.message import DoInBackground, Effect, Resume
from holdfast.runtime.program import Program, Snapshot
from holdfast.telemetry import trace_now

SEGMENT = 256
"""Records in one segment of the journal."""

_encoder = msgspec.json.Encoder()


def newborn(
    program: Program,
    *,
    instance_id: str,
    shard: int,
    now: datetime,
    correlation_id: str | None = None,
    parent_id: str | None = None,
    name: str | None = None,
) -> Birth:
    """An instance whose start message waits."""
    return Birth(
        instance_id=instance_id,
        shard=shard,
        columns=Columns(
            definition_id=program.definition_id,
            version_id=program.version_id,
            version=program.version,
            sub_status=SubStatus.PENDING,
            created_at=now,
            updated_at=now,
            correlation_id=correlation_id,
            name=name,
            parent_id=parent_id,
        ),
    )


def columns_of(state: Snapshot, created_at: datetime, *, is_paused: bool = False) -> Columns:
    """What lists shall know of a state."""
    return Columns(
        definition_id=state.definition_id,
        version_id=state.version_id,
        version=state.version,
        sub_status=SubStatus.EXECUTING if state.is_halfway else state.sub_status,
        created_at=created_at,
        updated_at=state.updated_at,
        finished_at=state.finished_at,
        correlation_id=state.correlation_id,
        name=state.name,
        parent_id=state.parent_id,
        incident_count=len(state.incidents),
        is_paused=is_paused,
    )


def interrupted(columns: Columns, now: datetime) -> Columns:
    """How an instance stands whose message is a dead letter."""
    return msgspec.structs.replace(
        columns,
        sub_status=SubStatus.INTERRUPTED,
        updated_at=now,
        incident_count=columns.incident_count + 1,
    )


def came_and_went(before: Snapshot | None, after: Snapshot) -> tuple[list[Bookmark], list[Bookmark]]:
    """Bookmarks that have come, and those that are gone. Ids are never used twice."""
    if before is None:
        return list(after.bookmarks), []
    old = {bookmark.id: bookmark for bookmark in before.bookmarks}
    new = {bookmark.id: bookmark for bookmark in after.bookmarks}
    come = [bookmark for name, bookmark in new.items() if name not in old]
    return come, [bookmark for name, bookmark in old.items() if name not in new]


def timers_of(bookmarks: Sequence[Bookmark]) -> tuple[Timer, ...]:
    return tuple(_timer(b.id, b.due) for b in bookmarks if b.due is not None)


def _timer(bookmark_id: str, due: datetime) -> Timer:
    payload = encode_payload({"bookmark_id": bookmark_id})
    kind = str(Resume.__struct_config__.tag)
    return Timer(id=bookmark_id, due=due, kind=kind, payload=payload, trace=trace_now())


def waits_of(bookmarks: Sequence[Bookmark]) -> tuple[Wait, ...]:
    return tuple(Wait(b.id, b.key) for b in bookmarks if b.due is None)


def tasks_of(effects: Sequence[Effect]) -> tuple[Task, ...]:
    """Work that leaves the turn."""
    return tuple(
        Task(effect.execution, _encoder.encode(effect))
        for effect in effects
        if isinstance(effect, DoInBackground)
    )


def segments_of(records: Sequence[Record], version: int) -> tuple[Segment, ...]:
    """The records of a turn in segments, each with how often each activity did what.

    They name activities by their index in that version.
    """
    return tuple(
        _segment(records[first : first + SEGMENT], version) for first in range(0, len(records), SEGMENT)
    )


def _segment(records: Sequence[Record], version: int) -> Segment:
    counts: dict[int, dict[str, int]] = {}
    for record in records:
        events = counts.get(record.node)
        if events is None:
            events = counts[record.node] = {}
        events[record.event] = events.get(record.event, 0) + 1
    return Segment(
        sequence=records[0].sequence,
        records=len(records),
        version=version,
        summary=_encoder.encode(counts),
        body=_body(records),
    )


def _body(records: Sequence[Record]) -> bytes:
    try:
        return _encoder.encode([_as_payload(record) for record in records])
    except ValueError:  # half a character, or too many digits: this tells where
        return encode_payload([msgspec.structs.astuple(record) for record in records])


def _as_payload(record: Record) -> Record:
    """With its free values as payload JSON, which most are already, if there are any."""
    free = record.inputs, record.outputs, record.payload
    if not any(free):
        return record
    inputs, outputs, payload = map(write_payload, free)
    if inputs is record.inputs and outputs is record.outputs and payload is record.payload:
        return record
    return msgspec.structs.replace(record, inputs=inputs, outputs=outputs, payload=payload)
