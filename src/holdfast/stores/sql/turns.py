"""Instances in SQL, beside the hot path: where they live, and births that are not part of a group.

Loading instances and committing groups of turns is done all the time, so each kind of database does it
in its own way, in `dialects`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa

from holdfast.commit import Birth
from holdfast.stores.sql.rows import COLUMNS, Group
from holdfast.stores.sql.tables import instances, metadata


def shards(connection: sa.Connection, tenant: str, instance_ids: Sequence[str]) -> Mapping[str, int]:
    query = sa.select(instances.c.id, instances.c.shard).where(
        instances.c.tenant == tenant, instances.c.id.in_(instance_ids)
    )
    return {row.id: row.shard for row in connection.execute(query)}


def bear(connection: sa.Connection, tenant: str, birth: Birth) -> None:
    """A new instance with all it is born with. An id that exists raises IntegrityError."""
    group = Group(_as_it_is)
    group.bear(tenant, birth, turn="")
    for table, rows in group.inserts.items():
        named = [dict(zip(COLUMNS[table], row, strict=True)) for row in rows]
        connection.execute(sa.insert(metadata.tables[table]), named)


def _as_it_is(instant: datetime) -> datetime:
    return instant
