"""Who is alive, and who should work what."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from holdfast.errors import Conflict


class NodeExpired(Conflict):
    """A node did not renew in time. It abandons its turns and joins again under a new id."""

    code = "node.expired"


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """What a node learns when it renews."""

    now: datetime
    """The store's time."""
    leases: Mapping[str, int]
    """The leases it has, with their epochs."""
    catalogue: int = 0
    """Grows with every publication: whoever has cached definitions looks again."""
    pauses: int = 0
    """Grows whenever something is paused or a pause is lifted."""


class Taken(msgspec.Struct, frozen=True):
    """A lease a node has got."""

    name: str
    epoch: int
    is_clean: bool
    """Its last owner gave it back. Else that owner died, and what it was doing must be taken carefully."""


class LiveNode(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    place: str
    expires: datetime
    seen: int = 0
    """The pauses it knows of."""


class Nodes(Protocol):
    """Time is the store's: a node's own clock decides nothing."""

    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        """A new node, alive for `ttl` from now on. An id is never used twice."""
        ...

    async def renew(self, node_id: str, ttl: timedelta, *, seen: int = 0) -> Renewal:
        """Alive for `ttl` more. Raises NodeExpired once its time has run out: it cannot come back."""
        ...

    async def take(self, node_id: str, names: Sequence[str]) -> list[Taken]:
        """Those of the named leases that are free or belong to the dead. Each has one owner at a time."""
        ...

    async def release(self, node_id: str, names: Sequence[str]) -> None:
        """Give leases back; others may take them at once. What it does not own is left alone."""
        ...

    async def leave(self, node_id: str) -> None:
        """Not alive any more, and nothing released: whoever takes over does so carefully."""
        ...

    async def nodes(self) -> list[LiveNode]:
        """The living."""
        ...

    async def leases(self) -> Mapping[str, tuple[str, int]]:
        """Every lease somebody has: its owner, dead or alive, and its epoch."""
        ...
