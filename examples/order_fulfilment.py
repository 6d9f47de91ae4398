"""An order is billed, waits two days for its money, and ships."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Literal

import msgspec

from holdfast import Holdfast, Machine, Pause, Run


class Status(IntEnum):
    PLACED = 1
    BILLED = 2
    PAID = 3
    SHIPPED = 4
    EXPIRED = 5


@dataclass
class Order:
    email: str
    cents: int
    parcel: str = ""


class Payment(msgspec.Struct):
    cents: int


orders = Machine("orders", object=Order, status=Status)


@orders.step(Status.PLACED, pause_after=5)
async def bill(run: Run[Order, Status]) -> Literal[Status.BILLED]:
    # `run.key` is the same when this is repeated after a crash: give it to whoever sends the invoice.
    print(f"{run.object.email} owes {run.object.cents} cents.")
    return Status.BILLED


@orders.callback(Status.BILLED)
async def receive(run: Run[Order, Status], payment: Payment) -> Literal[Status.PAID] | Pause:
    missing = run.object.cents - payment.cents
    return Pause(f"{missing} cents short") if missing > 0 else Status.PAID


@orders.timeout(Status.BILLED, after=timedelta(days=2))
async def expire(run: Run[Order, Status]) -> Literal[Status.EXPIRED]:
    return Status.EXPIRED


@orders.step(Status.PAID)
async def ship(run: Run[Order, Status]) -> Literal[Status.SHIPPED]:
    run.object.parcel = f"parcel of {run.foreign_id}"
    return Status.SHIPPED


@orders.on_complete
async def tell(run: Run[Order, Status]) -> None:
    print(f"{run.foreign_id} is {run.status.name.lower()}.")


async def main() -> None:
    async with Holdfast("sqlite:///.holdfast/orders.db", machines=[orders]) as holdfast:
        runs = holdfast.machine(orders)
        run_id = await runs.trigger("order-17", Order("ada@example.org", 4200))
        # Sent at once, perhaps before the order is billed: then it is kept until the order waits for it.
        await runs.callback("order-17", Status.BILLED, Payment(cents=4200))
        done = await runs.reached(run_id, Status.SHIPPED, Status.EXPIRED)
        print(done.object.parcel)


if __name__ == "__main__":
    asyncio.run(main())
