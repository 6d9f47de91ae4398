"""A cluster under a few acts, with everything going wrong for a while; then calm, and the reckoning."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import msgspec

from holdfast.testing.simulation import Simulation
from holdfast.testing.simulation_line import Faults
from holdfast.testing.simulation_nodes import Cluster
from tests.simulation.acts import Act
from tests.simulation.acts_doing import (
    Cancelling,
    Families,
    Guarded,
    Killing,
    Labour,
    Pausing,
    Poisoned,
    Scheduled,
)
from tests.simulation.acts_waiting import (
    Addressed,
    Entering,
    Keys,
    Listening,
    Mixing,
    Moving,
    Orders,
    Short,
)
from tests.simulation.watched import Violation, WatchedStore, claim
from tests.simulation.workflows import SCHEDULED, TENANTS, Stage, make_catalogue

CATALOGUE = make_catalogue()
PEACEFUL: list[type[Act]] = [
    Orders,
    Keys,
    Short,
    Listening,
    Mixing,
    Moving,
    Addressed,
    Entering,
    Families,
    Cancelling,
    Labour,
    Guarded,
]
"""Acts in which nothing raises and nobody is killed."""
ACTS = [*PEACEFUL, Pausing, Poisoned, Killing, Scheduled]

Story = Callable[[Simulation], Coroutine[Any, Any, None]]

CALM = 200
"""Seconds in which all must have come to its end once nothing goes wrong any more."""


def some_faults(random: Random) -> Faults:
    """Not everything at once: what goes wrong always would hide what goes wrong sometimes."""

    def maybe(most: float) -> float:
        return random.choice([0.0, most / 3, most])

    return Faults(
        pause=random.choice([0.3, 0.7]),
        error_before=maybe(0.03),
        error_after=maybe(0.03),
        death_before=maybe(0.003),
        death_after=maybe(0.003),
        freeze=maybe(0.006),
        hides=maybe(0.1),
        lost_word=maybe(0.5),
        late_word=maybe(0.3),
        double_word=maybe(0.2),
    )


def standstills(random: Random) -> Faults:
    """Nodes that stop in the middle of what they do, and go on when another one has taken over."""
    at, often = random.choice(
        [(("load",), 0.4), (("load", "commit"), 0.1), (("claim", "conclude"), 0.2), ((), 0.02)]
    )
    return Faults(pause=0.3, longest_pause=0.1, freeze=often, freezes_at=at)


def slow_loads(random: Random) -> Faults:
    """Nodes that stop with a message in hand, before they have read the state it is for."""
    return Faults(pause=0.3, longest_pause=0.1, freeze=0.5, freezes_at=("load",))


def disorder(random: Random) -> Faults:
    """Rows that come to light late, and wake-ups that never come."""
    return Faults(pause=0.3, hides=0.3, lost_word=0.7)


def no_faults(random: Random) -> Faults:
    """What is normal: calls take their time, and wake-ups get lost."""
    return Faults(pause=0.7, longest_pause=0.2, lost_word=0.3)


class Play:
    """One story: who plays in it, and what goes wrong. In peace nodes come and go, but nobody dies."""

    def __init__(
        self,
        simulation: Simulation,
        acts: Sequence[type[Act]] = ACTS,
        *,
        faults: Callable[[Random], Faults] = some_faults,
        nodes: Sequence[int] = (1, 2, 2, 3, 4),
        is_peaceful: bool = False,
    ) -> None:
        random = self.random = simulation.random
        self.simulation = simulation
        self.is_peaceful = is_peaceful
        self.store = WatchedStore(simulation)
        self.stage = Stage(simulation)
        self.stage.slowness = random.choice([0.0, 0.5])
        self.cluster = Cluster(
            simulation,
            CATALOGUE,
            store=self.store,
            services={Stage: self.stage},
            around_burst=[self.stage.around_burst],
            faults=faults(random),
        )
        chosen = random.sample(list(acts), min(len(acts), random.choice([1, 2, 3])))
        tenants = list(TENANTS) if random.random() < 0.25 else [random.choice(TENANTS)]
        self.acts = [
            kind(simulation, self.cluster, self.store, self.stage, tenant)
            for kind in chosen
            for tenant in tenants
        ]
        for act in self.acts:
            act.pace = 3.0 if is_peaceful else 1.0
        self.is_calm = False
        self.size = random.choice(nodes)

    async def go(self) -> None:
        published = {(act.tenant, name) for act in self.acts for name in act.schedules}
        kept_out = {(tenant, name) for tenant in TENANTS for name in SCHEDULED} - published
        await self.cluster.begin(self.size, without=kept_out)
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(self._keep_alive())
            disturbing = tasks.create_task(self._disturb())
            async with asyncio.TaskGroup() as playing:
                for act in self.acts:
                    playing.create_task(act.play())
            disturbing.cancel()
            self._calm_down()
            async with asyncio.TaskGroup() as playing:
                for act in self.acts:
                    playing.create_task(act.finish())
            await self._come_to_rest()
            keeping.cancel()

    async def _keep_alive(self) -> None:
        """Somebody starts the dead again, as new processes."""
        while True:
            if len(self.cluster.living) < self.size:
                await asyncio.sleep(0.1 if self.is_calm else self.random.uniform(0.0, 2.0))
                self.cluster.start()
            await asyncio.sleep(0.2)

    async def _disturb(self) -> None:
        while self.is_peaceful:
            await asyncio.sleep(self.random.expovariate(1))
            ready = [node for node in self.cluster.living if node.is_ready]
            if ready:
                self.cluster.stop(self.random.choice(ready))
        while True:
            await asyncio.sleep(self.random.expovariate(1 / 4))
            living = self.cluster.living
            if living:
                victim = self.random.choice(living)
                if self.random.random() < 0.4:
                    self.simulation.note("is killed", victim.name)
                    self.cluster.kill(victim)
                else:
                    seconds = self.random.uniform(1.0, 9.0)
                    self.simulation.note("stands still", victim.name, seconds)
                    self.simulation.freeze(victim.name, seconds)

    def _calm_down(self) -> None:
        self.is_calm = True
        self.stage.slowness = 0.0
        faults = self.cluster.faults
        for name, chance in msgspec.structs.asdict(faults).items():
            if isinstance(chance, float):
                setattr(faults, name, 0.0)

    async def _come_to_rest(self) -> None:
        for second in range(CALM):
            self._raise_seen()
            try:
                await self._check()
            except Violation:
                if second == CALM - 1:
                    raise
                await asyncio.sleep(1.0)
            else:
                return

    def _raise_seen(self) -> None:
        for violation in self.store.violations:
            raise violation

    async def _check(self) -> None:
        for act in self.acts:
            await act.check()
        self._raise_seen()
        tables = self.store.tables
        expected = {(act.tenant, name) for act in self.acts for name in act.open}
        for key, row in tables.instances.items():
            is_open = row.columns.finished_at is None
            claim(not is_open or key in expected, key, "goes on as", row.columns.sub_status)
        claim(await self.store.stuck(10) == [], "waits without a cause")
        claim(not tables.inbox, "messages left:", list(tables.inbox.values()))
        claim(not tables.activations, "activations left:", dict(tables.activations))
        claim(not tables.attempts, "attempts left")
        claim(not tables.timers, "timers left:", list(tables.timers))
        claim(await self.store.meetings(None, 10) == [], "a kept stimulus and who waits for it did not meet")
        if self.is_peaceful:
            again = [name for name, count in self.stage.done.items() if count > 1]
            claim(not again, "nobody died, and yet they were done again:", again)


async def story(simulation: Simulation) -> None:
    await Play(simulation).go()


def story_with(
    *acts: type[Act],
    faults: Callable[[Random], Faults] = some_faults,
    nodes: Sequence[int] = (1, 2, 2, 3, 4),
) -> Story:
    """The same with some of the acts only."""

    async def told(simulation: Simulation) -> None:
        await Play(simulation, acts, faults=faults, nodes=nodes).go()

    return told


def peace_with(*acts: type[Act]) -> Story:
    """Nodes come and go, and nobody dies."""

    async def told(simulation: Simulation) -> None:
        await Play(simulation, acts, faults=no_faults, nodes=(2,), is_peaceful=True).go()

    return told
