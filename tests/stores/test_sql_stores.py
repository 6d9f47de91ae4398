"""The SQL store keeps every promise on SQLite, PostgreSQL and MariaDB."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from holdfast.stores.sql.engines import Database, create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata, seed
from holdfast.testing.conformance import PassTime, StoreConformance


def empty(connection: sa.Connection) -> None:
    for table in metadata.sorted_tables:
        connection.execute(sa.delete(table))
    seed(connection)


class SqlConformance(StoreConformance):
    """What the three have in common: an empty database for each test, and time that really passes.

    Each of them has a fixture `database`.
    """

    @pytest.fixture
    async def store(self, database: Database) -> AsyncIterator[SqlStore]:
        await database.write(empty)
        store = SqlStore(database)
        yield store
        await store.close()

    @pytest.fixture
    def pass_time(self) -> PassTime:
        async def wait(span: timedelta) -> None:
            await asyncio.sleep(span.total_seconds())

        return wait


class TestSqlite(SqlConformance):
    @pytest.fixture
    async def database(self, tmp_path: Path) -> AsyncIterator[Database]:
        database = create(f"sqlite:///{tmp_path / 'holdfast.db'}")
        await database.write(metadata.create_all)
        yield database
        await database.close()


class TestPostgres(SqlConformance):
    @pytest.fixture
    async def database(self, postgres_url: str) -> AsyncIterator[Database]:
        database = create(postgres_url)
        await database.write(metadata.create_all)
        yield database
        await database.close()


class TestMariadb(SqlConformance):
    @pytest.fixture
    async def database(self, mariadb_url: str) -> AsyncIterator[Database]:
        database = create(mariadb_url)
        await database.write(metadata.create_all)
        yield database
        await database.close()
