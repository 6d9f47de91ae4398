"""Placements and counters."""

from typing import Any

import sqlalchemy as sa
from alembic.operations import Operations
from sqlalchemy.dialects import mysql, postgresql

revision = "0002"
down_revision = "0001"

SHARDS = 64
"""How many a database has that was never told."""


def _text(length: int, charset: str) -> sa.String:
    return (
        sa.String(length)
        .with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, charset=charset, collation=f"{charset}_bin"), "mysql", "mariadb")
    )


ID = _text(64, "ascii")
GIVEN = _text(200, "utf8mb4")
MARIADB: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def upgrade(op: Operations) -> None:
    _columns(op)
    _tables(op)
    _indexes(op)
    _rows(op)


def _columns(op: Operations) -> None:
    _add(op, "definitions", sa.Column("is_usable", sa.Boolean(), nullable=False, server_default=sa.false()))
    _add(op, "outbox", sa.Column("tenant", ID, nullable=False, server_default=sa.text("''")))
    # An id could be another tenant's as well; then nobody can tell any more, and the first one gets it.
    op.execute(
        "update outbox set tenant = coalesce((select min(i.tenant) from instances i "
        "where i.id = outbox.instance_id), '') where tenant = ''"
    )


def _add(op: Operations, table: str, column: sa.Column[Any]) -> None:
    """MariaDB may have it already, from a step that was cut short."""
    if column.name not in {known["name"] for known in sa.inspect(op.get_bind()).get_columns(table)}:
        op.add_column(table, column)


def _tables(op: Operations) -> None:
    there = set(sa.inspect(op.get_bind()).get_table_names())

    def table(name: str, *items: Any) -> None:
        if name not in there:
            op.create_table(name, *items, **MARIADB)

    table(
        "counters",
        sa.Column("name", ID, nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("name"),
    )
    table(
        "shard_groups",
        sa.Column("name", ID, nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    table(
        "placements",
        sa.Column("tenant", ID, nullable=False),
        sa.Column("definition_id", GIVEN, nullable=False, server_default=sa.text("''")),
        sa.Column("group_name", ID, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "definition_id"),
    )


def _indexes(op: Operations) -> None:
    """What publishing, deleting an instance and forgetting old firings look things up by."""
    inspector = sa.inspect(op.get_bind())

    def index(table: str, *columns: str, where: str | None = None) -> None:
        name = f"{table}_by_{'_'.join(columns)}"
        if name not in {known["name"] for known in inspector.get_indexes(table)}:
            condition = None if where is None else sa.text(where)
            op.create_index(name, table, list(columns), postgresql_where=condition, sqlite_where=condition)

    index("triggers", "tenant", "definition_id")
    index("firings", "nominal")
    index("stimuli", "tenant", "instance_id", where="instance_id is not null")


def _rows(op: Operations) -> None:
    connection = op.get_bind()

    def ensure(table: sa.TableClause, key: str, row: dict[str, Any]) -> None:
        known = sa.select(table).where(table.c[key] == row[key])
        if connection.execute(known).first() is None:
            connection.execute(sa.insert(table).values(row))

    settings = sa.table("settings", sa.column("id"), sa.column("shard_count"), sa.column("format"))
    ensure(settings, "id", {"id": 1, "shard_count": SHARDS, "format": 1})
    shards = connection.execute(sa.select(settings.c.shard_count)).scalar_one()
    groups = sa.table("shard_groups", sa.column("name"), sa.column("first"), sa.column("count"))
    ensure(groups, "name", {"name": "default", "first": 0, "count": shards})
    counters = sa.table("counters", sa.column("name"), sa.column("value"))
    for name in ("catalogue", "pauses"):
        ensure(counters, "name", {"name": name, "value": 0})
