"""Nodes and leases where two transactions meet, and what becomes of the dead."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.util import await_only

from holdfast.commit import Task
from holdfast.store import NodeExpired, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sql.engines import Database, create
from holdfast.stores.sql.migrations import migrate
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import nodes
from holdfast.testing import ManualClock
from holdfast.testing.conformance.examples import born
from tests.stores.conftest import opened

TTL = timedelta(seconds=0.5)
LONG = timedelta(minutes=1)
DAYS = timedelta(days=2)


@pytest.fixture
async def server(migrated: Database) -> Database:
    """A database where transactions run side by side."""
    if migrated.url.get_backend_name() == "sqlite":
        pytest.skip("SQLite has one writer: there its transactions never meet.")
    return migrated


@asynccontextmanager
async def locked(database: Database, statement: str) -> AsyncIterator[None]:
    """Inside, somebody else's transaction has done this and is not committed."""
    done, go_on = asyncio.Event(), asyncio.Event()

    def hold(connection: sa.Connection) -> None:
        connection.execute(sa.text(statement))
        done.set()
        await_only(go_on.wait())

    place = database.url.render_as_string(hide_password=False)
    async with opened(place) as other, asyncio.TaskGroup() as group:
        group.create_task(other.write(hold))
        await done.wait()
        try:
            yield
        finally:
            go_on.set()


async def test_a_renewal_that_waited_for_a_taker_until_its_time_ran_out_has_failed(server: Database) -> None:
    store = SqlStore(server)
    await store.join("n1", "here", TTL)
    async with locked(server, "select id from nodes where id = 'n1' for update"):
        renewing = asyncio.ensure_future(store.renew("n1", LONG))
        await asyncio.sleep(2 * TTL.total_seconds())
        assert not renewing.done()
    with pytest.raises(NodeExpired):
        await renewing


async def test_the_leases_of_a_node_that_is_just_renewing_are_not_taken(server: Database) -> None:
    store = SqlStore(server)
    await store.join("n1", "here", TTL)
    await store.join("n2", "here", LONG)
    await store.take("n1", ["a"])
    renewal = "update nodes set expires = '2999-01-01' where id = 'n1'"
    async with locked(server, renewal):
        await asyncio.sleep(2 * TTL.total_seconds())
        assert await store.take("n2", ["a"]) == []
    assert await store.take("n2", ["a"]) == []
    assert (await store.renew("n1", LONG)).leases == {"a": 1}


async def test_looking_at_the_leases_of_the_living_is_in_nobodys_way(server: Database) -> None:
    store = SqlStore(server)
    await store.join("n1", "here", LONG)
    await store.join("n2", "here", LONG)
    await store.take("n1", ["a"])
    async with locked(server, "select id from nodes where id = 'n1' for update"):
        assert await store.take("n2", ["a", "b"]) != []


async def test_postgresql_renews_in_one_round_trip(postgres_db: str) -> None:
    async with opened(postgres_db) as database:
        await database.write(migrate)
    address = sa.make_url(postgres_db)
    sent: list[bytes] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to_server = await asyncio.open_connection(address.host, address.port)

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, count: bool) -> None:
            while chunk := await source.read(65536):
                if count:
                    sent.append(chunk)
                target.write(chunk)
            target.close()

        await asyncio.gather(pump(reader, to_server, count=True), pump(there, writer, count=False))

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        store = SqlStore(create(address.set(host="127.0.0.1", port=port), writers=1))
        await store.join("n1", "here", LONG)
        await store.take("n1", ["a", "b"])
        await store.renew("n1", LONG)
        sent.clear()
        for seen in range(5):
            assert len((await store.renew("n1", LONG, seen=seen)).leases) == 2
        assert len(sent) == 5
        await store.close()


async def dead_for_days(store: Store, database: Database, *names: str) -> None:
    for name in names:
        await store.leave(name)

    def age(connection: sa.Connection) -> None:
        old = sa.update(nodes).where(nodes.c.id.in_(names))
        connection.execute(old.values(expires=ManualClock().now() - timedelta(days=2000)))

    await database.write(age)


async def test_the_dead_are_forgotten_after_a_day_unless_something_refers_to_them(
    migrated: Database,
) -> None:
    store = SqlStore(migrated)
    for name in ("lease", "work", "idle", "recent"):
        await store.join(name, "here", LONG)
    await store.take("lease", ["a"])
    await store.commit([born(tasks=(Task(1, b"{}"),))])
    (attempt,) = await store.idle_attempts([1], 10)
    await store.claim("work", attempt)
    await dead_for_days(store, migrated, "lease", "work", "idle")
    await store.leave("recent")
    await store.join("new", "here", LONG)

    def names(connection: sa.Connection) -> set[str]:
        return set(connection.execute(sa.select(nodes.c.id)).scalars())

    assert await migrated.read(names) == {"lease", "work", "recent", "new"}


async def test_the_store_in_memory_forgets_the_dead_as_well() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    await store.join("lease", "here", TTL)
    await store.take("lease", ["a"])
    await store.join("idle", "here", TTL)
    clock.advance(DAYS)
    await store.join("recent", "here", TTL)
    clock.advance(TTL)
    await store.join("idle", "here", TTL)  # forgotten, so that nobody remembers the name
    for name in ("lease", "recent"):
        with pytest.raises(NodeExpired):
            await store.join(name, "here", TTL)
