"""What a doctor asks of a SQL database: rows that were left behind, and how the database itself feels.

There are no foreign keys, because rows that belong together are written and deleted in one commit. So an
orphan is a sign of a mistake of ours, or of a hand that deleted rows, and is looked for here only.
"""

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from holdfast.store import Orphan, Vitals
from holdfast.stores.sql.tables import activations, attempts, bookmarks, instances, timers

_BELONGINGS = (
    ("bookmark", bookmarks, bookmarks.c.id),
    ("timer", timers, timers.c.timer),
    ("attempt", attempts, attempts.c.execution),
    ("activation", activations, activations.c.key),
)

_POSTGRESQL = sa.text(
    """
    select extract(epoch from max(age)) as oldest, (
      select n_dead_tup from pg_stat_user_tables where relname = 'inbox' and schemaname = current_schema()
    ) as dead_rows
    from (
      select clock_timestamp() - xact_start as age from pg_stat_activity
      where datname = current_database() and backend_xmin is not null and pid <> pg_backend_pid()
      union all
      select clock_timestamp() - prepared from pg_prepared_xacts where database = current_database()
    ) as snapshots
    """
)


def orphans(connection: sa.Connection, limit: int) -> list[Orphan]:
    found: list[Orphan] = []
    for kind, table, name in _BELONGINGS:
        is_there = sa.exists().where(
            instances.c.tenant == table.c.tenant, instances.c.id == table.c.instance_id
        )
        query = sa.select(table.c.tenant, table.c.instance_id, name).where(~is_there)
        ordered = query.order_by(table.c.tenant, table.c.instance_id, name).limit(limit)
        found += (_orphan(kind, row) for row in connection.execute(ordered))
    found += (_orphan("child", row) for row in connection.execute(_lost_children(limit)))
    return found


def _lost_children(limit: int) -> sa.Select[Any, Any, Any]:
    parent = instances.alias("parent")
    is_there = sa.exists().where(parent.c.tenant == instances.c.tenant, parent.c.id == instances.c.parent_id)
    return (
        sa.select(instances.c.tenant, instances.c.parent_id, instances.c.id)
        .where(instances.c.parent_id.is_not(None), instances.c.finished_at.is_(None), ~is_there)
        .order_by(instances.c.tenant, instances.c.id)
        .limit(limit)
    )


def _orphan(kind: str, row: Any) -> Orphan:
    tenant, owner, name = row
    return Orphan(kind=kind, tenant=tenant, instance_id=owner, name=str(name))


def vitals(connection: sa.Connection) -> Vitals:
    if connection.dialect.name != "postgresql":
        return Vitals()
    row = connection.execute(_POSTGRESQL).one()
    oldest = None if row.oldest is None else timedelta(seconds=float(row.oldest))
    return Vitals(oldest_snapshot=oldest, dead_rows=row.dead_rows)
