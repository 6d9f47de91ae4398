"""A host of its own for each test of what operators do, on every kind of store."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.application import Holdfast
from holdfast.clock import SystemClock
from holdfast.store import InstanceFilter, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata
from tests.stores.test_sql_stores import empty

ALL = InstanceFilter(tenant="")


@asynccontextmanager
async def opened_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    if request.param == "memory":
        yield MemoryStore(SystemClock())
        return
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    database = create(url)
    await database.write(metadata.create_all)
    await database.write(empty)
    store = SqlStore(database)
    yield store
    await store.close()


async def until(check: Callable[[], Awaitable[Any]], *, patience: float = 10.0) -> Any:
    """What it says once that is true."""
    async with asyncio.timeout(patience):
        while True:
            found = await check()
            if found:
                return found
            await asyncio.sleep(0.01)


async def sub_status(holdfast: Holdfast, instance_id: str) -> str:
    return (await holdfast.instance(instance_id)).sub_status.value


async def become(holdfast: Holdfast, instance_id: str, wanted: str) -> None:
    async def is_it() -> bool:
        return await sub_status(holdfast, instance_id) == wanted

    await until(is_it)


async def count(holdfast: Holdfast, **members: Any) -> int:
    wanted = InstanceFilter(tenant="", **members)
    return (await holdfast.instances(wanted, limit=1)).total
