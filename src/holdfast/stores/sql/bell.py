"""Wake-ups over a SQL database, as far as it can carry them.

PostgreSQL tells every process that listens, over connections of their own: never inside a commit, where
NOTIFY holds one lock for the whole server until the disk has answered. SQLite tells the listeners of
this process, and looks every moment whether another one has written. MariaDB tells this process only;
who wants to hear of others there has to ask.
"""

import asyncio
import os
import random
import sqlite3
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote
from weakref import WeakValueDictionary

import sqlalchemy as sa

from holdfast.stores.listeners import Listeners
from holdfast.stores.sql.failures import translated

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

CHANNEL = "holdfast"
SEPARATOR = "\n"
LONGEST = 7_900
"""Bytes of one payload; PostgreSQL takes less than 8,000."""
LOOK = 0.05
"""Seconds between two looks at a file that other processes may write to."""
SIGN_OF_LIFE = 15
"""Seconds after which a silent connection is asked whether it is still there."""
PATIENCE = 10
"""Seconds that an answer may take."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
"""Seconds between two tries to connect again."""


class SqlBell(Protocol):
    """`holdfast.store.Bell` over a database, and what the store tells it."""

    async def ring(self, words: Sequence[str]) -> None: ...

    async def listen(self, hear: Callable[[str], None]) -> None: ...

    def writing(self) -> AbstractContextManager[None]:
        """Inside, this process writes."""
        ...

    async def close(self) -> None: ...


def bell_of(url: sa.URL) -> SqlBell:
    kind = url.get_backend_name()
    if kind == "postgresql":
        return PostgresBell(url)
    if kind == "sqlite":
        return SqliteBell(os.path.realpath(url.database or ""))
    return LocalBell(f"{url.host}:{url.port}/{url.database}")


class _Room:
    """What this process knows of one database: who listens, and how much it has written itself."""

    def __init__(self) -> None:
        self.listeners = Listeners()
        self._lock = Lock()
        self.begun = 0
        self.ended = 0

    @contextmanager
    def writing(self) -> Generator[None]:
        with self._lock:
            self.begun += 1
        try:
            yield
        finally:
            with self._lock:
                self.ended += 1


_rooms: WeakValueDictionary[str, _Room] = WeakValueDictionary()
_rooms_lock = Lock()


def _room(place: str) -> _Room:
    with _rooms_lock:
        return _rooms.setdefault(place, _Room())


class LocalBell:
    """Heard by those in this process whose store is on the same database."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._room = _room(place)

    async def ring(self, words: Sequence[str]) -> None:
        self._room.listeners.ring(words)

    async def listen(self, hear: Callable[[str], None]) -> None:
        await self._room.listeners.listen(hear)

    @contextmanager
    def writing(self) -> Generator[None]:
        with self._room.writing():
            yield

    async def close(self) -> None:
        """There is nothing to close."""


class SqliteBell(LocalBell):
    """Heard in this process; and whatever another one writes is heard as an empty word."""

    async def listen(self, hear: Callable[[str], None]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._room.listeners.listen(hear))
            group.create_task(self._look(hear))

    async def _look(self, hear: Callable[[str], None]) -> None:
        while True:
            try:
                await self._compare(hear)
            except sqlite3.Error:
                await asyncio.sleep(LONGEST_PAUSE)
                hear("")

    async def _compare(self, hear: Callable[[str], None]) -> None:
        """The version of a file changes with every commit of anybody, so ours must be told apart.

        A change is another process's for sure if none of ours was under way since the look before. What
        another one writes while we do so as well is found by whoever asks now and then.
        """
        file = f"file:{quote(self._place)}?mode=rw"
        with closing(sqlite3.connect(file, uri=True, timeout=0, isolation_level=None)) as connection:
            known, ended = _version(connection), self._room.ended
            while True:
                await asyncio.sleep(LOOK)
                ended_now, version = self._room.ended, _version(connection)
                if version not in (known, None) and self._room.begun == ended:
                    hear("")
                known, ended = version or known, ended_now


def _version(connection: sqlite3.Connection) -> int | None:
    try:
        return connection.execute("pragma data_version").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return None
        raise


class PostgresBell:
    """Heard by every process that listens on the same database."""

    def __init__(self, url: sa.URL) -> None:
        self._url = url
        self._lock = asyncio.Lock()
        self._ringer: _Line | None = None

    async def ring(self, words: Sequence[str]) -> None:
        with translated(self._url):
            async with self._lock:
                if self._ringer is None or self._ringer.driver.is_closed():
                    await self._hang_up()
                    self._ringer = await _connect(self._url)
                for payload in _payloads(words):
                    await self._ringer.driver.execute(
                        "select pg_notify($1, $2)", CHANNEL, payload, timeout=PATIENCE
                    )

    async def listen(self, hear: Callable[[str], None]) -> None:
        pause, was_lost = SHORTEST_PAUSE, False
        while True:
            try:
                async with self._listening(hear) as lost:
                    if was_lost:
                        hear("")
                    pause = SHORTEST_PAUSE
                    await lost()
            except Exception:  # noqa: S110  whatever it was: who listens goes on listening
                pass
            was_lost = True
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311  jitter is no secret
            pause = min(2 * pause, LONGEST_PAUSE)

    @asynccontextmanager
    async def _listening(
        self, hear: Callable[[str], None]
    ) -> AsyncGenerator[Callable[[], Coroutine[Any, Any, None]]]:
        """Inside, `hear` is called. What it gives returns or raises once the connection is lost."""

        def end(_driver: Any) -> None:
            ended.set()

        def heard(*told: Any) -> None:
            for word in told[-1].split(SEPARATOR):
                hear(word)

        async def lost() -> None:
            while not ended.is_set():
                try:
                    async with asyncio.timeout(SIGN_OF_LIFE):
                        await ended.wait()
                except TimeoutError:
                    await line.driver.execute("select 1", timeout=PATIENCE)

        ended = asyncio.Event()
        line = await _connect(self._url)
        try:
            line.driver.add_termination_listener(end)
            await line.driver.add_listener(CHANNEL, heard)
            yield lost
        finally:
            await line.close()

    @contextmanager
    def writing(self) -> Generator[None]:
        yield

    async def close(self) -> None:
        async with self._lock:
            await self._hang_up()

    async def _hang_up(self) -> None:
        line, self._ringer = self._ringer, None
        if line is not None:
            await line.close()


class _Line(NamedTuple):
    """A connection, and asyncpg's own below it, which can listen."""

    connection: "AsyncConnection"
    driver: Any

    async def close(self) -> None:
        self.driver.terminate()
        await self.connection.close()


async def _connect(url: sa.URL) -> _Line:
    from sqlalchemy.ext.asyncio import create_async_engine  # needs greenlet, which SQLite does without

    # Nobody waits for the disk because of a hint.
    settings = {"application_name": "holdfast bell", "synchronous_commit": "off"}
    told = {"server_settings": settings, "timeout": PATIENCE}
    engine = create_async_engine(url, poolclass=sa.NullPool, connect_args=told)
    connection = await engine.connect()
    return _Line(connection, (await connection.get_raw_connection()).driver_connection)


def _payloads(words: Iterable[str]) -> list[str]:
    """Several words in each, as many as fit. One too long for any is rung as an empty one."""
    payloads: list[list[str]] = [[]]
    length = 0
    for word in words:
        size = len(word.encode()) + len(SEPARATOR)
        said, size = ("", len(SEPARATOR)) if size > LONGEST else (word, size)
        if length + size > LONGEST:
            payloads.append([])
            length = 0
        payloads[-1].append(said)
        length += size
    return [SEPARATOR.join(payload) for payload in payloads if payload]
