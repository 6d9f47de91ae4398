"""What authors may write. Both type checkers take all of it, and know what comes out."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Literal, assert_type

import msgspec
from pydantic import BaseModel

from holdfast import Again, Answer, Cancel, Holdfast, Machine, Options, Pause, Run, Runs, Skip
from holdfast.testing import MachineBench


class Status(IntEnum):
    PLACED = 1
    BILLED = 2
    PAID = 3
    EXPIRED = 4


@dataclass
class Order:
    cents: int = 0


class Payment(msgspec.Struct):
    cents: int


class Refund(BaseModel):
    cents: int


orders = Machine("orders", object=Order, status=Status, start=Status.PLACED, defaults=Options(pause_after=3))
assert_type(orders, Machine[Order, Status])


@orders.step(Status.PLACED, pause_after=5, backoff=timedelta(seconds=2), pause_retry=None)
async def bill(run: Run[Order, Status]) -> Literal[Status.BILLED] | Pause | Again:
    assert_type(run.object, Order)
    assert_type(run.status, Status)
    return Again(delay=timedelta(seconds=1)) if run.object.cents == 0 else Status.BILLED


@orders.callback(Status.BILLED)
async def receive(run: Run[Order, Status], payment: Payment) -> Literal[Status.PAID] | Skip | Cancel:
    return Status.PAID if payment.cents else Skip()


@orders.callback(Status.BILLED, name="refund")
def refund(run: Run[Order, Status], given: Refund) -> Literal[Status.EXPIRED]:
    return Status.EXPIRED


@orders.callback(Status.BILLED, name="poke")
def poke(run: Run[Order, Status]) -> Skip:
    return Skip()


def tomorrow(run: Run[Order, Status], now: datetime) -> datetime | None:
    return now + timedelta(days=1) if run.object.cents else None


@orders.timeout(Status.BILLED, due=tomorrow)
@orders.timeout(Status.BILLED, name="late", after=timedelta(days=2))
async def expire(run: Run[Order, Status]) -> Literal[Status.EXPIRED]:
    return Status.EXPIRED


@orders.on_complete
async def tell(run: Run[Order, Status]) -> None:
    print(run.object.cents)


@orders.on_pause
def note(run: Run[Order, Status]) -> None:
    print(run.reason)


@orders.scrub
def scrub(order: Order) -> Order:
    return Order()


@orders.condition
def on_weekdays(when: datetime) -> bool:
    return when.weekday() < 5


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


lamp = Machine("lamp", object=Payment, status=Colour)


@lamp.step(Colour.RED, to=[Colour.GREEN])
def switch(run: Run[Payment, Colour]) -> Colour:
    return Colour.GREEN


async def use() -> None:
    async with Holdfast("sqlite:///orders.db", machines=[orders, lamp]) as holdfast:
        runs = holdfast.machine(orders)
        assert_type(runs, Runs[Order, Status])
        run_id = await runs.trigger("order-1", Order(1), at=Status.PLACED, key="k")
        assert_type(await runs.callback("order-1", Status.BILLED, Payment(cents=1)), Answer)
        assert_type(await runs.reached(run_id, Status.PAID, within=1.5), Run[Order, Status])
        await runs.schedule("daily", cron="0 3 * * *", zone="Europe/Zurich", when=on_weekdays)
        assert_type((await runs.get(run_id)).object.cents, int)


async def test() -> None:
    async with MachineBench(orders) as bench:
        run_id = await bench.trigger("order-1", Order())
        await bench.advance(days=2)
        assert_type(bench.statuses(run_id), list[Status])
    assert_type(await expire(Run(object=Order(), status=Status.BILLED)), Literal[Status.EXPIRED])
    assert_type(switch(Run(object=Payment(1), status=Colour.RED)), Colour)
    print(datetime(2026, 1, 1, tzinfo=UTC))
