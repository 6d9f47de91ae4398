"""Pause, resume, cancel, skip and repeat: what is kept, and what makes a run go on."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

import pytest

from holdfast import Again, Cancel, Machine, Pause, Run, RunState, Skip
from holdfast.machines.run import may_become
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Status, World, make_orders


class Stage(IntEnum):
    WORK = 1
    DONE = 2


@dataclass
class Tally:
    count: int = 0
    keys: list[str] = field(default_factory=list[str])


def one_step(results: list[Any]) -> Machine[Tally, Stage]:
    """Each call counts, and returns the next of these."""
    machine = Machine("tally", object=Tally, status=Stage)

    @machine.step(Stage.WORK, to=[Stage.DONE])
    async def work(run: Run[Tally, Stage]) -> Any:
        run.object.count += 1
        run.object.keys.append(run.key)
        return results.pop(0)

    @machine.callback(Stage.WORK)
    async def poke(run: Run[Tally, Stage]) -> Literal[Stage.DONE]:
        return Stage.DONE

    return machine


async def test_a_pause_keeps_what_the_step_changed(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(one_step([Pause("look at this"), Stage.DONE]))
    run = await bench.trigger("a")
    paused = bench.run()
    assert (paused.state, paused.reason, paused.object.count) == (RunState.PAUSED, "look at this", 1)
    await bench.resume(run)
    assert bench.run().state is RunState.COMPLETED
    assert bench.run().object.count == 2
    assert len(set(bench.run().object.keys)) == 2


async def test_a_cancel_and_a_skip_keep_it_as_well(open_bench: OpenBench) -> None:
    bench = await open_bench(one_step([Cancel("enough"), Skip()]))
    run = await bench.trigger("a")
    assert (bench.run().state, bench.run().reason, bench.run().object.count) == (
        RunState.CANCELLED,
        "enough",
        1,
    )
    other = await bench.trigger("a")
    assert (bench.run(other).state, bench.run(other).object.count) == (RunState.RUNNING, 1)
    assert bench.run(run).object.count == 1
    await bench.callback("a", Stage.WORK)
    assert bench.run(other).state is RunState.COMPLETED


async def test_a_deliberate_pause_never_ends_by_itself(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(one_step([Pause("wait for Ada"), Stage.DONE]))
    await bench.trigger("a")
    await bench.advance(days=365)
    assert bench.run().state is RunState.PAUSED


async def test_a_pause_by_a_person_never_ends_by_itself(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World(), pause_retry=timedelta(minutes=1)))
    run = await bench.trigger("order-1", Order())
    await bench.pause(run, "audit")
    await bench.advance(days=365)
    assert (bench.run().state, bench.run().reason) == (RunState.PAUSED, "audit")
    assert bench.run().status is Status.BILLED


@pytest.mark.parametrize("until", [timedelta(hours=3), "instant"])
async def test_a_pause_may_carry_its_own_end(open_bench: OpenBench, until: Any) -> None:
    results: list[Any] = []
    bench = await open_bench(one_step(results))
    end = bench.clock.now() + timedelta(hours=3)
    results += [Pause("later", until=end if until == "instant" else until), Stage.DONE]
    await bench.trigger("a")
    assert bench.run().until == end
    await bench.advance(hours=2, minutes=59)
    assert bench.run().state is RunState.PAUSED
    await bench.advance(minutes=1)
    assert bench.run().state is RunState.COMPLETED


async def test_a_timeout_that_came_during_a_pause_happens_after_it(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.pause(run)
    await bench.advance(days=3)
    assert bench.run().status is Status.BILLED
    await bench.resume(run)
    assert bench.run().status is Status.EXPIRED


async def test_pausing_while_a_step_waits_for_its_next_attempt_stops_the_attempts(
    open_bench: OpenBench,
) -> None:
    world = World()
    world.fails["bill"] = 3
    bench = await open_bench(make_orders(world))
    run = await bench.trigger("order-1", Order())
    await bench.pause(run)
    await bench.advance(days=1)
    assert len(world.did("bill")) == 1
    await bench.resume(run)
    await bench.advance(minutes=1)
    assert bench.run().status is Status.BILLED


async def test_a_person_who_pauses_what_errors_have_paused_keeps_it_from_being_tried_again(
    open_bench: OpenBench,
) -> None:
    world = World()
    world.fails["bill"] = 2
    bench = await open_bench(make_orders(world, pause_after=2, pause_retry=timedelta(hours=1)))
    run = await bench.trigger("order-1", Order())
    await bench.advance(minutes=1)
    assert bench.run().until is not None
    await bench.pause(run, "I look at this")
    await bench.advance(days=30)
    assert (bench.run().state, bench.run().reason, bench.run().until) == (
        RunState.PAUSED,
        "I look at this",
        None,
    )
    await bench.resume(run)
    assert bench.run().status is Status.BILLED


async def test_a_run_is_paused_before_it_has_begun(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.runs.trigger("order-1", Order())
    await bench.runs.pause(run, "early")
    await bench.settle()
    assert bench.run(run).state is RunState.PAUSED


async def test_a_hundred_repetitions_add_up_and_each_has_its_own_key(open_bench: OpenBench) -> None:
    bench = await open_bench(one_step([*[Again()] * 100, Stage.DONE]))
    await bench.trigger("a")
    assert bench.run().object.count == 101
    assert len(set(bench.run().object.keys)) == 101


async def test_a_repetition_may_wait(open_bench: OpenBench) -> None:
    bench = await open_bench(one_step([Again(delay=timedelta(hours=1)), Stage.DONE]))
    await bench.trigger("a")
    await bench.advance(minutes=59)
    assert bench.run().object.count == 1
    await bench.advance(minutes=1)
    assert bench.run().state is RunState.COMPLETED


async def test_a_step_waits_for_its_lag(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World(), lag=timedelta(minutes=10)))
    await bench.trigger("order-1", Order())
    await bench.advance(minutes=9)
    assert bench.run().status is Status.PLACED
    await bench.advance(minutes=1)
    assert bench.run().status is Status.BILLED


ALLOWED = {
    ("INITIATED", "RUNNING"),
    ("INITIATED", "PAUSED"),
    ("INITIATED", "CANCELLED"),
    ("RUNNING", "COMPLETED"),
    ("RUNNING", "PAUSED"),
    ("RUNNING", "CANCELLED"),
    ("PAUSED", "RUNNING"),
    ("PAUSED", "CANCELLED"),
    ("COMPLETED", "DATA_DELETION_REQUESTED"),
    ("CANCELLED", "DATA_DELETION_REQUESTED"),
    ("DATA_DELETION_REQUESTED", "DATA_DELETED"),
    ("DATA_DELETED", "DATA_DELETION_REQUESTED"),
}


@pytest.mark.parametrize("before", RunState)
@pytest.mark.parametrize("after", RunState)
def test_every_pair_of_states_is_allowed_or_not(before: RunState, after: RunState) -> None:
    assert may_become(before, after) == ((before.name, after.name) in ALLOWED)


def test_a_step_is_tested_by_calling_it() -> None:
    machine = Machine("shop", object=Tally, status=Stage)

    @machine.step(Stage.WORK)
    def work(run: Run[Tally, Stage]) -> Literal[Stage.DONE] | Pause:
        return Stage.DONE if run.object.count else Pause("empty", until=datetime(2026, 1, 1, tzinfo=UTC))

    assert work(Run(object=Tally(count=1), status=Stage.WORK)) is Stage.DONE
    assert isinstance(work(Run(object=Tally(), status=Stage.WORK)), Pause)
