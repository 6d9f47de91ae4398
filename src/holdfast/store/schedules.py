"""When definitions start by themselves."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from holdfast.store.intake import Admission, Verdict


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far a schedule has come."""

    next_at: datetime | None
    last_at: datetime | None = None
    waiting: tuple[datetime, ...] = ()
    """Occurrences that came while an earlier one was still running."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """One trigger of a published version that time hits. A retracted one has no next time."""

    tenant: str
    definition_id: str
    activity_id: str
    shard: int
    version_id: str
    spec: bytes
    """The trigger's name and payload, as JSON."""
    zone: str | None = None
    policies: bytes = b"{}"
    anchor: datetime | None = None
    """Where the intervals of a timer begin."""
    cursor: Cursor

    @property
    def id(self) -> str:
        return f"{self.tenant}/{self.definition_id}/{self.activity_id}"


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """One occurrence of a schedule, and how the schedule stands after it."""

    schedule: Schedule
    """As it was read: its version and its cursor must still be so."""
    nominal: datetime
    start: Admission | None
    """None when the occurrence is let go."""
    then: Cursor
    if_refused: Cursor | None = None
    """When its start is refused, because an earlier one is still running; None means like `then`."""


class Schedules(Protocol):
    async def due_schedules(self, shards: Sequence[int], until: datetime, limit: int) -> list[Schedule]:
        """Schedules of these shards whose next time has come by then, the nearest first."""
        ...

    async def waiting_schedules(self, shards: Sequence[int], limit: int) -> list[Schedule]:
        """Schedules of these shards with occurrences that wait."""
        ...

    async def schedules(self, tenant: str, definition_id: str | None = None) -> list[Schedule]: ...

    async def fire(self, firing: Firing) -> Verdict | None:
        """Move the cursor, note the firing and admit the start, in one transaction.

        None when somebody else was first, and nothing was written; also when (schedule, nominal) was
        fired before, except as one that waits. For an occurrence let go the verdict is Refused("").
        """
        ...

    async def forget_firings(self, before: datetime, limit: int) -> int: ...
