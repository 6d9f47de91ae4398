"""What comes from outside: typed, kept when it is early, refused when it is late, brought once."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

import pytest

from holdfast import Again, Answer, Machine, Run, RunState, Skip
from holdfast.errors import Invalid
from holdfast.machines.objects import ObjectInvalid
from holdfast.store import KeyReused
from tests.machines.conftest import OpenBench
from tests.machines.orders import Order, Payment, Status, World, make_orders

PAYMENT = Payment(cents=100)


async def test_a_callback_before_its_run_waits_for_it(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.KEPT
    await bench.trigger("order-1", Order())
    assert bench.run().status is Status.SHIPPED


async def test_a_callback_before_its_status_waits_for_it(open_bench_anywhere: OpenBench) -> None:
    world = World()
    world.fails["bill"] = 1
    bench = await open_bench_anywhere(
        make_orders(world, backoff=timedelta(days=1), longest=timedelta(days=1))
    )
    await bench.trigger("order-1", Order())
    assert bench.run().status is Status.PLACED
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.KEPT
    await bench.advance(days=1)
    assert bench.run().status is Status.SHIPPED


async def test_a_callback_of_an_earlier_run_is_never_given_to_the_next(open_bench: OpenBench) -> None:
    world = World()
    world.fails["bill"] = 1
    bench = await open_bench(make_orders(world, backoff=timedelta(days=1), longest=timedelta(days=1)))
    first = await bench.trigger("order-1", Order())
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.KEPT
    await bench.cancel(first)
    await bench.trigger("order-1", Order())
    assert bench.run().status is Status.BILLED


async def test_a_callback_after_the_end_is_too_late(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    await bench.trigger("order-1", Order())
    await bench.advance(days=2)
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.TOO_LATE
    await bench.trigger("order-1", Order())
    assert bench.run().status is Status.BILLED


async def test_a_callback_for_a_status_the_run_cannot_come_to_again_is_too_late(
    open_bench: OpenBench,
) -> None:
    world = World()
    world.fails["ship"] = 1
    bench = await open_bench(make_orders(world))
    await bench.trigger("order-1", Order())
    await bench.callback("order-1", Status.BILLED, PAYMENT)
    assert bench.run().status is Status.PAID
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.TOO_LATE


async def test_under_one_key_a_callback_is_brought_once(open_bench_anywhere: OpenBench) -> None:
    world = World()
    bench = await open_bench_anywhere(make_orders(world))
    await bench.trigger("order-1", Order(cents=200))
    for _ in range(3):
        assert await bench.callback("order-1", Status.BILLED, PAYMENT, key="k") is Answer.ACCEPTED
    assert len(world.did("receive")) == 1
    with pytest.raises(KeyReused):
        await bench.callback("order-1", Status.BILLED, Payment(cents=7), key="k")


async def test_too_late_under_a_key_stays_too_late(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    await bench.trigger("order-1", Order())
    await bench.advance(days=2)
    assert await bench.callback("order-1", Status.BILLED, PAYMENT, key="k") is Answer.TOO_LATE
    await bench.trigger("order-1", Order())
    assert await bench.callback("order-1", Status.BILLED, PAYMENT, key="k") is Answer.TOO_LATE
    assert bench.run().status is Status.BILLED


async def test_a_callback_for_a_paused_run_is_kept_until_it_is_resumed(
    open_bench_anywhere: OpenBench,
) -> None:
    bench = await open_bench_anywhere(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.pause(run)
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.KEPT
    assert bench.run().status is Status.BILLED
    await bench.resume(run)
    assert bench.run().status is Status.SHIPPED


async def test_a_callback_that_pauses_the_run_lets_the_next_one_in_after_that(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    run = await bench.trigger("order-1", Order())
    await bench.callback("order-1", Status.BILLED, Payment(cents=40))
    paused = bench.run()
    assert (paused.state, paused.reason) == (RunState.PAUSED, "60 cents short")
    assert paused.object.notes == ["billed", "got 40"]
    await bench.resume(run)
    assert await bench.callback("order-1", Status.BILLED, PAYMENT) is Answer.ACCEPTED
    assert bench.run().status is Status.SHIPPED


async def test_a_payload_that_does_not_fit_is_refused_where_it_comes_in(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    await bench.trigger("order-1", Order())
    for wrong in ({"cents": "many"}, b"{", None, "text"):
        with pytest.raises(ObjectInvalid, match="Payment"):
            await bench.callback("order-1", Status.BILLED, wrong)
    assert await bench.callback("order-1", Status.BILLED, b'{"cents": 100}') is Answer.ACCEPTED
    assert bench.run().status is Status.SHIPPED


async def test_a_status_without_a_callback_is_named(open_bench: OpenBench) -> None:
    bench = await open_bench(make_orders(World()))
    with pytest.raises(Invalid, match="SHIPPED of the machine 'orders' has no callback"):
        await bench.callback("order-1", Status.SHIPPED, PAYMENT)


async def test_a_callback_that_raises_is_called_again_with_the_same_payload(open_bench: OpenBench) -> None:
    world = World()
    world.fails["receive"] = 2
    bench = await open_bench(make_orders(world))
    await bench.trigger("order-1", Order())
    await bench.callback("order-1", Status.BILLED, PAYMENT)
    assert bench.run().status is Status.BILLED
    await bench.advance(minutes=1)
    assert bench.run().status is Status.SHIPPED
    assert bench.run().object.notes == ["billed", "got 100", "shipped"]
    assert len(set(world.did("receive"))) == 1


class Door(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    GONE = "gone"


@dataclass
class Visits:
    heard: list[str]


def make_door() -> Machine[Visits, Door]:
    door = Machine("door", object=Visits, status=Door)

    @door.callback(Door.CLOSED)
    def knock(run: Run[Visits, Door], how: str) -> Literal[Door.OPEN] | Skip:
        run.object.heard.append(how)
        return Door.OPEN if how == "please" else Skip()

    @door.callback(Door.CLOSED, name="ring")
    def ring(run: Run[Visits, Door]) -> Again:
        run.object.heard.append("ring")
        return Again()

    @door.callback(Door.OPEN, name="shut")
    async def shut(run: Run[Visits, Door], raw: bytes) -> Literal[Door.CLOSED, Door.GONE]:
        run.object.heard.append(raw.decode("latin-1"))
        return Door.GONE if raw == b"\xff" else Door.CLOSED

    return door


async def test_a_status_may_have_several_callbacks_by_name(open_bench: OpenBench) -> None:
    bench = await open_bench(make_door())
    run = await bench.trigger("front", Visits([]))
    await bench.callback("front", Door.CLOSED, "hey")
    await bench.callback("front", Door.CLOSED, name="ring")
    assert bench.run().object.heard == ["hey", "ring"]
    await bench.callback("front", Door.CLOSED, "please")
    await bench.callback("front", Door.OPEN, b"slam", name="shut")
    assert bench.statuses(run) == [Door.CLOSED, Door.OPEN, Door.CLOSED]


async def test_raw_bytes_arrive_as_they_were(open_bench: OpenBench) -> None:
    bench = await open_bench(make_door())
    await bench.trigger("front", Visits([]), at=Door.OPEN)
    await bench.callback("front", Door.OPEN, b"\xff", name="shut")
    assert bench.run().status is Door.GONE


async def test_early_callbacks_of_a_loop_are_given_one_for_each_visit(open_bench: OpenBench) -> None:
    bench = await open_bench(make_door())
    await bench.trigger("front", Visits([]))
    for number in range(3):
        assert await bench.callback("front", Door.OPEN, f"{number}".encode(), name="shut") is Answer.KEPT
    for _ in range(3):
        await bench.callback("front", Door.CLOSED, "please")
    heard: list[Any] = bench.run().object.heard
    assert sorted(heard) == ["0", "1", "2", "please", "please", "please"]
    assert bench.run().status is Door.CLOSED
