"""Which shards there are, and who lives in which of them."""

from collections.abc import Mapping

from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.store import Placement, ShardGroup
from holdfast.stores.memory.tables import Subject


class MemoryPlacements(Subject):
    async def shard_groups(self) -> Mapping[str, ShardGroup]:
        return dict(self._tables.groups)

    async def create_group(self, name: str, count: int) -> ShardGroup:
        groups = self._tables.groups
        if count < 1:
            raise Invalid(f"A group of {count} shards holds nobody; it needs one at least.")
        if name in groups:
            raise Conflict(f"There is a group {name!r} already. Its size is fixed; choose another name.")
        first = max(group.first + group.count for group in groups.values())
        groups[name] = ShardGroup(name, first, count)
        self._tables.counters["catalogue"] += 1
        return groups[name]

    async def place(self, placement: Placement) -> None:
        if placement.group not in self._tables.groups:
            raise NotFound(f"There is no group of shards {placement.group!r}. Create it first.")
        self._tables.placements[placement.tenant, placement.definition_id] = placement
        self._tables.counters["catalogue"] += 1

    async def unplace(self, tenant: str, definition_id: str = "") -> None:
        self._tables.placements.pop((tenant, definition_id), None)
        self._tables.counters["catalogue"] += 1

    async def placements(self) -> list[Placement]:
        return [placement for _, placement in sorted(self._tables.placements.items())]
