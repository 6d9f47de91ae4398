"""One way to run a function of a connection, whichever database it is.

Everything in the store is a plain function of a SQLAlchemy `Connection`. A `Database` runs it: `write`
in a transaction, `read` without one. PostgreSQL and MariaDB are awaited; SQLite has one thread that
writes and a few that read, which is faster than handing over statement by statement. Errors of the
drivers become ours on the way (`failures`).
"""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy import event

from holdfast.errors import Invalid
from holdfast.stores.sql.failures import translated

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

P = ParamSpec("P")
T = TypeVar("T")

WRITERS = 3
"""Two connections commit by turns, one is for intake."""
READERS = 4


class Database(Protocol):
    """A database, and the connections to it. It belongs to one event loop."""

    @property
    def url(self) -> sa.URL: ...

    async def write(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run it in a transaction: all it wrote is durable when this returns.

        When it raises, nothing was written; except that with `Unavailable`, or when the caller was
        cancelled, nobody knows, and the caller must ask.
        """
        ...

    async def write_at_once(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like `write`, for what is a single statement on PostgreSQL: one round trip instead of three."""
        ...

    async def read(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run it without a transaction: each statement sees what was committed before. It cannot write."""
        ...

    async def close(self) -> None:
        """Finish what is under way and close every connection."""
        ...


def create(
    url: str | sa.URL,
    *,
    writers: int = WRITERS,
    readers: int = READERS,
    settings: Mapping[str, str] | None = None,
) -> Database:
    """A database by its URL. Nothing is connected before the first use.

    `settings` are more of PostgreSQL's, for the connections that write: the committer has its own.
    SQLite has one writer, however many are asked for.
    """
    place = sa.make_url(url)
    kind = place.get_backend_name()
    if kind == "sqlite":
        return SqliteDatabase(place, readers)
    if kind == "postgresql":
        return _postgresql(place.set(drivername="postgresql+asyncpg"), writers, readers, settings or {})
    if kind in ("mysql", "mariadb"):
        return _mariadb(place.set(drivername=f"{kind}+asyncmy"), writers, readers)
    raise Invalid(f"Holdfast does not know the database {kind!r}. Use sqlite, postgresql or mariadb.")


class ServerDatabase:
    """A database that is reached over the network, with some connections to write and some to read."""

    def __init__(self, url: sa.URL, writers: "AsyncEngine", readers: "AsyncEngine") -> None:
        self.url = url
        self._writers = writers
        self._readers = readers

    async def write(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with translated(self.url):
            async with self._writers.begin() as connection:
                return await connection.run_sync(work, *args, **kwargs)

    async def write_at_once(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self.url.get_backend_name() != "postgresql":
            return await self.write(work, *args, **kwargs)
        with translated(self.url):
            async with self._writers.connect() as connection:
                alone = await connection.execution_options(isolation_level="AUTOCOMMIT")
                return await alone.run_sync(work, *args, **kwargs)

    async def read(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with translated(self.url):
            async with self._readers.connect() as connection:
                return await connection.run_sync(work, *args, **kwargs)

    async def close(self) -> None:
        await self._writers.dispose()
        await self._readers.dispose()


class PostgresqlDatabase(ServerDatabase):
    """PostgreSQL, where one statement may do a whole transaction's work.

    Such statements are prepared, and told to the driver directly, over connections of their own.
    """

    def __init__(
        self, url: sa.URL, writers: "AsyncEngine", readers: "AsyncEngine", telling: "AsyncEngine"
    ) -> None:
        super().__init__(url, writers, readers)
        self._telling = telling

    async def tell(self, statement: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        """Run one statement that writes: it is durable when this returns, as `write` promises."""
        return await self._run(self._telling, statement, arguments)

    async def ask(self, statement: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        """Run one statement that reads."""
        return await self._run(self._readers, statement, arguments)

    async def _run(
        self, engine: "AsyncEngine", statement: str, arguments: Sequence[Any]
    ) -> Sequence[Sequence[Any]]:
        with translated(self.url):
            async with engine.connect() as connection:
                raw = await connection.get_raw_connection()
                driver: Any = raw.driver_connection
                try:
                    if _is_time_to_plan_again(raw.info):
                        await driver.execute("discard plans")
                    return await driver.fetch(statement, *arguments)
                except BaseException as error:
                    # Nobody else tells the pool, and it would hand out the dead connection again.
                    if driver.is_closed():
                        await connection.invalidate()
                        if isinstance(error, Exception):
                            raise ConnectionResetError(str(error)) from error
                    raise

    async def close(self) -> None:
        await self._telling.dispose()
        await super().close()


def _is_time_to_plan_again(info: dict[Any, Any]) -> bool:
    """A plan is made once for any values, and fits the tables as they were: small ones, at first.

    Two indexes of an empty table cost the same, so the planner may take the wrong one for good; what was
    planned for an empty inbox goes through a full one row by row. So plans are made anew after a second,
    two, four, and then once a minute.
    """
    now = time.monotonic()
    due, patience = info.setdefault("plans", (now + 0.5, 0.5))
    if now < due:
        return False
    patience = min(2 * patience, 60.0)
    info["plans"] = now + patience, patience
    return True


class SqliteDatabase:
    """A database in a file, for one process. Another one may look in and send messages."""

    def __init__(self, url: sa.URL, readers: int) -> None:
        if url.database in (None, "", ":memory:") or "memory" in str(url.query.get("mode")):
            raise Invalid("SQLite needs a file here, as in sqlite:///holdfast.db: several threads share it.")
        self.url = url.set(drivername="sqlite")
        self._writer = sa.create_engine(self.url, pool_size=1, max_overflow=0)
        self._readers = sa.create_engine(self.url, pool_size=readers, max_overflow=0)
        # WAL first and only by the writer: it stays with the file. FULL, since NORMAL may lose
        # acknowledged work when the power fails.
        _at_connect(self._writer, ("pragma busy_timeout = 10000", "pragma journal_mode = wal", *_PRAGMAS))
        _at_connect(self._readers, ("pragma busy_timeout = 10000", "pragma query_only = on"))
        event.listen(self._writer, "begin", _begin_immediate)
        self._writing = ThreadPoolExecutor(1, "holdfast-sqlite-writer")
        self._reading = ThreadPoolExecutor(readers, "holdfast-sqlite-reader")

    async def write(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def run() -> T:
            with translated(self.url), self._writer.begin() as connection:
                return work(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._writing, run)

    async def write_at_once(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self.write(work, *args, **kwargs)

    async def read(
        self, work: Callable[Concatenate[sa.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def run() -> T:
            with translated(self.url), self._readers.connect() as connection:
                return work(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._reading, run)

    async def close(self) -> None:
        def run() -> None:
            self._reading.shutdown()
            self._writing.shutdown()
            self._readers.dispose()
            self._writer.dispose()

        await asyncio.to_thread(run)


_PRAGMAS = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma journal_size_limit = 67108864",
)


def _begin_immediate(connection: sa.Connection) -> None:
    # A plain BEGIN that reads first and writes later fails at once when another process wrote in
    # between, whatever the busy timeout. This one waits for its turn before it reads.
    connection.exec_driver_sql("begin immediate")


def _at_connect(engine: sa.Engine, statements: Sequence[str]) -> None:
    """What every new connection of the engine is told first."""

    def tell(connection: Any, _record: Any) -> None:
        if engine.dialect.name == "sqlite":
            connection.isolation_level = None  # else the driver begins transactions of its own
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()

    event.listen(engine, "connect", tell)


# Kept by the engine, so that a read costs neither BEGIN nor ROLLBACK nor a change of mode.
_AUTOCOMMIT = {"isolation_level": "AUTOCOMMIT", "skip_autocommit_rollback": True}


def _postgresql(url: sa.URL, writers: int, readers: int, more: Mapping[str, str]) -> PostgresqlDatabase:
    shared = {
        "application_name": "holdfast",
        "timezone": "UTC",
        "synchronous_commit": "on",
        "default_transaction_isolation": "read committed",
        "statement_timeout": "10s",
        "lock_timeout": "2s",
        "idle_in_transaction_session_timeout": "10s",
        "tcp_keepalives_idle": str(_KEEPALIVE_IDLE),
        "tcp_keepalives_interval": str(_KEEPALIVE_INTERVAL),
        "tcp_keepalives_count": str(_KEEPALIVE_COUNT),
    }

    def engine(size: int, settings: Mapping[str, str], **options: Any) -> "AsyncEngine":
        told = {
            "server_settings": {**shared, **settings},
            "timeout": 10,
            "statement_cache_size": 300,
            "max_cached_statement_lifetime": 0,  # else each is planned again every five minutes
            "max_cacheable_statement_size": 0,
        }
        made = _engine(url, "postgres", size, connect_args=told, **options)
        event.listen(made.sync_engine, "connect", _keep_alive)
        return made

    reading = engine(readers, {"default_transaction_read_only": "on"}, **_AUTOCOMMIT)
    telling = engine(writers, {**_ONE_PLAN, **more}, **_AUTOCOMMIT)
    return PostgresqlDatabase(url, engine(writers, more), reading, telling)


# Statements with many rows in arrays. Planned once, while the tables are small, they would otherwise
# scan whole tables for ever, or be planned anew for each group.
_ONE_PLAN = {
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}


def _mariadb(url: sa.URL, writers: int, readers: int) -> ServerDatabase:
    # Strict, or a text too long is cut off and kept. What stands in /*M! */ only MariaDB reads.
    session = (
        "set session time_zone = '+00:00', innodb_lock_wait_timeout = 2, "
        "sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION' "
        "/*M! , max_statement_time = 10 */"
    )
    told = {"connect_timeout": 10, "charset": "utf8mb4"}
    # Read committed: under repeatable read a second look on a connection that had read saw nothing.
    writing = _engine(url, "mysql", writers, connect_args=told, isolation_level="READ COMMITTED")
    reading = _engine(url, "mysql", readers, connect_args=told, **_AUTOCOMMIT)
    _at_connect(writing.sync_engine, (session,))
    _at_connect(reading.sync_engine, (session, "set session transaction read only"))
    return ServerDatabase(url, writing, reading)


def _engine(url: sa.URL, extra: str, size: int, **options: Any) -> "AsyncEngine":
    try:
        # Here, since it needs greenlet, and whoever has SQLite needs neither.
        from sqlalchemy.ext.asyncio import create_async_engine

        return create_async_engine(url, pool_size=size, max_overflow=0, pool_timeout=10, **options)
    except ImportError as missing:
        raise Invalid(
            f"A package for {url.drivername} is missing: pip install 'holdfast[{extra}]'. {missing}"
        ) from missing


_KEEPALIVE_IDLE, _KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT = 10, 5, 3


def _keep_alive(connection: Any, _record: Any) -> None:
    # asyncpg has no option for it, and without it a server that vanished is waited for for ever.
    # asyncmy does it by itself.
    transport = getattr(connection.driver_connection, "_transport", None)
    line = transport.get_extra_info("socket") if transport is not None else None
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", _KEEPALIVE_COUNT),
    ):
        if hasattr(socket, option):  # not on every system
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
