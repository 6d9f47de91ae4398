"""Groups on MariaDB: a few statements with many rows each, in one transaction.

What the turns began from is locked and looked at first, and stale turns are left out right there. Rows
are found by joining a list of values to the primary key. Never by `(a, b) in (…)`: on a small table
that scans, InnoDB locks every row it looks at, and groups about different instances deadlock.
"""

# ruff: noqa: S608  statements are composed of our own names, and of values that `literal` has spelled

from collections.abc import Callable, Iterable, Sequence
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
    Row,
    aware,
)

_NOW = "utc_timestamp(6)"


def spelled(instant: datetime) -> datetime:
    """An instant as it stands in a table."""
    return aware(instant).replace(tzinfo=None)


def back(instant: datetime) -> datetime:
    return instant.replace(tzinfo=UTC)


class MariadbDialect:
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
    return group.admitted(_insert(connection, group.in_order()))


def _commit(connection: sa.Connection, commits: Sequence[Commit], shards: int) -> list[Outcome]:
    group = Group(spelled, commits, shards=shards)
    stale = _stale(connection, group)
    if stale:
        fresh = [commit for index, commit in enumerate(commits) if index not in stale]
        group = Group(spelled, fresh, shards=shards)
    committed = iter(group.committed(_write(connection, group.in_order())))
    return [
        StaleTurn(commit.instance_id, stale[index]) if index in stale else next(committed)
        for index, commit in enumerate(commits)
    ]


def _tell(connection: sa.Connection, statement: str) -> sa.CursorResult[Any]:
    return connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


# Spelled here and not by the driver, which takes five times as long: most of it for text with quotes
# in it, and that is what JSON is. Every session of ours sets the `sql_mode` in which this is right.
def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SPELLING: dict[type, Callable[[Any], str]] = {
    str: _quoted,
    int: str,
    bool: lambda truth: "1" if truth else "0",
    bytes: lambda body: f"x'{body.hex()}'",
    datetime: lambda instant: f"'{instant}'",
    type(None): lambda _: "null",
}


def literal(value: Any) -> str:
    """A value as part of a statement."""
    return _SPELLING[type(value)](value)


def _filled(template: str, rows: Iterable[Row]) -> str:
    """The template once for each row, with the row's values."""
    return ", ".join([template % tuple(map(literal, row)) for row in rows])


_ASCII = "convert('' using ascii)"
_ANY = "convert('' using utf8mb4) collate utf8mb4_bin"
_NUMBER = "0"


def _list(columns: dict[str, str], rows: Sequence[Row]) -> str:
    """A list of values to join with; each column begins with a value of its type that no row has.

    That names the columns and gives text the collation of its index, which would not be used otherwise.
    As values, not as selects in a union: the server takes half as long.
    """
    first = ", ".join(f"{value} as {name}" for name, value in columns.items())
    template = f"({', '.join(['%s'] * len(columns))})"
    return f"(select {first} union all values {_filled(template, rows)}) c"


_SEQ = {"seq": _NUMBER}
_OWNER = {"tenant": _ASCII, "instance_id": _ASCII}
_TIMER = {**_OWNER, "timer": _ASCII}
_TIMER_KEY = "m.tenant = c.tenant and m.instance_id = c.instance_id and m.timer = c.timer"


def _stale(connection: sa.Connection, group: Group) -> dict[int, str]:
    """Lock what the turns began from; those of which something is missing, and what."""
    stale: dict[int, str] = {}
    if group.changes:
        rows = [change[4][:2] for change in group.changes]
        source = _list({"tenant": _ASCII, "id": _ASCII}, rows)
        present = {
            (row.tenant, row.id): (row.revision, row.finished_at)
            for row in _tell(
                connection,
                f"select i.tenant, i.id, i.revision, i.finished_at from {source} "
                "straight_join instances i on i.tenant = c.tenant and i.id = c.id for update",
            )
        }
        for index, expects, may_have_ended, _, row in group.changes:
            revision, finished_at = present.get(row[:2], (None, None))
            if revision != expects:
                stale[index] = f"it is at revision {revision}, the turn began at {expects}"
            elif finished_at is not None and not may_have_ended:
                stale[index] = "it has ended"
    if group.in_hand:
        source = _list(_SEQ, [(row.seq,) for row in group.in_hand])
        kinds = {
            (row.shard, row.lane, row.seq): row.kind
            for row in _tell(
                connection,
                f"select m.shard, m.lane, m.seq, m.kind from {source} "
                "straight_join inbox m on m.seq = c.seq for update",
            )
        }
        for row in group.in_hand:
            kind = kinds.get((row.shard, row.lane, row.seq))
            if kind is None or row.kind not in (None, kind):
                stale[row.by] = "a message in hand is gone"
    if group.timers_in_hand:
        rows = [row[1:] for row in group.timers_in_hand]
        there = {
            tuple(row)
            for row in _tell(
                connection,
                f"select m.tenant, m.instance_id, m.timer from {_list(_TIMER, rows)} "
                f"straight_join timers m on {_TIMER_KEY} for update",
            )
        }
        for index, *timer in group.timers_in_hand:
            if tuple(timer) not in there:
                stale[index] = "a message in hand is gone"
    return stale


_CHANGED = ", ".join(f"{column} = values({column})" for column in INSTANCE[3:])


def _write(connection: sa.Connection, group: Group) -> list[int]:
    """All that a group whose proofs have succeeded writes; the numbers of the messages sent."""
    changes = [row for *_, goes, row in group.changes if not goes]
    if changes:
        _tell(connection, f"{_insertion('instances', changes)} on duplicate key update {_CHANGED}")
    consumed = [(row.seq,) for row in group.in_hand if row.fate == Then.CONSUME.value]
    _delete(connection, "inbox", _SEQ, "m.seq = c.seq", consumed)
    continued = [(row.seq,) for row in group.in_hand if row.fate == Then.CONTINUE.value]
    if continued:
        _tell(
            connection,
            f"update {_list(_SEQ, continued)} straight_join inbox m on m.seq = c.seq "
            "set m.kind = 'continue', m.payload = null, m.attempts = 0, m.deaths = 0, m.retry_at = null, "
            "m.error = null",
        )
    owned = "m.tenant = c.tenant and m.instance_id = c.instance_id"
    _delete(connection, "timers", _TIMER, _TIMER_KEY, group.timers_gone)
    _delete(
        connection, "bookmarks", {**_OWNER, "id": _ASCII}, f"{owned} and m.id = c.id", group.bookmarks_gone
    )
    execution = f"{owned} and m.execution = c.execution"
    _delete(connection, "attempts", {**_OWNER, "execution": _NUMBER}, execution, group.attempts_gone)
    _delete(connection, "activations", _OWNER, owned, group.freed)
    for table, owner in BELONGINGS.items():
        key = f"m.tenant = c.tenant and m.{owner} = c.instance_id"
        _delete(connection, table, _OWNER, key, group.deleted)
    if group.answers:
        source = _list(
            {"answer": _ANY, "tenant": _ASCII, "name": _ANY + " collate utf8mb4_bin"}, group.answers
        )
        _tell(
            connection,
            f"update {source} straight_join dedupe m on m.tenant = c.tenant and m.`key` = c.name "
            "set m.answer = c.answer",
        )
    return _insert(connection, group)


def _delete(
    connection: sa.Connection, table: str, columns: dict[str, str], key: str, rows: Sequence[Row]
) -> None:
    if rows:
        _tell(connection, f"delete m from {_list(columns, rows)} straight_join {table} m on {key}")


def _insert(connection: sa.Connection, group: Group) -> list[int]:
    """Every new row; the numbers of those in the inbox."""
    seqs: list[int] = []
    for table, rows in group.inserts.items():
        statement = _insertion(table, rows)
        if table == "inbox":
            # Numbers are given in the order of the rows.
            seqs = sorted(_tell(connection, f"{statement} returning seq").scalars())
        else:
            _tell(connection, statement)
    return seqs


def _insertion(table: str, rows: Sequence[Row]) -> str:
    names, template = _template(table)
    return f"insert into {table} ({names}) values {_filled(template, rows)}"


@cache
def _template(table: str) -> tuple[str, str]:
    """The columns of a new row, and where its values go."""
    columns = list(COLUMNS[table])
    slots = [_slot(table, column) for column in columns]
    if table in STAMPED:
        columns.append(STAMPED[table])
        slots.append(_NOW)
    return ", ".join(f"`{column}`" for column in columns), f"({', '.join(slots)})"


def _slot(table: str, column: str) -> str:
    if (table, column) in DEFAULTING_TO_NOW:
        return f"coalesce(%s, {_NOW})"
    if (table, column) in LATER:
        return f"coalesce(%s, {_NOW} + interval {int(LATER[table, column].total_seconds())} second)"
    return "%s"


def _forget_keys(connection: sa.Connection, limit: int) -> int:
    over = f"delete from dedupe where expires <= {_NOW} order by expires limit {limit:d}"
    return _tell(connection, over).rowcount


def _load(connection: sa.Connection, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
    if not keys:
        return []
    columns = ", ".join(f"i.{column}" for column in found.LOADED)
    rows = _tell(
        connection,
        f"select {columns} from {_list({'tenant': _ASCII, 'id': _ASCII}, keys)} "
        "straight_join instances i on i.tenant = c.tenant and i.id = c.id",
    )
    return [found.loaded(tuple(row), back) for row in rows]


def _read(connection: sa.Connection, after: Sequence[Place], limit: int) -> list[Delivery]:
    if not after:
        return []
    ranges = [
        f"(select {', '.join(found.DELIVERED)} from inbox where shard = {literal(place.shard)} "
        f"and lane = {int(place.lane)} and seq > {literal(place.seq)} order by seq limit {limit:d})"
        for place in after
    ]
    return [found.delivered(tuple(row), back) for row in _tell(connection, " union all ".join(ranges))]


def _due(connection: sa.Connection, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
    if not shards:
        return []
    ranges = [
        f"(select {', '.join(found.TIMED)} from timers where shard = {literal(shard)} "
        f"and due <= {literal(spelled(until))} order by due limit {limit:d})"
        for shard in shards
    ]
    nearest = f"{' union all '.join(ranges)} order by due limit {limit:d}"
    return [found.timed(tuple(row), back) for row in _tell(connection, nearest)]
