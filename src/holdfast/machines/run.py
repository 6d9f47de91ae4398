"""A run: one life of a machine, as its steps and those who ask about it see it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, IntEnum
from typing import Generic, TypeVar

ObjectT = TypeVar("ObjectT")
StatusT = TypeVar("StatusT", bound=Enum)

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class RunState(IntEnum):
    """Where a run stands in its life, whatever its status. The numbers are durable."""

    INITIATED = 1
    """Triggered, and no step was begun."""
    RUNNING = 2
    PAUSED = 3
    CANCELLED = 4
    COMPLETED = 5
    DATA_DELETED = 6
    DATA_DELETION_REQUESTED = 7

    @property
    def is_finished(self) -> bool:
        """A new run of the same foreign id may begin."""
        return self in _FINISHED


_FINISHED = frozenset(
    {
        RunState.CANCELLED,
        RunState.COMPLETED,
        RunState.DATA_DELETED,
        RunState.DATA_DELETION_REQUESTED,
    }
)

_ALLOWED = {
    RunState.INITIATED: {RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED},
    RunState.RUNNING: {RunState.COMPLETED, RunState.PAUSED, RunState.CANCELLED},
    RunState.PAUSED: {RunState.RUNNING, RunState.CANCELLED},
    RunState.COMPLETED: {RunState.DATA_DELETION_REQUESTED},
    RunState.CANCELLED: {RunState.DATA_DELETION_REQUESTED},
    RunState.DATA_DELETION_REQUESTED: {RunState.DATA_DELETED},
    RunState.DATA_DELETED: {RunState.DATA_DELETION_REQUESTED},
}


def may_become(before: RunState, after: RunState) -> bool:
    """Whether a run may go from one state to the other."""
    return after in _ALLOWED[before]


@dataclass(kw_only=True)
class Run(Generic[ObjectT, StatusT]):
    """Steps change `object`, or replace it; what they change is kept when they return.

    For a test of a step make one: `Run(object=Order(...), status=Status.PLACED)`. Of a run whose data were
    deleted, the object is None unless the machine's `scrub` says what stays of it.
    """

    object: ObjectT
    status: StatusT
    foreign_id: str = ""
    id: str = ""
    tenant: str = ""
    key: str = ""
    """The idempotency key of this call: the same when it is repeated after a crash or an error."""
    attempt: int = 1
    """Counts the calls under one key."""
    state: RunState = RunState.RUNNING
    reason: str = ""
    """Why it is paused, was cancelled, or lost its data."""
    error: str = ""
    """What the last failed call said, until one succeeds."""
    passed: tuple[StatusT, ...] = ()
    """Every status it has been in, in the order in which it came there first."""
    created_at: datetime = _NEVER
    entered_at: datetime = _NEVER
    """When it came to its present status."""
    updated_at: datetime = _NEVER
    finished_at: datetime | None = None
    until: datetime | None = None
    """When a paused run goes on by itself; None: when somebody resumes it."""
