"""Every table of the store, as the code sees it now. How a database gets there is in `migrations`.

Table names have no prefix: Holdfast wants a database (or a PostgreSQL schema, by `search_path`) of its
own. There are no foreign keys: rows that belong together are written and deleted in one commit, and a
check per row would only cost. Partial indexes are plain ones on MariaDB, which has no others: the same
queries need them, and rows without a value cost an entry each.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import DDLCompiler

from holdfast.stores.sql.types import Blob, Given, Id, Key, Sequence, Text, UtcDateTime

metadata = sa.MetaData(naming_convention={"ix": "%(table_name)s_by_%(column_0_N_name)s"})

_HOT = {
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_cost_delay": "0",
}
"""Many short-lived rows, few at a time: the share of dead ones says nothing, their number does."""


class _SequenceKey(sa.PrimaryKeyConstraint):
    """The primary key of a queue. PostgreSQL orders rows by it; the others can only count with it.

    There `seq` alone is the key, since MariaDB and SQLite hand out numbers for nothing else, and an
    index has the order.
    """

    def __init__(self, *order: str) -> None:
        super().__init__("seq")
        self.order = order


def _has_no_whole_key(*_: Any, dialect: sa.Dialect, **__: Any) -> bool:
    return dialect.name != "postgresql"


@compiles(_SequenceKey, "postgresql")
def _whole_key(key: _SequenceKey, _compiler: DDLCompiler, **_: Any) -> str:
    return f"PRIMARY KEY ({', '.join(key.order)})"


def _table(name: str, *items: sa.Column[Any] | sa.Constraint | sa.Index, **options: Any) -> sa.Table:
    for dialect in ("mysql", "mariadb"):
        options |= {
            f"{dialect}_engine": "InnoDB",
            f"{dialect}_charset": "utf8mb4",
            f"{dialect}_collate": "utf8mb4_bin",
        }
    return sa.Table(name, metadata, *items, **options)


def _column(
    name: str, kind: Any, *, null: bool = False, default: Any = None, key: bool = False
) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=null, server_default=default, primary_key=key, autoincrement=False)


def _index(*columns: str, where: str | None = None) -> sa.Index:
    condition = None if where is None else sa.text(where)
    return sa.Index(None, *columns, postgresql_where=condition, sqlite_where=condition)


def _seq() -> sa.Column[Any]:
    # "By default", not "always": a copy of a database keeps its numbers.
    return sa.Column("seq", Sequence, sa.Identity(), nullable=False, autoincrement=True)


def _order(*columns: str) -> sa.Index:
    return sa.Index(None, *columns).ddl_if(callable_=_has_no_whole_key)


_ZERO = sa.text("0")
_EMPTY = sa.text("''")

instances = _table(
    "instances",
    _column("tenant", Id, key=True),
    _column("id", Id, key=True),
    _column("shard", sa.Integer()),
    _column("definition_id", Given),
    _column("version_id", Given),
    _column("version", sa.Integer()),
    _column("status", Id),
    _column("sub_status", Id),
    _column("correlation_id", Given, null=True),
    _column("name", Text, null=True),
    _column("parent_id", Id, null=True),
    _column("incident_count", sa.Integer(), default=_ZERO),
    _column("paused", sa.Boolean(), default=sa.false()),
    _column("revision", sa.BigInteger()),
    _column("turn", Id, null=True),
    _column("created_at", UtcDateTime()),
    _column("updated_at", UtcDateTime()),
    _column("finished_at", UtcDateTime(), null=True),
    _column("format", sa.Integer()),
    _column("state", Text, null=True),
    _index("tenant", "created_at"),
    _index("tenant", "definition_id", "created_at"),
    _index("tenant", "updated_at"),
    _index("tenant", "correlation_id", where="correlation_id is not null"),
    _index("parent_id", where="parent_id is not null"),
    _index("tenant", "sub_status", "updated_at", where="finished_at is null"),
    _index("finished_at", where="finished_at is not null"),
    postgresql_with={
        "fillfactor": "70",
        "autovacuum_vacuum_scale_factor": "0.02",
        "toast.autovacuum_vacuum_scale_factor": "0.02",
    },
)

# Not every server is built with lz4, and versions before 14 cannot choose.
COMPRESS_STATE = """
do $$ begin
  if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)) then
    execute 'alter table instances alter column state set compression lz4';
  end if;
end $$"""
event.listen(instances, "after_create", sa.DDL(COMPRESS_STATE).execute_if(dialect="postgresql"))

inbox = _table(
    "inbox",
    _column("shard", sa.Integer()),
    _column("lane", sa.SmallInteger()),
    _seq(),
    _column("tenant", Id),
    _column("instance_id", Id),
    _column("kind", Id),
    _column("payload", Text, null=True),
    _column("reply", Given, null=True),
    _column("attempts", sa.Integer(), default=_ZERO),
    _column("deaths", sa.Integer(), default=_ZERO),
    _column("retry_at", UtcDateTime(), null=True),
    _column("error", Text, null=True),
    _column("sent_at", UtcDateTime()),
    _column("trace", Text, null=True),
    _SequenceKey("shard", "lane", "seq"),
    _order("shard", "lane", "seq"),
    sqlite_autoincrement=True,  # else the number of a deleted last row is handed out again
    postgresql_with=_HOT,
)

timers = _table(
    "timers",
    _column("tenant", Id, key=True),
    _column("instance_id", Id, key=True),
    _column("timer", Key, key=True),
    _column("shard", sa.Integer()),
    _column("due", UtcDateTime()),
    _column("kind", Id),
    _column("payload", Text, null=True),
    _column("attempts", sa.Integer(), default=_ZERO),
    _column("deaths", sa.Integer(), default=_ZERO),
    _column("retry_at", UtcDateTime(), null=True),
    _column("trace", Text, null=True),
    _index("shard", "due"),
    postgresql_with=_HOT,
)

bookmarks = _table(
    "bookmarks",
    _column("tenant", Id, key=True),
    _column("instance_id", Id, key=True),
    _column("id", Key, key=True),
    _column("key", Key),
    _column("shard", sa.Integer()),
    _index("tenant", "key"),
)

triggers = _table(
    "triggers",
    _column("tenant", Id, key=True),
    _column("key", Key, key=True),
    _column("definition_id", Given),
    _column("version_id", Given, key=True),
    _column("activity_id", Given, key=True),
    _column("name", Given),
    _column("payload", Text, null=True),
    _index("tenant", "definition_id"),
)

stimuli = _table(
    "stimuli",
    _column("id", Id, key=True),
    _column("tenant", Id),
    _column("key", Key),
    _column("shard", sa.Integer()),  # of the key
    _column("instance_id", Id, null=True),
    _column("correlation_id", Given, null=True),
    _column("only", sa.Boolean(), default=sa.false()),
    _column("payload", Text, null=True),
    _column("tries", sa.Integer(), default=_ZERO),
    _column("sent_at", UtcDateTime()),
    _column("expires", UtcDateTime()),
    _index("tenant", "key"),
    _index("tenant", "instance_id", where="instance_id is not null"),
    _index("expires"),
)

schedules = _table(
    "schedules",
    _column("tenant", Id, key=True),
    _column("definition_id", Given, key=True),
    _column("activity_id", Given, key=True),
    _column("shard", sa.Integer()),
    _column("version_id", Given),
    _column("spec", Text),
    _column("zone", Id, null=True),
    _column("policies", Text, null=True),
    _column("anchor", UtcDateTime(), null=True),
    _column("next_at", UtcDateTime(), null=True),
    _column("last_at", UtcDateTime(), null=True),
    _column("waiting", Text, null=True),  # nominal times, as JSON
    _index("shard", "next_at"),
)

firings = _table(
    "firings",
    _column("schedule", Key, key=True),
    _column("nominal", UtcDateTime(), key=True),
    _column("instance_id", Id, null=True),
    _column("outcome", Id),
    _index("nominal"),
)

attempts = _table(
    "attempts",
    _column("tenant", Id, key=True),
    _column("instance_id", Id, key=True),
    _column("execution", sa.BigInteger(), key=True),
    _column("attempt", sa.Integer(), default=_ZERO),
    _column("shard", sa.Integer()),
    _column("node", Id, null=True),
    _column("deadline", UtcDateTime(), null=True),
    _column("payload", Text, null=True),
    _index("shard"),
)

journal = _table(
    "journal",
    _column("tenant", Id, key=True),
    _column("instance_id", Id, key=True),
    _column("seq", sa.BigInteger(), key=True),  # of its first record
    _column("records", sa.Integer()),
    _column("version", sa.Integer()),
    _column("summary", Text),
    _column("body", Blob),
)

dedupe = _table(
    "dedupe",
    _column("tenant", Id, key=True),
    _column("key", Given, key=True),
    _column("request", Blob),
    _column("instance_id", Id, null=True),
    _column("refused_by", Id, null=True),
    _column("answer", Text, null=True),
    _column("expires", UtcDateTime()),
    _index("expires"),
)

activations = _table(
    "activations",
    _column("tenant", Id, key=True),
    _column("key", Given, key=True),
    _column("instance_id", Id),
    _index("tenant", "instance_id"),
)

outbox = _table(
    "outbox",
    _column("shard", sa.Integer()),
    _column("stream", Given),
    _seq(),
    _column("instance_id", Id, null=True),
    _column("body", Text),
    _column("attempts", sa.Integer(), default=_ZERO),
    _column("retry_at", UtcDateTime(), null=True),
    _column("tenant", Id, default=_EMPTY),
    _SequenceKey("shard", "stream", "seq"),
    _order("shard", "stream", "seq"),
    sqlite_autoincrement=True,
)

nodes = _table(
    "nodes",
    _column("id", Id, key=True),
    _column("place", Text),
    _column("expires", UtcDateTime()),
    _column("speaks", sa.Integer(), default=_ZERO),
    _column("knows", Text, null=True),
    _column("seen", sa.BigInteger(), default=_ZERO),
    postgresql_with=_HOT,
)

leases = _table(
    "leases",
    _column("name", Key, key=True),
    _column("node", Id, null=True),
    _column("epoch", sa.BigInteger(), default=_ZERO),
    _column("released", sa.Boolean(), default=sa.true()),
    postgresql_with=_HOT,
)

definitions = _table(
    "definitions",
    _column("tenant", Id, key=True),
    _column("definition_id", Given, key=True),
    _column("version", sa.Integer(), key=True),
    _column("version_id", Given),
    _column("name", Text),
    _column("is_latest", sa.Boolean(), default=sa.false()),
    _column("is_published", sa.Boolean(), default=sa.false()),
    _column("content_hash", Id),
    _column("created_at", UtcDateTime()),
    _column("document", Text),
    _column("is_usable", sa.Boolean(), default=sa.false()),  # as an activity in other workflows
    sa.Index(None, "tenant", "version_id", unique=True),
)

pauses = _table(
    "pauses",
    _column("tenant", Id, key=True),
    _column("scope", Given, key=True),
    _column("version", sa.BigInteger()),  # what nodes report as seen
    _column("reason", Text, null=True),
    _column("since", UtcDateTime()),
    _column("until", UtcDateTime(), null=True),
)

blobs = _table(
    "blobs",
    _column("tenant", Id, key=True),
    _column("owner", Key, key=True),  # one instance or message, with which it goes
    _column("id", Key, key=True),
    _column("created_at", UtcDateTime()),
    _column("body", Blob),
)

dead_letters = _table(
    "dead_letters",
    _column("tenant", Id, key=True),
    _column("id", Id, key=True),
    _column("instance_id", Id),
    _column("shard", sa.Integer()),
    _column("kind", Id),
    _column("payload", Text, null=True),
    _column("reply", Given, null=True),
    _column("attempts", sa.Integer(), default=_ZERO),
    _column("deaths", sa.Integer(), default=_ZERO),
    _column("error", Text),
    _column("sent_at", UtcDateTime(), null=True),
    _column("died_at", UtcDateTime()),
    _column("trace", Text, null=True),
    _index("tenant", "instance_id"),
    _index("tenant", "died_at"),
)

settings = _table(
    "settings",
    _column("id", sa.SmallInteger(), key=True),
    _column("shard_count", sa.Integer()),  # fixed for the life of the database: it is in every row
    _column("format", sa.Integer()),
    sa.CheckConstraint("id = 1", name="settings_one_row"),
)

counters = _table(
    "counters",
    _column("name", Id, key=True),
    _column("value", sa.BigInteger(), default=_ZERO),
)

shard_groups = _table(
    "shard_groups",
    _column("name", Id, key=True),
    _column("first", sa.Integer()),
    _column("count", sa.Integer()),
)

placements = _table(
    "placements",
    _column("tenant", Id, key=True),
    _column("definition_id", Given, key=True, default=_EMPTY),
    _column("group_name", Id),
)

SHARDS = 64
"""How many a database has that was never told."""
CATALOGUE, PAUSES = "catalogue", "pauses"
"""The counters: of publications, and of pauses that came or went."""


def seed(connection: sa.Connection) -> None:
    """The rows that a database has from its first day, where they are missing."""
    first = (
        (settings, settings.c.id, {"id": 1, "shard_count": SHARDS, "format": 1}),
        (shard_groups, shard_groups.c.name, {"name": "default", "first": 0, "count": SHARDS}),
        (counters, counters.c.name, {"name": CATALOGUE, "value": 0}),
        (counters, counters.c.name, {"name": PAUSES, "value": 0}),
    )
    for table, key, row in first:
        if connection.execute(sa.select(key).where(key == row[key.name])).first() is None:
            connection.execute(sa.insert(table).values(row))


def _seed_new(_metadata: sa.MetaData, connection: sa.Connection, **_: Any) -> None:
    seed(connection)


event.listen(metadata, "after_create", _seed_new)
