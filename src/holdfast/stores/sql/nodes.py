"""Nodes and leases in SQL.

A renewal that began in time and commits late is invisible to a taker that only reads, and then both
own the shard. So whoever takes a lease of a dead node locks that node's row first, skipping one that
is just being renewed, and looks at its time again under the lock. A renewal locks before it looks at
its time as well: it may have waited for a taker.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from holdfast.store import LiveNode, NodeExpired, Renewal, Taken
from holdfast.stores.sql.counters import counted
from holdfast.stores.sql.tables import CATALOGUE, PAUSES, attempts, leases, nodes
from holdfast.stores.sql.time import database_now

MOURNING = timedelta(days=1)
"""How long the row of a dead node stays."""


def join(connection: sa.Connection, node_id: str, place: str, ttl: timedelta) -> Renewal:
    now = database_now(connection)
    _forget_the_dead(connection, now - MOURNING)
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(nodes).values(id=node_id, place=place, expires=now + ttl))
    except IntegrityError:
        raise NodeExpired(
            f"The node id {node_id!r} was used before. Every process joins under its own."
        ) from None
    return _renewal(connection, node_id, now)


def _forget_the_dead(connection: sa.Connection, before: datetime) -> None:
    """Nodes that died before then. Those that a lease or an attempt refers to are needed."""
    has_lease = sa.exists().where(leases.c.node == nodes.c.id)
    has_attempt = sa.exists().where(attempts.c.node == nodes.c.id)
    query = sa.select(nodes.c.id).where(nodes.c.expires < before, ~has_lease, ~has_attempt)
    forgotten = connection.execute(query.order_by(nodes.c.id)).scalars().all()
    if forgotten:
        connection.execute(sa.delete(nodes).where(nodes.c.id.in_(forgotten)))


# One round trip: the update must not look at the time before the row is locked, so it looks at what the
# lock returned.
_RENEW_AT_ONCE = sa.text("""
    with mine as materialized (select id, expires from nodes where id = :id for update),
         moment as materialized (select id, expires, clock_timestamp() as now from mine),
         renewed as (
           update nodes set expires = moment.now + cast(:ttl as interval), seen = :seen
           from moment where nodes.id = moment.id and moment.expires > moment.now
           returning moment.now)
    select renewed.now, leases.name, leases.epoch,
           (select value from counters where name = :catalogue) as catalogue,
           (select value from counters where name = :pauses) as pauses
    from renewed left join leases on leases.node = :id""")


def renew(connection: sa.Connection, node_id: str, ttl: timedelta, seen: int) -> Renewal:
    if connection.dialect.name == "postgresql":
        asked = {"id": node_id, "ttl": ttl, "seen": seen, "catalogue": CATALOGUE, "pauses": PAUSES}
        rows = connection.execute(_RENEW_AT_ONCE, asked).all()
        if not rows:
            raise _expired(node_id)
        return Renewal(
            now=rows[0].now,
            leases={row.name: row.epoch for row in rows if row.name is not None},
            catalogue=rows[0].catalogue,
            pauses=rows[0].pauses,
        )
    expires = connection.execute(
        sa.select(nodes.c.expires).where(nodes.c.id == node_id).with_for_update()
    ).scalar_one_or_none()
    now = database_now(connection)
    if expires is None or expires <= now:
        raise _expired(node_id)
    connection.execute(sa.update(nodes).where(nodes.c.id == node_id).values(expires=now + ttl, seen=seen))
    return _renewal(connection, node_id, now)


def _expired(node_id: str) -> NodeExpired:
    return NodeExpired(f"Node {node_id!r} did not renew in time. Join again under a new id.")


def _renewal(connection: sa.Connection, node_id: str, now: datetime) -> Renewal:
    owned = connection.execute(sa.select(leases.c.name, leases.c.epoch).where(leases.c.node == node_id))
    counters = counted(connection)
    return Renewal(
        now=now,
        leases={lease.name: lease.epoch for lease in owned},
        catalogue=counters[CATALOGUE],
        pauses=counters[PAUSES],
    )


def take(connection: sa.Connection, node_id: str, names: Sequence[str]) -> list[Taken]:
    if not names or not _is_alive(connection, node_id):
        return []
    wanted = sa.select(leases).where(leases.c.name.in_(names))
    known = {lease.name for lease in connection.execute(wanted)}
    for name in sorted(set(names) - known):
        _make(connection, name)
    # In one order, so that two takers wait for each other in one direction.
    rows = connection.execute(wanted.order_by(leases.c.name).with_for_update()).all()
    dead = surely_dead(connection, {row.node for row in rows if row.node is not None})
    free = [row for row in rows if row.node is None or row.node in dead]
    if free:
        connection.execute(
            sa.update(leases)
            .where(leases.c.name.in_([row.name for row in free]))
            .values(node=node_id, epoch=leases.c.epoch + 1, released=False)
        )
    return [Taken(row.name, row.epoch + 1, row.released) for row in free]


def _make(connection: sa.Connection, name: str) -> None:
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(leases).values(name=name, epoch=0, released=True))
    except IntegrityError:
        return  # somebody else made the row a moment ago


def _is_alive(connection: sa.Connection, node_id: str) -> bool:
    expires = connection.execute(sa.select(nodes.c.expires).where(nodes.c.id == node_id)).scalar_one_or_none()
    return expires is not None and expires > database_now(connection)


def surely_dead(connection: sa.Connection, node_ids: Iterable[str]) -> set[str]:
    """Those that cannot come back any more. Their rows stay locked, so that they do not try meanwhile."""
    asked = set(node_ids)
    if not asked:
        return set()
    known = set(connection.execute(sa.select(nodes.c.id).where(nodes.c.id.in_(asked))).scalars())
    expired = sa.select(nodes.c.id).where(nodes.c.id.in_(known), nodes.c.expires <= database_now(connection))
    locked = connection.execute(expired.order_by(nodes.c.id).with_for_update(skip_locked=True)).scalars()
    return {*locked, *(asked - known)}


def release(connection: sa.Connection, node_id: str, names: Sequence[str]) -> None:
    connection.execute(
        sa.update(leases)
        .where(leases.c.name.in_(names), leases.c.node == node_id)
        .values(node=None, released=True)
    )


def leave(connection: sa.Connection, node_id: str) -> None:
    connection.execute(sa.update(nodes).where(nodes.c.id == node_id).values(expires=database_now(connection)))


def living(connection: sa.Connection) -> list[LiveNode]:
    query = sa.select(nodes).where(nodes.c.expires > database_now(connection)).order_by(nodes.c.id)
    return [
        LiveNode(id=row.id, place=row.place, expires=row.expires, seen=row.seen)
        for row in connection.execute(query)
    ]


def owned(connection: sa.Connection) -> Mapping[str, tuple[str, int]]:
    query = sa.select(leases.c.name, leases.c.node, leases.c.epoch).where(leases.c.node.is_not(None))
    return {name: (node, epoch) for name, node, epoch in connection.execute(query)}
