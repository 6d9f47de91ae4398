"""Pauses in SQL. Each change of them has a number, which nodes report with their renewal once seen."""

from datetime import datetime

import sqlalchemy as sa

from holdfast.store import Pause
from holdfast.stores.sql.counters import count_up
from holdfast.stores.sql.tables import PAUSES, pauses
from holdfast.stores.sql.time import database_now


def pause(connection: sa.Connection, wanted: Pause) -> int:
    number = lift(connection, wanted.tenant, wanted.scope)
    connection.execute(
        sa.insert(pauses).values(
            tenant=wanted.tenant,
            scope=wanted.scope,
            version=number,
            reason=wanted.reason,
            since=wanted.since,
            until=wanted.until,
        )
    )
    return number


def lift(connection: sa.Connection, tenant: str, scope: str) -> int:
    number = count_up(connection, PAUSES)  # first: it lets nobody else change pauses meanwhile
    connection.execute(sa.delete(pauses).where(pauses.c.tenant == tenant, pauses.c.scope == scope))
    connection.execute(sa.delete(pauses).where(pauses.c.until <= database_now(connection)))
    return number


def in_force(connection: sa.Connection) -> list[Pause]:
    now: datetime = database_now(connection)
    query = sa.select(pauses).where(sa.or_(pauses.c.until.is_(None), pauses.c.until > now))
    return [
        Pause(tenant=row.tenant, scope=row.scope, since=row.since, reason=row.reason, until=row.until)
        for row in connection.execute(query.order_by(pauses.c.tenant, pauses.c.scope))
    ]
