"""Durable state that is not durable: everything in dictionaries, for tests and simulations.

It keeps the same promises as a database except the one that matters, and is the shortest way to read
what they mean. Each method runs without awaiting, so each is atomic. The subjects of the port are the
modules here, the dictionaries are in `tables`.
"""

from holdfast.clock import Clock
from holdfast.stores.memory.attempts import MemoryAttempts
from holdfast.stores.memory.bell import MemoryBell
from holdfast.stores.memory.definitions import MemoryDefinitions
from holdfast.stores.memory.inbox import MemoryInbox
from holdfast.stores.memory.intake import MemoryIntake
from holdfast.stores.memory.nodes import MemoryNodes
from holdfast.stores.memory.placements import MemoryPlacements
from holdfast.stores.memory.records import MemoryRecords
from holdfast.stores.memory.schedules import MemorySchedules
from holdfast.stores.memory.tables import Tables
from holdfast.stores.memory.turns import MemoryTurns
from holdfast.stores.memory.waits import MemoryWaits


class MemoryStore(
    MemoryNodes,
    MemoryInbox,
    MemoryTurns,
    MemoryWaits,
    MemoryDefinitions,
    MemorySchedules,
    MemoryIntake,
    MemoryAttempts,
    MemoryRecords,
    MemoryPlacements,
    MemoryBell,
):
    """See `holdfast.store.Store` for the promises."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(Tables(clock))

    def apart(self) -> "MemoryStore":
        return self

    async def close(self) -> None:
        """There is nothing to close."""
