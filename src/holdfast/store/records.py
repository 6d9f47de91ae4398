"""What operators see and do: lists, journals, dead letters, pauses, the outbox, retention."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

import msgspec

from holdfast.commit import Columns, DeadLetter, Place, Segment
from holdfast.errors import NotFound
from holdfast.instance import Status, SubStatus

T = TypeVar("T")

COUNTED = 10_000
"""Totals are exact up to here."""


class InstanceFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances. What is empty or None does not narrow; a tenant always does."""

    tenant: str
    ids: tuple[str, ...] = ()
    definition_ids: tuple[str, ...] = ()
    version_ids: tuple[str, ...] = ()
    version: int | None = None
    status: Status | None = None
    sub_statuses: tuple[SubStatus, ...] = ()
    correlation_id: str | None = None
    parent_id: str | None = None
    name: str | None = None
    search: str | None = None
    """Part of an id, a name, a correlation id or a definition id."""
    has_incidents: bool | None = None
    is_paused: bool | None = None
    created_from: datetime | None = None
    created_until: datetime | None = None
    updated_from: datetime | None = None
    updated_until: datetime | None = None
    finished_from: datetime | None = None
    finished_until: datetime | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """An instance without its state."""

    tenant: str
    instance_id: str
    shard: int
    revision: int
    columns: Columns


class Page(msgspec.Struct, Generic[T], frozen=True):
    items: tuple[T, ...]
    total: int
    is_capped: bool = False
    """There are more than the total says."""


class LetterNotFound(NotFound):
    code = "deadletter.not_found"

    def __init__(self, letter_id: str) -> None:
        super().__init__(
            f"There is no dead letter {letter_id!r}; it was replayed or discarded, or never was."
        )


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A definition, a tenant or a node stands still."""

    tenant: str
    scope: str
    """`definition:orders`, `tenant` or `node:host-7`."""
    since: datetime
    reason: str | None = None
    until: datetime | None = None


class OutboxRow(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    stream: str
    seq: int
    tenant: str
    instance_id: str | None
    body: bytes
    attempts: int = 0
    retry_at: datetime | None = None


class Burial(msgspec.Struct, frozen=True, kw_only=True):
    """A finished instance as it is archived before it goes: all that is known of it."""

    summary: Summary
    state: bytes | None
    journal: tuple[Segment, ...]


class Orphan(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was left behind."""

    kind: str
    """`bookmark`, `timer`, `attempt`, `activation` or `child`."""
    tenant: str
    instance_id: str
    """The instance it belongs to, which is not there; of a child, its parent."""
    name: str
    """Which one of that kind; of a child, its id."""


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """What only some databases can tell of themselves."""

    oldest_snapshot: timedelta | None = None
    """How long somebody has been looking at the database as it was: so long nothing can be cleaned up."""
    dead_rows: int | None = None
    """Rows of inboxes that were deleted and not yet cleaned up."""


class Records(Protocol):
    # instances
    async def instances(
        self,
        wanted: InstanceFilter,
        *,
        order: str = "created_at",
        descending: bool = True,
        skip: int = 0,
        limit: int = 100,
    ) -> Page[Summary]:
        """One page, ordered by `created_at`, `updated_at`, `finished_at` or `name`, then by id."""
        ...

    async def open_children(self, tenant: str, parent_id: str, limit: int, after: str = "") -> list[Summary]:
        """By id, those behind that one."""
        ...

    async def journal_of(
        self, tenant: str, instance_id: str, *, after: int = -1, limit: int = 100
    ) -> list[Segment]:
        """Segments in order, of those whose first record is behind that number."""
        ...

    async def journal_summaries(self, tenant: str, instance_id: str) -> list[tuple[int, int, bytes]]:
        """Of every segment: its first record's number, how many records, and its summary."""
        ...

    async def finished(self, before: datetime, limit: int, definition_id: str | None = None) -> list[Burial]:
        """Instances that finished before then, the oldest first, of all tenants."""
        ...

    async def retired(self, before: datetime) -> list[tuple[str, str]]:
        """Tenants and definition ids of which instances finished before then, each once, in order."""
        ...

    async def erase(self, keys: Sequence[tuple[str, str]], before: datetime) -> int:
        """Delete finished instances with all that belongs to them, those only that finished before then."""
        ...

    async def stuck(self, limit: int) -> list[tuple[Summary, bytes | None]]:
        """Open instances that no row gives a cause to wait, with their states, which may."""
        ...

    async def orphans(self, limit: int) -> list[Orphan]:
        """Rows that belong to an instance there is none of, and open children whose parent is gone.

        Up to `limit` of each kind.
        """
        ...

    # dead letters
    async def dead_letters(
        self, tenant: str | None, *, instance_id: str | None = None, skip: int = 0, limit: int = 100
    ) -> Page[DeadLetter]: ...

    async def dead_letter(self, tenant: str, letter_id: str) -> DeadLetter:
        """Raises LetterNotFound."""
        ...

    async def replay(self, tenant: str, letter_id: str, payload: bytes | None = None) -> Place:
        """Exchange a dead letter for its message, in the bulk lane, perhaps with another payload."""
        ...

    async def discard(self, tenant: str, letter_id: str) -> None:
        """Raises LetterNotFound."""
        ...

    # pauses
    async def pause(self, pause: Pause) -> int:
        """From now on; the number of this change, which nodes report when they have seen it."""
        ...

    async def lift(self, tenant: str, scope: str) -> int: ...

    async def pauses(self) -> list[Pause]:
        """Those in force."""
        ...

    # outbox
    async def outgoing(self, stream: str, after: Sequence[tuple[int, int]], limit: int) -> list[OutboxRow]:
        """Of one stream, for each (shard, seq), up to `limit` rows behind that number, in order."""
        ...

    async def relayed(self, rows: Sequence[OutboxRow]) -> None:
        """They have arrived; forget them."""
        ...

    async def postpone_relay(self, row: OutboxRow, retry_at: datetime) -> None: ...

    # figures
    async def depth(self) -> list[tuple[int, int, datetime | None]]:
        """Of each shard with waiting messages: how many, and when the oldest was sent."""
        ...

    async def tune(self) -> list[str]:
        """Let the database look at tables it misjudges; which those were. Asked every few seconds."""
        ...

    async def vitals(self) -> Vitals:
        """What keeps the database itself from staying quick."""
        ...
