"""Requests from outside in SQL, one by one: idempotency keys, guarded starts, messages.

Requests without guards are written many at a time by `dialect`; here it is decided about the others, and
about those whose key was used before. The unique row decides between racers: a key or an activation that
was inserted by somebody else a moment ago makes this insert fail, and the savepoint around each request
lets it be answered alone.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from holdfast.instance import SubStatus
from holdfast.store import (
    Activation,
    Admission,
    Admitted,
    InstanceExists,
    KeyReused,
    Posted,
    Posting,
    Refused,
    Repeated,
    Verdict,
)
from holdfast.stores.sql.failures import TryAgain
from holdfast.stores.sql.inbox import send
from holdfast.stores.sql.rows import LIFE, raw, text
from holdfast.stores.sql.tables import activations, dedupe, instances
from holdfast.stores.sql.time import database_now
from holdfast.stores.sql.turns import bear
from holdfast.stores.sql.waits import keep


def admit(connection: sa.Connection, admissions: Sequence[Admission]) -> list[Verdict]:
    return [_admit(connection, admission) for admission in admissions]


def _admit(connection: sa.Connection, admission: Admission) -> Verdict:
    known = _asked_before(connection, admission)
    if known is not None:
        return known
    tenant, instance_id = admission.message.tenant, admission.message.instance_id
    refused: Refused
    try:
        with connection.begin_nested():
            _remember(connection, admission, None)
            _take_keys(connection, tenant, instance_id, admission.activations)
            if admission.birth is not None:
                bear(connection, tenant, admission.birth)
            return Admitted(send(connection, [admission.message])[0])
    except _Forbidden as forbidden:
        refused = Refused(str(forbidden))
    except IntegrityError:
        return _asked_before(connection, admission) or InstanceExists(instance_id)
    _remember(connection, admission, refused.instance_id)
    return refused


def _asked_before(connection: sa.Connection, admission: Admission) -> Verdict | None:
    if admission.key is None:
        return None
    row = _known(connection, admission.message.tenant, admission.key)
    if row is None:
        return None
    if row["request"] != admission.request:
        return KeyReused(admission.key)
    if row["refused_by"] is not None:
        return Refused(row["refused_by"])
    return Repeated(row["instance_id"] or "", raw(row["answer"]))


def _remember(connection: sa.Connection, admission: Admission, refused_by: str | None) -> None:
    if admission.key is None:
        return
    connection.execute(
        sa.insert(dedupe).values(
            tenant=admission.message.tenant,
            key=admission.key,
            request=admission.request,
            instance_id=admission.message.instance_id,
            refused_by=refused_by,
            expires=admission.expires or database_now(connection) + LIFE,
        )
    )


def _known(connection: sa.Connection, tenant: str, key: str) -> Any:
    """What is known of a key, locked. One whose life is over is forgotten on the way."""
    same = dedupe.c.tenant == tenant, dedupe.c.key == key
    found = connection.execute(sa.select(dedupe).where(*same).with_for_update()).mappings().one_or_none()
    if found is None or found["expires"] > database_now(connection):
        return found
    connection.execute(sa.delete(dedupe).where(*same))
    return None


class _Forbidden(Exception):
    """The instance because of which a guarded start is refused."""


_BORN_AND_NOT_BEGUN = sa.and_(
    instances.c.sub_status == SubStatus.PENDING.value,
    sa.or_(instances.c.parent_id.is_not(None), sa.func.coalesce(instances.c.turn, "") != ""),
)
"""By another's commit, as a child or by a stimulus that another sent."""


def _take_keys(
    connection: sa.Connection,
    tenant: str,
    instance_id: str,
    guards: Sequence[Activation],
    *,
    overlooks: sa.ColumnElement[bool] | None = None,
) -> None:
    """Take every key, and look for open instances that forbid it. Raises _Forbidden."""
    for guard in guards:
        holder = _holder(connection, tenant, guard.key)
        if holder == instance_id:
            continue
        if holder is None and guard.looks:
            holder = _open(connection, tenant, instance_id, guard, overlooks)
        if holder is None:
            holder = _insert_key(connection, tenant, instance_id, guard.key)
        if holder is not None:
            raise _Forbidden(holder)


def _holder(connection: sa.Connection, tenant: str, key: str) -> str | None:
    query = sa.select(activations.c.instance_id).where(
        activations.c.tenant == tenant, activations.c.key == key
    )
    return connection.execute(query).scalar_one_or_none()


def _open(
    connection: sa.Connection,
    tenant: str,
    instance_id: str,
    guard: Activation,
    overlooks: sa.ColumnElement[bool] | None,
) -> str | None:
    """An open instance that forbids a guarded one."""
    query = sa.select(instances.c.id).where(
        instances.c.tenant == tenant, instances.c.finished_at.is_(None), instances.c.id != instance_id
    )
    if guard.definition_id is not None:
        query = query.where(instances.c.definition_id == guard.definition_id)
    if guard.correlation_id is not None:
        query = query.where(instances.c.correlation_id == guard.correlation_id)
    if overlooks is not None:
        query = query.where(sa.not_(overlooks))
    return connection.execute(query.limit(1)).scalar_one_or_none()


def _insert_key(connection: sa.Connection, tenant: str, instance_id: str, key: str) -> str | None:
    """Take one key; else who was faster."""
    row = {"tenant": tenant, "key": key, "instance_id": instance_id}
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(activations).values(row))
    except IntegrityError:
        holder = _holder(connection, tenant, key)
        if holder is None:
            raise TryAgain(f"The activation {key!r} was taken and freed meanwhile; try again.") from None
        return holder
    return None


def activate(
    connection: sa.Connection, tenant: str, instance_id: str, guards: Sequence[Activation]
) -> Refused | None:
    # Locked, as the commit that ends it does: what is taken here, that commit must see and give back.
    is_open = (
        sa.select(instances.c.id)
        .where(
            instances.c.tenant == tenant,
            instances.c.id == instance_id,
            instances.c.finished_at.is_(None),
        )
        .with_for_update()
    )
    if connection.execute(is_open).first() is None:
        return Refused(instance_id)
    try:
        with connection.begin_nested():
            _take_keys(connection, tenant, instance_id, guards, overlooks=_BORN_AND_NOT_BEGUN)
    except _Forbidden as forbidden:
        return Refused(str(forbidden))
    return None


def post(connection: sa.Connection, posting: Posting, shards: int) -> Posted | Repeated | KeyReused:
    if posting.key is not None:
        row = _known(connection, posting.tenant, posting.key)
        if row is None:
            row = _remember_posting(connection, posting, posting.key)
        if row is not None:
            if row["request"] != posting.request:
                return KeyReused(posting.key)
            return Repeated(row["instance_id"] or "", raw(row["answer"]))
    verdicts = tuple(_admit(connection, admission) for admission in posting.starts)
    if posting.keep is not None:
        keep(connection, posting.keep, shards)
    return Posted(tuple(send(connection, posting.messages)), verdicts)


def _remember_posting(connection: sa.Connection, posting: Posting, key: str) -> Any:
    """Take the key of a posting; else what is known of it since somebody was faster."""
    try:
        with connection.begin_nested():
            connection.execute(
                sa.insert(dedupe).values(
                    tenant=posting.tenant,
                    key=key,
                    request=posting.request,
                    answer=text(posting.answer),
                    expires=posting.expires or database_now(connection) + LIFE,
                )
            )
    except IntegrityError:
        row = _known(connection, posting.tenant, key)
        if row is None:
            raise TryAgain(f"The key {key!r} was taken and forgotten meanwhile; try again.") from None
        return row
    return None


def answer(connection: sa.Connection, tenant: str, key: str) -> bytes | None:
    query = sa.select(dedupe.c.answer).where(dedupe.c.tenant == tenant, dedupe.c.key == key)
    return raw(connection.execute(query).scalar_one_or_none())
