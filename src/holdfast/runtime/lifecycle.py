"""What happens to definitions and instances, as events for whoever listens.

Events are made from what one commit changes: the state before and after it, its records and effects. They
are numbered within the revision that the commit makes, so that a consumer can sort them and tell a
repetition. Nothing is made when nobody listens; who does is `runtime.listeners`, and how events leave
the process is `runtime.relay`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.codec import encode_bare, read_payload
from holdfast.commit import Change
from holdfast.definitions.document import Definition
from holdfast.engine.alterations import ALTERED, REFUSED
from holdfast.errors import Invalid
from holdfast.instance import Incident, Record, Status, SubStatus
from holdfast.message import Effect, HandOver
from holdfast.runtime.program import Program, Snapshot
from holdfast.store import Loaded


class EventType(StrEnum):
    DEFINITION_PUBLISHED = "definition.published"
    DEFINITION_RETRACTED = "definition.retracted"
    INSTANCE_STARTED = "instance.started"
    INSTANCE_SUSPENDED = "instance.suspended"
    INSTANCE_RESUMED = "instance.resumed"
    INSTANCE_FINISHED = "instance.finished"
    INSTANCE_FAULTED = "instance.faulted"
    INSTANCE_CANCELLED = "instance.cancelled"
    INSTANCE_INTERRUPTED = "instance.interrupted"
    """Its message became a dead letter."""
    ACTIVITY_COMPLETED = "activity.completed"
    ACTIVITY_FAULTED = "activity.faulted"
    INCIDENT_RAISED = "incident.raised"
    TASK_HANDED_OVER = "task.handed-over"
    """`RunTask` waits for somebody to complete it."""


class LifecycleEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has happened. It was committed before anybody hears of it."""

    type: EventType
    tenant: str
    definition_id: str
    version: int
    at: datetime
    instance_id: str | None = None
    """None for what happens to a definition."""
    correlation_id: str | None = None
    revision: int = 0
    """The revision of the instance that this belongs to."""
    number: int = 0
    """Counts the events of one revision."""
    data: Mapping[str, Any] = {}

    @property
    def id(self) -> str:
        """The same whenever it is delivered again."""
        if self.instance_id is None:
            return f"{self.definition_id}/{self.version}/{self.type}/{self.at.isoformat()}"
        return f"{self.instance_id}/{self.revision}/{self.number}"


ENDS = {
    SubStatus.FINISHED: EventType.INSTANCE_FINISHED,
    SubStatus.FAULTED: EventType.INSTANCE_FAULTED,
    SubStatus.CANCELLED: EventType.INSTANCE_CANCELLED,
}
_EXECUTED = {"Completed": EventType.ACTIVITY_COMPLETED, "Faulted": EventType.ACTIVITY_FAULTED}
_OF_ACTIVITIES = frozenset(_EXECUTED.values())
_OF_OPERATORS = frozenset({ALTERED, REFUSED})

Told = tuple[EventType, datetime, Mapping[str, Any]]
"""A type, a time and what there is to say."""


def events_of_turn(
    before: Snapshot | None,
    after: Snapshot,
    told: Iterable[Told],
    *,
    tenant: str,
    instance_id: str,
    revision: int,
    wanted: Collection[EventType],
    is_altered: bool = False,
) -> tuple[LifecycleEvent, ...]:
    """What a commit did to an instance, in the order it happened: `told` is what its bursts tell."""
    if after is before:
        return ()
    happened = [*_begun(before, after, is_altered), *told, *_ended(before, after, is_altered)]
    return tuple(
        LifecycleEvent(
            type=kind,
            tenant=tenant,
            definition_id=after.definition_id,
            version=after.version,
            instance_id=instance_id,
            correlation_id=after.correlation_id,
            revision=revision,
            number=number,
            at=at,
            data=data,
        )
        for number, (kind, at, data) in enumerate(happened)
        if kind in wanted
    )


def executed_in(program: Program, records: Sequence[Record], wanted: Collection[EventType]) -> list[Told]:
    """What the journal tells of activities."""
    if _OF_ACTIVITIES.isdisjoint(wanted):
        return []
    return [_executed(record, program) for record in records if record.event in _EXECUTED]


def told_by(before: Snapshot | None, after: Snapshot, effects: Sequence[Effect]) -> list[Told]:
    """Incidents that are new, and tasks for the outside."""
    known = frozenset[Incident]() if before is None else frozenset(before.incidents)
    told = [_raised(incident) for incident in after.incidents if incident not in known]
    for effect in effects:
        if isinstance(effect, HandOver):
            data = {"taskId": effect.task_id, "name": effect.name, "payload": effect.payload}
            told.append((EventType.TASK_HANDED_OVER, after.updated_at, data))
    return told


def is_altered_only(records: Sequence[Record]) -> bool:
    """Whether an operator changed something and nothing was executed."""
    return bool(records) and all(record.event in _OF_OPERATORS for record in records)


def _begun(before: Snapshot | None, after: Snapshot, is_altered: bool) -> list[Told]:
    if before is None:
        about = {"name": after.name, "parentId": after.parent_id}
        data = {key: value for key, value in about.items() if value is not None}
        return [(EventType.INSTANCE_STARTED, after.updated_at, data)]
    if before.is_halfway or is_altered or after.sub_status is SubStatus.CANCELLED:
        return []
    return [(EventType.INSTANCE_RESUMED, after.updated_at, {})]


def _ended(before: Snapshot | None, after: Snapshot, is_altered: bool) -> list[Told]:
    if after.is_halfway:
        return []
    if after.status is not Status.FINISHED:
        waits = {"bookmarks": len(after.bookmarks)}
        return [] if is_altered else [(EventType.INSTANCE_SUSPENDED, after.updated_at, waits)]
    if before is not None and before.finished_at == after.finished_at:
        return []
    data: dict[str, Any] = {}
    if after.sub_status is SubStatus.FINISHED:
        data["output"] = read_payload(dict(after.output))
    elif after.sub_status is SubStatus.FAULTED and after.incidents:
        data["message"] = after.incidents[-1].message
    return [(ENDS[after.sub_status], after.finished_at or after.updated_at, data)]


def _executed(record: Record, program: Program) -> Told:
    activity_id, activity_type = program.activity(record.node)
    data: dict[str, Any] = {
        "activityId": activity_id,
        "activityType": activity_type,
        "execution": record.execution,
    }
    if record.message is not None:
        data["message"] = record.message
    return _EXECUTED[record.event], record.at, data


def _raised(incident: Incident) -> Told:
    data: dict[str, Any] = {
        "activityId": incident.activity_id,
        "activityType": incident.activity_type,
        "execution": incident.execution,
        "message": incident.message,
    }
    if incident.code is not None:
        data["code"] = incident.code
    return EventType.INCIDENT_RAISED, incident.at, data


def event_of_columns(
    kind: EventType,
    loaded: Loaded,
    change: Change,
    wanted: Collection[EventType],
    data: Mapping[str, Any] | None = None,
) -> tuple[LifecycleEvent, ...]:
    """What a commit did to an instance without touching its state."""
    if kind not in wanted:
        return ()
    event = LifecycleEvent(
        type=kind,
        tenant=loaded.tenant,
        definition_id=change.columns.definition_id,
        version=change.columns.version,
        instance_id=loaded.instance_id,
        correlation_id=change.columns.correlation_id,
        revision=change.expects + 1,
        at=change.columns.updated_at,
        data=data or {},
    )
    return (event,)


def event_of_definition(
    tenant: str, before: Definition | None, after: Definition | None, at: datetime
) -> LifecycleEvent | None:
    """What became of a definition, from the versions that were and are published."""
    about = after or before
    if about is None or after is before:
        return None
    return LifecycleEvent(
        type=EventType.DEFINITION_RETRACTED if after is None else EventType.DEFINITION_PUBLISHED,
        tenant=tenant,
        definition_id=about.definition_id,
        version=about.version,
        at=at,
        data={"name": about.name, "versionId": about.id},
    )


def cloud_event(event: LifecycleEvent, trace: str | None = None) -> bytes:
    """The event as CloudEvents 1.0 has it, in JSON, all in one."""
    owner = "/".join(quote(part, safe="") for part in (event.tenant, event.definition_id))
    body: dict[str, Any] = {
        "specversion": "1.0",
        "id": event.id,
        "source": f"/holdfast/{owner}",
        "type": f"holdfast.{event.type}",
        "time": event.at.isoformat(),
        "subject": event.instance_id or event.definition_id,
        "datacontenttype": "application/json",
        "tenant": event.tenant,
        "definition": event.definition_id,
        "version": event.version,
    }
    if event.instance_id is not None:
        body |= {"instance": event.instance_id, "revision": event.revision, "number": event.number}
    if event.correlation_id is not None:
        body["correlationid"] = event.correlation_id
    if trace is not None:
        body["traceparent"] = trace
    try:
        return encode_bare({**body, "data": dict(event.data)})
    except Invalid as problem:  # a value that has no JSON must not keep the turn from being committed
        return encode_bare(
            {**body, "data": {"problem": f"What it says cannot be written as JSON: {problem}"}}
        )
