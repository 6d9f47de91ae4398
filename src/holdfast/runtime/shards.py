"""Which shard an instance is born in. It is written at its birth and never changes."""

from collections.abc import Iterable, Mapping
from zlib import crc32

from holdfast.store import DEFAULT, Placement, ShardGroup


class Shards:
    """What is known of groups and placements now. `learn` brings it up to date."""

    def __init__(self, count: int) -> None:
        self._groups: dict[str, ShardGroup] = {DEFAULT: ShardGroup(DEFAULT, 0, count)}
        self._placed: dict[tuple[str, str], str] = {}

    def learn(self, groups: Mapping[str, ShardGroup], placements: Iterable[Placement]) -> None:
        self._groups = dict(groups)
        self._placed = {(p.tenant, p.definition_id): p.group for p in placements}

    def of(self, tenant: str, definition_id: str, instance_id: str) -> int:
        """The hash of its id, within the shards of its group."""
        name = DEFAULT
        if self._placed:
            name = self._placed.get((tenant, definition_id)) or self._placed.get((tenant, "")) or DEFAULT
        group = self._groups.get(name) or self._groups[DEFAULT]
        return group.first + crc32(instance_id.encode()) % group.count

    def numbers(self, groups: Iterable[str]) -> list[int]:
        """All shards of these groups; of one that does not exist yet, none."""
        known = [self._groups[name] for name in groups if name in self._groups]
        return [number for group in known for number in range(group.first, group.first + group.count)]


def lease_name(shard: int) -> str:
    return f"shard-{shard}"


def shard_number(lease: str) -> int | None:
    """The shard a lease is for; None for a lease of another kind."""
    kind, _, number = lease.partition("-")
    return int(number) if kind == "shard" and number.isdigit() else None
