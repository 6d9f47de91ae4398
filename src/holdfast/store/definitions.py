"""Definitions and their versions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from holdfast.bookmark import Trigger
from holdfast.commit import Outgoing
from holdfast.errors import Conflict
from holdfast.store.schedules import Schedule


class VersionHeader(msgspec.Struct, frozen=True, kw_only=True):
    """A version without its document."""

    tenant: str
    definition_id: str
    version: int
    version_id: str
    name: str
    is_latest: bool
    is_published: bool
    is_usable: bool
    """As an activity in other workflows."""
    content_hash: str
    created_at: datetime


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    header: VersionHeader
    document: bytes


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """All versions of one definition as they are now, its schedules, and a mark of that moment."""

    versions: tuple[StoredVersion, ...]
    schedules: tuple[Schedule, ...]
    mark: str


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one definition, as one transaction."""

    tenant: str
    definition_id: str
    mark: str
    """Of the edition it was made from."""
    versions: tuple[StoredVersion, ...] = ()
    """Those that are new or have changed, whole."""
    gone: tuple[int, ...] = ()
    """Numbers of versions that are deleted."""
    triggers: tuple[Trigger, ...] | None = None
    """These are its triggers from now on; None leaves them as they are."""
    schedules: tuple[Schedule, ...] | None = None
    """These are its schedule rows from now on; None leaves them as they are."""
    shard: int = 0
    outbox: tuple[Outgoing, ...] = ()
    """What streams shall hear of it, and the shard whose owner relays it."""


class EditionChanged(Conflict):
    """Somebody else changed the definition meanwhile, or one of its schedules fired. Read it again."""

    code = "definition.changed"

    def __init__(self, definition_id: str) -> None:
        super().__init__(f"Definition {definition_id!r} was changed meanwhile. Load it again and repeat.")


class Definitions(Protocol):
    async def edition(self, tenant: str, definition_id: str) -> Edition:
        """Empty when there is no such definition, with a mark all the same."""
        ...

    async def publish(self, publications: Sequence[Publication]) -> None:
        """Write all of them in one transaction. Raises EditionChanged, and then nothing was written."""
        ...

    async def version(self, tenant: str, version_id: str) -> StoredVersion | None: ...

    async def published(self, tenant: str, definition_id: str) -> StoredVersion | None: ...

    async def usable(self, tenant: str) -> list[StoredVersion]:
        """Published or latest versions that are usable as activities."""
        ...

    async def headers(
        self, tenant: str, *, published: bool | None = None, after: str = "", limit: int = 1000
    ) -> list[VersionHeader]:
        """Versions by definition id and number, of definitions behind that id; only (un)published ones."""
        ...
