"""The workflow that is run while workers die: three steps, with a timer and an event between them.

`reserve` takes its turn, `charge` leaves it and works in the background, and sometimes fails the first
time; `ship` comes after the event. Each tells the ledger first, and may die any moment after that.
"""

import asyncio
from typing import Any

from holdfast import ActivityContext, Definition, Fault, Workflow, activity, js, place, sequence
from holdfast.activities.events import Event
from holdfast.activities.timers import Delay
from tests.crash.ledger import Ledger

STEPS = ("reserve", "charge", "ship")


@activity(type="Crash.Reserve")
async def reserve(context: ActivityContext, order: str) -> None:
    await _do(context, order, "reserve")


@activity(type="Crash.Charge")
async def charge(context: ActivityContext, order: str) -> None:
    await _do(context, order, "charge")
    if context.attempt == 1 and order.endswith("7"):
        raise Fault("The bank is busy.")


@activity(type="Crash.Ship")
async def ship(context: ActivityContext, order: str) -> None:
    await _do(context, order, "ship")


async def _do(context: ActivityContext, order: str, step: str) -> None:
    context.use(Ledger).record(context.idempotency_key, context.attempt, order, step)
    await asyncio.sleep(0.01)


ACTIVITIES: tuple[Any, ...] = (reserve, charge, ship)


def order_workflow() -> Definition:
    workflow = Workflow("order", name="Order")
    order = workflow.input("Order", str)
    workflow.input("Delay", str)
    workflow.root = sequence(
        place(reserve, order),
        place(Delay, js("getInput('Delay')")),
        place(charge, order, retry=3, run_asynchronously=True),
        place(Event, "paid"),
        place(ship, order),
    )
    return workflow.build()
