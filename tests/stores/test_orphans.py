"""Rows that somebody's hand left behind are found, on every database."""

import sqlalchemy as sa

from holdfast.store import Orphan
from holdfast.stores.sql.engines import Database
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import activations, attempts, bookmarks, instances, timers
from tests.services import postgres_connection
from tests.stores.conftest import NOON, an_instance, opened


async def test_what_belongs_to_no_instance_is_an_orphan(migrated: Database) -> None:
    owner = {"tenant": "acme", "instance_id": "gone", "shard": 3}

    def leave_behind(connection: sa.Connection) -> None:
        connection.execute(sa.insert(instances).values(an_instance("i1")))
        connection.execute(sa.insert(bookmarks).values({**owner, "id": "b1", "key": "k"}))
        connection.execute(
            sa.insert(bookmarks).values({**owner, "instance_id": "i1", "id": "b1", "key": "k"})
        )
        connection.execute(sa.insert(timers).values({**owner, "timer": "t1", "due": NOON, "kind": "resume"}))
        connection.execute(sa.insert(attempts).values({**owner, "execution": 7}))
        connection.execute(
            sa.insert(activations).values(tenant="acme", key="singleton:a", instance_id="gone")
        )

    await migrated.write(leave_behind)
    found = await SqlStore(migrated).orphans(10)
    about = {"tenant": "acme", "instance_id": "gone"}
    assert found == [
        Orphan(kind="bookmark", name="b1", **about),
        Orphan(kind="timer", name="t1", **about),
        Orphan(kind="attempt", name="7", **about),
        Orphan(kind="activation", name="singleton:a", **about),
    ]


async def test_postgresql_tells_how_long_somebody_has_been_looking_back(postgres_db: str) -> None:
    async with opened(postgres_db) as database, postgres_connection(postgres_db) as other:
        store = SqlStore(database)
        async with other.transaction(isolation="repeatable_read"):
            await other.execute("select 1")
            first = (await store.vitals()).oldest_snapshot
            second = (await store.vitals()).oldest_snapshot
            assert first is not None
            assert second is not None
            assert second > first
        assert (await store.vitals()).oldest_snapshot is None
