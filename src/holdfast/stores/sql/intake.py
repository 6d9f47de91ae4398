"""Requests from outside in SQL: idempotency keys, guarded starts, messages.

The unique row decides between racers: a key or an activation that was inserted by somebody else a
moment ago makes this insert fail, and the savepoint around each request lets it be answered alone.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from holdfast.store import (
    Activation,
    Admission,
    Admitted,
    InstanceExists,
    KeyReused,
    Refused,
    Repeated,
    Verdict,
)
from holdfast.stores.sql.inbox import raw, send
from holdfast.stores.sql.tables import activations, dedupe, instances
from holdfast.stores.sql.time import database_now
from holdfast.stores.sql.turns import bear

LIFE = timedelta(hours=24)
"""How long a key lives when nobody says."""


def admit(connection: sa.Connection, admissions: Sequence[Admission]) -> list[Verdict]:
    return [_admit(connection, admission) for admission in admissions]


def _admit(connection: sa.Connection, admission: Admission) -> Verdict:
    known = _asked_before(connection, admission)
    if known is not None:
        return known
    refused: Refused
    try:
        with connection.begin_nested():
            if admission.key is not None:
                _remember(connection, admission, admission.key)
            if admission.activation is not None:
                _activate(connection, admission, admission.activation)
            if admission.birth is not None:
                bear(connection, admission.message.tenant, admission.birth, "")
            return Admitted(send(connection, [admission.message])[0])
    except _Forbidden as forbidden:
        refused = Refused(str(forbidden))
    except IntegrityError:
        return _asked_before(connection, admission) or InstanceExists(admission.message.instance_id)
    if admission.key is not None:
        _remember(connection, admission, admission.key, refused_by=refused.instance_id)
    return refused


class _Forbidden(Exception):
    """The instance because of which a guarded start is refused."""


def _key_of(admission: Admission) -> list[sa.ColumnElement[bool]]:
    return [dedupe.c.tenant == admission.message.tenant, dedupe.c.key == admission.key]


def _asked_before(connection: sa.Connection, admission: Admission) -> Verdict | None:
    if admission.key is None:
        return None
    row: Any = (
        connection.execute(sa.select(dedupe).where(*_key_of(admission)).with_for_update())
        .mappings()
        .one_or_none()
    )
    if row is None:
        return None
    if row["expires"] <= database_now(connection):
        connection.execute(sa.delete(dedupe).where(*_key_of(admission)))
        return None
    if row["request"] != admission.request:
        return KeyReused(admission.key)
    if row["refused_by"] is not None:
        return Refused(row["refused_by"])
    return Repeated(row["instance_id"], raw(row["answer"]))


def _remember(
    connection: sa.Connection, admission: Admission, key: str, *, refused_by: str | None = None
) -> None:
    connection.execute(
        sa.insert(dedupe).values(
            tenant=admission.message.tenant,
            key=key,
            request=admission.request,
            instance_id=admission.message.instance_id,
            refused_by=refused_by,
            expires=admission.expires or database_now(connection) + LIFE,
        )
    )


def _activate(connection: sa.Connection, admission: Admission, guard: Activation) -> None:
    """Take the key, and look for an open instance that forbids it. Raises _Forbidden."""
    tenant = admission.message.tenant
    held = activations.c.tenant == tenant, activations.c.key == guard.key
    holder = connection.execute(sa.select(activations.c.instance_id).where(*held)).scalar_one_or_none()
    if holder is None:
        query = sa.select(instances.c.id).where(
            instances.c.tenant == tenant, instances.c.finished_at.is_(None)
        )
        if guard.definition_id is not None:
            query = query.where(instances.c.definition_id == guard.definition_id)
        if guard.correlation_id is not None:
            query = query.where(instances.c.correlation_id == guard.correlation_id)
        holder = connection.execute(query.limit(1)).scalar_one_or_none()
    if holder is None:
        try:
            with connection.begin_nested():
                connection.execute(
                    sa.insert(activations).values(
                        tenant=tenant, key=guard.key, instance_id=admission.message.instance_id
                    )
                )
        except IntegrityError:
            holder = connection.execute(sa.select(activations.c.instance_id).where(*held)).scalar_one()
    if holder is not None:
        raise _Forbidden(holder)


def answer(connection: sa.Connection, tenant: str, key: str) -> bytes | None:
    query = sa.select(dedupe.c.answer).where(dedupe.c.tenant == tenant, dedupe.c.key == key)
    return raw(connection.execute(query).scalar_one_or_none())
