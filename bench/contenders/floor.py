"""`python -m bench.contenders.floor URL`: the rows of our workflows, written in the barest way we know.

No engine, no node, no proof of anything: instances and start messages are inserted a group at a time, then
instances are changed, messages deleted and journal rows inserted, again a group at a time. The tables, their
indexes, the sizes of the rows and the promise of the disk are ours. What it takes is the floor.
"""

import asyncio
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import make_url

from bench.child import Answer, serve
from holdfast.stores.opening import open_store

GROUP = 128
TOGETHER = 2
"""Groups under way: one writes while the other waits for the disk. SQLite has one writer."""

INSTANCE = """insert into instances (tenant, id, shard, definition_id, version_id, version, status,
    sub_status, incident_count, paused, revision, turn, created_at, updated_at, format, state)
    select '', {id}, 7, 'once', 'once-1', 1, 'Running', 'Pending', 0, false, 0, '', {now}, {now}, 1, null"""
MESSAGE = """insert into inbox (shard, lane, tenant, instance_id, kind, payload, sent_at)
    select 7, 1, '', {id}, 'start', {payload}, {now}"""
CHANGE = """update instances set revision = revision + 1, turn = {turn}, state = {state}, updated_at = {now},
    sub_status = {sub_status}, status = {status}, finished_at = {finished_at}"""
JOURNAL = """insert into journal (tenant, instance_id, seq, records, version, summary, body)
    select '', {id}, {seq}, 8, 1, {summary}, {body}"""


class Rows:
    """What one workflow leaves, as large as ours were: given by whoever has looked at ours."""

    def __init__(self, state: int, payload: int, summary: int, body: int, commits: int) -> None:
        self.state = "s" * state
        self.payload = "p" * payload
        self.summary = "m" * (summary // commits)
        self.body = b"b" * (body // commits)
        self.commits = commits


class Postgres:
    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._connections: list[Any] = []

    async def open(self) -> None:
        import asyncpg

        settings = {"synchronous_commit": "on", "plan_cache_mode": "force_generic_plan", "jit": "off"}
        for _ in range(TOGETHER):
            self._connections.append(await asyncpg.connect(self._url, server_settings=settings))

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()

    async def write(self, groups: Sequence[list[str]], rows: Rows) -> None:
        left = iter(groups)

        async def work(connection: Any) -> None:
            for ids in left:
                await self._write(connection, ids, rows)

        await asyncio.gather(*map(work, self._connections))

    async def _write(self, connection: Any, ids: list[str], rows: Rows) -> None:
        each = "from unnest($1::text[]) with ordinality as x(id, k)"
        birth = INSTANCE.format(id="x.id", now="now()")
        message = MESSAGE.format(id="x.id", payload="$2", now="now()")
        # One statement each, as ours is: one round trip, one wait for the disk.
        seqs = await connection.fetch(
            f"with born as ({birth} {each}) {message} {each} returning seq", ids, rows.payload
        )
        for number in range(1, rows.commits + 1):
            is_last = number == rows.commits
            change = CHANGE.format(
                turn="$2",
                state="$3",
                now="now()",
                status="'Finished'" if is_last else "'Running'",
                sub_status="'Finished'" if is_last else "'Executing'",
                finished_at="now()" if is_last else "null",
            )
            journal = JOURNAL.format(id="x.id", seq=str(8 * number), summary="$4", body="$5")
            arguments = [ids, f"turn-{number}", rows.state, rows.summary, rows.body]
            consume = ""
            if is_last:
                consume = """, gone as (delete from inbox using unnest($6::bigint[]) as y(seq)
                    where inbox.shard = 7 and inbox.lane = 1 and inbox.seq = y.seq)"""
                arguments.append([row["seq"] for row in seqs])
            await connection.execute(
                f"""with changed as ({change} from unnest($1::text[]) as x(id)
                    where instances.tenant = '' and instances.id = x.id){consume} {journal} {each}""",
                *arguments,
            )


class Sqlite:
    def __init__(self, url: str) -> None:
        self._place = make_url(url).database or ""

    async def open(self) -> None:
        self._connection = sqlite3.connect(self._place, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode = wal", "synchronous = full"):
            self._connection.execute(f"pragma {pragma}")

    async def close(self) -> None:
        self._connection.close()

    async def write(self, groups: Sequence[list[str]], rows: Rows) -> None:
        await asyncio.to_thread(self._write_all, groups, rows)

    def _write_all(self, groups: Sequence[list[str]], rows: Rows) -> None:
        for ids in groups:
            self._write(ids, rows)

    def _write(self, ids: list[str], rows: Rows) -> None:
        many, now = self._connection.executemany, "'2026-01-01 00:00:00.000000'"
        self._connection.execute("begin immediate")
        many(INSTANCE.format(id="?", now=now), [(one,) for one in ids])
        many(MESSAGE.format(id="?", payload="?", now=now), [(one, rows.payload) for one in ids])
        self._connection.execute("commit")
        for number in range(1, rows.commits + 1):
            is_last = number == rows.commits
            change = CHANGE.format(
                turn="?",
                state="?",
                now=now,
                status="'Finished'" if is_last else "'Running'",
                sub_status="'Finished'" if is_last else "'Executing'",
                finished_at=now if is_last else "null",
            )
            journal = JOURNAL.format(id="?", seq=str(8 * number), summary="?", body="?")
            self._connection.execute("begin immediate")
            many(
                f"{change} where tenant = '' and id = ?", [(f"turn-{number}", rows.state, one) for one in ids]
            )
            many(journal, [(one, rows.summary, rows.body) for one in ids])
            if is_last:
                self._connection.execute("delete from inbox")
            self._connection.execute("commit")


async def main(url: str) -> None:
    await (await open_store(url, migrate_first=True)).close()
    database: Any = Sqlite(url) if url.startswith("sqlite") else Postgres(url)
    await database.open()
    written = 0

    async def dispatch(count: int, **sizes: int) -> Answer:
        nonlocal written
        ids = [f"{number:032x}" for number in range(written, written + count)]
        written += count
        groups = [ids[first : first + GROUP] for first in range(0, count, GROUP)]
        await database.write(groups, Rows(**sizes))
        return {}

    try:
        await serve(dispatch=dispatch)
    finally:
        await database.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
