"""Wake-ups inside one process.

Each listener hears in its own task and its own event loop, whichever thread rings: a node that stands
still or is dead hears nothing, and hinders nobody who rings. The stores use it where no database carries
words from one process to another.
"""

import asyncio
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple


class _Ear(NamedTuple):
    loop: asyncio.AbstractEventLoop
    words: "asyncio.Queue[str]"


class Listeners:
    """Everybody in this process who listens at one store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ears: list[_Ear] = []

    def ring(self, words: Sequence[str]) -> None:
        with self._lock:
            ears = list(self._ears)
        here = asyncio.get_running_loop()
        for ear in ears:
            for word in words:
                if ear.loop is here:
                    ear.words.put_nowait(word)
                elif not ear.loop.is_closed():
                    ear.loop.call_soon_threadsafe(ear.words.put_nowait, word)

    async def listen(self, hear: Callable[[str], None]) -> None:
        ear = _Ear(asyncio.get_running_loop(), asyncio.Queue())
        with self._lock:
            self._ears.append(ear)
        try:
            while True:
                hear(await ear.words.get())
        finally:
            with self._lock:
                self._ears.remove(ear)
