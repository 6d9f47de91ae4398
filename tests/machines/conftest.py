"""Benches for machines, on several stores."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast import Machine
from holdfast.store import Store
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.migrations import migrate
from holdfast.stores.sql.store import SqlStore
from holdfast.testing import MachineBench
from tests.stores.test_sql_stores import empty

OpenBench = Callable[[Machine[Any, Any]], Any]
"""Opens a bench for a machine; it is closed when the test is over."""


async def store_at(url: str) -> SqlStore:
    database = create(url)
    await database.write(migrate)
    await database.write(empty)
    await database.close()
    return SqlStore(create(url))


async def store_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store | None:
    """None is the bench's own, in memory."""
    if kind == "memory":
        return None
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    return await store_at(local if kind == "sqlite" else request.getfixturevalue(f"{kind}_url"))


async def _benches(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenBench]:
    async with AsyncExitStack() as stack:
        store = await store_of(kind, request, tmp_path)
        if store is not None:
            stack.push_async_callback(store.close)

        async def open_bench(machine: Machine[Any, Any]) -> MachineBench[Any, Any]:
            return await stack.enter_async_context(MachineBench(machine, store))

        yield open_bench


@pytest.fixture(params=["memory", "sqlite"])
async def open_bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenBench]:
    async for found in _benches(request.param, request, tmp_path):
        yield found


@pytest.fixture(params=["memory", "sqlite", "postgres", "mariadb"])
async def open_bench_anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenBench]:
    async for found in _benches(request.param, request, tmp_path):
        yield found
