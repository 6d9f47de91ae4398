"""Deleting the data of a run: what stays is what the scrubber leaves."""

from datetime import timedelta

import pytest

from holdfast import RunState
from holdfast.runtime.runs import RunNotInState
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Payment, Status, World, make_orders

SECRET = "Ada Lovelace, Marylebone"


async def test_without_a_scrubber_nothing_of_the_object_stays(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    run = await bench.trigger("order-1", Order(notes=[SECRET]))
    await bench.advance(days=2)
    await bench.delete(run, "asked to be forgotten")
    found = bench.run()
    assert (found.state, found.object, found.reason) == (
        RunState.DATA_DELETED,
        None,
        "asked to be forgotten",
    )
    assert found.status is Status.EXPIRED


async def test_a_scrubber_says_what_stays(open_bench: OpenBench) -> None:
    orders = make_orders(World())

    @orders.scrub
    def without_notes(order: Order) -> Order:
        return Order(cents=order.cents)

    bench = await open_bench(orders)
    run = await bench.trigger("order-1", Order(cents=7, notes=[SECRET]))
    await bench.cancel(run)
    await bench.delete(run)
    assert bench.run().object == Order(cents=7)
    assert bench.run().state is RunState.DATA_DELETED
    await bench.delete(run, "again")
    assert bench.run().reason == "again"


async def test_the_personal_data_are_nowhere_in_the_state_or_the_journal(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order(notes=[SECRET]))
    await bench.callback("order-1", Status.BILLED, Payment(cents=100))
    await bench.delete(run)
    (loaded,) = await bench.store.load([("", run)])
    segments = await bench.store.journal_of("", run, limit=100)
    assert SECRET.encode() not in b"".join([loaded.state or b"", *(segment.body for segment in segments)])


async def test_a_scrubber_that_raises_is_called_again_until_the_data_are_gone(open_bench: OpenBench) -> None:
    orders = make_orders(World())
    failing = [1, 2]

    @orders.scrub
    def unlucky(order: Order) -> Order:
        if failing:
            failing.pop()
            raise OSError("disk")
        return Order(cents=0)

    bench = await open_bench(orders)
    run = await bench.trigger("order-1", Order())
    await bench.cancel(run)
    await bench.delete(run)
    await bench.advance(minutes=1)
    assert (failing, bench.run().state) == ([], RunState.DATA_DELETED)


async def test_only_what_has_finished_loses_its_data(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World(), backoff=timedelta(days=1), longest=timedelta(days=1)))
    run = await bench.trigger("order-1", Order())
    with pytest.raises(RunNotInState):
        await bench.delete(run)


async def test_the_foreign_id_is_free_after_a_deletion(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.cancel(run)
    second = await bench.trigger("order-1", Order())
    await bench.delete(run)
    assert bench.run(second).state is RunState.RUNNING
    assert (await bench.runs.latest("order-1")).id == second
