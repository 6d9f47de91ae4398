"""A new database that fills up quickly is looked at before it reads every row to find one."""

import sqlalchemy as sa

from holdfast.stores.opening import open_store
from holdfast.testing.conformance.examples import born
from tests.stores.test_sql_stores import empty


async def test_a_table_that_grew_before_it_was_looked_at_is_looked_at(postgres_url: str) -> None:
    store = await open_store(postgres_url, migrate_first=True)
    try:
        await store._database.write(empty)
        await store._database.write(_forget)
        await store.tune()
        await store._database.write(_forget)
        assert "instances" not in await store.tune(), "a small one is left alone"
        for group in range(10):
            await store.commit([born(f"i{group}-{n}") for n in range(300)])
        assert "instances" in await store.tune()
        assert "instances" not in await store.tune(), "and once is enough"
    finally:
        await store.close()


def _forget(connection: sa.Connection) -> None:
    connection.exec_driver_sql("truncate instances")
