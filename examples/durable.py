"""An order that survives whatever happens to the process that works on it.

    make run                        or: python examples/durable.py

It takes about ten seconds. Interrupt it with Ctrl-C, or kill it with -9, and run it again: it goes on
where it was. Everything it knows is in `.holdfast/holdfast.db`, the database that Holdfast makes where
none is named; `holdfast instances` looks into it.
"""

import asyncio
import logging
from datetime import timedelta

from holdfast import Holdfast, Workflow, liquid, place, sequence
from holdfast.activities.data import WriteLine
from holdfast.activities.timers import Delay
from holdfast.instance import Status
from holdfast.store import InstanceFilter

PAUSE = timedelta(seconds=2)

order = Workflow("durable-order", name="Order")
order.input("Product", str)
order.root = sequence(
    place(WriteLine, liquid("  1 of 5  {{ Input.Product }}: reserved in the warehouse")),
    place(Delay, PAUSE),
    place(WriteLine, "  2 of 5  The card is charged"),
    place(Delay, PAUSE),
    place(WriteLine, "  3 of 5  Packed"),
    place(Delay, PAUSE),
    place(WriteLine, "  4 of 5  Handed to the carrier"),
    place(Delay, PAUSE),
    place(WriteLine, liquid("  5 of 5  {{ Input.Product }}: delivered")),
)


async def find_or_start() -> str:
    """The order that an earlier run has left, or a new one. Whoever only asks and sends need not work."""
    async with Holdfast(definitions=[order], works=False) as holdfast:
        under_way = InstanceFilter(tenant="", definition_ids=("durable-order",), status=Status.RUNNING)
        for left in (await holdfast.instances(under_way, limit=1)).items:
            print(f"Order {left.instance_id} was interrupted. It goes on where it was:", flush=True)
            return left.instance_id
        started = await holdfast.dispatch("durable-order", input={"Product": "A chair"})
        print(f"Order {started} begins. Interrupt me with Ctrl-C, if you like:", flush=True)
        return started


async def main() -> None:
    instance_id = await find_or_start()
    async with Holdfast(definitions=[order]) as holdfast:
        ended = await holdfast.result(instance_id)
    print(f"{ended.sub_status.value}. `holdfast instances show {instance_id}` tells what happened when.")


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)  # that its last process died is said by the example itself
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("\nInterrupted. Run me again, and the order goes on where it was.")
