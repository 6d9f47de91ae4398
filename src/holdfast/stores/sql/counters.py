"""Numbers that grow with every change of something, so that nodes notice it with their renewal."""

import sqlalchemy as sa

from holdfast.stores.sql.tables import counters


def count_up(connection: sa.Connection, name: str) -> int:
    """The next number. Whoever counts the same thing meanwhile waits for this transaction."""
    connection.execute(sa.update(counters).where(counters.c.name == name).values(value=counters.c.value + 1))
    return connection.execute(sa.select(counters.c.value).where(counters.c.name == name)).scalar_one()


def counted(connection: sa.Connection) -> dict[str, int]:
    return {row.name: row.value for row in connection.execute(sa.select(counters))}
