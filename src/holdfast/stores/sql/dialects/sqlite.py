"""Groups on SQLite: one thread writes, so a group is a loop of prepared statements.

Nobody else writes meanwhile, so a group is written in the hope that none of its turns is stale: an
instance is changed only if it has the revision it must have, a message is deleted only if it is still
there, and the database counts. If a number is wrong, that is taken back, and the stale turns are looked
for and left out. SQLAlchemy opens the transaction and is then out of the way: statements go to the
driver as text, which keeps them prepared.
"""

# ruff: noqa: S608  statements are composed of our own names; values travel beside them

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from holdfast.commit import Commit, Delivery, Place, Then
from holdfast.store import Admission, Admitted, Loaded, StaleTurn
from holdfast.stores.sql import found
from holdfast.stores.sql.dialect import Outcome
from holdfast.stores.sql.engines import Database
from holdfast.stores.sql.rows import (
    BELONGINGS,
    COLUMNS,
    DEFAULTING_TO_NOW,
    INSTANCE,
    LATER,
    STAMPED,
    Group,
    aware,
)

_NOW = "strftime('%Y-%m-%d %H:%M:%f000', 'now')"


def spelled(instant: datetime) -> str:
    """An instant as it stands in a table."""
    return aware(instant).isoformat(" ", "microseconds")[:-6]


def back(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class SqliteDialect:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        return await self._database.read(_load, keys)

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        return await self._database.read(_read, after, limit)

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        return await self._database.read(_due, shards, until, limit)

    async def commit(self, commits: Sequence[Commit], shards: int) -> list[Outcome]:
        return await self._database.write(_commit, commits, shards)

    async def admit(self, admissions: Sequence[Admission]) -> list[Admitted]:
        return await self._database.write(_admit, admissions)

    async def forget_keys(self, limit: int) -> int:
        return await self._database.write(_forget_keys, limit)


def _admit(connection: sa.Connection, admissions: Sequence[Admission]) -> list[Admitted]:
    group = Group(spelled)
    for admission in admissions:
        group.admit(admission)
    return group.admitted(_insert(_cursor(connection), group))


def _commit(connection: sa.Connection, commits: Sequence[Commit], shards: int) -> list[Outcome]:
    cursor = _cursor(connection)
    group = Group(spelled, commits, shards=shards)
    stale: dict[int, str] = {}
    cursor.execute("savepoint hopeful")
    if not (_is_simple(group) and _change(cursor, group)):
        cursor.execute("rollback to hopeful")
        stale = _stale(cursor, group)
        if stale:
            fresh = [commit for index, commit in enumerate(commits) if index not in stale]
            group = Group(spelled, fresh, shards=shards)
        _change(cursor, group)
    committed = iter(group.committed(_write(cursor, group)))
    return [
        StaleTurn(commit.instance_id, stale[index]) if index in stale else next(committed)
        for index, commit in enumerate(commits)
    ]


def _cursor(connection: sa.Connection) -> sqlite3.Cursor:
    driver: Any = connection.connection.driver_connection
    return driver.cursor()


_CHANGE = (
    f"update instances set {', '.join(f'{column} = ?' for column in INSTANCE[3:])} "
    "where tenant = ? and id = ? and revision = ? and (finished_at is null or ?)"
)
_CONSUME = "delete from inbox where seq = ? and shard = ? and lane = ? and kind = coalesce(?, kind)"


def _is_simple(group: Group) -> bool:
    """Whether all it has to prove is proved by what it changes and consumes."""
    return not (
        group.timers_in_hand or group.deleted or any(row.fate != Then.CONSUME.value for row in group.in_hand)
    )


def _change(cursor: sqlite3.Cursor, group: Group) -> bool:
    """Change the instances and consume the messages; whether all of them were as they must be."""
    changes = [
        (*row[3:], row[0], row[1], expects, may_have_ended)
        for _, expects, may_have_ended, goes, row in group.changes
        if not goes
    ]
    consumed = [
        (seq, shard, lane, kind)
        for _, shard, lane, seq, kind, fate in group.in_hand
        if fate == Then.CONSUME.value
    ]
    for statement, rows in ((_CHANGE, changes), (_CONSUME, consumed)):
        if rows and cursor.executemany(statement, rows).rowcount != len(rows):
            return False
    return True


_MESSAGE = "select kind from inbox where seq = ? and shard = ? and lane = ?"
_TIMER = "select 1 from timers where tenant = ? and instance_id = ? and timer = ?"
_INSTANCE = "select revision, finished_at from instances where tenant = ? and id = ?"


def _stale(cursor: sqlite3.Cursor, group: Group) -> dict[int, str]:
    """The turns of which something they began from is not so any more, and what."""
    stale: dict[int, str] = {}
    for index, expects, may_have_ended, _, row in group.changes:
        revision, finished_at = cursor.execute(_INSTANCE, row[:2]).fetchone() or (None, None)
        if revision != expects:
            stale[index] = f"it is at revision {revision}, the turn began at {expects}"
        elif finished_at is not None and not may_have_ended:
            stale[index] = "it has ended"
    for index, shard, lane, seq, kind, _ in group.in_hand:
        found_kind = cursor.execute(_MESSAGE, (seq, shard, lane)).fetchone()
        if found_kind is None or kind not in (None, found_kind[0]):
            stale[index] = "a message in hand is gone"
    for index, *timer in group.timers_in_hand:
        if cursor.execute(_TIMER, timer).fetchone() is None:
            stale[index] = "a message in hand is gone"
    return stale


_CONTINUE = (
    "update inbox set kind = 'continue', payload = null, attempts = 0, deaths = 0, retry_at = null, "
    "error = null where seq = ?"
)


def _write(cursor: sqlite3.Cursor, group: Group) -> list[int]:
    """All the rest; the numbers of the messages sent."""
    continued = [(row.seq,) for row in group.in_hand if row.fate == Then.CONTINUE.value]
    for statement, rows in (
        (_CONTINUE, continued),
        ("delete from timers where tenant = ? and instance_id = ? and timer = ?", group.timers_gone),
        ("delete from bookmarks where tenant = ? and instance_id = ? and id = ?", group.bookmarks_gone),
        ("delete from attempts where tenant = ? and instance_id = ? and execution = ?", group.attempts_gone),
        ("delete from activations where tenant = ? and instance_id = ?", group.freed),
        ("update dedupe set answer = ? where tenant = ? and key = ?", group.answers),
    ):
        if rows:
            cursor.executemany(statement, rows)
    if group.deleted:
        for table, owner in BELONGINGS.items():
            cursor.executemany(f"delete from {table} where tenant = ? and {owner} = ?", group.deleted)
    return _insert(cursor, group)


def _insert(cursor: sqlite3.Cursor, group: Group) -> list[int]:
    """Every new row; the numbers of those in the inbox."""
    seqs: list[int] = []
    for table, rows in group.inserts.items():
        statement = _insertion(table)
        if table == "inbox":
            for row in rows:
                cursor.execute(statement, row)
                seqs.append(cursor.lastrowid or 0)
        else:
            cursor.executemany(statement, rows)
    return seqs


@cache
def _insertion(table: str) -> str:
    columns = list(COLUMNS[table])
    slots = [_slot(table, column) for column in columns]
    if table in STAMPED:
        columns.append(STAMPED[table])
        slots.append(_NOW)
    names = ", ".join(f'"{column}"' for column in columns)
    return f"insert into {table} ({names}) values ({', '.join(slots)})"


def _slot(table: str, column: str) -> str:
    if (table, column) in DEFAULTING_TO_NOW:
        return f"coalesce(?, {_NOW})"
    if (table, column) in LATER:
        seconds = int(LATER[table, column].total_seconds())
        return f"coalesce(?, strftime('%Y-%m-%d %H:%M:%f000', 'now', '+{seconds} seconds'))"
    return "?"


_FORGET = (
    f"delete from dedupe where rowid in (select rowid from dedupe where expires <= {_NOW} "
    "order by expires limit ?)"
)


def _forget_keys(connection: sa.Connection, limit: int) -> int:
    return _cursor(connection).execute(_FORGET, (limit,)).rowcount


_LOADED = f"select {', '.join(found.LOADED)} from instances where tenant = ? and id = ?"
_BEHIND = (
    f"select {', '.join(found.DELIVERED)} from inbox where shard = ? and lane = ? and seq > ? "
    "order by seq limit ?"
)
_DUE = f"select {', '.join(found.TIMED)} from timers where shard = ? and due <= ? order by due limit ?"


def _load(connection: sa.Connection, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
    cursor = _cursor(connection)
    rows = (cursor.execute(_LOADED, key).fetchone() for key in keys)
    return [found.loaded(row, back) for row in rows if row is not None]


def _read(connection: sa.Connection, after: Sequence[Place], limit: int) -> list[Delivery]:
    cursor = _cursor(connection)
    return [
        found.delivered(row, back)
        for position in after
        for row in cursor.execute(_BEHIND, (position.shard, int(position.lane), position.seq, limit))
    ]


def _due(connection: sa.Connection, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
    cursor = _cursor(connection)
    due = found.TIMED.index("due")
    rows = [row for shard in shards for row in cursor.execute(_DUE, (shard, spelled(until), limit))]
    rows.sort(key=lambda row: row[due])
    return [found.timed(row, back) for row in rows[:limit]]
