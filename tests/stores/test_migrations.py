"""How a database gets our tables."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from holdfast.stores.sql.engines import Database
from holdfast.stores.sql.migrations import VERSION_TABLE, NotMigrated, TooNew, check, migrate, pending
from holdfast.stores.sql.tables import definitions, instances, metadata
from tests.stores.conftest import an_instance, opened

FIRST = "0001 The first tables"
SECOND = "0002 Placements and counters"
ALL = [FIRST, SECOND]
LATER = Path(__file__).parent / "later"


def table_names(connection: sa.Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())


def run(statement: str) -> Any:
    def work(connection: sa.Connection) -> Any:
        result = connection.execute(sa.text(statement))
        return result.all() if result.returns_rows else None

    return work


async def test_an_empty_database_gets_all_tables(empty: Database) -> None:
    assert await empty.read(pending) == ALL
    assert await empty.write(migrate) == ALL
    assert await empty.read(table_names) == {*metadata.tables, VERSION_TABLE}
    await empty.read(check)


async def test_migrating_again_does_nothing(migrated: Database) -> None:
    assert await migrated.read(pending) == []
    assert await migrated.write(migrate) == []
    await migrated.read(check)


async def test_four_processes_may_start_at_once(empty: Database, url: str) -> None:
    script = (
        "import asyncio, sys\n"
        "from holdfast.stores.sql.engines import create\n"
        "from holdfast.stores.sql.migrations import migrate\n"
        "async def main():\n"
        "    database = create(sys.argv[1])\n"
        "    print(await database.write(migrate))\n"
        "    await database.close()\n"
        "asyncio.run(main())\n"
    )

    async def start() -> tuple[int | None, str, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, url, stdout=pipe, stderr=pipe
        )
        said, complaint = await process.communicate()
        return process.returncode, said.decode().strip(), complaint.decode()

    ends = await asyncio.gather(*(start() for _ in range(4)))
    assert not [complaint for code, _, complaint in ends if code != 0]
    assert sorted(said for _, said, _ in ends) == [str(ALL), "[]", "[]", "[]"]
    await empty.read(check)


async def test_four_connections_of_one_process_may_migrate_at_once(url: str) -> None:
    async def start() -> list[str]:
        async with opened(url) as database:
            return await database.write(migrate)

    done = await asyncio.gather(*(start() for _ in range(4)))
    assert sorted(done) == [[], [], [], ALL]


async def test_rows_survive_the_next_step(empty: Database) -> None:
    await empty.write(migrate)

    def fill(connection: sa.Connection) -> None:
        for number in range(3):
            connection.execute(sa.insert(instances).values(an_instance(f"i{number}")))

    await empty.write(fill)
    before = await empty.read(lambda connection: connection.execute(sa.select(instances)).all())
    assert await empty.write(migrate, also=[LATER]) == [
        "0003 A weight for every instance, as a later release might want"
    ]
    after = await empty.read(lambda connection: connection.execute(sa.select(instances)).all())
    assert after == before
    assert len(after) == 3
    assert await empty.read(run("select weight from instances")) == [(7,)] * 3


async def test_the_second_step_keeps_what_a_database_of_the_first_release_has(empty: Database) -> None:
    assert await empty.write(migrate, to="0001") == [FIRST]

    def fill(connection: sa.Connection) -> None:
        connection.execute(sa.insert(instances).values(an_instance("i1")))
        for instance_id in ("i1", "gone"):
            row = {"stream": "orders", "instance_id": instance_id, "shard": 3, "body": "{}"}
            names = ", ".join(row)
            connection.execute(
                sa.text(f"insert into outbox ({names}) values (:{names.replace(', ', ', :')})"), row
            )
        connection.execute(
            sa.text(
                "insert into definitions (tenant, definition_id, version, version_id, name, content_hash, "
                "created_at, document) values ('acme', 'd1', 1, 'v1', 'Orders', 'x', '2026-03-01', '{}')"
            ),
        )

    await empty.write(fill)
    assert await empty.write(migrate) == [SECOND]
    assert await empty.read(run("select instance_id, tenant from outbox order by seq")) == [
        ("i1", "acme"),
        ("gone", ""),
    ]
    assert await empty.read(lambda c: c.execute(sa.select(definitions.c.is_usable)).all()) == [(False,)]
    assert len(await empty.read(lambda c: c.execute(sa.select(instances)).all())) == 1


async def test_a_migrated_database_has_its_first_rows(empty: Database) -> None:
    await empty.write(migrate)
    assert await empty.read(run("select * from settings")) == [(1, 64, 1)]
    assert await empty.read(run("select * from shard_groups")) == [("default", 0, 64)]
    assert await empty.read(run("select * from counters order by name")) == [("catalogue", 0), ("pauses", 0)]


async def test_the_default_group_is_as_large_as_the_database_was_made(empty: Database) -> None:
    await empty.write(migrate, to="0001")
    await empty.write(run("insert into settings (id, shard_count, format) values (1, 16, 1)"))
    await empty.write(migrate)
    assert await empty.read(run("select * from settings")) == [(1, 16, 1)]
    assert await empty.read(run("select * from shard_groups")) == [("default", 0, 16)]


async def test_a_second_step_that_was_cut_short_is_finished_by_the_next_try(empty: Database) -> None:
    await empty.write(migrate)
    whole = await empty.read(picture)
    await empty.write(run("update counters set value = 7 where name = 'pauses'"))
    await empty.write(run("delete from counters where name = 'catalogue'"))
    await empty.write(run("drop table placements"))
    await empty.write(run(f"update {VERSION_TABLE} set version_num = '0001'"))
    assert await empty.write(migrate) == [SECOND]
    assert await empty.read(picture) == whole
    assert await empty.read(run("select * from counters order by name")) == [("catalogue", 0), ("pauses", 7)]


async def test_a_database_without_our_tables_is_refused_with_what_to_do(empty: Database) -> None:
    with pytest.raises(NotMigrated, match=r"lacks: 0001 The first tables, 0002 .*\. Run `holdfast migrate`"):
        await empty.read(check)


@pytest.mark.parametrize("ask", [check, migrate])
async def test_a_database_of_a_newer_holdfast_is_refused(migrated: Database, ask: Any) -> None:
    def ask_from_the_future(connection: sa.Connection) -> None:
        connection.execute(sa.text(f"update {VERSION_TABLE} set version_num = '0007'"))
        ask(connection)

    with pytest.raises(TooNew, match=r"is at version 0007, this code knows versions up to 0002"):
        await migrated.write(ask_from_the_future)
    await migrated.read(check)


async def test_a_step_that_was_cut_short_is_finished_by_the_next_try(empty: Database) -> None:
    await empty.write(migrate)
    whole = await empty.read(picture)
    index = "schedules_by_shard_next_at"
    on_mariadb = empty.url.get_backend_name() == "mysql"
    await empty.write(run(f"drop index {index}" + (" on schedules" if on_mariadb else "")))
    await empty.write(run("drop table settings"))
    await empty.write(run(f"delete from {VERSION_TABLE}"))
    assert await empty.write(migrate) == ALL
    assert await empty.read(picture) == whole


async def test_a_migrated_database_is_what_the_tables_say(empty: Database) -> None:
    await empty.write(migrate)
    by_steps = await empty.read(picture)
    await empty.write(metadata.drop_all)
    await empty.write(metadata.create_all)
    assert await empty.read(picture) == by_steps
    assert {line.split()[0] for line in by_steps} == set(metadata.tables)


async def test_postgresql_keeps_the_hot_tables_as_the_kernel_wants_them(postgres_db: str) -> None:
    async with opened(postgres_db) as database:
        await database.write(migrate)
        lines = await database.read(picture)
    assert "inbox inbox_pkey PRIMARY KEY (shard, lane, seq)" in lines
    assert not [line for line in lines if "CREATE INDEX" in line and line.startswith("inbox")]
    assert (
        "instances state text collation=default compression=l not_null=False default=None identity=" in lines
    )
    assert (
        "instances id character varying(64) collation=C compression= not_null=True default=None identity="
        in lines
    )
    options = [line for line in lines if line.startswith("instances options")]
    assert options == [
        "instances options ['fillfactor=70', 'autovacuum_vacuum_scale_factor=0.02'] "
        "toast=['autovacuum_vacuum_scale_factor=0.02']"
    ]
    wanted = {"scale_factor": "0", "threshold": "5000", "cost_delay": "0"}
    hot = [f"autovacuum_vacuum_{name}={value}" for name, value in wanted.items()]
    for table in ("inbox", "timers", "leases", "nodes"):
        assert f"{table} options {hot} toast=None" in lines


def picture(connection: sa.Connection) -> list[str]:
    """Everything the database knows about our tables, a line for each thing, without Alembic's own."""
    lines = {"postgresql": of_postgresql, "sqlite": of_sqlite}.get(connection.dialect.name, of_mariadb)(
        connection
    )
    return sorted(line for line in lines if not line.startswith(VERSION_TABLE))


def of_sqlite(connection: sa.Connection) -> list[str]:
    rows = connection.execute(
        sa.text("select tbl_name, sql from sqlite_master where name not like 'sqlite_%'")
    )
    # Spaces apart: a column that was added later has others around it.
    return [" ".join((table, *re.sub(r"([(),])", r" \1 ", sql or "").split())) for table, sql in rows]


def of_mariadb(connection: sa.Connection) -> list[str]:
    lines: list[str] = []
    for table in table_names(connection):
        _, sql = connection.execute(sa.text(f"show create table {table}")).one()
        # Its lines sorted: indexes may have been made in another order.
        lines += [
            f"{table} {line.strip(' ,')}" for line in re.sub(r" AUTO_INCREMENT=\d+", "", sql).splitlines()
        ]
    return lines


def of_postgresql(connection: sa.Connection) -> list[str]:
    def ask(statement: str) -> list[Any]:
        return list(connection.execute(sa.text(statement)))

    ours = "c.relnamespace = 'public'::regnamespace and c.relkind = 'r'"
    columns = ask(f"""
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), coalesce(l.collname, ''),
               a.attcompression::text, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity::text
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_collation l on l.oid = a.attcollation
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum where {ours}""")
    lines = [
        f"{table} {name} {kind} collation={collation} compression={compression.strip(chr(0))} "
        f"not_null={not_null} default={default} identity={identity.strip(chr(0))}"
        for table, name, kind, collation, compression, not_null, default, identity in columns
    ]
    keys = f"""select c.relname, k.conname, pg_get_constraintdef(k.oid)
               from pg_constraint k join pg_class c on c.oid = k.conrelid where {ours}"""
    lines += [" ".join(row) for row in ask(keys)]
    lines += [
        " ".join(row) for row in ask("select tablename, indexdef from pg_indexes where schemaname = 'public'")
    ]
    options = f"""select c.relname, c.reloptions, t.reloptions
                  from pg_class c left join pg_class t on t.oid = c.reltoastrelid where {ours}"""
    return lines + [f"{table} options {own} toast={toast}" for table, own, toast in ask(options)]
