"""Where deliveries wait for whoever asks for the next one."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from holdfast.stream import Delivery


class Arrived(Delivery, Protocol):
    @property
    def is_over(self) -> bool:
        """It was settled, or the member lost it: nothing that is said of it counts any more."""
        ...

    def take(self) -> None:
        """Somebody has it from now on."""
        ...


class Arrivals:
    """A line of deliveries. Once it has failed, everybody who asks is told so."""

    def __init__(self) -> None:
        self._line: asyncio.Queue[Arrived | Exception] = asyncio.Queue()
        self._asking = 0
        self._wanted = asyncio.Event()

    def offer(self, delivery: Arrived) -> None:
        self._line.put_nowait(delivery)
        self._tell()

    def fail(self, error: Exception) -> None:
        self._line.put_nowait(error)

    async def wanted(self) -> None:
        """Returns when somebody asks for more than there is."""
        await self._wanted.wait()

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        while True:
            found = await self._next()
            if isinstance(found, Exception):
                self._line.put_nowait(found)
                raise found
            if not found.is_over:
                found.take()
                return found

    async def _next(self) -> Arrived | Exception:
        self._asking += 1
        self._tell()
        try:
            return await self._line.get()
        finally:
            self._asking -= 1
            self._tell()

    def _tell(self) -> None:
        if self._asking > self._line.qsize():
            self._wanted.set()
        else:
            self._wanted.clear()
