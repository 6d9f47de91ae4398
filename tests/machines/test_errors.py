"""When a function raises it is called again later, the run is paused at last, and nobody else waits."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from itertools import pairwise
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import GiveUp, Machine, Options, Pause, Retry, Run, RunState
from holdfast.machines.options import Choices, Settled, merged
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Status, World, make_orders

MANY = 1_000_000


async def test_a_step_that_raises_is_called_again_under_the_same_key(open_bench_anywhere: OpenBench) -> None:
    world = World()
    world.fails["bill"] = 3
    bench = await open_bench_anywhere(make_orders(world))
    await bench.trigger("order-1", Order())
    assert bench.run().error.startswith("RuntimeError: failure 1")
    await bench.advance(minutes=1)
    assert bench.run().status is Status.BILLED
    assert len(world.did("bill")) == 4
    assert len(set(world.did("bill"))) == 1
    assert bench.run().error == ""


async def test_what_a_failed_call_changed_in_the_object_is_dropped(open_bench: OpenBench) -> None:
    world = World()
    world.fails["bill"] = 2
    bench = await open_bench(make_orders(world))
    await bench.trigger("order-1", Order())
    await bench.advance(minutes=1)
    assert bench.run().object.notes == ["billed"]


async def test_the_waits_between_calls_grow_up_to_the_longest(open_bench: OpenBench) -> None:
    world = World()
    world.fails["bill"] = 8
    limits = {"backoff": timedelta(seconds=1), "longest": timedelta(seconds=30), "pause_after": None}
    bench = await open_bench(make_orders(world, **limits))
    await bench.trigger("order-1", Order())
    await bench.advance(minutes=10)
    calls = [one.at for one in bench.history() if one.function == "bill"]
    waits = [(after - before).total_seconds() for before, after in pairwise(calls)]
    assert len(waits) == 8
    for number, wait in enumerate(waits):
        whole = min(2.0**number, 30.0)
        assert 0.75 * whole <= wait <= whole


async def test_one_failing_run_holds_up_nobody(open_bench_anywhere: OpenBench) -> None:
    poison = Machine("poison", object=Order, status=Status, start=Status.PLACED)

    @poison.step(Status.PLACED)
    async def bill(run: Run[Order, Status]) -> Literal[Status.BILLED]:
        if run.foreign_id == "poison":
            raise ValueError("no")
        return Status.BILLED

    @poison.step(Status.BILLED)
    async def pay(run: Run[Order, Status]) -> Literal[Status.PAID, Status.SHIPPED, Status.EXPIRED]:
        return Status.PAID

    bench = await open_bench_anywhere(poison)
    bad = await bench.runs.trigger("poison", Order())
    good = [await bench.runs.trigger(f"good-{number}", Order()) for number in range(20)]
    await bench.settle()
    assert all(bench.run(run).state is RunState.COMPLETED for run in good)
    assert bench.run(bad).status is Status.PLACED


async def test_the_last_error_allowed_pauses_the_run_whatever_the_errors_say(open_bench: OpenBench) -> None:
    world = World()
    world.fails["bill"] = MANY
    bench = await open_bench(make_orders(world, pause_after=3, pause_retry=None))
    await bench.trigger("order-1", Order())
    await bench.advance(days=30)
    assert len(world.did("bill")) == 3
    run = bench.run()
    assert (run.state, run.reason) == (RunState.PAUSED, "RuntimeError: failure 3 of bill")
    assert run.until is None


async def test_a_run_paused_by_errors_is_tried_again_by_itself(open_bench_anywhere: OpenBench) -> None:
    world = World()
    world.fails["bill"] = 3
    bench = await open_bench_anywhere(make_orders(world, pause_after=3, pause_retry=timedelta(hours=1)))
    run = await bench.trigger("order-1", Order())
    await bench.advance(minutes=50)
    assert bench.run().state is RunState.PAUSED
    await bench.advance(minutes=11)
    assert bench.run(run).status is Status.BILLED
    assert len(set(world.did("bill"))) == 1


async def test_each_retry_after_a_pause_has_all_its_errors_again(open_bench: OpenBench) -> None:
    world = World()
    world.fails["bill"] = MANY
    bench = await open_bench(make_orders(world, pause_after=3, pause_retry=timedelta(hours=1)))
    await bench.trigger("order-1", Order())
    await bench.advance(hours=1, minutes=30)
    assert len(world.did("bill")) == 6
    assert bench.run().state is RunState.PAUSED


async def test_a_success_resets_the_count_of_errors(open_bench: OpenBench) -> None:
    world = World()
    world.fails |= {"bill": 2, "ship": 2}
    bench = await open_bench(make_orders(world, pause_after=3))
    await bench.trigger("order-1", Order())
    await bench.advance(minutes=1)
    await bench.callback("order-1", Status.BILLED, {"cents": 100})
    await bench.advance(minutes=1)
    assert bench.run().state is RunState.COMPLETED


async def test_giving_up_pauses_at_once_and_until_a_person_resumes(open_bench: OpenBench) -> None:
    calls: list[int] = []
    machine = Machine("stubborn", object=Order, status=Status, start=Status.PLACED)

    @machine.step(Status.PLACED)
    async def try_it(
        run: Run[Order, Status],
    ) -> Literal[Status.BILLED, Status.PAID, Status.SHIPPED, Status.EXPIRED]:
        calls.append(run.attempt)
        if len(calls) == 1:
            raise GiveUp("the card is stolen")
        return Status.PAID

    bench = await open_bench(machine)
    run = await bench.trigger("order-1", Order())
    await bench.advance(days=100)
    assert calls == [1]
    assert "the card is stolen" in bench.run().reason
    await bench.resume(run)
    assert calls == [1, 2]
    assert bench.run().state is RunState.COMPLETED


async def test_errors_that_are_fatal_are_not_tried_again(open_bench: OpenBench) -> None:
    world = World()
    world.fails["bill"] = MANY
    bench = await open_bench(make_orders(world, fatal=(RuntimeError,)))
    await bench.trigger("order-1", Order())
    await bench.advance(days=1)
    assert len(world.did("bill")) == 1
    assert bench.run().state is RunState.PAUSED


async def test_a_step_may_say_itself_when_to_be_called_again(open_bench: OpenBench) -> None:
    calls: list[int] = []
    machine = Machine("patient", object=Order, status=Status, start=Status.PLACED)

    @machine.step(Status.PLACED)
    async def ask(
        run: Run[Order, Status],
    ) -> Literal[Status.BILLED, Status.PAID, Status.SHIPPED, Status.EXPIRED]:
        calls.append(run.attempt)
        if run.attempt == 1:
            raise Retry("rate limited", after=timedelta(hours=6))
        return Status.PAID

    bench = await open_bench(machine)
    await bench.trigger("order-1", Order())
    await bench.advance(hours=5, minutes=59)
    assert calls == [1]
    await bench.advance(minutes=1)
    assert calls == [1, 2]


class Switch(IntEnum):
    OFF = 1
    ON = 2
    BROKEN = 3


@dataclass
class Lamp:
    watts: int = 60


async def test_a_status_that_was_not_declared_pauses_instead_of_being_tried_for_ever(
    open_bench: OpenBench,
) -> None:
    lamp = Machine("lamp", object=Lamp, status=Switch)
    calls: list[int] = []

    @lamp.step(Switch.OFF, to=[Switch.ON])
    async def turn_on(run: Run[Lamp, Switch]) -> Switch:
        calls.append(1)
        return Switch.BROKEN

    @lamp.step(Switch.ON, to=[Switch.BROKEN])
    async def burn_out(run: Run[Lamp, Switch]) -> Switch:
        return Switch.BROKEN

    bench = await open_bench(lamp)
    await bench.trigger("desk")
    await bench.advance(days=1)
    assert len(calls) == 1
    assert bench.run().state is RunState.PAUSED
    assert "turn_on" in bench.run().reason
    assert "returned BROKEN, but declares ON" in bench.run().reason


async def test_an_object_that_has_no_json_is_an_error_like_any_other(open_bench: OpenBench) -> None:
    lamp = Machine("lamp", object=Lamp, status=Switch, defaults=Options(pause_after=1))

    @lamp.step(Switch.OFF)
    async def turn_on(run: Run[Lamp, Switch]) -> Literal[Switch.ON, Switch.BROKEN]:
        run.object.watts = object()  # type: ignore[assignment]  what an author may do
        return Switch.ON

    bench = await open_bench(lamp)
    await bench.trigger("desk")
    assert bench.run().state is RunState.PAUSED
    assert bench.run().object == Lamp()


async def _cancels_itself() -> None:
    raise asyncio.CancelledError


async def _leaves() -> None:
    raise SystemExit(3)


async def _says_much() -> None:
    raise ValueError("x" * 1_000_000)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [(_cancels_itself, "CancelledError"), (_leaves, "SystemExit: 3"), (_says_much, "ValueError: xxx")],
)
async def test_whatever_a_step_raises_no_slot_is_lost_and_the_state_stays_small(
    open_bench: OpenBench, trouble: Callable[[], Awaitable[None]], said: str
) -> None:
    lamp = Machine("lamp", object=Lamp, status=Switch, defaults=Options(pause_after=1, pause_retry=None))

    @lamp.step(Switch.OFF)
    async def turn_on(run: Run[Lamp, Switch]) -> Literal[Switch.ON, Switch.BROKEN]:
        await trouble()
        return Switch.ON

    bench = await open_bench(lamp)
    for number in range(150):  # more than there are slots
        await bench.runs.trigger(f"lamp-{number}")
    await bench.settle()
    assert {run.state for run in bench.all} == {RunState.PAUSED}
    assert all(run.reason.startswith(said) and len(run.reason) < 3000 for run in bench.all)


@pytest.mark.parametrize("result", [Pause("no"), Pause("no", until=datetime(2026, 1, 1)), None, 2, "on"])
async def test_what_was_not_declared_is_refused_whatever_it_is(open_bench: OpenBench, result: Any) -> None:
    lamp = Machine("lamp", object=Lamp, status=Switch)

    async def turn_on(run: Run[Lamp, Switch]) -> Literal[Switch.ON, Switch.BROKEN]:
        return cast("Any", result)

    lamp.step(Switch.OFF)(turn_on)
    bench = await open_bench(lamp)
    await bench.trigger("desk")
    assert bench.run().state is RunState.PAUSED
    assert "turn_on" in bench.run().reason


# --- options ---------------------------------------------------------------------------------------


def test_options_are_merged_field_by_field() -> None:
    defaults = Options(pause_after=7, jitter=0.0)
    step = Choices(backoff=timedelta(minutes=1), pause_after=None)
    assert merged(defaults, step) == Settled(backoff=timedelta(minutes=1), pause_after=None, jitter=0.0)
    assert merged() == Settled()


def test_one_default_leaves_the_others_as_they_are() -> None:
    assert merged(Options(pause_after=3)).backoff == Settled().backoff


@given(
    attempt=st.integers(1, 10_000),
    seed=st.text(),
    jitter=st.floats(0, 1),
    longest=st.timedeltas(timedelta(seconds=1), timedelta(days=400)),
)
def test_a_wait_is_never_negative_and_never_longer_than_the_longest(
    attempt: int, seed: str, jitter: float, longest: timedelta
) -> None:
    options = Settled(jitter=jitter, longest=longest)
    assert timedelta(0) <= options.delay(attempt, seed) <= longest
    assert options.delay(attempt, seed) == options.delay(attempt, seed)


def test_many_that_failed_together_do_not_come_back_together() -> None:
    waits = {Settled().delay(3, f"run-{number}") for number in range(100)}
    assert len(waits) > 80


@pytest.mark.parametrize("wrong", [{"pause_after": 0}, {"jitter": 2.0}, {"backoff": timedelta(0)}])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    machine = make_orders(World(), **wrong)
    with pytest.raises(Exception, match=f"bill.*`{next(iter(wrong))}`"):
        machine.check()
