"""Groups on PostgreSQL: one statement, one round trip, all or nothing.

Rows travel as arrays, one per column. The statement first locks what the turns began from and counts;
only if nothing is missing does it write. Either all is written, or the answer names what was found, so
that the stale turns can be left out and the rest sent again. What a group does not need is not in its
statement; the texts are few, and the driver keeps them prepared.
"""

# ruff: noqa: S608  statements are composed of our own names; values travel beside them

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from holdfast.commit import Commit, Delivery, Place, Then
from holdfast.store import Admission, Admitted, Loaded, StaleTurn
from holdfast.stores.sql import found
from holdfast.stores.sql.dialect import Outcome
from holdfast.stores.sql.engines import PostgresqlDatabase
from holdfast.stores.sql.failures import TryAgain
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
from holdfast.stores.sql.tables import metadata
from holdfast.stores.sql.types import UtcDateTime


class PostgresqlDialect:
    def __init__(self, database: PostgresqlDatabase) -> None:
        self._database = database

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        if not keys:
            return []
        tenants, ids = zip(*keys, strict=True)
        rows = await self._database.ask(_LOADED, tenants, ids)
        return [found.loaded(row, aware) for row in rows]

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        shards = [position.shard for position in after]
        lanes = [int(position.lane) for position in after]
        rows = await self._database.ask(_BEHIND, shards, lanes, [position.seq for position in after], limit)
        return [found.delivered(row, aware) for row in rows]

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        rows = await self._database.ask(_DUE, list(shards), aware(until), limit)
        return [found.timed(row, aware) for row in rows]

    async def admit(self, admissions: Sequence[Admission]) -> list[Admitted]:
        group = Group(aware)
        for admission in admissions:
            group.admit(admission)
        return group.admitted((await self._tell(group)).seqs)

    async def commit(self, commits: Sequence[Commit], shards: int) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        left = list(enumerate(commits))
        while left:
            group = Group(aware, [commit for _, commit in left], shards=shards)
            written = await self._tell(group)
            if written.is_done:
                outcomes.update(
                    (index, committed)
                    for (index, _), committed in zip(left, group.committed(written.seqs), strict=True)
                )
                break
            stale = written.stale(group)
            if not stale:
                raise TryAgain("Nothing was missing and nothing was written; do the same again.")
            for position, reason in stale.items():
                index, commit = left[position]
                outcomes[index] = StaleTurn(commit.instance_id, reason)
            left = [entry for position, entry in enumerate(left) if position not in stale]
        return [outcomes[index] for index in range(len(commits))]

    async def forget_keys(self, limit: int) -> int:
        ((count,),) = await self._database.tell(_FORGET, limit)
        return count

    async def _tell(self, group: Group) -> "_Written":
        parts = _parts(group.in_order())
        arguments = [_Flat(column) for rows in parts.values() for column in zip(*rows, strict=True)]
        if any(row.fate == Then.CONTINUE.value for row in group.in_hand):
            parts["continued"] = []
        if not parts:
            return _Written([(_DONE, 0)])
        return _Written(await self._database.tell(_statement(tuple(parts)), *arguments))


class _Flat(tuple[Any, ...]):
    """A column of plain values. It is empty when it is gone through for the first time.

    asyncpg goes through an array twice: first to find arrays in it, asking each element what it is, then
    to encode it. There are none in ours, and the asking takes as long as all the rest.
    """

    was_looked_at: bool = False

    def __iter__(self) -> Iterator[Any]:
        if self.was_looked_at:
            return super().__iter__()
        self.was_looked_at = True
        return iter(())


_SENT, _DONE, _HELD, _THERE, _TICKING = range(5)


class _Written:
    """What the statement answered: pairs of what it is and a number."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._numbers: dict[int, list[int]] = {}
        for what, number in rows:
            self._numbers.setdefault(what, []).append(number)

    @property
    def is_done(self) -> bool:
        return _DONE in self._numbers

    @property
    def seqs(self) -> list[int]:
        """Numbers are given in the order of the rows, and come back in any."""
        return sorted(self._numbers.get(_SENT, ()))

    def stale(self, group: Group) -> dict[int, str]:
        """The commits something was missing for, by index, and what."""
        held, there, ticking = (set(self._numbers.get(what, ())) for what in (_HELD, _THERE, _TICKING))
        stale = {
            change[0]: f"it is not at revision {change[1]} any more, or has ended"
            for place, change in enumerate(group.changes, start=1)
            if place not in held
        }
        for present, in_hand in ((there, group.in_hand), (ticking, group.timers_in_hand)):
            for place, row in enumerate(in_hand, start=1):
                if place not in present:
                    stale[row[0]] = "a message in hand is gone"
        return stale


def _parts(group: Group) -> dict[str, Sequence[Row]]:
    """The rows of a group that has any, by the part of the statement they are for."""
    parts: dict[str, Sequence[Row]] = {
        "changes": [(*change[1:4], *change[4]) for change in group.changes],
        "in_hand": [row[1:] for row in group.in_hand],
        "timers_in_hand": [row[1:] for row in group.timers_in_hand],
        "timers_gone": group.timers_gone,
        "bookmarks_gone": group.bookmarks_gone,
        "attempts_gone": group.attempts_gone,
        "freed": group.freed,
        "deleted": group.deleted,
        "answers": group.answers,
        **group.inserts,
    }
    return {name: rows for name, rows in parts.items() if rows}


def _array(table: str, column: str) -> str:
    kind: Any = metadata.tables[table].c[column].type
    if isinstance(kind, UtcDateTime):
        return "timestamptz[]"
    for of, name in (
        (sa.BigInteger, "bigint[]"),
        (sa.SmallInteger, "smallint[]"),
        (sa.Integer, "integer[]"),
        (sa.Boolean, "boolean[]"),
        (sa.LargeBinary, "bytea[]"),
    ):
        if isinstance(kind, of):
            return name
    return "text[]"


class _Part(NamedTuple):
    """Columns of the arrays of one part: their names, and their types."""

    names: tuple[str, ...]
    types: tuple[str, ...]


def _of(table: str, *columns: str) -> _Part:
    return _Part(columns, tuple(_array(table, column) for column in columns))


_OWNED = ("tenant", "instance_id")
_INSTANCE = _of("instances", *INSTANCE)
_PARTS = {
    "changes": _Part(
        ("expects", "may_have_ended", "goes", *_INSTANCE.names),
        ("bigint[]", "boolean[]", "boolean[]", *_INSTANCE.types),
    ),
    "in_hand": _Part(
        ("shard", "lane", "seq", "kind", "fate"), ("integer[]", "smallint[]", "bigint[]", "text[]", "text[]")
    ),
    "timers_in_hand": _of("timers", *_OWNED, "timer"),
    "timers_gone": _of("timers", *_OWNED, "timer"),
    "bookmarks_gone": _of("bookmarks", *_OWNED, "id"),
    "attempts_gone": _of("attempts", *_OWNED, "execution"),
    "freed": _of("activations", *_OWNED),
    "deleted": _of("activations", *_OWNED),
    "answers": _of("dedupe", "answer", "tenant", "key"),
    **{table: _of(table, *columns) for table, columns in COLUMNS.items()},
}

_LOCKS = {
    "changes": """held as materialized (
        select c.k from changes c join instances i on i.tenant = c.tenant and i.id = c.id
        where i.revision = c.expects and (i.finished_at is null or c.may_have_ended)
        order by i.tenant, i.id for update of i)""",
    "in_hand": """there as materialized (
        select c.k from in_hand c join inbox m on m.shard = c.shard and m.lane = c.lane and m.seq = c.seq
        where c.kind is null or m.kind = c.kind
        order by m.shard, m.lane, m.seq for update of m)""",
    "timers_in_hand": """ticking as materialized (
        select c.k from timers_in_hand c
        join timers m on m.tenant = c.tenant and m.instance_id = c.instance_id and m.timer = c.timer
        order by m.tenant, m.instance_id, m.timer for update of m)""",
}
_FOUND = {"changes": ("held", _HELD), "in_hand": ("there", _THERE), "timers_in_hand": ("ticking", _TICKING)}

# True of every row, and the planner believes that it leaves one. Believing in more it would rather go
# through a whole inbox, which it believes to be empty because it mostly is, than look rows up in it.
_FEW = "where k between 1 and 1000000"

_PLACE = "m.shard = c.shard and m.lane = c.lane and m.seq = c.seq"
_KEY = "m.tenant = c.tenant and m.instance_id = c.instance_id"
_WRITES = {
    "changes": f"""update instances m set {", ".join(f"{name} = c.{name}" for name in INSTANCE[3:])}
        from changes c, go where m.tenant = c.tenant and m.id = c.id and not c.goes""",
    "in_hand": f"delete from inbox m using in_hand c, go where {_PLACE} and c.fate = 'consume'",
    "continued": f"""update inbox m set kind = 'continue', payload = null, attempts = 0, deaths = 0,
        retry_at = null, error = null from in_hand c, go where {_PLACE} and c.fate = 'continue'""",
    "timers_gone": f"delete from timers m using timers_gone c, go where {_KEY} and m.timer = c.timer",
    "bookmarks_gone": f"delete from bookmarks m using bookmarks_gone c, go where {_KEY} and m.id = c.id",
    "attempts_gone": f"""delete from attempts m using attempts_gone c, go
        where {_KEY} and m.execution = c.execution""",
    "freed": f"delete from activations m using freed c, go where {_KEY}",
    "answers": """update dedupe m set answer = c.answer from answers c, go
        where m.tenant = c.tenant and m.key = c.key""",
}


@cache
def _statement(names: tuple[str, ...]) -> str:
    """The statement for a group with these parts, and no others."""
    tables: list[str] = []
    conditions: list[str] = []
    locks: list[str] = []
    writes: list[str] = []
    answers = [f"select {_DONE}, 0::bigint from go"]
    number = 1
    for name in names:
        part = _PARTS.get(name)
        if part is not None:
            slots = [f"${number + n}::{kind}" for n, kind in enumerate(part.types)]
            number += len(slots)
            tables.append(
                f"{_rows_of(name)} as materialized (select * from unnest({', '.join(slots)}) "
                f"with ordinality as x({_quoted(part.names)}, k) {_FEW})"
            )
            if name in _LOCKS:
                lock, what = _FOUND[name]
                locks.append(_LOCKS[name])
                conditions.append(f"(select count(*) from {lock}) = cardinality({slots[0]})")
                answers.append(f"select {what}, k from {lock} where not exists (select from go)")
        if name in COLUMNS:
            writes.append(f"new_{name} as ({_insertion(name)})")
        elif name == "deleted":
            writes += [
                f"deleted_{table} as (delete from {table} m using deleted c, go "
                f"where m.tenant = c.tenant and m.{owner} = c.instance_id)"
                for table, owner in BELONGINGS.items()
            ]
        elif name in _WRITES:
            writes.append(f"write_{name} as ({_WRITES[name]})")
    if "inbox" in names:
        answers.append(f"select {_SENT}, seq from new_inbox")
    go = f"go as materialized (select 1 as ok where {' and '.join(conditions) or 'true'})"
    return f"with {', '.join([*tables, *locks, go, *writes])} {' union all '.join(answers)}"


def _rows_of(name: str) -> str:
    return f"rows_of_{name}" if name in COLUMNS else name


def _insertion(table: str) -> str:
    columns = list(COLUMNS[table])
    values = [_value(table, column) for column in columns]
    if table in STAMPED:
        columns.append(STAMPED[table])
        values.append("statement_timestamp()")
    insertion = (
        f"insert into {table} ({_quoted(columns)}) select {', '.join(values)} from rows_of_{table} c, go"
    )
    return f"{insertion} order by c.k returning seq" if table in ("inbox", "outbox") else insertion


def _value(table: str, column: str) -> str:
    if (table, column) in DEFAULTING_TO_NOW:
        return f"coalesce(c.{column}, statement_timestamp())"
    if (table, column) in LATER:
        seconds = int(LATER[table, column].total_seconds())
        return f"coalesce(c.{column}, statement_timestamp() + interval '{seconds} seconds')"
    return f'c."{column}"'


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_FORGET = """with over as materialized (
        select tenant, key from dedupe where expires <= statement_timestamp()
        order by expires limit $1 for update skip locked),
    gone as (delete from dedupe m using over c where m.tenant = c.tenant and m.key = c.key returning 1)
    select count(*) from gone"""

# Each range is a query of its own, limited by itself: all at once, the whole backlog would be sorted.
_LOADED = f"""select {", ".join(f"i.{column}" for column in found.LOADED)}
    from unnest($1::text[], $2::text[]) k(tenant, id) cross join lateral
    (select * from instances i where i.tenant = k.tenant and i.id = k.id offset 0) i"""
_BEHIND = f"""select {", ".join(f"m.{column}" for column in found.DELIVERED)}
    from unnest($1::integer[], $2::smallint[], $3::bigint[]) with ordinality s(shard, lane, seq, k)
    cross join lateral (select * from inbox m where m.shard = s.shard and m.lane = s.lane and m.seq > s.seq
                        order by m.shard, m.lane, m.seq limit $4) m
    order by s.k, m.seq"""
_DUE = f"""select {", ".join(f"m.{column}" for column in found.TIMED)}
    from unnest($1::integer[]) s(shard)
    cross join lateral (select * from timers m where m.shard = s.shard and m.due <= $2
                        order by m.due limit $3) m
    order by m.due limit $3"""
