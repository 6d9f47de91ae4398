"""What runs promise, on every database."""

import asyncio
from typing import Any

import pytest

from holdfast import Answer, RunEnded, RunInProgress, RunState
from holdfast.errors import Conflict, Invalid
from holdfast.runtime.results import InstanceNotFound
from holdfast.runtime.runs import RunNotInState
from holdfast.store import KeyReused
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Payment, Status, World, make_orders

PAYMENT = Payment(cents=100)


async def test_an_order_that_is_paid_ships(open_bench_anywhere: OpenBench) -> None:
    world = World()
    bench = await open_bench_anywhere(make_orders(world))
    run = await bench.trigger("order-1", Order())
    assert bench.run().status is Status.BILLED
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.ACCEPTED
    assert bench.statuses(run) == [Status.PLACED, Status.BILLED, Status.PAID, Status.SHIPPED]
    assert bench.run().state is RunState.COMPLETED
    assert bench.run().object == Order(notes=["billed", "got 100", "shipped"])
    assert [name for name, _ in world.calls] == ["bill", "receive", "ship"]


async def test_an_order_nobody_pays_expires_after_two_days(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.advance(days=1, hours=23)
    assert bench.run().status is Status.BILLED
    await bench.advance(hours=1)
    assert bench.statuses(run) == [Status.PLACED, Status.BILLED, Status.EXPIRED]


async def test_of_ten_triggers_at_once_for_one_foreign_id_one_begins_a_run(
    open_bench_anywhere: OpenBench,
) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    asked = [bench.runs.trigger("order-1", Order()) for _ in range(10)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    begun = [answer for answer in answers if isinstance(answer, str)]
    refused = [answer for answer in answers if isinstance(answer, RunInProgress)]
    assert (len(begun), len(refused)) == (1, 9)
    assert isinstance(refused[0], Conflict)
    assert {one.run_id for one in refused} == set(begun)


async def test_when_a_run_has_finished_the_next_may_begin(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    first = await bench.trigger("order-1", Order())
    await bench.advance(days=2)
    second = await bench.trigger("order-1", Order())
    assert first != second
    assert bench.run(first).state is RunState.COMPLETED
    assert (await bench.runs.latest("order-1")).id == second


async def test_a_paused_run_counts_as_unfinished_and_a_cancelled_one_does_not(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.pause(run, "holiday")
    with pytest.raises(RunInProgress):
        await bench.trigger("order-1", Order())
    await bench.cancel(run, "changed their mind")
    assert bench.run(run).state is RunState.CANCELLED
    assert bench.run(run).reason == "changed their mind"
    await bench.trigger("order-1", Order())


async def test_with_one_key_there_is_one_run(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    first = await bench.trigger("order-1", Order(), key="k")
    assert await bench.trigger("order-1", Order(), key="k") == first
    with pytest.raises(KeyReused):
        await bench.trigger("order-2", Order(), key="k")


async def test_many_runs_begin_in_one_transaction(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    await bench.trigger("order-3", Order())
    answers = await bench.runs.trigger_many({f"order-{number}": Order(cents=number) for number in range(50)})
    await bench.settle()
    refused = answers.pop("order-3")
    assert isinstance(refused, RunInProgress)
    assert all(bench.run(run).status is Status.BILLED for run in answers.values())
    assert {bench.run(run).object.cents for run in answers.values()} == set(range(50)) - {3}


async def test_a_run_begins_where_its_trigger_says(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order(cents=3), at=Status.PAID)
    assert bench.statuses(run) == [Status.PAID, Status.SHIPPED]
    with pytest.raises(Invalid, match="SHIPPED"):
        await bench.trigger("order-2", Order(), at=Status.SHIPPED)


async def test_without_an_object_a_run_begins_with_one_that_says_nothing(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    await bench.trigger("order-1")
    assert bench.run().object.cents == 100


@pytest.mark.parametrize("foreign_id", ["ünï/çode,1", "a b", "x" * 200, "🚚"])
async def test_a_foreign_id_may_be_any_text(open_bench_anywhere: OpenBench, foreign_id: str) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    run = await bench.trigger(foreign_id, Order())
    assert await bench.callback(foreign_id, Status.BILLED, PAYMENT) is Answer.ACCEPTED
    assert bench.run(run).status is Status.SHIPPED
    assert [found.id for found in await bench.runs.list(foreign_id=foreign_id)] == [run]


async def test_a_foreign_id_must_be_there_and_not_too_long(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    for wrong in ("", "x" * 201):
        with pytest.raises(Invalid, match="foreign id"):
            await bench.trigger(wrong, Order())


# --- waiting for a status --------------------------------------------------------------------------


async def test_a_status_that_was_passed_is_reached_at_once(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.advance(days=2)
    assert (await bench.runs.reached(run, Status.BILLED, within=5)).status is Status.EXPIRED


async def test_whoever_waits_for_a_status_is_told_when_the_run_comes_there(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(bench.runs.reached(run, Status.SHIPPED, within=10))
        await bench.callback("order-1", Status.BILLED, PAYMENT)
    assert waiting.result().object.notes[-1] == "shipped"


async def test_a_run_that_ends_elsewhere_says_so(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.cancel(run, "no")
    with pytest.raises(RunEnded, match="cancelled in BILLED") as told:
        await bench.runs.reached(run, Status.SHIPPED, within=5)
    assert told.value.run.reason == "no"


async def test_a_pause_is_no_arrival(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.pause(run)
    with pytest.raises(TimeoutError):
        await bench.runs.reached(run, Status.SHIPPED, within=0.05)


async def test_whoever_waits_for_the_end_is_told_how_it_ended(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.cancel(run)
    assert (await bench.runs.finished(run, within=5)).state is RunState.CANCELLED


async def test_a_run_of_another_machine_is_not_found(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    for ask in (bench.runs.get, bench.runs.pause, bench.runs.finished):
        with pytest.raises(InstanceNotFound):
            await ask("nobody")


# --- states and lists ------------------------------------------------------------------------------


async def test_what_a_state_does_not_allow_is_refused_with_both_names(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    with pytest.raises(RunNotInState, match="is running; from there it cannot become data deletion"):
        await bench.delete(run)
    with pytest.raises(RunNotInState, match="cannot become running"):
        await bench.resume(run)
    await bench.cancel(run)
    for ask in (bench.pause, bench.resume, bench.cancel):
        with pytest.raises(RunNotInState, match="is cancelled"):
            await ask(run)


async def test_runs_are_listed_by_foreign_id_status_and_state(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    names = [f"order-{number}" for number in range(6)]
    ids = [await bench.trigger(name, Order()) for name in names]
    await bench.callback("order-0", Status.BILLED, PAYMENT)
    await bench.callback("order-1", Status.BILLED, PAYMENT)
    await bench.pause(ids[2])
    await bench.cancel(ids[3])

    async def found(**wanted: Any) -> list[str]:
        return [run.foreign_id for run in await bench.runs.list(descending=False, **wanted)]

    assert await found() == names
    assert await found(status=Status.SHIPPED) == ["order-0", "order-1"]
    assert await found(state=RunState.COMPLETED) == ["order-0", "order-1"]
    assert await found(state=RunState.PAUSED) == ["order-2"]
    assert await found(state=RunState.CANCELLED) == ["order-3"]
    assert await found(state=RunState.RUNNING) == ["order-4", "order-5"]
    assert await found(foreign_id="order-4") == ["order-4"]
    assert await found(skip=1, limit=2) == ["order-1", "order-2"]
    assert await found(status=Status.BILLED, skip=1, limit=1) == ["order-3"]
    assert [run.foreign_id for run in await bench.runs.list(limit=1)] == ["order-5"]
