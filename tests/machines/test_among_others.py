"""Machines beside drawn workflows: as children, and under the hands of those who operate all instances."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from examples import order_fulfilment
from holdfast import Holdfast, Machine, RunState
from holdfast.clock import SystemClock
from holdfast.errors import NotFound
from holdfast.machines import MachineInvalid
from holdfast.runtime.library import ProgramExists
from holdfast.runtime.runs import RunNotInState
from holdfast.stores.memory import MemoryStore
from tests.documents import document, literal, sequence
from tests.guarantees.bench import until
from tests.machines.orders import Order, Payment, Status, World, make_orders


def boss(activity: str) -> dict[str, Any]:
    return document(
        sequence(
            {
                "id": "order",
                "type": activity,
                "workflowDefinitionId": literal("orders"),
                "correlationId": literal("order-1"),
                "input": literal({"object": {"cents": 5}}),
                "waitForCompletion": literal(True),
            }
        ),
        id=f"{activity}-1",
        definitionId="boss",
    )


@pytest.fixture
def orders() -> Machine[Order, Status]:
    return make_orders(World())


@pytest.fixture
async def holdfast(orders: Machine[Order, Status]) -> AsyncIterator[Holdfast]:
    async with Holdfast(MemoryStore(SystemClock()), machines=[orders]) as found:
        yield found


@pytest.mark.parametrize("activity", ["Elsa.DispatchWorkflow", "Elsa.ExecuteWorkflow"])
async def test_a_drawn_workflow_waits_for_a_run_it_started(
    holdfast: Holdfast, orders: Machine[Order, Status], activity: str
) -> None:
    await holdfast.publish(boss(activity))
    parent = await holdfast.run("boss")
    runs = holdfast.machine(orders)

    async def waits() -> bool:
        found = await runs.list()
        return bool(found) and found[0].status is Status.BILLED

    await until(waits)
    assert (await holdfast.instance(parent.id)).sub_status.value == "Suspended"
    (run,) = await runs.list()
    await runs.callback(run.foreign_id, Status.BILLED, Payment(cents=5), run_id=run.id)
    assert (await holdfast.result(parent.id, timeout=10)).sub_status.value == "Finished"
    assert (await runs.get(run.id)).object.cents == 5


async def test_when_a_drawn_parent_is_cancelled_its_run_is(
    holdfast: Holdfast, orders: Machine[Order, Status]
) -> None:
    await holdfast.publish(boss("Elsa.DispatchWorkflow"))
    parent = await holdfast.run("boss")
    runs = holdfast.machine(orders)
    await until(lambda: _has_begun(runs))
    (run,) = await runs.list()
    await holdfast.cancel(parent.id)
    assert (await runs.finished(run.id, within=10)).state is RunState.CANCELLED


async def _has_begun(runs: Any) -> bool:
    return bool(await runs.list(status=Status.BILLED))


async def test_a_run_that_was_paused_as_an_instance_is_resumed_as_a_run(
    holdfast: Holdfast, orders: Machine[Order, Status]
) -> None:
    runs = holdfast.machine(orders)
    run = await runs.trigger("order-1", Order())
    await runs.reached(run, Status.BILLED, within=10)
    await holdfast.pause(run)
    await until(lambda: _is(runs, run, RunState.PAUSED))
    await runs.callback("order-1", Status.BILLED, Payment(cents=100))
    await asyncio.sleep(0.05)
    assert (await runs.get(run)).status is Status.BILLED
    await runs.resume(run)
    assert (await runs.finished(run, within=10)).status is Status.SHIPPED


async def _is(runs: Any, run: str, state: RunState) -> bool:
    return (await runs.get(run)).state is state


async def test_an_instance_of_a_machine_shows_its_object(
    holdfast: Holdfast, orders: Machine[Order, Status]
) -> None:
    runs = holdfast.machine(orders)
    run = await runs.trigger("order-1", Order(cents=9))
    await runs.reached(run, Status.BILLED, within=10)
    shown = await holdfast.instance(run)
    assert shown.variables["object"] == {"cents": 9, "notes": ["billed"]}
    assert (shown.name, shown.correlation_id) == ("BILLED", "order-1")


async def test_an_alteration_of_a_run_is_refused_with_a_reason(
    holdfast: Holdfast, orders: Machine[Order, Status]
) -> None:
    runs = holdfast.machine(orders)
    run = await runs.trigger("order-1", Order())
    await runs.reached(run, Status.BILLED, within=10)
    await holdfast.retry(run, 1)  # nothing to retry: it is not paused
    assert (await runs.get(run)).state is RunState.RUNNING


async def test_retrying_a_run_that_errors_have_paused_resumes_it() -> None:
    world = World()
    world.fails["bill"] = 1
    orders = make_orders(world, pause_after=1, pause_retry=None)
    async with Holdfast(MemoryStore(SystemClock()), machines=[orders]) as holdfast:
        runs = holdfast.machine(orders)
        run = await runs.trigger("order-1", Order())
        await until(lambda: _is(runs, run, RunState.PAUSED))
        shown = await holdfast.instance(run)
        assert [incident.activity_id for incident in shown.incidents] == ["bill"]
        await holdfast.retry(run, shown.incidents[0].execution)
        assert (await runs.reached(run, Status.BILLED, within=10)).state is RunState.RUNNING
        assert (await holdfast.instance(run)).incidents == ()


async def test_a_machine_that_was_not_given_is_named(holdfast: Holdfast) -> None:
    with pytest.raises(NotFound, match="<Machine 'orders'> was not given"):
        holdfast.machine(make_orders(World()))


async def test_a_module_brings_its_machines_along() -> None:
    async with Holdfast(MemoryStore(SystemClock()), modules=["examples.order_fulfilment"]) as holdfast:
        runs = holdfast.machine(order_fulfilment.orders)
        run = await runs.trigger("order-1", order_fulfilment.Order("ada@example.org", 5))
        assert (await runs.reached(run, order_fulfilment.Status.BILLED, within=10)).object.cents == 5


async def test_two_machines_of_one_name_are_refused() -> None:
    with pytest.raises(ProgramExists):
        async with Holdfast(
            MemoryStore(SystemClock()), machines=[make_orders(World()), make_orders(World())]
        ):
            pass


def test_a_machine_that_does_not_hold_together_is_refused_when_it_is_given() -> None:
    with pytest.raises(MachineInvalid, match="no steps"):
        Holdfast(machines=[Machine("empty", object=Order, status=Status)])


async def test_what_begins_at_another_status_says_so_before_it_has_begun() -> None:
    orders = make_orders(World())
    store = MemoryStore(SystemClock())
    async with Holdfast(store, machines=[orders], works=False) as holdfast:
        runs = holdfast.machine(orders)
        run = await runs.trigger("order-1", Order(), at=Status.BILLED)
        found = await runs.get(run)
        assert (found.status, found.state) == (Status.BILLED, RunState.INITIATED)
        assert [one.id for one in await runs.list(status=Status.BILLED)] == [run]
        assert [one.id for one in await runs.list(state=RunState.INITIATED)] == [run]
        with pytest.raises(RunNotInState, match="is initiated"):
            await runs.resume(run)
