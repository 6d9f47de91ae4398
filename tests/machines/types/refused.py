"""What authors may not write. Each line with the mark is refused by both type checkers, and no other is."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from holdfast import Holdfast, Machine, Pause, Run, Skip


class Status(IntEnum):
    PLACED = 1
    BILLED = 2
    PAID = 3


class Other(IntEnum):
    PLACED = 1


@dataclass
class Order:
    cents: int = 0


@dataclass
class Parcel:
    grams: int = 0


orders = Machine("orders", object=Order, status=Status)


@orders.step(Status.PLACED)
async def undeclared_status(run: Run[Order, Status]) -> Literal[Status.BILLED]:
    if run.object.cents:
        return Status.PAID  # refused
    return Status.BILLED


@orders.step(Status.BILLED)
async def undeclared_control(run: Run[Order, Status]) -> Literal[Status.PAID] | Pause:
    if run.object.cents:
        return Skip()  # refused
    return Status.PAID


@orders.step(Status.PLACED)
async def forgotten_return(run: Run[Order, Status]) -> Literal[Status.BILLED]:  # refused
    print(run)


@orders.step(Other.PLACED)  # refused
async def status_of_another_machine(run: Run[Order, Status]) -> Literal[Status.BILLED]:
    return Status.BILLED


@orders.step(Status.PLACED)  # refused
async def run_of_another_machine(run: Run[Parcel, Status]) -> Literal[Status.BILLED]:
    return Status.BILLED


@orders.step(Status.PLACED)  # refused
async def no_status_at_all(run: Run[Order, Status]) -> str:
    return "billed"


@orders.step(Status.PLACED, pause_after="five")  # refused
async def wrong_option(run: Run[Order, Status]) -> Literal[Status.BILLED]:
    return Status.BILLED


@orders.step(Status.PLACED, patience=5)  # refused
async def unknown_option(run: Run[Order, Status]) -> Literal[Status.BILLED]:
    return Status.BILLED


@orders.callback(Status.BILLED)  # refused
async def one_too_many(run: Run[Order, Status], payload: str, more: str) -> Literal[Status.PAID]:
    return Status.PAID


@orders.on_pause  # refused
async def hook_that_returns(run: Run[Order, Status]) -> Literal[Status.PAID]:
    return Status.PAID


async def wrong_object_field(run: Run[Order, Status]) -> None:
    print(run.object.grams)  # refused


async def use(holdfast: Holdfast) -> None:
    runs = holdfast.machine(orders)
    await runs.trigger("order-1", Parcel())  # refused
    await runs.callback("order-1", Other.PLACED)  # refused
    await runs.reached("run", Other.PLACED)  # refused
