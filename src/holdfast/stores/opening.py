"""From a database's URL to a store that is ready: connected, and at the schema this code knows."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from holdfast.errors import Invalid
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.migrations import check, migrate
from holdfast.stores.sql.store import SqlStore


async def open_store(url: str, *, migrate_first: bool | None = None) -> SqlStore:
    """`migrate_first` brings the database up to date; None means for SQLite only. Else it is checked."""
    try:
        place = sa.make_url(url)
    except ArgumentError as problem:
        raise Invalid(
            f"{url!r} is no database URL. Use sqlite:///holdfast.db, postgresql://user:password@host/name "
            f"or mariadb://user:password@host/name."
        ) from problem
    is_local = place.get_backend_name() == "sqlite"
    if is_local and place.database not in (None, "", ":memory:"):
        folder = Path(place.database or "").parent
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
    database = create(place)
    try:
        if migrate_first or (migrate_first is None and is_local):
            await database.write(migrate)
        else:
            await database.write(check)
    except BaseException:
        await database.close()
        raise
    return SqlStore(database)
