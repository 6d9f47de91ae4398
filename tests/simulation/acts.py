"""What callers do to a simulated cluster, and what must have come of it in the end.

Each act plays its part while everything goes wrong, remembers what was acknowledged, and knows how the
world must look once all is calm. What must be true at every moment is `watched`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.engine import decode_state
from holdfast.errors import Unavailable
from holdfast.store import InstanceExists, Loaded
from holdfast.testing.simulation import Simulation
from holdfast.testing.simulation_nodes import Cluster, NoAnswer, SimulatedNode
from tests.simulation.watched import WatchedStore, claim
from tests.simulation.workflows import STEPS, Stage, word

T = TypeVar("T")

Ask = Callable[[SimulatedNode], Awaitable[T]]


class Act:
    """A part that is played in one tenant."""

    def __init__(
        self, simulation: Simulation, cluster: Cluster, store: WatchedStore, stage: Stage, tenant: str
    ) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self.cluster = cluster
        self.store = store
        self.stage = stage
        self.tenant = tenant
        self.token = f"{tenant}-{type(self).__name__}"
        self.open: set[str] = set()
        """Instances that are not expected to end."""
        self.pace = 1.0
        """How long callers wait between two words."""
        self.schedules: tuple[str, ...] = ()
        """Definitions that start by themselves and are only published for this act."""

    async def play(self) -> None:
        raise NotImplementedError

    async def finish(self) -> None:
        """When nothing goes wrong any more."""

    async def check(self) -> None:
        raise NotImplementedError

    # --- asking -----------------------------------------------------------------------------------

    async def linger(self, longest: float = 2.0) -> None:
        await asyncio.sleep(self.random.uniform(0.0, longest * self.pace))

    async def once(self, ask: Ask[T]) -> T | None:
        """What was answered; None when nobody knows what became of it."""
        try:
            return await self.cluster.ask(ask)
        except (NoAnswer, Unavailable):
            return None

    async def surely(self, ask: Ask[T]) -> T:
        """Asked again until it is acknowledged. Whoever asks must give it a name."""
        while True:
            try:
                return await self.cluster.ask(ask)
            except (NoAnswer, Unavailable):
                await self.linger(0.5)

    async def dispatch(self, definition_id: str, instance_id: str, **given: Any) -> str:
        """Started under an id of the caller's; that it exists already means it was acknowledged before."""
        with suppress(InstanceExists):
            await self.surely(
                lambda node: node.dispatch(
                    self.tenant, definition_id, instance_id=instance_id, Token=self.token, **given
                )
            )
        self.row(instance_id)
        return instance_id

    async def say(self, subject: str, said: str, *, key: str | None = None, **address: Any) -> None:
        """Acknowledged in the end, and said once: repeated under one key."""
        name = key or f"say-{subject}-{said}"
        await self.surely(lambda node: node.send(self.tenant, word(subject, said, **address), key=name))
        claim((self.tenant, name) in self.store.tables.asked, said, "was acknowledged before it was written")

    # --- looking ----------------------------------------------------------------------------------

    def row(self, instance_id: str) -> Loaded:
        row = self.store.tables.instances.get((self.tenant, instance_id))
        claim(row is not None, self.tenant, instance_id, "was acknowledged and does not exist")
        assert row is not None
        return row

    def steps(self, instance_id: str) -> list[list[Any]]:
        state = self.row(instance_id).state
        return [] if state is None else list(decode_state(state).properties.get(STEPS, []))

    def done(self, instance_id: str) -> list[str]:
        return [name for name, _ in self.steps(instance_id)]

    def expect(self, instance_id: str, status: str, *steps: str) -> None:
        row = self.row(instance_id)
        claim(row.columns.sub_status == status, instance_id, "is", row.columns.sub_status, "not", status)
        claim(self.done(instance_id) == list(steps), instance_id, "did", self.done(instance_id))
        said = {token for _, token in self.steps(instance_id) if token is not None}
        claim(said <= {self.token}, instance_id, "of", self.tenant, "heard", said)

    def instances_of(self, definition_id: str) -> list[Loaded]:
        rows = self.store.tables.instances.values()
        return [r for r in rows if r.tenant == self.tenant and r.columns.definition_id == definition_id]

    def children_of(self, parent_id: str) -> list[Loaded]:
        rows = self.store.tables.instances.values()
        return [r for r in rows if r.tenant == self.tenant and r.columns.parent_id == parent_id]
