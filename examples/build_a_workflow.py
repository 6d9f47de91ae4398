"""A workflow written in Python: what it looks like as a document, and what happens when it runs.

    .venv/bin/python examples/build_a_workflow.py

An order: reserve and charge, or undo what was done; then wait until the parcel was picked up.
"""

import asyncio
import json

from holdfast.activities.data import WriteLine
from holdfast.activities.events import Event
from holdfast.authoring import activity
from holdfast.definitions.builder import (
    Workflow,
    decision,
    flowchart,
    for_each,
    js,
    liquid,
    place,
    saga,
    sequence,
)
from holdfast.testing import Host


@activity
def reserve(item: str, count: int = 1) -> str:
    """Reserve goods in the warehouse."""
    return f"{count} x {item}"


@activity
def release(item: str) -> None:
    """Put reserved goods back on the shelf."""


@activity
def charge(customer: str, amount: int) -> int:
    """Take the money. Returns what is left of the budget."""
    return 100 - amount


order = Workflow("order", name="Order")
customer = order.input("Customer", str)
amount = order.input("Amount", int)
left = order.variable("Left", int)
receipt = order.output("Receipt", str)

pay = saga(
    (place(reserve, "anvil", count=2), place(release, "anvil")),
    place(charge, customer, amount, result=left, retry=3),
)
is_rich = decision(js("getLeft() >= 50"))
thanks = for_each(["Thank you!", "Come again!"], place(WriteLine, js("getCurrentValue()")))
picked_up = place(Event, "PickedUp", name="Picked up")
finish = sequence(
    place(WriteLine, liquid("{{ Input.Customer }} has {{ Variables.Left }} left.")),
    receipt.set(js("`${getCustomer()} paid ${getAmount()}`")),
)

order.root = flowchart(
    pay >> is_rich,
    is_rich["True"] >> thanks >> picked_up,
    is_rich["False"] >> place(WriteLine, "Thanks.") >> picked_up,
    picked_up >> finish,
)


async def main() -> None:
    definition = order.build()
    print("\n".join(json.dumps(definition.source, indent=2).splitlines()[:12]), "\n  ...\n")

    host = Host(activities=[reserve, release, charge])
    await host.load(definition)
    instance = await host.run("order", input={"Customer": "Wile E.", "Amount": 30})
    print("waits at:", *(bookmark.activity_id for bookmark in instance.bookmarks))
    await host.publish_event("PickedUp")
    print("\n".join(host.console.written))
    print(instance.status, instance.output)


if __name__ == "__main__":
    asyncio.run(main())
