"""Hooks are called after the commit, at least once, with the run as it was; their errors are their own."""

from datetime import timedelta
from enum import IntEnum
from typing import Literal

import pytest

from holdfast import Holdfast, Machine, Options, Pause, Run, RunState
from holdfast.clock import SystemClock
from holdfast.machines import MachineInvalid
from holdfast.store import InstanceFilter
from holdfast.stores.memory import MemoryStore
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Status, World, make_orders


class Told:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, RunState]] = []
        self.failing = 0

    def say(self, event: str, run: Run[Order, Status]) -> None:
        self.calls.append((event, run.status.name, run.state))
        if self.failing > 0:
            self.failing -= 1
            raise TimeoutError("deadline exceeded")


def told_orders() -> tuple[Machine[Order, Status], Told]:
    told, orders = Told(), make_orders(World())

    @orders.on_change
    async def changed(run: Run[Order, Status]) -> None:
        told.say("change", run)

    @orders.on_pause
    def paused(run: Run[Order, Status]) -> None:
        told.say("pause", run)

    @orders.on_cancel
    async def cancelled(run: Run[Order, Status]) -> None:
        told.say("cancel", run)

    @orders.on_complete
    async def completed(run: Run[Order, Status]) -> None:
        told.say("complete", run)

    @orders.on_delete
    async def deleted(run: Run[Order, Status]) -> None:
        told.say("delete", run)

    return orders, told


async def test_a_hook_is_told_of_each_change_with_the_run_as_it_was(open_bench_anywhere: OpenBench) -> None:
    orders, told = told_orders()
    bench = await open_bench_anywhere(orders)
    run = await bench.trigger("order-1", Order())
    await bench.pause(run)
    await bench.resume(run)
    await bench.advance(days=2)
    await bench.delete(run)
    assert sorted(told.calls) == sorted(
        [
            ("change", "PLACED", RunState.RUNNING),
            ("change", "BILLED", RunState.RUNNING),
            ("pause", "BILLED", RunState.PAUSED),
            ("change", "EXPIRED", RunState.COMPLETED),
            ("complete", "EXPIRED", RunState.COMPLETED),
            ("delete", "EXPIRED", RunState.DATA_DELETED),
        ]
    )


async def test_a_cancelled_run_still_has_its_hook_called(open_bench: OpenBench) -> None:
    orders, told = told_orders()
    bench = await open_bench(orders)
    run = await bench.trigger("order-1", Order())
    await bench.cancel(run)
    assert ("cancel", "BILLED", RunState.CANCELLED) in told.calls


async def test_a_hook_that_raises_is_called_again_and_the_run_does_not_notice(open_bench: OpenBench) -> None:
    orders, told = told_orders()
    bench = await open_bench(orders)
    run = await bench.trigger("order-1", Order())
    told.calls.clear()
    told.failing = 30
    await bench.cancel(run)
    await bench.advance(hours=3)
    assert len([one for one in told.calls if one[0] == "cancel"]) == 31
    assert bench.run().state is RunState.CANCELLED


async def test_a_failing_hook_holds_up_no_other(open_bench: OpenBench) -> None:
    orders = make_orders(World())
    told: list[str] = []

    @orders.on_change
    async def changed(run: Run[Order, Status]) -> None:
        if run.foreign_id == "poison":
            raise ValueError("no")
        told.append(run.foreign_id)

    bench = await open_bench(orders)
    await bench.trigger("poison", Order())
    await bench.trigger("good", Order())
    assert told == ["good", "good"]


async def test_when_a_hook_was_called_nothing_of_the_object_stays_with_it() -> None:
    orders = make_orders(World())

    @orders.on_change
    async def changed(run: Run[Order, Status]) -> None:
        pass

    store = MemoryStore(SystemClock())
    async with Holdfast(store, machines=[orders]) as holdfast:
        await holdfast.machine(orders).trigger("order-1", Order(notes=["SECRET"]))
        for _ in range(2):
            page = await holdfast.instances(
                InstanceFilter(tenant="", definition_ids=("orders.hooks",)), limit=10
            )
            for summary in page.items:
                ended = await holdfast.result(summary.instance_id, timeout=5)
                assert "SECRET" not in ended.export().decode()


def test_several_functions_may_hook_one_state_but_not_under_one_name() -> None:
    orders = make_orders(World())

    @orders.on_pause
    async def tell(run: Run[Order, Status]) -> None: ...

    with pytest.raises(MachineInvalid, match="two functions 'tell' for `on_pause`"):
        orders.on_pause(tell)


class Stage(IntEnum):
    WORK = 1
    DONE = 2


async def test_a_pause_by_errors_is_told_as_well(open_bench: OpenBench) -> None:
    machine = Machine("sore", object=Order, status=Stage, defaults=Options(pause_after=2, pause_retry=None))
    told: list[str] = []

    @machine.step(Stage.WORK)
    async def work(run: Run[Order, Stage]) -> Literal[Stage.DONE] | Pause:
        raise ValueError("ouch")

    @machine.on_pause
    async def tell(run: Run[Order, Stage]) -> None:
        told.append(run.reason)

    bench = await open_bench(machine)
    await bench.trigger("a")
    await bench.advance(seconds=timedelta(minutes=5).total_seconds())
    assert told == ["ValueError: ouch"]
