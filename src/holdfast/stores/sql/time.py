"""What time it is, according to the database. A node's own clock decides nothing."""

from datetime import UTC, datetime

import sqlalchemy as sa

_NOW = {
    "postgresql": "select clock_timestamp()",
    "mysql": "select utc_timestamp(6)",
    "mariadb": "select utc_timestamp(6)",
    "sqlite": "select strftime('%Y-%m-%d %H:%M:%f', 'now')",
}


def database_now(connection: sa.Connection) -> datetime:
    """The present instant, also in the middle of a transaction."""
    found = connection.exec_driver_sql(_NOW[connection.dialect.name]).scalar_one()
    instant = datetime.fromisoformat(found) if isinstance(found, str) else found
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
