"""Many at once, on real databases: whoever is first is the only one."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.commit import InHand, KeptStimulus, Then
from holdfast.store import Activation, Admitted, Committed, Repeated
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata
from holdfast.testing.conformance.examples import FAR, born, changed, envelope, everything, start
from tests.stores.test_sql_stores import empty

TTL = timedelta(seconds=30)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[SqlStore]]:
    """Several nodes' stores on one database, each with connections of its own."""
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    databases = [create(url) for _ in range(4)]
    await databases[0].write(metadata.create_all)
    await databases[0].write(empty)
    yield [SqlStore(database) for database in databases]
    for database in databases:
        await database.close()


async def at_once(stores: list[SqlStore], ask: Callable[[SqlStore, int], Any], times: int = 12) -> list[Any]:
    return await asyncio.gather(*(ask(stores[n % len(stores)], n) for n in range(times)))


async def test_of_many_turns_from_one_revision_one_is_committed(stores: list[SqlStore]) -> None:
    await stores[0].commit([born()])
    outcomes = await at_once(stores, lambda store, n: store.commit([changed(state=str(n).encode())]))
    winners = [n for n, (outcome,) in enumerate(outcomes) if isinstance(outcome, Committed)]
    assert len(winners) == 1
    (loaded,) = await stores[1].load([("acme", "i1")])
    assert (loaded.revision, loaded.state) == (2, str(winners[0]).encode())


async def test_groups_of_many_instances_in_any_order_never_hinder_each_other(stores: list[SqlStore]) -> None:
    names = [f"i{n}" for n in range(20)]
    await stores[0].commit([born(name) for name in names])

    def group(store: SqlStore, n: int) -> Any:
        order = names if n % 2 else list(reversed(names))
        return store.commit([changed(name) for name in order])

    outcomes = await at_once(stores, group, times=8)
    committed = [outcome for group in outcomes for outcome in group if isinstance(outcome, Committed)]
    assert len(committed) == len(names)
    assert {loaded.revision for loaded in await stores[0].load([("acme", name) for name in names])} == {2}


async def test_a_message_is_consumed_by_one_turn(stores: list[SqlStore]) -> None:
    (first,) = await stores[0].commit([born(messages=(envelope(),))])
    assert isinstance(first, Committed)
    in_hand = (InHand(Then.CONSUME, place=first.places[0]),)
    outcomes = await at_once(stores, lambda store, n: store.commit([changed(in_hand=in_hand)]))
    assert sum(isinstance(outcome, Committed) for (outcome,) in outcomes) == 1
    assert await everything(stores[0]) == []


async def test_one_key_asked_by_many_has_one_effect(stores: list[SqlStore]) -> None:
    verdicts = await at_once(
        stores, lambda store, n: store.admit([start(f"i{n}", key="k", request=b"r", expires=FAR)])
    )
    kinds = Counter(type(verdict) for (verdict,) in verdicts)
    assert kinds == {Admitted: 1, Repeated: 11}
    assert len({verdict.instance_id for (verdict,) in verdicts if isinstance(verdict, Repeated)}) == 1
    assert len(await everything(stores[0])) == 1


async def test_of_many_guarded_starts_one_gets_in(stores: list[SqlStore]) -> None:
    guard = Activation(key="singleton order", definition_id="order")
    verdicts = await at_once(stores, lambda store, n: store.admit([start(f"i{n}", activation=guard)]))
    assert Counter(type(verdict) for (verdict,) in verdicts)[Admitted] == 1
    assert len(await everything(stores[0])) == 1


async def test_a_lease_that_many_want_has_one_owner(stores: list[SqlStore]) -> None:
    names = [f"shard-{n}-of-8" for n in range(8)]
    for number in range(12):
        await stores[0].join(f"n{number}", "here", TTL)
    taken = await at_once(stores, lambda store, n: store.take(f"n{n}", names))
    assert Counter(lease.name for leases in taken for lease in leases) == dict.fromkeys(names, 1)


async def test_a_kept_stimulus_is_paired_once(stores: list[SqlStore]) -> None:
    await stores[0].keep(KeptStimulus(id="s", tenant="acme", key="k", payload=b"{}", expires=FAR))
    paired = await at_once(stores, lambda store, n: store.pair("acme", "s", [envelope(f"i{n}")]))
    assert sum(places is not None for places in paired) == 1
    assert len(await everything(stores[0])) == 1
