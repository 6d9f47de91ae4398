"""Letting a definition, a tenant or a node stand still: the request returns when every node knows.

Turns under way finish, control passes, and what arrives waits. Nodes say with their renewal which change
of the pauses they have seen.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from holdfast.clock import Clock
from holdfast.errors import Invalid, Unavailable
from holdfast.runtime.courier import PAUSES, Courier
from holdfast.runtime.gate import TENANT, definition_scope, node_scope
from holdfast.store import LiveNode, Pause, Store

LOOK = 0.1
"""Seconds between two looks at who has seen it."""


class PauseUnseen(Unavailable):
    """It is in force, but not every node has said that it knows."""

    code = "pause.unseen"

    def __init__(self, unaware: Sequence[LiveNode]) -> None:
        names = ", ".join(f"{node.id} ({node.place})" for node in unaware)
        super().__init__(
            f"The change is made, and these nodes have not seen it yet: {names}. They may still begin what "
            f"they know; those that do not answer are taken for dead within seconds."
        )
        self.nodes = tuple(node.id for node in unaware)


class Standstill:
    def __init__(
        self, store: Store, courier: Courier, clock: Clock, tenant: str, monotonic: Callable[[], float]
    ) -> None:
        self._store = store
        self._courier = courier
        self._clock = clock
        self._tenant = tenant
        self._monotonic = monotonic

    async def pause(
        self,
        *,
        definition: str | None = None,
        tenant: str | None = None,
        node: str | None = None,
        reason: str | None = None,
        until: datetime | None = None,
        patience: float = 10.0,
    ) -> None:
        """A definition (of our tenant, or of that one), a whole tenant, or a node by its id or host.

        Raises PauseUnseen when a node has not seen it after so many seconds of patience.
        """
        owner, scope = self._scope(definition, tenant, node)
        pause = Pause(tenant=owner, scope=scope, since=self._clock.now(), reason=reason, until=until)
        await self._spread(await self._store.pause(pause), patience)

    async def lift(
        self,
        *,
        definition: str | None = None,
        tenant: str | None = None,
        node: str | None = None,
        patience: float = 10.0,
    ) -> None:
        """Let it go on. What is not paused stays so. Raises PauseUnseen."""
        await self._spread(await self._store.lift(*self._scope(definition, tenant, node)), patience)

    async def list(self) -> list[Pause]:
        """Those in force, of all tenants."""
        return await self._store.pauses()

    def _scope(self, definition: str | None, tenant: str | None, node: str | None) -> tuple[str, str]:
        if node is not None:
            if definition is not None or tenant is not None:
                raise Invalid("A node is paused for everybody: name the node alone.")
            return "", node_scope(node)
        if definition is not None:
            return self._tenant if tenant is None else tenant, definition_scope(definition)
        if tenant is None:
            raise Invalid("Say what shall stand still: a definition, a tenant or a node.")
        return tenant, TENANT

    async def _spread(self, number: int, patience: float) -> None:
        self._courier.say(PAUSES)
        give_up = self._monotonic() + patience
        while True:
            unaware = [node for node in await self._store.nodes() if node.seen < number]
            if not unaware:
                return
            if self._monotonic() >= give_up:
                raise PauseUnseen(unaware)
            await asyncio.sleep(LOOK)
