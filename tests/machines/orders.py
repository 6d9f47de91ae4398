"""A machine that most tests can use: an order is billed, waits two days for its money, and ships."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Literal

import msgspec

from holdfast import Machine, Pause, Run


class Status(IntEnum):
    PLACED = 1
    BILLED = 2
    PAID = 3
    SHIPPED = 4
    EXPIRED = 5


@dataclass
class Order:
    cents: int = 100
    notes: list[str] = field(default_factory=list[str])


class Payment(msgspec.Struct):
    cents: int


class World:
    """What steps do to the outside, and how often they fail first."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.fails: dict[str, int] = {}

    def did(self, name: str) -> list[str]:
        """The idempotency keys under which that was done."""
        return [key for done, key in self.calls if done == name]

    def do(self, name: str, run: Run[Order, Status]) -> None:
        self.calls.append((name, run.key))
        if self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            raise RuntimeError(f"failure {len(self.calls)} of {name}")


def make_orders(world: World, **options: object) -> Machine[Order, Status]:
    orders = Machine("orders", object=Order, status=Status)

    @orders.step(Status.PLACED, **options)  # type: ignore[arg-type]  whatever a test wants
    async def bill(run: Run[Order, Status]) -> Literal[Status.BILLED]:
        run.object.notes.append("billed")
        world.do("bill", run)
        return Status.BILLED

    @orders.callback(Status.BILLED)
    async def receive(run: Run[Order, Status], payment: Payment) -> Literal[Status.PAID] | Pause:
        run.object.notes.append(f"got {payment.cents}")
        world.do("receive", run)
        missing = run.object.cents - payment.cents
        return Pause(f"{missing} cents short") if missing > 0 else Status.PAID

    @orders.timeout(Status.BILLED, after=timedelta(days=2))
    async def expire(run: Run[Order, Status]) -> Literal[Status.EXPIRED]:
        world.do("expire", run)
        return Status.EXPIRED

    @orders.step(Status.PAID)
    def ship(run: Run[Order, Status]) -> Literal[Status.SHIPPED]:
        run.object.notes.append("shipped")
        world.do("ship", run)
        return Status.SHIPPED

    return orders
