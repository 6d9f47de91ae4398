"""Column types that mean the same on SQLite, PostgreSQL and MariaDB.

All text compares byte by byte: a locale's collation costs time in every index, and MariaDB's default
would take `A` for `a`. What a column is called and which type it has is in `tables`.
"""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeDecorator, TypeEngine


def _text(length: int, charset: str) -> sa.String:
    # SQLite compares bytes unless told otherwise, and knows no collation of the name C.
    return (
        sa.String(length)
        .with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, charset=charset, collation=f"{charset}_bin"), "mysql", "mariadb")
    )


Id = _text(64, "ascii")
"""An id, a digest, a kind: URL-safe, so ASCII. MariaDB refuses to compare it with anything else."""

Key = _text(200, "ascii")
"""A name we compose of ids: a bookmark's id, a timer's, a lease's; and keys of stimuli."""

Given = _text(200, "utf8mb4")
"""A name that people or their documents chose, in any alphabet: a correlation, an activity's id."""

Text = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
"""Text of any length; also JSON, which the database never has to understand."""

Blob = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
"""Bytes of any number."""

Sequence = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""A number the database hands out. SQLite does so only for a column declared as INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """Aware in and out, UTC with microseconds inside. SQLite and MariaDB know no zones."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))  # without it microseconds are cut off
        return dialect.type_descriptor(sa.DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        if value.utcoffset() is None:
            raise ValueError(f"{value.isoformat()} has no time zone, so it is no instant. Give it one.")
        instant = value.astimezone(UTC)
        return instant if dialect.name == "postgresql" else instant.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
