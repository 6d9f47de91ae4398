"""What a database does for us, whichever it is: types, transactions, errors."""

import asyncio
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from sqlalchemy import exc

from holdfast.errors import Conflict, Invalid, Unavailable
from holdfast.stores.sql.engines import Database, create
from holdfast.stores.sql.failures import TryAgain
from holdfast.stores.sql.migrations import migrate
from holdfast.stores.sql.tables import firings, inbox, instances, leases, nodes, outbox
from tests.stores.conftest import an_instance, opened

INSTANT = datetime(2026, 3, 29, 1, 30, 15, 123457, tzinfo=UTC)


def insert(table: sa.Table, *rows: dict[str, Any]) -> Any:
    def work(connection: sa.Connection) -> Any:
        for row in rows:
            key = connection.execute(sa.insert(table).values(row)).inserted_primary_key
        return key

    return work


def rows_of(*columns: Any, where: Any = None) -> Any:
    chosen = sa.select(*columns) if where is None else sa.select(*columns).where(where)
    return lambda connection: [tuple(row) for row in connection.execute(chosen)]


@pytest.mark.parametrize(
    "zone", [UTC, timezone(timedelta(hours=-9, minutes=-30)), ZoneInfo("Europe/Berlin")], ids=str
)
async def test_an_instant_comes_back_to_the_microsecond_whatever_its_zone(
    migrated: Database, zone: Any
) -> None:
    given = INSTANT.astimezone(zone)
    await migrated.write(insert(nodes, {"id": "n1", "place": "here", "expires": given}))
    [(found,)] = await migrated.read(rows_of(nodes.c.expires, where=nodes.c.expires == given))
    assert found == INSTANT
    assert found.tzinfo is UTC


async def test_instants_are_ordered_as_time_is(migrated: Database) -> None:
    instants = [INSTANT + timedelta(microseconds=step) for step in (0, 1, 999_999, 86_400_000_000)]
    rows = [{"schedule": "s", "nominal": at, "outcome": "started"} for at in reversed(instants)]
    await migrated.write(insert(firings, *rows))
    ordered = sa.select(firings.c.nominal).order_by(firings.c.nominal)
    found = await migrated.read(lambda connection: list(connection.scalars(ordered)))
    assert found == instants


async def test_a_time_without_a_zone_is_refused(migrated: Database) -> None:
    naive = INSTANT.replace(tzinfo=None)
    with pytest.raises(exc.StatementError, match="has no time zone"):
        await migrated.write(insert(nodes, {"id": "n1", "place": "here", "expires": naive}))


async def test_ids_differ_by_case(migrated: Database) -> None:
    await migrated.write(insert(instances, an_instance("order-a"), an_instance("order-A")))
    found = await migrated.read(rows_of(instances.c.id, where=instances.c.id == "order-A"))
    assert found == [("order-A",)]


async def test_correlations_may_be_in_any_alphabet_and_differ_by_case(migrated: Database) -> None:
    await migrated.write(insert(instances, an_instance("i1", correlation_id="Bestellung Ä-7 注文")))
    for asked, expected in (("Bestellung Ä-7 注文", [("i1",)]), ("bestellung ä-7 注文", [])):
        found = await migrated.read(rows_of(instances.c.id, where=instances.c.correlation_id == asked))
        assert found == expected


async def test_state_comes_back_as_it_was_however_large(migrated: Database) -> None:
    state = '{"text": "' + "Zoë \\u0000 🙂 " * 20_000 + '"}'
    await migrated.write(insert(instances, an_instance("i1", state=state)))
    assert await migrated.read(rows_of(instances.c.state)) == [(state,)]


async def test_numbers_of_messages_grow_and_are_never_used_twice(migrated: Database) -> None:
    message = {
        "shard": 1,
        "lane": 1,
        "tenant": "acme",
        "instance_id": "i1",
        "kind": "start",
        "sent_at": INSTANT,
    }
    for table, row in ((inbox, message), (outbox, {"shard": 1, "stream": "orders", "body": "{}"})):
        first, second = [(await migrated.write(insert(table, row))).seq for _ in range(2)]
        await migrated.write(lambda connection, table=table: connection.execute(sa.delete(table)))
        third = (await migrated.write(insert(table, row))).seq
        assert first < second < third


async def test_defaults_are_the_databases(migrated: Database) -> None:
    await migrated.write(insert(leases, {"name": "shard-1"}))
    assert await migrated.read(rows_of(leases)) == [("shard-1", None, 0, True)]


async def test_an_update_counts_the_rows_it_found_even_if_it_changed_nothing(migrated: Database) -> None:
    await migrated.write(insert(leases, {"name": "shard-1"}))
    update = sa.update(leases).where(leases.c.name == "shard-1").values(epoch=0)
    assert await migrated.write(lambda connection: connection.execute(update).rowcount) == 1


async def test_what_raises_in_a_transaction_leaves_nothing(migrated: Database) -> None:
    def half(connection: sa.Connection) -> None:
        connection.execute(sa.insert(leases).values(name="shard-1"))
        raise LookupError("in the middle")

    with pytest.raises(LookupError):
        await migrated.write(half)
    assert await migrated.read(rows_of(leases.c.name)) == []


async def test_a_read_cannot_write(migrated: Database) -> None:
    with pytest.raises((Unavailable, exc.DBAPIError)):
        await migrated.read(insert(leases, {"name": "shard-1"}))
    assert await migrated.read(rows_of(leases.c.name)) == []


async def test_a_second_look_in_one_read_sees_what_was_committed_meanwhile(
    migrated: Database, shared_url: str
) -> None:
    # In a thread of its own: the read below keeps its loop or its thread busy.
    def commit_elsewhere() -> None:
        async def work() -> None:
            async with opened(shared_url) as other:
                await other.write(insert(leases, {"name": "shard-1"}))

        asyncio.run(work())

    def look_twice(connection: sa.Connection) -> tuple[int, int]:
        count = sa.select(sa.func.count()).select_from(leases)
        before = connection.scalar(count)
        with ThreadPoolExecutor(1) as thread:
            thread.submit(commit_elsewhere).result()
        return before or 0, connection.scalar(count) or 0

    assert await migrated.read(look_twice) == (0, 1)


async def test_a_taken_key_is_a_conflict(migrated: Database) -> None:
    await migrated.write(insert(leases, {"name": "shard-1"}))
    with pytest.raises(Conflict, match="exists already"):
        await migrated.write(insert(leases, {"name": "shard-2"}, {"name": "shard-1"}))
    assert await migrated.read(rows_of(leases.c.name)) == [("shard-1",)]


async def test_a_mistake_of_ours_rises_as_it_is(migrated: Database) -> None:
    with pytest.raises(exc.DBAPIError):
        await migrated.read(lambda connection: connection.execute(sa.text("select nonsense from leases")))


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
async def test_a_refused_connection_is_unavailable_and_keeps_its_password(kind: str) -> None:
    with closing(socket.socket()) as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    async with opened(f"{kind}://root:geheim@127.0.0.1:{port}/nowhere") as database:
        for run in (database.read, database.write):
            with pytest.raises(Unavailable) as caught:
                await run(rows_of(leases.c.name))
            assert "geheim" not in str(caught.value)


async def test_a_file_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path / 'missing' / 'holdfast.db'}") as database:
        with pytest.raises(Unavailable):
            await database.write(migrate)


async def test_a_killed_connection_is_unavailable_and_the_next_one_works(postgres_db: str) -> None:
    async with opened(postgres_db) as database, opened(postgres_db) as other:
        await database.write(migrate)
        mine = await database.read(lambda connection: connection.scalar(sa.text("select pg_backend_pid()")))
        await other.read(
            lambda connection: connection.execute(
                sa.text("select pg_terminate_backend(:pid, 5000)"), {"pid": mine}
            )
        )
        with pytest.raises(Unavailable):
            await database.read(rows_of(leases.c.name))
        assert await database.read(rows_of(leases.c.name)) == []

        def die(connection: sa.Connection) -> None:
            connection.execute(sa.insert(leases).values(name="shard-1"))
            connection.execute(sa.text("select pg_terminate_backend(pg_backend_pid())"))

        with pytest.raises(Unavailable):
            await database.write(die)
        assert await database.read(rows_of(leases.c.name)) == []


async def test_a_connection_that_mariadb_killed_is_unavailable_and_the_next_one_works(
    mariadb_db: str,
) -> None:
    async with opened(mariadb_db) as database:
        await database.write(migrate)
        with pytest.raises(Unavailable):
            await database.write(
                lambda connection: connection.execute(
                    sa.text(f"kill {connection.scalar(sa.text('select connection_id()'))}")
                )
            )
        assert await database.read(rows_of(leases.c.name)) == []
        await database.write(insert(leases, {"name": "shard-1"}))


@pytest.mark.parametrize("fixture", ["postgres_db", "mariadb_db"])
async def test_of_two_in_a_deadlock_one_is_told_to_try_again(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    # PostgreSQL looks for deadlocks after a second unless told otherwise.
    async with opened(request.getfixturevalue(fixture), settings={"deadlock_timeout": "50ms"}) as database:
        await database.write(migrate)
        await database.write(insert(leases, {"name": "a"}, {"name": "b"}))
        both_have_one = asyncio.Barrier(2)

        def raise_both(connection: sa.Connection, first: str, second: str) -> None:
            for name in (first, second):
                connection.execute(
                    sa.update(leases).where(leases.c.name == name).values(epoch=leases.c.epoch + 1)
                )
                if name == first:
                    sa.util.await_only(both_have_one.wait())

        outcomes = await asyncio.gather(
            database.write(raise_both, "a", "b"), database.write(raise_both, "b", "a"), return_exceptions=True
        )
        assert {type(outcome) for outcome in outcomes} == {TryAgain, type(None)}
        assert await database.read(rows_of(leases.c.epoch)) == [(1,), (1,)]


async def test_a_busy_file_means_try_again(sqlite_db: str) -> None:
    async with opened(sqlite_db) as database:
        await database.write(migrate)
        await database.write(lambda connection: connection.exec_driver_sql("pragma busy_timeout = 1").close())
        with closing(sqlite3.connect(database.url.database or "", isolation_level=None)) as somebody:
            somebody.execute("begin immediate")
            with pytest.raises(TryAgain):
                await database.write(insert(leases, {"name": "shard-1"}))
        await database.write(insert(leases, {"name": "shard-1"}))


async def test_a_statement_prepared_before_a_migration_is_tried_again(postgres_db: str) -> None:
    def look(connection: sa.Connection) -> None:
        connection.execute(sa.text("select * from settings")).all()

    async with opened(postgres_db, readers=1) as database, opened(postgres_db) as newer:
        await database.write(migrate)
        await database.read(look)
        await newer.write(
            lambda connection: connection.execute(sa.text("alter table settings add column more int"))
        )
        with pytest.raises(TryAgain):
            await database.read(look)
        await database.read(look)


async def test_connections_have_the_settings_of_the_kernel(postgres_db: str) -> None:
    async with opened(postgres_db, settings={"jit": "off"}) as database:
        names = ("synchronous_commit", "transaction_isolation", "statement_timeout", "lock_timeout", "jit")
        told = await database.write(lambda c: [c.scalar(sa.text(f"show {name}")) for name in names])
        assert told == ["on", "read committed", "10s", "2s", "off"]


async def test_mariadb_is_strict_and_reads_what_is_committed(mariadb_db: str) -> None:
    async with opened(mariadb_db) as database:
        asked = sa.text(
            "select @@tx_isolation, @@time_zone, @@innodb_lock_wait_timeout, @@max_statement_time"
        )
        told = await database.write(lambda connection: tuple(connection.execute(asked).one()))
        assert told == ("READ-COMMITTED", "+00:00", 2, 10)
        await database.write(migrate)
        assert await database.write(lambda connection: tuple(connection.execute(asked).one())) == told
        with pytest.raises(exc.DBAPIError, match="too long"):
            await database.write(insert(instances, an_instance("i" * 65)))


async def test_sqlite_waits_for_the_disk(sqlite_db: str) -> None:
    async with opened(sqlite_db) as database:
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        told = await database.write(
            lambda connection: [connection.scalar(sa.text(f"pragma {name}")) for name in names]
        )
        assert told == ["wal", 2, 1, 10_000]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "oracle://somewhere/db"])
def test_what_cannot_work_is_refused_at_once(url: str) -> None:
    with pytest.raises(Invalid):
        create(url)


def test_sqlite_needs_none_of_the_packages_for_servers(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "sys.modules.update(dict.fromkeys(('greenlet', 'asyncpg', 'asyncmy')))\n"
        "from holdfast.errors import Invalid\n"
        "from holdfast.stores.sql.engines import create\n"
        "from holdfast.stores.sql.migrations import migrate\n"
        "async def main():\n"
        "    database = create(sys.argv[1])\n"
        "    await database.write(migrate)\n"
        "    await database.close()\n"
        "asyncio.run(main())\n"
        "try:\n"
        "    create('postgresql://somewhere/db')\n"
        "except Invalid as error:\n"
        "    print(error)\n"
    )
    place = f"sqlite:///{tmp_path / 'holdfast.db'}"
    done = subprocess.run([sys.executable, "-c", script, place], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'holdfast[postgres]'" in done.stdout


def test_whoever_has_no_sql_database_does_not_wait_for_sqlalchemy() -> None:
    script = "import sys, holdfast.assembly; print({'sqlalchemy', 'alembic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
