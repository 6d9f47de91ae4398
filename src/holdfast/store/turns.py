"""Instances, as turns find and leave them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from holdfast.commit import Columns, Commit, Place
from holdfast.errors import Conflict


class StaleTurn(Conflict):
    """Another turn was first, or a message in hand is gone. Load the instance and decide anew."""

    code = "turn.stale"

    def __init__(self, instance_id: str, reason: str) -> None:
        super().__init__(f"The turn of instance {instance_id} came too late: {reason}. Load it again.")


class Unwritable(StaleTurn):
    """What the turn wants to write is not taken, and will not be tomorrow: a failed turn, not a late one."""

    code = "turn.unwritable"


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as last committed."""

    tenant: str
    instance_id: str
    shard: int
    revision: int
    turn: str
    columns: Columns
    state: bytes | None


class Committed(msgspec.Struct, frozen=True):
    """It is written. `places` are those of its messages, in their order."""

    revision: int
    places: tuple[Place, ...] = ()
    continued: Place | None = None
    """Where the message that its first checkpoint rewrote lies now: a timer's moves to the inbox."""


class Turns(Protocol):
    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        """The instances (tenant and id) that exist, as last committed."""
        ...

    async def shards(self, tenant: str, instance_ids: Sequence[str]) -> Mapping[str, int]:
        """Where these instances live, by id. Those that do not exist are left out."""
        ...

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        """Write each of them wholly or not at all, in one transaction. A stale one fails alone.

        Stale is a commit whose instance has another revision than it expects, has ended without the
        commit reopening it, or of whose messages in hand one is gone. Of two commits for one instance
        in one call the second is stale. One that is not, but bears an id that exists or holds a value
        that does not fit, is Unwritable.
        """
        ...
