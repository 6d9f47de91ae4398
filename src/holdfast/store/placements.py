"""Which shards there are, and who lives in which of them."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

DEFAULT = "default"
"""The group that everybody lives in who was not put elsewhere."""


class ShardGroup(msgspec.Struct, frozen=True):
    """Consecutive shards that only nodes started for the group take."""

    name: str
    first: int
    count: int


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """New instances of a tenant, or of one of its definitions, are born in this group."""

    tenant: str
    definition_id: str = ""
    """Empty for all of the tenant's; one that names a definition goes before one that does not."""
    group: str


class Placements(Protocol):
    """Whatever changes here grows the number of the catalogue, by which nodes hear of it."""

    async def shard_groups(self) -> Mapping[str, ShardGroup]:
        """By name. `default` is always there: as many shards as the database was created with."""
        ...

    async def create_group(self, name: str, count: int) -> ShardGroup:
        """New shards behind all others. Its size is fixed for ever. Raises Conflict when it exists."""
        ...

    async def place(self, placement: Placement) -> None:
        """From now on, for those born later. Raises NotFound when there is no such group."""
        ...

    async def unplace(self, tenant: str, definition_id: str = "") -> None: ...

    async def placements(self) -> list[Placement]: ...
