"""Databases of our own, on every engine we support.

`empty` and `migrated` go round all of them; `sqlite_db`, `postgres_db` and `mariadb_db` are the URL of one
each. The suite's shared databases keep their tables from test to test; the tests here are about making
tables, changing them and breaking connections, so they get a place where they disturb nobody.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from holdfast.stores.sql.engines import Database, create
from holdfast.stores.sql.migrations import migrate
from holdfast.stores.sql.tables import metadata, seed

KINDS = ["sqlite", "postgres", "mariadb"]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Tell = Callable[..., Coroutine[Any, Any, None]]


def at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run it to its end in a loop of its own: the test's is not running yet, or not any more."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


async def tell_postgres(*statements: str, database: str = "postgres") -> None:
    import asyncpg

    connection = await asyncpg.connect(host="127.0.0.1", port=5432, user="root", database=database, timeout=5)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def tell_mariadb(*statements: str) -> None:
    import asyncmy

    connection = await asyncmy.connect(host="127.0.0.1", port=3306, user="root", connect_timeout=5)
    try:
        async with connection.cursor() as cursor:
            for statement in statements:
                await cursor.execute(statement)
    finally:
        await connection.ensure_closed()


@contextmanager
def on_server(server: str, tell: Tell, drop: str) -> Iterator[str]:
    """A new database by its name, dropped at the end."""
    name = f"holdfast_sql_{os.getpid()}_{secrets.token_hex(4)}"
    try:
        at_once(tell(f"create database {name}"))
    except Exception as error:
        # asyncpg lets the system's error through, asyncmy has its own.
        if not isinstance(error, OSError) and error.args[:1] not in ((2002,), (2003,)):
            raise
        pytest.skip(f"{server} cannot be reached: {error}")
    yield name
    at_once(tell(drop.format(name)))


@contextmanager
def new_database(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'holdfast.db'}"
    elif kind == "postgres":
        with on_server("PostgreSQL", tell_postgres, "drop database {} with (force)") as name:
            yield f"postgresql+asyncpg://root@127.0.0.1:5432/{name}"
    else:
        with on_server("MariaDB", tell_mariadb, "drop database {}") as name:
            yield f"mysql+asyncmy://root@127.0.0.1:3306/{name}"


# Servers make and drop databases slowly, so one serves a whole module and is wiped after each test.


@pytest.fixture(scope="module")
def postgres_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with new_database("postgres", tmp_path_factory.getbasetemp()) as url:
        yield url


@pytest.fixture(scope="module")
def mariadb_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with new_database("mariadb", tmp_path_factory.getbasetemp()) as url:
        yield url


@pytest.fixture
def sqlite_db(tmp_path: Path) -> Iterator[str]:
    with new_database("sqlite", tmp_path) as url:
        yield url


@pytest.fixture
def postgres_db(postgres_place: str) -> Iterator[str]:
    yield postgres_place
    name = sa.make_url(postgres_place).database or ""
    at_once(tell_postgres("drop schema public cascade", "create schema public", database=name))


@pytest.fixture
def mariadb_db(mariadb_place: str) -> Iterator[str]:
    yield mariadb_place
    name = sa.make_url(mariadb_place).database
    at_once(tell_mariadb(f"drop database {name}", f"create database {name}"))


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> str:
    """Each kind of database in turn, without tables."""
    return request.getfixturevalue(f"{request.param}_db")


@pytest.fixture(scope="session", params=KINDS)
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Each kind of database in turn, with our tables, which nobody may change."""

    async def fill(url: str) -> None:
        async with opened(url) as database:
            await database.write(migrate)

    with new_database(request.param, tmp_path_factory.mktemp("database")) as url:
        at_once(fill(url))
        yield url


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[Database]:
    """Connected to a URL, and closed whatever happens."""
    database = create(url, **options)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
async def empty(url: str) -> AsyncIterator[Database]:
    """A database without tables."""
    async with opened(url) as database:
        yield database


@pytest.fixture
async def migrated(shared_url: str) -> AsyncIterator[Database]:
    """A database with our tables, and nothing in them."""

    def clear(connection: sa.Connection) -> None:
        for table in metadata.sorted_tables:
            connection.execute(sa.delete(table))
        seed(connection)

    async with opened(shared_url) as database:
        await database.write(clear)
        yield database


def an_instance(instance_id: str, **columns: Any) -> dict[str, Any]:
    """A row of `instances`."""
    return {
        "tenant": "acme",
        "id": instance_id,
        "shard": 3,
        "definition_id": "d1",
        "version_id": "v1",
        "version": 1,
        "status": "Running",
        "sub_status": "Suspended",
        "revision": 1,
        "created_at": NOON,
        "updated_at": NOON,
        "format": 1,
        "state": '{"name": "\\u0000 Zoë"}',
        **columns,
    }
