"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from sqlalchemy.dialects import mysql, postgresql

revision = "0001"
down_revision = None

# A step is history: it says what was made then, so it has its own copy of the types.


def _text(length: int, charset: str) -> sa.String:
    return (
        sa.String(length)
        .with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, charset=charset, collation=f"{charset}_bin"), "mysql", "mariadb")
    )


ID = _text(64, "ascii")
KEY = _text(200, "ascii")
GIVEN = _text(200, "utf8mb4")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
TIME = sa.DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
HOT = {
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_cost_delay": "0",
}
MARIADB: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


class Step:
    """Makes what is not there yet. MariaDB keeps the half of a step that was done before it failed."""

    def __init__(self, op: Operations) -> None:
        self._op = op
        self._is_postgresql = op.get_bind().dialect.name == "postgresql"
        there = sa.inspect(op.get_bind())
        self._there = {
            name: {index["name"] for index in there.get_indexes(name)} for name in there.get_table_names()
        }

    def table(self, name: str, *items: Any, **options: Any) -> None:
        if name not in self._there:
            self._op.create_table(name, *items, **options, **MARIADB)

    def index(self, table: str, *columns: str, where: str | None = None, unique: bool = False) -> None:
        name = "_".join((table, "by", *columns))
        condition = None if where is None else sa.text(where)
        if name not in self._there.get(table, ()):
            self._op.create_index(
                name, table, columns, unique=unique, postgresql_where=condition, sqlite_where=condition
            )

    def queue_key(self, *order: str) -> sa.PrimaryKeyConstraint:
        """PostgreSQL has the order in the primary key; the others hand out numbers only for `seq` alone."""
        return sa.PrimaryKeyConstraint(*(order if self._is_postgresql else ("seq",)))

    def queue_order(self, table: str, *order: str) -> None:
        if not self._is_postgresql:
            self.index(table, *order)

    def compress_state(self) -> None:
        """With lz4, which not every PostgreSQL was built with, and none before 14."""
        if self._is_postgresql:
            self._op.execute("""
                do $$ begin
                  if exists (select from pg_settings
                             where name = 'default_toast_compression' and 'lz4' = any(enumvals)) then
                    execute 'alter table instances alter column state set compression lz4';
                  end if;
                end $$""")


def upgrade(op: Operations) -> None:
    step = Step(op)
    _working(step)
    _matching(step)
    _around(step)
    _definitions(step)


def _working(step: Step) -> None:
    step.table(
        "instances",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("definition_id", GIVEN, nullable=False),
        sa.Column("version_id", GIVEN, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", ID, nullable=False),
        sa.Column("sub_status", ID, nullable=False),
        sa.Column("correlation_id", GIVEN, nullable=True),
        sa.Column("name", TEXT, nullable=True),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("incident_count", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("paused", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("turn", ID, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("state", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
        postgresql_with={
            "fillfactor": "70",
            "autovacuum_vacuum_scale_factor": "0.02",
            "toast.autovacuum_vacuum_scale_factor": "0.02",
        },
    )
    step.compress_state()
    step.index("instances", "finished_at", where="finished_at is not null")
    step.index("instances", "parent_id", where="parent_id is not null")
    step.index("instances", "tenant", "correlation_id", where="correlation_id is not null")
    step.index("instances", "tenant", "created_at")
    step.index("instances", "tenant", "definition_id", "created_at")
    step.index("instances", "tenant", "sub_status", "updated_at", where="finished_at is null")
    step.index("instances", "tenant", "updated_at")

    step.table(
        "inbox",
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("lane", sa.SmallInteger(), nullable=False),
        sa.Column("seq", SEQUENCE, sa.Identity(), nullable=False, autoincrement=True),
        sa.Column("tenant", ID, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.Column("kind", ID, nullable=False),
        sa.Column("payload", TEXT, nullable=True),
        sa.Column("reply", GIVEN, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("deaths", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("retry_at", TIME, nullable=True),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("sent_at", TIME, nullable=False),
        sa.Column("trace", TEXT, nullable=True),
        step.queue_key("shard", "lane", "seq"),
        sqlite_autoincrement=True,
        postgresql_with=HOT,
    )
    step.queue_order("inbox", "shard", "lane", "seq")

    step.table(
        "timers",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.Column("timer", KEY, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("due", TIME, nullable=False),
        sa.Column("kind", ID, nullable=False),
        sa.Column("payload", TEXT, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("deaths", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("retry_at", TIME, nullable=True),
        sa.Column("trace", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "instance_id", "timer"),
        postgresql_with=HOT,
    )
    step.index("timers", "shard", "due")


def _matching(step: Step) -> None:
    step.table(
        "bookmarks",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.Column("id", KEY, nullable=False),
        sa.Column("key", KEY, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "instance_id", "id"),
    )
    step.index("bookmarks", "tenant", "key")

    step.table(
        "triggers",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("key", KEY, nullable=False),
        sa.Column("definition_id", GIVEN, nullable=False),
        sa.Column("version_id", GIVEN, nullable=False),
        sa.Column("activity_id", GIVEN, nullable=False),
        sa.Column("name", GIVEN, nullable=False),
        sa.Column("payload", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "key", "version_id", "activity_id"),
    )

    step.table(
        "stimuli",
        sa.Column("id", ID, nullable=False),
        sa.Column("tenant", ID, nullable=False),
        sa.Column("key", KEY, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("instance_id", ID, nullable=True),
        sa.Column("correlation_id", GIVEN, nullable=True),
        sa.Column("only", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("payload", TEXT, nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("sent_at", TIME, nullable=False),
        sa.Column("expires", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    step.index("stimuli", "expires")
    step.index("stimuli", "tenant", "key")

    step.table(
        "schedules",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("definition_id", GIVEN, nullable=False),
        sa.Column("activity_id", GIVEN, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("version_id", GIVEN, nullable=False),
        sa.Column("spec", TEXT, nullable=False),
        sa.Column("zone", ID, nullable=True),
        sa.Column("policies", TEXT, nullable=True),
        sa.Column("anchor", TIME, nullable=True),
        sa.Column("next_at", TIME, nullable=True),
        sa.Column("last_at", TIME, nullable=True),
        sa.Column("waiting", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "definition_id", "activity_id"),
    )
    step.index("schedules", "shard", "next_at")

    step.table(
        "firings",
        sa.Column("schedule", KEY, nullable=False),
        sa.Column("nominal", TIME, nullable=False),
        sa.Column("instance_id", ID, nullable=True),
        sa.Column("outcome", ID, nullable=False),
        sa.PrimaryKeyConstraint("schedule", "nominal"),
    )


def _around(step: Step) -> None:
    step.table(
        "attempts",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.Column("execution", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("attempt", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("node", ID, nullable=True),
        sa.Column("deadline", TIME, nullable=True),
        sa.Column("payload", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "instance_id", "execution"),
    )
    step.index("attempts", "shard")

    step.table(
        "journal",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("summary", TEXT, nullable=False),
        sa.Column("body", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "instance_id", "seq"),
    )

    step.table(
        "dedupe",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("key", GIVEN, nullable=False),
        sa.Column("request", BYTES, nullable=False),
        sa.Column("instance_id", ID, nullable=True),
        sa.Column("refused_by", ID, nullable=True),
        sa.Column("answer", TEXT, nullable=True),
        sa.Column("expires", TIME, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key"),
    )
    step.index("dedupe", "expires")

    step.table(
        "activations",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("key", GIVEN, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key"),
    )
    step.index("activations", "tenant", "instance_id")

    step.table(
        "outbox",
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("stream", GIVEN, nullable=False),
        sa.Column("seq", SEQUENCE, sa.Identity(), nullable=False, autoincrement=True),
        sa.Column("instance_id", ID, nullable=True),
        sa.Column("body", TEXT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("retry_at", TIME, nullable=True),
        step.queue_key("shard", "stream", "seq"),
        sqlite_autoincrement=True,
    )
    step.queue_order("outbox", "shard", "stream", "seq")

    step.table(
        "nodes",
        sa.Column("id", ID, nullable=False),
        sa.Column("place", TEXT, nullable=False),
        sa.Column("expires", TIME, nullable=False),
        sa.Column("speaks", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("knows", TEXT, nullable=True),
        sa.Column("seen", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("id"),
        postgresql_with=HOT,
    )

    step.table(
        "leases",
        sa.Column("name", KEY, nullable=False),
        sa.Column("node", ID, nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.Column("released", sa.Boolean(), nullable=False, server_default=sa.true()),
        sa.PrimaryKeyConstraint("name"),
        postgresql_with=HOT,
    )


def _definitions(step: Step) -> None:
    step.table(
        "definitions",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("definition_id", GIVEN, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("version_id", GIVEN, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("is_latest", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("is_published", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("content_hash", ID, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("document", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "definition_id", "version"),
    )
    step.index("definitions", "tenant", "version_id", unique=True)

    step.table(
        "pauses",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("scope", GIVEN, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("since", TIME, nullable=False),
        sa.Column("until", TIME, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "scope"),
    )

    step.table(
        "blobs",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("owner", KEY, nullable=False),
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("body", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "owner", "id"),
    )

    step.table(
        "dead_letters",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("instance_id", ID, nullable=False),
        sa.Column("shard", sa.Integer(), nullable=False),
        sa.Column("kind", ID, nullable=False),
        sa.Column("payload", TEXT, nullable=True),
        sa.Column("reply", GIVEN, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("deaths", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.Column("error", TEXT, nullable=False),
        sa.Column("sent_at", TIME, nullable=True),
        sa.Column("died_at", TIME, nullable=False),
        sa.Column("trace", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )
    step.index("dead_letters", "tenant", "died_at")
    step.index("dead_letters", "tenant", "instance_id")

    step.table(
        "settings",
        sa.Column("id", sa.SmallInteger(), nullable=False, autoincrement=False),
        sa.Column("shard_count", sa.Integer(), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.CheckConstraint("id = 1", name="settings_one_row"),
    )
