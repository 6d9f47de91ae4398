"""One life of a definition, as it is kept between bursts.

`State` is everything an instance is while nobody works on it: what is open, where it waits, what
went wrong. It is a value in a versioned format; `engine.state` turns it into the private, mutable
form a burst works on, and back. What happened on the way is the journal, a list of `Record`s.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.bookmark import Bookmark

FORMAT = 1
"""The format this code writes. Older ones are migrated when they are read (`engine.state`)."""


class Status(StrEnum):
    """The coarse status; it follows from the sub-status."""

    RUNNING = "Running"
    FINISHED = "Finished"


class SubStatus(StrEnum):
    PENDING = "Pending"
    EXECUTING = "Executing"
    SUSPENDED = "Suspended"
    INTERRUPTED = "Interrupted"
    FINISHED = "Finished"
    CANCELLED = "Cancelled"
    FAULTED = "Faulted"

    @property
    def status(self) -> Status:
        return Status.FINISHED if self in _TERMINAL else Status.RUNNING


_TERMINAL = frozenset({SubStatus.FINISHED, SubStatus.CANCELLED, SubStatus.FAULTED})


class ActivityStatus(StrEnum):
    """Elsa's words, and its two spellings: an activity is Canceled, a workflow Cancelled."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    CANCELED = "Canceled"
    FAULTED = "Faulted"


class Incident(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault recorded on an instance, waiting for a policy or a person."""

    activity_id: str
    node_id: str
    activity_type: str
    execution: int
    message: str
    at: datetime
    code: str | None = None
    exception_type: str | None = None
    details: str | None = None
    """Where it was raised, for whoever mends it. Never shown as the message."""


class OpenFrame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One execution of an activity that has not ended."""

    number: int
    node: str
    parent: int | None = None
    status: ActivityStatus = ActivityStatus.RUNNING
    done: str | None = None
    """The owner's method that hears of the completion."""
    tag: Any = None
    state: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] | None = None
    """Inputs that were evaluated, so that they are not evaluated again; None when they must be."""
    variables: Mapping[str, Any] = {}
    dynamic: Mapping[str, str] = {}
    """Variables this execution was given beyond those its activity declares: id to name."""
    faults: int = 0
    attempt: int = 1
    ids: int = 0
    backward: bool = False


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of the work queue, as a checkpoint keeps it."""

    node: str
    owner: int | None = None
    execution: int | None = None
    """Set when an open execution goes on; else a new one begins."""
    resumption: Bookmark | None = None
    done: str | None = None
    tag: Any = None
    variables: Mapping[str, Any] = {}
    backward: bool = False


class Transient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a checkpoint keeps and a suspension drops, as Elsa does."""

    work: tuple[Work, ...] = ()
    input: Mapping[str, Any] = {}
    variables: Mapping[str, Mapping[str, Any]] = {}
    """Variables without a storage driver: execution number to values by id."""
    outputs: tuple[tuple[int, str, str, Any], ...] = ()
    last_result: Any = None
    trigger: str | None = None


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instance between two bursts, or at a checkpoint inside one."""

    format: int
    """Always written, so that whoever reads it in years knows how."""
    id: str
    tenant: str = ""
    definition_id: str
    version_id: str
    version: int
    sub_status: SubStatus
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    name: str | None = None
    executions: int = 0
    """The counter that numbers executions. Every other id made in a burst derives from it."""
    records: int = 0
    """How many journal records were written so far."""
    input: Mapping[str, Any] = {}
    output: Mapping[str, Any] = {}
    properties: Mapping[str, Any] = {}
    frames: tuple[OpenFrame, ...] = ()
    bookmarks: tuple[Bookmark, ...] = ()
    incidents: tuple[Incident, ...] = ()
    transient: Transient | None = None

    @property
    def status(self) -> Status:
        return self.sub_status.status

    @property
    def is_halfway(self) -> bool:
        """Kept in the middle of a burst: its work queue must be done before anything else is."""
        return self.transient is not None and bool(self.transient.work)


class Record(msgspec.Struct, array_like=True, gc=False):
    """One line of the journal. Arrays, and the activity by its index in the version, keep it small."""

    sequence: int
    event: str
    execution: int
    node: int
    owner: int
    at: datetime
    message: str | None = None
    inputs: dict[str, Any] | None = None
    outputs: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None
