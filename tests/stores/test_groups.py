"""Groups that cannot be written as they are: whoever is not to blame is written all the same."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from holdfast.commit import Birth, Wait
from holdfast.errors import Unavailable
from holdfast.store import Committed, StaleTurn, Unwritable
from holdfast.stores.sql.dialects.mariadb import literal
from holdfast.stores.sql.engines import Database, create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata
from holdfast.testing.conformance.examples import born, changed, columns, envelope, everything, kinds
from tests.stores.test_sql_stores import empty

UNREADABLE = b"\xff\xfe"
"""No text, so no state."""


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    database = create(url)
    await database.write(metadata.create_all)
    await database.write(empty)
    yield database
    await database.close()


@pytest.fixture
def store(database: Database) -> SqlStore:
    return SqlStore(database)


async def test_a_turn_that_cannot_be_written_is_told_alone(store: SqlStore) -> None:
    await store.commit([born(f"i{n}") for n in range(7)])
    group = [
        changed(f"i{n}", state=UNREADABLE if n == 4 else b'"new"', messages=(envelope(f"i{n}"),))
        for n in range(7)
    ]
    outcomes = await store.commit(group)
    assert [isinstance(outcome, Committed) for outcome in outcomes] == [n != 4 for n in range(7)]
    assert isinstance(outcomes[4], Unwritable)
    assert isinstance(outcomes[4].__cause__, UnicodeDecodeError)
    found = await store.load([("acme", f"i{n}") for n in range(7)])
    assert sorted(loaded.instance_id for loaded in found if loaded.state == b'"new"') == [
        f"i{n}" for n in range(7) if n != 4
    ]
    assert len(await everything(store)) == 6


async def test_a_turn_that_cannot_be_written_says_why_when_it_is_alone_too(store: SqlStore) -> None:
    await store.commit([born()])
    (outcome,) = await store.commit([changed(state=UNREADABLE)])
    assert isinstance(outcome, Unwritable) and "cannot be written" in str(outcome)
    (loaded,) = await store.load([("acme", "i1")])
    assert loaded.revision == 1


@pytest.mark.parametrize("database", ["postgres", "mariadb"], indirect=True)
async def test_a_value_too_long_for_its_column_fails_its_turn_alone(store: SqlStore) -> None:
    await store.commit([born("i1"), born("i2")])
    outcomes = await store.commit([changed("i1", waits=(Wait("b" * 300, "k"),)), changed("i2")])
    assert kinds(outcomes) == ["Unwritable", "Committed"]
    assert "too long" in str(outcomes[0])


async def test_stale_taken_and_unwritable_turns_do_not_hinder_each_other(store: SqlStore) -> None:
    await store.commit([born(f"i{n}") for n in range(8)])
    twin = Birth(instance_id="i0", shard=1, columns=columns())
    spoiled: dict[int, dict[str, Any]] = {
        1: {"expects": 5},
        3: {"births": (twin,)},
        6: {"state": UNREADABLE},
        7: {"expects": 0, "births": (twin,), "state": UNREADABLE},
    }
    outcomes = await store.commit([changed(f"i{n}", **spoiled.get(n, {})) for n in range(8)])
    assert kinds(outcomes) == [
        "Committed",
        "StaleTurn",
        "Committed",
        "Unwritable",
        "Committed",
        "Committed",
        "Unwritable",
        "StaleTurn",
    ]
    assert all(isinstance(outcome, StaleTurn) for n, outcome in enumerate(outcomes) if n in spoiled)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
async def test_a_lost_connection_is_unavailable_and_the_next_one_works(
    store: SqlStore, database: Database
) -> None:
    def end_the_others(connection: sa.Connection) -> None:
        connection.exec_driver_sql(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )

    await store.commit([born()])
    await database.write(end_the_others)
    with pytest.raises(Unavailable):
        await store.commit([changed()])
    assert kinds(await store.commit([changed()])) == ["Committed"]


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
async def test_whatever_is_spelled_for_mariadb_is_what_it_reads(database: Database) -> None:
    alphabet = "\\'\"`%;-\0\n\r\x1a/*#ßé漢😀 ab"
    dice = random.Random(7)
    texts = ["".join(dice.choices(alphabet, k=dice.randrange(12))) for _ in range(500)]
    blobs = [dice.randbytes(dice.randrange(40)) for _ in range(100)]

    def read(connection: sa.Connection, values: list[Any]) -> list[Any]:
        selects = " union all ".join(
            f"select {n} as n, {literal(value)} as x" for n, value in enumerate(values)
        )
        options = {"no_parameters": True}
        rows = connection.exec_driver_sql(
            f"select x from ({selects}) c order by n", execution_options=options
        )
        return list(rows.scalars())

    assert await database.read(read, texts) == texts
    assert await database.read(read, blobs) == blobs
    assert await database.read(read, [None, True, -5, 2**62]) == [None, 1, -5, 2**62]
