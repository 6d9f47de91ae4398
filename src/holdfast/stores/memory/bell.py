"""Wake-ups between nodes, which all live in this process."""

from collections.abc import Callable, Sequence

from holdfast.stores.memory.tables import Subject


class MemoryBell(Subject):
    async def ring(self, words: Sequence[str]) -> None:
        self._tables.listeners.ring(words)

    async def listen(self, hear: Callable[[str], None]) -> None:
        await self._tables.listeners.listen(hear)
