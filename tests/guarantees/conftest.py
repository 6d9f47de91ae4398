"""A bench on each database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.stores.sql.engines import create
from holdfast.stores.sql.migrations import migrate
from holdfast.stores.sql.store import SqlStore
from tests.guarantees.bench import Bench
from tests.stores.test_sql_stores import empty


async def bench_on(url: str) -> Bench:
    database = create(url)
    await database.write(migrate)
    await database.write(empty)
    await database.close()

    async def open_store() -> SqlStore:
        return SqlStore(create(url))

    return Bench(open_store)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    yield await bench_on(url)
