"""Who is alive, and who has which lease."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from holdfast.store import LiveNode, NodeExpired, Renewal, Taken
from holdfast.stores.memory.tables import Lease, Subject

MOURNING = timedelta(days=1)
"""How long the row of a dead node stays."""


class MemoryNodes(Subject):
    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        tables = self._tables
        self._forget_the_dead()
        if node_id in tables.nodes:
            raise NodeExpired(f"The node id {node_id!r} was used before. Every process joins under its own.")
        tables.nodes[node_id] = LiveNode(id=node_id, place=place, expires=tables.now() + ttl)
        return self._renewal(node_id)

    async def renew(self, node_id: str, ttl: timedelta, *, seen: int = 0) -> Renewal:
        tables = self._tables
        if not tables.is_alive(node_id):
            raise NodeExpired(f"Node {node_id!r} did not renew in time. Join again under a new id.")
        tables.nodes[node_id] = msgspec.structs.replace(
            tables.nodes[node_id], expires=tables.now() + ttl, seen=seen
        )
        return self._renewal(node_id)

    def _forget_the_dead(self) -> None:
        """Nodes that died a day ago. Those that a lease or an attempt refers to are needed."""
        tables = self._tables
        needed = {lease.node for lease in tables.leases.values()}
        needed |= {work.node for work in tables.attempts.values()}
        for node in list(tables.nodes.values()):
            if node.expires < tables.now() - MOURNING and node.id not in needed:
                del tables.nodes[node.id]

    def _renewal(self, node_id: str) -> Renewal:
        tables = self._tables
        owned = {name: lease.epoch for name, lease in tables.leases.items() if lease.node == node_id}
        return Renewal(now=tables.now(), leases=owned, **tables.counters)

    async def take(self, node_id: str, names: Sequence[str]) -> list[Taken]:
        tables = self._tables
        if not tables.is_alive(node_id):
            return []
        taken: list[Taken] = []
        for name in names:
            lease = tables.leases.setdefault(name, Lease())
            if lease.node is None or not tables.is_alive(lease.node):
                taken.append(Taken(name, lease.epoch + 1, lease.released))
                lease.node, lease.epoch, lease.released = node_id, lease.epoch + 1, False
        return taken

    async def release(self, node_id: str, names: Sequence[str]) -> None:
        for name in names:
            lease = self._tables.leases.get(name)
            if lease is not None and lease.node == node_id:
                lease.node, lease.released = None, True

    async def leave(self, node_id: str) -> None:
        tables = self._tables
        if node_id in tables.nodes:
            tables.nodes[node_id] = msgspec.structs.replace(tables.nodes[node_id], expires=tables.now())

    async def nodes(self) -> list[LiveNode]:
        return [node for node in self._tables.nodes.values() if self._tables.is_alive(node.id)]

    async def leases(self) -> Mapping[str, tuple[str, int]]:
        leases = self._tables.leases.items()
        return {name: (lease.node, lease.epoch) for name, lease in leases if lease.node is not None}
