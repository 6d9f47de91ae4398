"""Definitions and their versions in SQL.

A publication first moves the counter of the catalogue and so waits until every other one is committed
or taken back: of two that make the same new definition, which has no row yet to lock, the second sees
what the first did. Then it locks the rows of its definitions and their schedules, in one order, and
compares the mark; a schedule that fires meanwhile waits for it, or has moved its cursor before.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from holdfast.store import Edition, EditionChanged, Publication, Schedule, StoredVersion, VersionHeader
from holdfast.stores.marks import mark_of
from holdfast.stores.sql import schedules
from holdfast.stores.sql.inbox import raw, text
from holdfast.stores.sql.tables import CATALOGUE, counters, definitions, outbox
from holdfast.stores.sql.waits import replace_triggers

_HEADER = [column for column in definitions.c if column is not definitions.c.document]


def edition(connection: sa.Connection, tenant: str, definition_id: str) -> Edition:
    query = sa.select(definitions).where(*_of(tenant, definition_id)).order_by(definitions.c.version)
    versions = tuple(_stored(row) for row in connection.execute(query).mappings())
    planned = schedules.of_definition(connection, tenant, definition_id)
    mark = mark_of([stored.header for stored in versions], planned)
    return Edition(versions=versions, schedules=tuple(planned), mark=mark)


def publish(connection: sa.Connection, publications: Sequence[Publication]) -> None:
    if not publications:
        return
    connection.execute(
        sa.update(counters).where(counters.c.name == CATALOGUE).values(value=counters.c.value + 1)
    )
    for publication in sorted(publications, key=lambda one: (one.tenant, one.definition_id)):
        _publish(connection, publication)


def _publish(connection: sa.Connection, publication: Publication) -> None:
    tenant, definition_id = publication.tenant, publication.definition_id
    present, planned = _lock(connection, tenant, definition_id)
    if mark_of(present, planned) != publication.mark:
        raise EditionChanged(definition_id)
    for number in publication.gone:
        connection.execute(sa.delete(definitions).where(*_of(tenant, definition_id, number)))
    known = {header.version for header in present} - set(publication.gone)
    for stored in publication.versions:
        number = stored.header.version
        if number in known:
            where = _of(tenant, definition_id, number)
            connection.execute(sa.update(definitions).where(*where).values(_row(stored)))
        else:
            connection.execute(sa.insert(definitions).values(_row(stored)))
    if publication.triggers is not None:
        replace_triggers(connection, tenant, definition_id, publication.triggers)
    if publication.schedules is not None:
        schedules.replace(connection, planned, publication.schedules)
    for out in publication.outbox:
        row = {"shard": publication.shard, "stream": out.stream, "tenant": tenant, "body": text(out.body)}
        connection.execute(sa.insert(outbox).values(row))


def _lock(
    connection: sa.Connection, tenant: str, definition_id: str
) -> tuple[list[VersionHeader], list[Schedule]]:
    query = sa.select(*_HEADER).where(*_of(tenant, definition_id)).order_by(definitions.c.version)
    present = [_header(row) for row in connection.execute(query.with_for_update()).mappings()]
    return present, schedules.of_definition(connection, tenant, definition_id, locks=True)


def version(connection: sa.Connection, tenant: str, version_id: str) -> StoredVersion | None:
    wanted = definitions.c.tenant == tenant, definitions.c.version_id == version_id
    return _one(connection, sa.select(definitions).where(*wanted))


def published(connection: sa.Connection, tenant: str, definition_id: str) -> StoredVersion | None:
    query = sa.select(definitions).where(*_of(tenant, definition_id), definitions.c.is_published)
    return _one(connection, query.order_by(definitions.c.version.desc()).limit(1))


def usable(connection: sa.Connection, tenant: str) -> list[StoredVersion]:
    query = (
        sa.select(definitions)
        .where(
            definitions.c.tenant == tenant,
            definitions.c.is_usable,
            sa.or_(definitions.c.is_published, definitions.c.is_latest),
        )
        .order_by(definitions.c.definition_id, definitions.c.version)
    )
    return [_stored(row) for row in connection.execute(query).mappings()]


def headers(
    connection: sa.Connection, tenant: str, is_published: bool | None, after: str, limit: int
) -> list[VersionHeader]:
    wanted = [definitions.c.tenant == tenant, definitions.c.definition_id > after]
    if is_published is not None:
        wanted.append(definitions.c.is_published if is_published else sa.not_(definitions.c.is_published))
    # A page counts definitions, not versions: whoever goes on behind its last one would miss the rest.
    page = (
        sa.select(definitions.c.definition_id)
        .where(*wanted)
        .distinct()
        .order_by(definitions.c.definition_id)
        .limit(limit)
        .subquery()
    )
    query = (
        sa.select(*_HEADER)
        .join(page, page.c.definition_id == definitions.c.definition_id)
        .where(*wanted)
        .order_by(definitions.c.definition_id, definitions.c.version)
    )
    return [_header(row) for row in connection.execute(query).mappings()]


def _of(tenant: str, definition_id: str, number: int | None = None) -> list[sa.ColumnElement[bool]]:
    """The condition that means all versions of a definition, or one."""
    condition = [definitions.c.tenant == tenant, definitions.c.definition_id == definition_id]
    return condition if number is None else [*condition, definitions.c.version == number]


def _one(connection: sa.Connection, query: sa.Select[Any]) -> StoredVersion | None:
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else _stored(row)


def _stored(row: Any) -> StoredVersion:
    return StoredVersion(header=_header(row), document=raw(row["document"]) or b"")


def _header(row: Any) -> VersionHeader:
    return VersionHeader(**{name: row[name] for name in VersionHeader.__struct_fields__})


def _row(stored: StoredVersion) -> dict[str, Any]:
    header = {name: getattr(stored.header, name) for name in VersionHeader.__struct_fields__}
    return {**header, "document": text(stored.document)}
