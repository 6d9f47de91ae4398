"""A run as it is kept between bursts. The format is versioned; statuses are kept by their values."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.instance import Incident, Status, SubStatus
from holdfast.machines.run import RunState

FORMAT = 1

STEP, CALLBACK, TIMEOUT, ARM = "step", "callback", "timeout", "arm"
"""Kinds of work: call a step, a callback or a timeout, or ask a timeout when it is due."""

BY_PERSON, BY_STEP, BY_ERRORS = "person", "step", "errors"
"""Who paused a run."""


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call that has to be made."""

    kind: str
    name: str
    execution: int
    payload: str | None = None
    """What came with a callback, as JSON."""
    failures: int = 0
    """How often the call raised since it succeeded or was paused last."""
    calls: int = 0
    """How often it was made in all."""
    error: str = ""


class Paused(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    by: str
    reason: str = ""
    until: datetime | None = None


class KeptRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a run is while nobody works on it."""

    format: int
    id: str
    tenant: str = ""
    definition_id: str
    version_id: str
    version: int
    run_state: RunState
    at: str | int
    """The value of its status."""
    entered: int
    """The number under which it came there; whatever belongs to this visit is gone when it leaves."""
    entered_at: datetime
    passed: tuple[str | int, ...] = ()
    object: msgspec.Raw
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    """The foreign id."""
    name: str | None = None
    is_cancelled: bool = False
    """Tells a cancelled run from a completed one, also when its data are deleted."""
    reason: str = ""
    paused: Paused | None = None
    queue: tuple[Work, ...] = ()
    """What is to be done now, or as soon as it is not paused any more."""
    retries: Mapping[str, Work] = {}
    """What is to be done later, by the id of the bookmark whose timer says when."""
    executions: int = 0
    """Counts; every id made in a burst derives from it."""
    records: int = 0
    properties: Mapping[str, Any] = {}
    bookmarks: tuple[Bookmark, ...] = ()
    incidents: tuple[Incident, ...] = ()

    @property
    def sub_status(self) -> SubStatus:
        if self.finished_at is None:
            return SubStatus.SUSPENDED
        return SubStatus.CANCELLED if self.is_cancelled else SubStatus.FINISHED

    @property
    def status(self) -> Status:
        return self.sub_status.status

    @property
    def is_halfway(self) -> bool:
        return bool(self.queue) and self.paused is None and self.finished_at is None

    @property
    def output(self) -> Mapping[str, Any]:
        return {} if self.finished_at is None else {"status": self.at}


def decode_run(text: bytes) -> KeptRun:
    return _decoder.decode(text)


def encode_run(run: KeptRun) -> bytes:
    return msgspec.json.encode(run)


_decoder = msgspec.json.Decoder(KeptRun)
