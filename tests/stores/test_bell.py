"""What is special about wake-ups over each database."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from holdfast.errors import Unavailable
from holdfast.store import NodeExpired
from holdfast.stores.sql.bell import LOOK
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.migrations import migrate
from holdfast.stores.sql.store import SqlStore
from holdfast.testing.conformance.bell import listening

TTL = timedelta(seconds=30)


@asynccontextmanager
async def a_store(url: str) -> AsyncIterator[SqlStore]:
    database = create(url)
    await database.write(migrate)
    store = SqlStore(database)
    try:
        yield store
    finally:
        await store.close()


async def end_connections(url: str) -> None:
    """As a server does that is restarted: whoever rings or listens loses its connection."""
    database = create(url, writers=1, readers=1)
    ours = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'holdfast bell'"
    own = f"{ours} and datname = current_database()"
    ended = await database.read(lambda connection: connection.execute(sa.text(own)).all())
    await database.close()
    assert ended


async def ring_until_done(store: SqlStore, word: str) -> None:
    """The first try may find out that the connection is lost."""
    try:
        await store.ring([word])
    except Unavailable:
        await store.ring([word])


async def test_postgresql_is_heard_by_another_process(postgres_db: str) -> None:
    async with a_store(postgres_db) as one, a_store(postgres_db) as other, listening(other) as heard:
        await one.ring(["shard 3 from 17"])
        await heard.until("shard 3 from 17")


async def test_after_a_lost_connection_postgresql_is_heard_again_and_says_that_it_was_lost(
    postgres_db: str,
) -> None:
    async with a_store(postgres_db) as store, listening(store) as heard:
        assert "" not in heard.words
        await end_connections(postgres_db)
        await heard.until("")
        await ring_until_done(store, "news")
        await heard.until("news")


async def test_a_word_too_long_for_postgresql_is_heard_as_an_empty_one(postgres_db: str) -> None:
    async with a_store(postgres_db) as store, listening(store) as heard:
        await store.ring(["before", "x" * 10_000, "after", "ö" * 3_000])
        await heard.until("ö" * 3_000)
        assert heard.words == ["before", "", "after", "ö" * 3_000]


async def test_ringing_where_nobody_is_says_so() -> None:
    store = SqlStore(create("postgresql://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(Unavailable, match="cannot be reached"):
        await store.ring(["news"])
    await store.close()


async def test_what_another_process_writes_to_a_sqlite_file_is_noticed(sqlite_db: str) -> None:
    async with a_store(sqlite_db) as store, listening(store) as heard:
        assert "" not in heard.words
        with closing(sqlite3.connect(sa.make_url(sqlite_db).database or "")) as another:
            another.execute("update counters set value = value + 1")
            another.commit()
        await heard.until("")


async def test_what_we_write_to_a_sqlite_file_ourselves_is_no_news(sqlite_db: str) -> None:
    async with a_store(sqlite_db) as store, listening(store) as heard:
        apart = store.apart()
        for number in range(10):
            await (store if number % 2 else apart).join(f"n{number}", "here", TTL)
            await asyncio.sleep(LOOK / 2)
        await asyncio.sleep(2 * LOOK)
        await apart.close()
        assert heard.words == []


async def test_whoever_listens_at_a_sqlite_file_that_is_not_there_yet_goes_on(sqlite_db: str) -> None:
    store = SqlStore(create(sqlite_db))
    async with listening(store) as heard:
        await store.ring(["news"])
        await heard.until("news")
    await store.close()


async def test_two_databases_of_one_process_do_not_hear_each_other(url: str, tmp_path: Path) -> None:
    elsewhere = f"sqlite:///{tmp_path / 'other.db'}"
    async with (
        a_store(url) as one,
        a_store(elsewhere) as other,
        listening(one) as here,
        listening(other) as there,
    ):
        await one.ring(["one"])
        await other.ring(["other"])
        await here.until("one")
        await there.until("other")
        assert (here.words, there.words) == (["one"], ["other"])


def in_a_thread(work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
    """Run it to its end in another thread with an event loop of its own."""
    return asyncio.to_thread(asyncio.run, work)


async def test_a_store_apart_works_in_a_thread_of_its_own(url: str) -> None:
    async def renew(apart: SqlStore) -> str:
        await apart.join("n1", "here", TTL)
        await apart.renew("n1", TTL, seen=3)
        with pytest.raises(NodeExpired):
            await apart.renew("nobody", TTL)
        await apart.ring(["renewed"])
        await apart.close()
        return threading.current_thread().name

    async with a_store(url) as store, listening(store) as heard:
        where = await in_a_thread(renew(store.apart()))
        assert where != threading.current_thread().name
        await heard.until("renewed")
        assert [(node.id, node.seen) for node in await store.nodes()] == [("n1", 3)]


async def test_a_closed_store_apart_leaves_the_other_open(url: str) -> None:
    async with a_store(url) as store:
        await store.apart().close()
        apart = store.apart()
        await apart.join("n1", "here", TTL)
        await apart.close()
        assert [node.id for node in await store.nodes()] == ["n1"]
