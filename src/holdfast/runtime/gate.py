"""What may not be begun now, because a definition, a tenant or this node is paused."""

from collections.abc import Iterable
from datetime import datetime

from holdfast.store import Pause

TENANT = "tenant"


def definition_scope(definition_id: str) -> str:
    return f"definition:{definition_id}"


def node_scope(node: str) -> str:
    return f"node:{node}"


class Gate:
    def __init__(self) -> None:
        self._tenants: frozenset[str] = frozenset()
        self._definitions: frozenset[tuple[str, str]] = frozenset()
        self._until: datetime | None = None
        self.is_node_paused = False

    def has_expired(self, now: datetime) -> bool:
        """Whether one of the pauses is over by itself."""
        return self._until is not None and self._until <= now

    @property
    def tenants(self) -> frozenset[str]:
        return self._tenants

    def learn(self, pauses: Iterable[Pause], names: Iterable[str]) -> None:
        """These are in force. `names` are what this node is called."""
        known = list(pauses)
        self._until = min((p.until for p in known if p.until is not None), default=None)
        self._tenants = frozenset(p.tenant for p in known if p.scope == TENANT)
        self._definitions = frozenset(
            (p.tenant, p.scope.partition(":")[2]) for p in known if p.scope.startswith("definition:")
        )
        mine = {node_scope(name) for name in names}
        self.is_node_paused = any(p.scope in mine for p in known)

    def is_closed(self, tenant: str, definition_id: str) -> bool:
        return self.is_node_paused or tenant in self._tenants or (tenant, definition_id) in self._definitions
