"""What machines of this kind got wrong elsewhere, each as a promise that is kept here.

The numbers are those of the list of weaknesses in the reference of luno/workflow. Those that are about one
subject are tested beside it; here is where to find them, and the ones that stand alone.
"""

import asyncio
import inspect
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Literal

import pytest

from holdfast import Holdfast, Machine, Options, Run, RunState
from holdfast.clock import SystemClock
from holdfast.stores.memory import MemoryStore
from holdfast.testing import MachineBench, ManualClock
from holdfast.testing.durable_clock import TimelessStore
from tests.machines import (
    test_building,
    test_callbacks,
    test_crashes,
    test_errors,
    test_hooks,
    test_pausing,
    test_runs,
    test_schedules,
    test_timeouts,
)
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Payment, Status, World, make_orders

KEPT = {
    1: [test_errors.test_one_failing_run_holds_up_nobody],
    2: [
        test_errors.test_the_waits_between_calls_grow_up_to_the_longest,
        test_errors.test_many_that_failed_together_do_not_come_back_together,
        test_errors.test_errors_that_are_fatal_are_not_tried_again,
    ],
    3: [test_errors.test_options_are_merged_field_by_field],
    4: [test_hooks.test_a_hook_that_raises_is_called_again_and_the_run_does_not_notice],
    7: [test_runs.test_of_ten_triggers_at_once_for_one_foreign_id_one_begins_a_run],
    9: [
        test_timeouts.test_of_two_timeouts_each_calls_its_own_function,
        test_timeouts.test_a_timeout_of_a_cancelled_run_does_not_hit_the_next_one,
        test_timeouts.test_a_timeout_that_raises_is_told_of_and_called_again,
        test_timeouts.test_a_timeout_that_is_skipped_is_not_called_again,
        test_timeouts.test_a_resume_does_not_add_a_second_timer,
    ],
    10: [
        test_runs.test_a_status_that_was_passed_is_reached_at_once,
        test_runs.test_a_pause_is_no_arrival,
        test_runs.test_a_run_that_ends_elsewhere_says_so,
    ],
    11: [
        test_callbacks.test_a_callback_before_its_run_waits_for_it,
        test_callbacks.test_a_callback_after_the_end_is_too_late,
        test_callbacks.test_under_one_key_a_callback_is_brought_once,
    ],
    12: [
        test_pausing.test_a_deliberate_pause_never_ends_by_itself,
        test_pausing.test_a_pause_by_a_person_never_ends_by_itself,
        test_errors.test_a_run_paused_by_errors_is_tried_again_by_itself,
    ],
    13: [
        test_pausing.test_a_pause_keeps_what_the_step_changed,
        test_pausing.test_a_cancel_and_a_skip_keep_it_as_well,
    ],
    14: [
        test_errors.test_the_last_error_allowed_pauses_the_run_whatever_the_errors_say,
        test_errors.test_a_success_resets_the_count_of_errors,
    ],
    15: [test_crashes.test_leaving_finishes_the_step_under_way],
    16: [test_crashes.test_after_a_crash_the_step_is_repeated_and_those_before_it_are_not],
    22: [
        test_schedules.test_a_schedule_outlives_whoever_made_it,
        test_schedules.test_a_schedule_is_in_the_zone_it_names,
        test_schedules.test_a_condition_that_raises_is_asked_again_and_the_occurrence_is_not_lost,
    ],
    29: [test_errors.test_a_status_that_was_not_declared_pauses_instead_of_being_tried_for_ever],
    30: [test_building.test_a_loop_back_to_the_first_status_is_ordinary],
}


@pytest.mark.parametrize("number", KEPT)
def test_each_weakness_is_a_test_somewhere(number: int) -> None:
    assert all(inspect.isfunction(test) and test.__name__.startswith("test_") for test in KEPT[number])


async def test_one_default_does_not_make_a_failing_step_spin(open_bench: OpenBench) -> None:
    """3: who sets one default keeps the others; a failing step is called a few times a minute."""
    world = World()
    world.fails["bill"] = 1_000_000
    orders = Machine("orders", object=Order, status=Status, defaults=Options(pause_after=None))
    for handler in make_orders(world).built.handlers:
        given = handler.given
        match given.kind:
            case "step":
                orders.step(handler.status)(given.function)  # type: ignore[arg-type]
            case "callback":
                orders.callback(handler.status)(given.function)  # type: ignore[arg-type]
            case _:
                orders.timeout(handler.status, after=given.after)(given.function)  # type: ignore[arg-type]
    bench = await open_bench(orders)
    await bench.trigger("order-1", Order())
    await bench.advance(minutes=1)
    assert 5 <= len(world.did("bill")) <= 8


async def test_what_an_operator_does_never_restores_an_older_run(open_bench: OpenBench) -> None:
    """8: a pause that was decided on an old page changes what is paused, and nothing else."""
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order(cents=100))
    page = await bench.runs.get(run)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.runs.callback("order-1", Status.BILLED, Payment(cents=40)))
        tasks.create_task(bench.runs.pause(page.id, "from an old page"))
    await bench.settle()
    await bench.resume(run)
    assert page.object.notes == ["billed"]
    assert bench.run().object.notes == ["billed", "got 40"]


async def test_runs_of_one_status_work_side_by_side() -> None:
    """18, 19: steps of many runs are under way at the same time, and those of one run never are."""

    class Step(IntEnum):
        WAIT = 1
        DONE = 2

    @dataclass
    class Nothing:
        number: int = 0

    together = asyncio.Barrier(50)
    machine = Machine("wide", object=Nothing, status=Step)

    @machine.step(Step.WAIT)
    async def wait(run: Run[Nothing, Step]) -> Literal[Step.DONE]:
        await together.wait()
        return Step.DONE

    async with Holdfast(MemoryStore(SystemClock()), machines=[machine]) as holdfast:
        runs = holdfast.machine(machine)
        ids = [await runs.trigger(f"run-{number}") for number in range(50)]
        ended = await asyncio.gather(*(runs.finished(run, within=20) for run in ids))
    assert all(run.state is RunState.COMPLETED for run in ended)


async def test_the_journal_keeps_every_change(open_bench: OpenBench) -> None:
    """20: what happened stays, with its times and its errors."""
    world = World()
    world.fails["bill"] = 1
    bench = await open_bench(make_orders(world))
    run = await bench.trigger("order-1", Order())
    await bench.advance(seconds=5)
    await bench.pause(run, "lunch")
    await bench.resume(run)
    await bench.advance(days=2)
    assert [(one.event, one.function) for one in bench.history()] == [
        ("Started", ""),
        ("Faulted", "bill"),
        ("Completed", "bill"),
        ("Paused", ""),
        ("Resumed", ""),
        ("Completed", "expire"),
        ("Finished", ""),
    ]
    assert bench.history()[3].message == "lunch"


async def test_thousands_of_runs_in_memory_cost_the_same_each() -> None:
    """24: the cost of a run does not grow with how many there are."""

    class Step(IntEnum):
        FIRST = 1
        LAST = 2

    @dataclass
    class Nothing:
        number: int = 0

    machine = Machine("many", object=Nothing, status=Step)
    done: list[str] = []

    @machine.step(Step.FIRST)
    async def go(run: Run[Nothing, Step]) -> Literal[Step.LAST]:
        done.append(run.id)
        return Step.LAST

    async with Holdfast(MemoryStore(SystemClock()), machines=[machine]) as holdfast:
        runs = holdfast.machine(machine)
        for begin in range(0, 4000, 500):
            await asyncio.gather(*(runs.trigger(f"run-{begin + number}") for number in range(500)))
        async with asyncio.timeout(60):
            while len(done) < 4000:
                await asyncio.sleep(0.05)
    assert len(set(done)) == 4000


async def test_a_wait_outlives_the_process_that_began_it() -> None:
    """Retries and timeouts are rows: whoever comes next carries on from them."""
    world, clock = World(), ManualClock()
    world.fails["bill"] = 1
    orders = make_orders(world, backoff=timedelta(days=100), longest=timedelta(days=100), jitter=0.0)
    store = TimelessStore(clock)
    async with MachineBench(orders, store, clock=clock) as first:
        run = await first.trigger("order-1", Order())
    async with MachineBench(orders, store, clock=clock) as second:
        await second.advance(days=100)
        assert second.run(run).status is Status.BILLED
    async with MachineBench(orders, store, clock=clock) as third:
        await third.advance(days=2)
        assert third.run(run).status is Status.EXPIRED
