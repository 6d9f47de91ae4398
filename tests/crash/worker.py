"""A worker that is going to be killed: a node with our activities, which marks when it commits.

    python -m tests.crash.worker URL LEDGER MARKS

`MARKS` is a small file that the killer watches. Its first byte says how many commits are under way in
this process, and it stays as it was when the process dies, so that afterwards one can tell. The second
byte says that the node has joined.
"""

import asyncio
import mmap
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from holdfast import Holdfast, Unavailable
from holdfast.assembly import load_plugins
from holdfast.commit import Commit
from holdfast.store import Committed, StaleTurn, Store
from holdfast.stores.opening import open_store
from tests.crash.ledger import Ledger
from tests.crash.order import ACTIVITIES

COMMITTING, JOINED = 0, 1
SIZE = 16


class Marks:
    """The file that says what a worker was doing when it died."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), SIZE)

    @staticmethod
    def make(path: Path) -> "Marks":
        path.write_bytes(bytes(SIZE))
        return Marks(path)

    def __getitem__(self, place: int) -> int:
        return self._bytes[place]

    def __setitem__(self, place: int, value: int) -> None:
        self._bytes[place] = value


class MarkedStore:
    """A store whose commits can be seen from outside the process."""

    def __init__(self, store: Store, marks: Marks) -> None:
        self._store = store
        self._marks = marks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        self._marks[COMMITTING] += 1
        try:
            return await self._store.commit(commits)
        finally:
            self._marks[COMMITTING] -= 1


async def opened(url: str) -> Store:
    """The store, as soon as the database answers: one that was just killed may be born while it is away."""
    while True:
        try:
            return await open_store(url)
        except Unavailable:
            await asyncio.sleep(0.1)


async def work(url: str, ledger: Ledger, marks: Marks) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    plugins = load_plugins(ACTIVITIES, installed=False)
    plugins.add_service(Ledger, ledger)
    store = await opened(url)
    try:
        async with Holdfast(cast("Store", MarkedStore(store, marks)), plugins=plugins, slots=32):
            marks[JOINED] = 1
            await stopping.wait()
    finally:
        await store.close()


if __name__ == "__main__":
    address, ledger_path, marks_path = sys.argv[1:]
    asyncio.run(work(address, Ledger(Path(ledger_path)), Marks(Path(marks_path))))
