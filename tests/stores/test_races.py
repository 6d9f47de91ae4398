"""Many at once, on real databases: whoever is first is the only one."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.commit import Commit, Delivery, InHand, KeptStimulus, Task, Then
from holdfast.instance import SubStatus
from holdfast.store import (
    Activation,
    Admitted,
    Committed,
    InstanceExists,
    Pause,
    Placement,
    Posted,
    Posting,
    Refused,
    Repeated,
)
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    born,
    changed,
    child,
    columns,
    envelope,
    everything,
    refusal,
    start,
)
from holdfast.testing.conformance.records import letter
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
    verdicts = await at_once(stores, lambda store, n: store.admit([start(f"i{n}", activations=(guard,))]))
    assert Counter(type(verdict) for (verdict,) in verdicts)[Admitted] == 1
    assert len(await everything(stores[0])) == 1


async def test_one_id_asked_by_many_in_groups_exists_once(stores: list[SqlStore]) -> None:
    names = [f"i{n}" for n in range(10)]

    def group(store: SqlStore, n: int) -> Any:
        return store.admit([start(name) for name in (names if n % 2 else reversed(names))])

    verdicts = [verdict for group in await at_once(stores, group, times=8) for verdict in group]
    assert Counter(type(verdict) for verdict in verdicts) == {Admitted: 10, InstanceExists: 70}
    assert sorted(d.envelope.instance_id for d in await everything(stores[0])) == names


async def test_groups_of_keys_in_any_order_never_hinder_each_other(stores: list[SqlStore]) -> None:
    keys = [f"k{n}" for n in range(10)]

    def group(store: SqlStore, n: int) -> Any:
        order = keys if n % 2 else list(reversed(keys))
        return store.admit([start(f"{key}-{n}", key=key, request=b"r", expires=FAR) for key in order])

    verdicts = [verdict for group in await at_once(stores, group, times=8) for verdict in group]
    assert Counter(type(verdict) for verdict in verdicts) == {Admitted: 10, Repeated: 70}
    assert len(await everything(stores[0])) == len(keys)


async def test_of_many_children_that_ask_for_a_key_one_gets_it(stores: list[SqlStore]) -> None:
    await stores[0].admit([child(f"c{n}") for n in range(12)])
    guard = Activation(key="singleton order", definition_id="order")
    answers = await at_once(stores, lambda store, n: store.activate("acme", f"c{n}", [guard]))
    (holder,) = [n for n, answer in enumerate(answers) if answer is None]
    assert {answer for answer in answers if answer is not None} == {Refused(f"c{holder}")}


async def test_a_stimulus_posted_by_many_under_one_key_has_one_effect(stores: list[SqlStore]) -> None:
    posting = Posting(tenant="acme", messages=(envelope(),), key="k", request=b"r", answer=b"{}")
    answers = await at_once(stores, lambda store, n: store.post(posting))
    assert Counter(type(answer) for answer in answers) == {Posted: 1, Repeated: 11}
    assert len(await everything(stores[0])) == 1


async def test_owners_who_each_believe_they_own_everything_lose_and_double_nothing(
    stores: list[SqlStore],
) -> None:
    """Every turn consumes one message and sends the next, until a chain of ten is through."""
    names = [f"i{n}" for n in range(10)]
    await stores[0].commit([born(name, messages=(envelope(name, payload=b"1"),)) for name in names])

    async def own(store: SqlStore, number: int) -> int:
        count = 0
        while deliveries := await everything(store):
            chosen = deliveries if number % 2 else list(reversed(deliveries))
            revisions = {
                loaded.instance_id: loaded.revision
                for loaded in await store.load([("acme", name) for name in names])
            }
            outcomes = await store.commit([next_turn(delivery, revisions) for delivery in chosen])
            count += sum(isinstance(outcome, Committed) for outcome in outcomes)
        return count

    counts = await at_once(stores, own, times=4)
    assert sum(counts) == 10 * len(names)
    found = await stores[0].load([("acme", name) for name in names])
    assert {(loaded.revision, loaded.state) for loaded in found} == {(11, b"10")}


def next_turn(delivery: Delivery, revisions: dict[str, int]) -> Commit:
    name, payload = delivery.envelope.instance_id, delivery.envelope.payload or b""
    onward = str(int(payload) + 1).encode()
    return changed(
        name,
        expects=revisions[name],
        state=payload,
        in_hand=(InHand(Then.CONSUME, place=delivery.place, kind="resume"),),
        messages=() if payload == b"10" else (envelope(name, payload=onward),),
    )


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


async def test_background_work_is_claimed_and_concluded_by_one(stores: list[SqlStore]) -> None:
    for number in range(12):
        await stores[0].join(f"n{number}", "here", TTL)
    await stores[0].commit([born(tasks=(Task(1, b"{}"),))])
    (attempt,) = await stores[0].idle_attempts([1], 10)
    claims = await at_once(stores, lambda store, n: store.claim(f"n{n}", attempt))
    (claimed,) = [claim for claim in claims if claim is not None]
    concluded = await at_once(stores, lambda store, n: store.conclude(claimed, envelope()))
    assert sum(place is not None for place in concluded) == 1
    assert len(await everything(stores[0])) == 1


async def test_a_dead_letter_is_replayed_once(stores: list[SqlStore]) -> None:
    await stores[0].commit([born(dead_letters=(letter(),))])
    refused = await at_once(stores, lambda store, n: refusal(store.replay("acme", "l1")))
    assert sum(one is None for one in refused) == 1
    assert len(await everything(stores[0])) == 1


async def test_every_change_of_pauses_has_a_number_of_its_own(stores: list[SqlStore]) -> None:
    def change(store: SqlStore, n: int) -> Any:
        scope = f"definition:d{n % 3}"
        return (
            store.pause(Pause(tenant="acme", scope=scope, since=THEN)) if n % 2 else store.lift("acme", scope)
        )

    numbers = await at_once(stores, change)
    assert sorted(numbers) == list(range(1, 13))
    assert (await stores[0].join("n", "here", TTL)).pauses == 12


async def test_groups_that_many_create_at_once_do_not_overlap(stores: list[SqlStore]) -> None:
    refused = await at_once(stores, lambda store, n: refusal(store.create_group(f"g{n % 6}", 10)))
    assert sum(one is None for one in refused) == 6
    groups = (await stores[0].shard_groups()).values()
    assert [(group.first, group.count) for group in groups] == [
        (0, 64),
        *((64 + 10 * n, 10) for n in range(6)),
    ]


async def test_many_may_place_one_tenant_at_once(stores: list[SqlStore]) -> None:
    placement = Placement(tenant="acme", group="default")
    await at_once(stores, lambda store, n: store.place(placement))
    assert await stores[0].placements() == [placement]


async def test_a_finished_instance_is_erased_once(stores: list[SqlStore]) -> None:
    names = [f"i{n}" for n in range(20)]
    ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
    await stores[0].commit([born(name) for name in names])
    await stores[0].commit([changed(name, columns=ended) for name in names])
    keys = [("acme", name) for name in names]
    erased = await at_once(stores, lambda store, n: store.erase(keys if n % 2 else keys[::-1], FAR))
    assert sum(erased) == len(names)
    assert await stores[0].load(keys) == []
