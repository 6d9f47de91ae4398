"""Shard groups in SQL, and who is placed in them."""

from collections.abc import Mapping

import sqlalchemy as sa

from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.store import DEFAULT, Placement, ShardGroup
from holdfast.stores.sql.counters import count_up
from holdfast.stores.sql.tables import placements, settings, shard_groups


def shard_count(connection: sa.Connection) -> int:
    """How many shards the database was created with."""
    return connection.execute(sa.select(settings.c.shard_count)).scalar_one()


def groups(connection: sa.Connection) -> Mapping[str, ShardGroup]:
    query = sa.select(shard_groups).order_by(shard_groups.c.first)
    return {
        row.name: ShardGroup(row.name, row.first, row.count) for row in connection.execute(query).mappings()
    }


def create_group(connection: sa.Connection, name: str, count: int) -> ShardGroup:
    if count < 1:
        raise Invalid(f"A group of {count} shards holds nobody; it needs one at least.")
    _alone(connection)
    known = groups(connection)
    if name in known:
        raise Conflict(
            f"There is a group {name!r} with {known[name].count} shards already. Its size is fixed; "
            f"use it, or choose another name."
        )
    group = ShardGroup(name, max(one.first + one.count for one in known.values()), count)
    row = {"name": group.name, "first": group.first, "count": group.count}
    connection.execute(sa.insert(shard_groups).values(row))
    count_up(connection, "catalogue")
    return group


def _alone(connection: sa.Connection) -> None:
    """Whoever else changes groups or placements waits."""
    query = sa.select(shard_groups.c.name).where(shard_groups.c.name == DEFAULT)
    connection.execute(query.with_for_update()).one()


def place(connection: sa.Connection, placement: Placement) -> None:
    _alone(connection)
    known = groups(connection)
    if placement.group not in known:
        raise NotFound(
            f"There is no group of shards {placement.group!r}. There are {', '.join(sorted(known))}; "
            f"create it first."
        )
    unplace(connection, placement.tenant, placement.definition_id)  # which counts up, too
    connection.execute(
        sa.insert(placements).values(
            tenant=placement.tenant, definition_id=placement.definition_id, group_name=placement.group
        )
    )


def unplace(connection: sa.Connection, tenant: str, definition_id: str) -> None:
    count_up(connection, "catalogue")
    connection.execute(
        sa.delete(placements).where(
            placements.c.tenant == tenant, placements.c.definition_id == definition_id
        )
    )


def placed(connection: sa.Connection) -> list[Placement]:
    query = sa.select(placements).order_by(placements.c.tenant, placements.c.definition_id)
    return [
        Placement(tenant=row.tenant, definition_id=row.definition_id, group=row.group_name)
        for row in connection.execute(query)
    ]
