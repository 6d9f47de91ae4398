"""The line between a simulated node and its store: slow, sometimes dead, and never to be believed.

At every call it may hesitate, fail before or after the deed, or kill the node that speaks. Rows that a
call has written stay out of sight of readers until its answer arrives, so that numbers appear out of
order; wake-ups are lost, doubled and late. How much of it there is, `Faults` says.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from holdfast.commit import Delivery, Place
from holdfast.errors import Unavailable
from holdfast.store import DEFAULT, ShardGroup, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.memory.tables import Tables
from holdfast.testing.simulation import Simulation

SHARDS = 4
LONGEST_SECRET = 10.0
"""Seconds for which a row may be out of sight; readers look back further than that."""

FREEZE = (4.0, 12.0)
"""Seconds for which a node stands still: mostly longer than its leases live without a renewal."""


class Faults(msgspec.Struct):
    """How often what goes wrong, as probabilities for each call."""

    pause: float = 0.0
    longest_pause: float = 20.0
    """Seconds, not a probability."""
    error_before: float = 0.0
    error_after: float = 0.0
    death_before: float = 0.0
    death_after: float = 0.0
    freeze: float = 0.0
    freezes_at: tuple[str, ...] = ()
    """The calls before which a node may stand still; none means all."""
    hides: float = 0.0
    lost_word: float = 0.0
    late_word: float = 0.0
    double_word: float = 0.0


class SimulatedStore(MemoryStore):
    """The database of a simulated cluster. It never fails; the lines to it do."""

    def __init__(self, simulation: Simulation, *, shards: int = SHARDS) -> None:
        super().__init__(simulation.clock_for("database"))
        self._tables.groups = {DEFAULT: ShardGroup(DEFAULT, 0, shards)}
        self._hidden: dict[Place, float] = {}
        self._simulation = simulation

    @property
    def tables(self) -> Tables:
        """For whoever checks what must always be true."""
        return self._tables

    def hide(self, after: int, seconds: float) -> None:
        """Let readers not see rows numbered after that one for so long."""
        until = self._simulation.loop.time() + min(seconds, LONGEST_SECRET)
        self._hidden |= {place: until for place in self._tables.inbox if place.seq > after}

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        found = await super().read(after, limit)
        if self._hidden:
            now = self._simulation.loop.time()
            self._hidden = {place: until for place, until in self._hidden.items() if until > now}
            return [one for one in found if one.place not in self._hidden]
        return found


def line_to(store: SimulatedStore, simulation: Simulation, faults: Faults) -> Store:
    """The store as one node sees it."""
    return cast("Store", _Line(store, simulation, faults))


class _Line:
    def __init__(self, store: SimulatedStore, simulation: Simulation, faults: Faults) -> None:
        self._store = store
        self._simulation = simulation
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        async def talk(*given: Any, **named: Any) -> Any:
            return await self._talk(call, *given, **named)

        setattr(self, name, talk)
        return talk

    async def _talk(self, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        simulation, faults = self._simulation, self._faults
        chance = simulation.chance
        if chance(faults.pause):
            await simulation.pause(faults.longest_pause)
        if chance(faults.freeze) and (not faults.freezes_at or call.__name__ in faults.freezes_at):
            await self._stand_still(call.__name__)
        if chance(faults.death_before):
            simulation.note("dies before", call.__name__)
            await simulation.die()
        if chance(faults.error_before):
            raise Unavailable(f"No answer to {call.__name__}, and nothing was done.")
        drawn = self._store.tables.seq
        answer = await call(*given, **named)
        if self._store.tables.seq > drawn and chance(faults.hides):
            secret = simulation.random.uniform(0.0, LONGEST_SECRET)
            self._store.hide(drawn, secret)
            await asyncio.sleep(secret)
        elif chance(faults.pause):
            await simulation.pause(faults.longest_pause)
        if chance(faults.death_after):
            simulation.note("dies after", call.__name__)
            await simulation.die()
        if chance(faults.error_after):
            simulation.note("no answer, but done:", call.__name__)
            raise Unavailable(f"No answer to {call.__name__}, but it was done.")
        return answer

    async def _stand_still(self, before: str) -> None:
        simulation = self._simulation
        if simulation.current is not None:
            simulation.note("stands still before", before)
            simulation.freeze(simulation.current, simulation.random.uniform(*FREEZE))
            await asyncio.sleep(0)

    async def listen(self, hear: Callable[[str], None]) -> None:
        simulation, faults = self._simulation, self._faults

        def hear_badly(word: str) -> None:
            if simulation.chance(faults.lost_word):
                return
            times = 2 if simulation.chance(faults.double_word) else 1
            for _ in range(times):
                if simulation.chance(faults.late_word):
                    simulation.loop.call_later(simulation.random.uniform(0.0, 8.0), hear, word)
                else:
                    hear(word)

        await self._store.listen(hear_badly)

    def apart(self) -> Any:
        return self

    async def close(self) -> None:
        """The store outlives its lines."""
