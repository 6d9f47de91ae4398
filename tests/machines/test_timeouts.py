"""Timeouts belong to one visit of one status by one run, and to their own function."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

import pytest

from holdfast import Again, Machine, Pause, Run, RunState, Skip
from holdfast.machines import MachineInvalid
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Status, World, make_orders


class Step(IntEnum):
    WAIT = 1
    SHORT = 2
    LONG = 3


@dataclass
class Log:
    lines: list[str] = field(default_factory=list[str])


async def test_of_two_timeouts_each_calls_its_own_function(open_bench_anywhere: OpenBench) -> None:
    machine = Machine("two", object=Log, status=Step)

    @machine.timeout(Step.WAIT, after=timedelta(hours=1))
    async def remind(run: Run[Log, Step]) -> Literal[Step.SHORT] | Skip:
        run.object.lines.append("short")
        return Skip()

    @machine.timeout(Step.WAIT, after=timedelta(hours=2))
    async def give_up(run: Run[Log, Step]) -> Literal[Step.LONG]:
        run.object.lines.append("long")
        return Step.LONG

    bench = await open_bench_anywhere(machine)
    await bench.trigger("a")
    await bench.advance(hours=1)
    assert bench.run().object.lines == ["short"]
    await bench.advance(hours=1)
    assert bench.run().object.lines == ["short", "long"]


async def test_a_timeout_of_a_cancelled_run_does_not_hit_the_next_one(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    first = await bench.trigger("order-1", Order())
    await bench.advance(days=1)
    await bench.cancel(first)
    await bench.trigger("order-1", Order())
    await bench.advance(days=1, hours=12)
    assert bench.run().status is Status.BILLED
    await bench.advance(hours=12)
    assert bench.run().status is Status.EXPIRED


async def test_leaving_a_status_and_coming_back_begins_its_time_anew(open_bench: OpenBench) -> None:
    machine = Machine("loop", object=Log, status=Step)

    @machine.timeout(Step.WAIT, after=timedelta(hours=2))
    async def end(run: Run[Log, Step]) -> Literal[Step.LONG]:
        return Step.LONG

    @machine.callback(Step.WAIT)
    async def leave(run: Run[Log, Step]) -> Literal[Step.SHORT]:
        return Step.SHORT

    @machine.step(Step.SHORT)
    async def back(run: Run[Log, Step]) -> Literal[Step.WAIT]:
        return Step.WAIT

    bench = await open_bench(machine)
    await bench.trigger("a")
    await bench.advance(hours=1, minutes=30)
    await bench.callback("a", Step.WAIT)
    await bench.advance(hours=1)
    assert bench.run().status is Step.WAIT
    await bench.advance(hours=1)
    assert bench.run().status is Step.LONG


async def test_a_resume_does_not_add_a_second_timer(open_bench: OpenBench) -> None:
    world = World()
    bench = await open_bench(make_orders(world))
    run = await bench.trigger("order-1", Order())
    for _ in range(3):
        await bench.pause(run)
        await bench.resume(run)
    timers = await bench.store.due(bench.node.reader.shards, datetime(9000, 1, 1, tzinfo=UTC), 100)
    assert len(timers) == 1
    await bench.advance(days=2)
    assert len(world.did("expire")) == 1


async def test_a_timeout_that_raises_is_told_of_and_called_again(open_bench: OpenBench) -> None:
    world = World()
    world.fails["expire"] = 2
    bench = await open_bench(make_orders(world))
    await bench.trigger("order-1", Order())
    await bench.advance(days=2)
    assert bench.run().error.startswith("RuntimeError")
    assert [one.event for one in bench.history() if one.function == "expire"] == ["Faulted"]
    await bench.advance(minutes=1)
    assert bench.run().status is Status.EXPIRED
    assert len(world.did("expire")) == 3


def timeout_that_returns(results: list[Any]) -> tuple[Machine[Log, Step], list[int]]:
    machine = Machine("returns", object=Log, status=Step)
    calls: list[int] = []

    @machine.timeout(Step.WAIT, after=timedelta(hours=1), to=[Step.LONG])
    async def elapsed(run: Run[Log, Step]) -> Any:
        calls.append(1)
        return results.pop(0)

    @machine.callback(Step.WAIT)
    async def leave(run: Run[Log, Step]) -> Literal[Step.SHORT]:
        return Step.SHORT

    return machine, calls


async def test_a_timeout_that_is_skipped_is_not_called_again(open_bench: OpenBench) -> None:
    machine, calls = timeout_that_returns([Skip()])
    bench = await open_bench(machine)
    await bench.trigger("a")
    await bench.advance(days=30)
    assert len(calls) == 1
    assert await bench.callback("a", Step.WAIT) == "accepted"


async def test_a_timeout_that_repeats_waits_for_its_span_again_or_for_the_one_it_says(
    open_bench: OpenBench,
) -> None:
    machine, calls = timeout_that_returns([Again(), Again(delay=timedelta(minutes=10)), Step.LONG])
    bench = await open_bench(machine)
    await bench.trigger("a")
    await bench.advance(hours=2)
    assert len(calls) == 2
    await bench.advance(minutes=10)
    assert bench.run().status is Step.LONG


async def test_a_timeout_that_pauses_is_called_again_when_the_run_goes_on(open_bench: OpenBench) -> None:
    machine, calls = timeout_that_returns([Pause("look"), Step.LONG])
    bench = await open_bench(machine)
    run = await bench.trigger("a")
    await bench.advance(hours=1)
    assert bench.run().state is RunState.PAUSED
    await bench.resume(run)
    assert (len(calls), bench.run().status) == (2, Step.LONG)


async def test_a_timeout_may_compute_when_it_is_due_or_that_it_never_is(open_bench: OpenBench) -> None:
    machine = Machine("due", object=Log, status=Step)

    async def due(run: Run[Log, Step], now: datetime) -> datetime | None:
        return now + timedelta(hours=len(run.object.lines)) if run.object.lines else None

    @machine.timeout(Step.WAIT, due=due)
    async def elapsed(run: Run[Log, Step]) -> Literal[Step.LONG]:
        return Step.LONG

    @machine.callback(Step.WAIT)
    async def leave(run: Run[Log, Step]) -> Literal[Step.SHORT]:
        return Step.SHORT

    bench = await open_bench(machine)
    never = await bench.trigger("never", Log())
    soon = await bench.trigger("soon", Log(["a", "b"]))
    await bench.advance(hours=2)
    assert bench.run(soon).status is Step.LONG
    assert bench.run(never).status is Step.WAIT


async def test_when_computing_the_time_raises_it_is_asked_again(open_bench: OpenBench) -> None:
    machine = Machine("due", object=Log, status=Step)
    asked: list[int] = []

    def due(run: Run[Log, Step], now: datetime) -> datetime:
        asked.append(1)
        if len(asked) < 3:
            raise LookupError("the calendar is away")
        return now + timedelta(hours=1)

    @machine.timeout(Step.WAIT, due=due)
    async def elapsed(run: Run[Log, Step]) -> Literal[Step.LONG, Step.SHORT]:
        return Step.LONG

    bench = await open_bench(machine)
    await bench.trigger("a")
    assert bench.run().error.startswith("LookupError")
    await bench.advance(hours=2)
    assert (len(asked), bench.run().status) == (3, Step.LONG)


async def test_a_timeout_at_an_instant_that_is_over_happens_at_once(open_bench: OpenBench) -> None:
    machine = Machine("past", object=Log, status=Step)

    @machine.timeout(Step.WAIT, at=datetime(2020, 1, 1, tzinfo=UTC))
    async def elapsed(run: Run[Log, Step]) -> Literal[Step.LONG, Step.SHORT]:
        return Step.LONG

    bench = await open_bench(machine)
    await bench.trigger("a")
    assert bench.run().status is Step.LONG


def test_a_timeout_says_when_in_one_way() -> None:
    machine = Machine("wrong", object=Log, status=Step)
    with pytest.raises(MachineInvalid, match="one of `after=`, `at=` and `due=`"):
        machine.timeout(Step.WAIT)
    with pytest.raises(MachineInvalid, match="time zone"):
        machine.timeout(Step.WAIT, at=datetime(2026, 1, 1))
