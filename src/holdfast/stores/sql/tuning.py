"""What a database knows of its own tables, brought up to date where it would mislead it.

PostgreSQL looks at a new table after a minute or so. Until then all indexes look alike to it, and it may
read every instance of a tenant to find one. In a minute a new installation may have made many.
"""

import sqlalchemy as sa

_MISJUDGED = sa.text(
    """select relname from pg_class
       where relnamespace = current_schema()::regnamespace and relkind = 'r'
         and relname in ('instances', 'bookmarks', 'timers', 'journal', 'activations', 'dedupe', 'stimuli')
         and pg_relation_size(oid) > 30 * 8192
         and reltuples < pg_relation_size(oid) / 8192"""
)


def tune(connection: sa.Connection) -> list[str]:
    """Which tables it looked at."""
    if connection.dialect.name != "postgresql":
        return []  # MariaDB counts as it goes, and SQLite asks the index
    found = list(connection.execute(_MISJUDGED).scalars())
    for name in found:
        connection.exec_driver_sql(f"analyze {name}")
    return found
