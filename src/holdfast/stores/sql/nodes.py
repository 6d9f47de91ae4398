"""Nodes and leases in SQL.

A renewal that began in time and commits late is invisible to a taker that only reads, and then both
own the shard. So whoever takes a lease of a dead node locks that node's row first, skipping one that
is just being renewed, and looks at its time again under the lock.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from holdfast.store import LiveNode, NodeExpired, Renewal, Taken
from holdfast.stores.sql.tables import leases, nodes
from holdfast.stores.sql.time import database_now


def join(connection: sa.Connection, node_id: str, place: str, ttl: timedelta) -> Renewal:
    now = database_now(connection)
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(nodes).values(id=node_id, place=place, expires=now + ttl))
    except IntegrityError:
        raise NodeExpired(
            f"The node id {node_id!r} was used before. Every process joins under its own."
        ) from None
    return _renewal(connection, node_id, now)


def renew(connection: sa.Connection, node_id: str, ttl: timedelta) -> Renewal:
    expires = connection.execute(
        sa.select(nodes.c.expires).where(nodes.c.id == node_id).with_for_update()
    ).scalar_one_or_none()
    now = database_now(connection)
    if expires is None or expires <= now:
        raise NodeExpired(f"Node {node_id!r} did not renew in time. Join again under a new id.")
    connection.execute(sa.update(nodes).where(nodes.c.id == node_id).values(expires=now + ttl))
    return _renewal(connection, node_id, now)


def _renewal(connection: sa.Connection, node_id: str, now: datetime) -> Renewal:
    owned = connection.execute(sa.select(leases.c.name, leases.c.epoch).where(leases.c.node == node_id))
    return Renewal(now, {lease.name: lease.epoch for lease in owned})


def take(connection: sa.Connection, node_id: str, names: Sequence[str]) -> list[Taken]:
    if not _is_alive(connection, node_id):
        return []
    taken: list[Taken] = []
    for name in sorted(names):  # in one order, so that two takers wait for each other in one direction
        _ensure(connection, name)
        lease = connection.execute(
            sa.select(leases.c.node, leases.c.epoch, leases.c.released)
            .where(leases.c.name == name)
            .with_for_update()
        ).one()
        if lease.node is not None and not _is_surely_dead(connection, lease.node):
            continue
        connection.execute(
            sa.update(leases)
            .where(leases.c.name == name)
            .values(node=node_id, epoch=lease.epoch + 1, released=False)
        )
        taken.append(Taken(name, lease.epoch + 1, lease.released))
    return taken


def _ensure(connection: sa.Connection, name: str) -> None:
    if connection.execute(sa.select(leases.c.name).where(leases.c.name == name)).one_or_none() is None:
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(leases).values(name=name, epoch=0, released=True))
        except IntegrityError:
            return  # somebody else made the row a moment ago


def _is_alive(connection: sa.Connection, node_id: str) -> bool:
    expires = connection.execute(sa.select(nodes.c.expires).where(nodes.c.id == node_id)).scalar_one_or_none()
    return expires is not None and expires > database_now(connection)


def _is_surely_dead(connection: sa.Connection, node_id: str) -> bool:
    if connection.execute(sa.select(nodes.c.id).where(nodes.c.id == node_id)).one_or_none() is None:
        return True
    locked = sa.select(nodes.c.expires).where(nodes.c.id == node_id).with_for_update(skip_locked=True)
    expires = connection.execute(locked).scalar_one_or_none()
    return expires is not None and expires <= database_now(connection)


def release(connection: sa.Connection, node_id: str, names: Sequence[str]) -> None:
    connection.execute(
        sa.update(leases)
        .where(leases.c.name.in_(names), leases.c.node == node_id)
        .values(node=None, released=True)
    )


def leave(connection: sa.Connection, node_id: str) -> None:
    connection.execute(sa.update(nodes).where(nodes.c.id == node_id).values(expires=database_now(connection)))


def living(connection: sa.Connection) -> list[LiveNode]:
    query = sa.select(nodes.c.id, nodes.c.place, nodes.c.expires).where(
        nodes.c.expires > database_now(connection)
    )
    return [LiveNode(*row) for row in connection.execute(query.order_by(nodes.c.id))]
