"""Databases of the bench's own, gone when it ends, and what the server's processes spend on them.

PostgreSQL is the one of `BENCH_POSTGRES_URL`, else the one the tests use; each contender has a database
of its own there. What a server writes ahead and syncs it counts for all databases together: where others
use it meanwhile, those counts are too high.
"""

import contextlib
import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psutil
from sqlalchemy.engine import make_url
from tests import services

FINISHED, WAITING = "once", "waiting"
START = 150
"""Bytes of a start message, which is gone before anybody could look."""


def find_postgres() -> str | None:
    """Its address, or None where there is none."""
    if given := os.environ.get("BENCH_POSTGRES_URL"):
        return given
    try:
        return services.find(services.POSTGRES)
    except services.NotHere:
        return None


@contextlib.contextmanager
def services_of_this_run() -> Iterator[None]:
    """A PostgreSQL started from its wheel lives as long as this."""
    if services.RUN_FOLDER in os.environ:  # a test runs us
        yield
        return
    services.begin_run()
    try:
        yield
    finally:
        services.end_run()


@contextlib.contextmanager
def sqlite_file() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="holdfast-bench-")
    try:
        yield f"sqlite:///{folder}/bench.db"
    finally:
        shutil.rmtree(folder)


class Server:
    """A PostgreSQL server, looked at from outside the measured databases."""

    def __init__(self, address: str, connection: Any) -> None:
        self._address = address
        self._connection = connection

    @contextlib.asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """The URL of an empty one."""
        name = f"holdfast_bench_{os.getpid()}_{secrets.token_hex(3)}"
        await self._connection.execute(f'create database "{name}"')
        try:
            yield make_url(self._address).set(database=name).render_as_string(hide_password=False)
        finally:
            await self._connection.execute(f'drop database if exists "{name}" with (force)')

    async def processor(self, url: str) -> float:
        """Processor seconds of the processes that serve this database now; 0 for a server elsewhere."""
        query = "select pid from pg_stat_activity where datname = $1"
        spent = 0.0
        for row in await self._connection.fetch(query, make_url(url).database):
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(row["pid"]).cpu_times()
                spent += times.user + times.system
        return spent

    async def written(self) -> tuple[float, float]:
        """Bytes written ahead and syncs of that log, by the whole server."""
        query = "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes, wal_sync from pg_stat_wal"
        row = await self._connection.fetchrow(query)
        return float(row["bytes"]), float(row["wal_sync"])

    async def checkpoint(self) -> None:
        """Now, and not while somebody is measured."""
        await self._connection.execute("checkpoint")

    async def version(self) -> str:
        return await self._connection.fetchval("show server_version")


@contextlib.asynccontextmanager
async def server(address: str) -> AsyncIterator[Server]:
    async with services.postgres_connection(address) as connection:
        yield Server(address, connection)


async def rows_written(url: str) -> int:
    """Rows inserted, changed and deleted so far, by connections that are closed."""
    async with services.postgres_connection(url) as connection:
        return await connection.fetchval(
            "select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint from pg_stat_user_tables"
        )


async def size(url: str) -> int:
    """Bytes of all tables and indexes, after rows that are gone were swept up, as autovacuum would."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(make_url(url).database or "")) as file:
            asked = ("page_count", "freelist_count", "page_size")
            pages, free, each = (file.execute(f"pragma {name}").fetchone()[0] for name in asked)
            return (pages - free) * each
    async with services.postgres_connection(url) as connection:
        await connection.execute("vacuum analyze")
        return await connection.fetchval(
            "select sum(pg_total_relation_size(relid))::bigint from pg_stat_user_tables"
        )


def usual_sizes(commits: int) -> dict[str, int]:
    """About as large as ours are, where there is no PostgreSQL to ask."""
    return {"state": 600, "payload": START, "summary": 80, "body": 800, "commits": commits}


async def sizes(url: str, name: str) -> dict[str, int]:
    """How large the rows of a finished instance of this definition are, and how often it was committed."""
    async with services.postgres_connection(url) as connection:
        row = await connection.fetchrow(
            """select length(state) as state, revision as commits, sum(length(summary))::int as summary,
                      sum(length(body))::int as body
               from instances i join journal j on j.tenant = i.tenant and j.instance_id = i.id
               where definition_id = $1 and finished_at is not null
               group by i.tenant, i.id limit 1""",
            name,
        )
        return {**row, "payload": START}


COPIED = """
with one as (select * from instances where definition_id = $1 and {state} limit 1)
insert into instances (tenant, id, shard, definition_id, version_id, version, status, sub_status,
    correlation_id, name, parent_id, incident_count, paused, revision, turn, created_at, updated_at,
    finished_at, format, state)
select tenant, $1 || '-copy-' || n, n % 64, definition_id, version_id, version, status, sub_status, 'c-' || n,
    name, parent_id, incident_count, paused, revision, turn,
    created_at - n * interval '1 ms', updated_at - n * interval '1 ms', finished_at - n * interval '1 ms',
    format, state
from one, generate_series(1, $2::int) n"""
COPIED_JOURNAL = """
with one as (select j.* from journal j join instances i on i.tenant = j.tenant and i.id = j.instance_id
             where i.definition_id = $1 and i.id not like '%-copy-%' order by j.seq limit 1)
insert into journal (tenant, instance_id, seq, records, version, summary, body)
select tenant, $1 || '-copy-' || n, seq, records, version, summary, body
from one, generate_series(1, $2::int) n"""
COPIED_BOOKMARKS = """
with one as (select b.* from bookmarks b join instances i on i.tenant = b.tenant and i.id = b.instance_id
             where i.definition_id = $1 limit 1)
insert into bookmarks (tenant, instance_id, id, key, shard)
select tenant, $1 || '-copy-' || n, $1 || '-copy-' || n || '-1', 'k-' || n, n % 64
from one, generate_series(1, $2::int) n"""


async def fill(url: str, finished: int, waiting: int) -> None:
    """Copies of an instance that has finished and of one that waits, with all that belongs to them."""
    async with services.postgres_connection(url) as connection:
        await connection.execute("set synchronous_commit = off")
        for name, count, state in (
            (FINISHED, finished, "finished_at is not null"),
            (WAITING, waiting, "finished_at is null"),
        ):
            await connection.execute(COPIED.format(state=state), name, count)
            await connection.execute(COPIED_JOURNAL, name, count)
        await connection.execute(COPIED_BOOKMARKS, WAITING, waiting)
        await connection.execute("vacuum analyze")
