"""Activities of your own, in each of the forms they can have.

`price` is a plain function. `AskCustomer` waits and carries on in another method. `OrderPlaced` starts
workflows. `Repeat` is a container that decides what happens to what is nested in it.

    python examples/custom_activity.py             the whole story, on the host that tests use
    holdfast run examples/custom_activity.py       the workflow alone, up to where it waits
"""

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any

from holdfast import (
    Activity,
    ActivityContext,
    Completed,
    Field,
    Input,
    Output,
    Port,
    Stimulus,
    TriggerContext,
    activity,
    load_definition,
)
from holdfast.testing import Host

# --- a function: the signature gives the inputs, the return type the output ------------------------

PRICES = {"lamp": Decimal("19.90"), "chair": Decimal("49.00")}


@activity(type="Shop.Price", category="Shop")
def price(product: str, quantity: int = 1) -> Decimal:
    """Looks up what an order costs.

    Args:
        product: What is ordered.
        quantity: How many of it.
    """
    return PRICES[product] * quantity


# --- a class that waits: what comes later arrives in another method --------------------------------


@activity(type="Shop.AskCustomer", category="Shop", outcomes=("Yes", "No"))
class AskCustomer(Activity):
    """Asks the customer a question and waits for the answer, for days if need be."""

    question: Input[Annotated[str, Field("What to ask.", hint="multiline")]]
    answer: Output[str]

    def execute(self, context: ActivityContext) -> None:
        # Whoever sends a stimulus with this name and this payload wakes the instance up again.
        context.wait(self.answered, payload={"order": context.correlation_id})

    def answered(self, context: ActivityContext) -> None:
        answer = str(context.input.get("answer", "no"))
        context.set_output("answer", answer)
        context.complete("Yes" if answer == "yes" else "No")


# --- a trigger: a stimulus starts a new instance ---------------------------------------------------


@activity(type="Shop.OrderPlaced", category="Shop", kind="Trigger")
class OrderPlaced(Activity):
    """Starts the workflow when somebody orders something in a shop."""

    shop: Input[Annotated[str, Field("Which shop.")]]
    order: Output[Any]

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        """Asked once, when the workflow is published: under which payload it starts."""
        return [{"shop": self.shop}]

    def execute(self, context: ActivityContext) -> None:
        if context.started_here:
            context.set_output("order", context.input.get("order"))
        else:
            context.wait(self.placed, payload={"shop": self.shop})

    def placed(self, context: ActivityContext) -> None:
        context.set_output("order", context.input.get("order"))


# --- a container: it schedules what is nested in it, and hears when that has completed -------------


@activity(type="Shop.Repeat", category="Shop")
class Repeat(Activity):
    """Executes its body a number of times. The body sees which time it is as the variable `Round`."""

    auto_complete = False
    times: Input[Annotated[int, Field("How often.")]] = 2
    body: Port

    def execute(self, context: ActivityContext) -> None:
        self._go_on(context, done=0)

    def _go_on(self, context: ActivityContext, done: int) -> None:
        if done >= self.times:
            context.complete()
        else:
            context.schedule(self.body, self.body_done, tag=done + 1, variables={"Round": done + 1})

    def body_done(self, context: ActivityContext, completed: Completed) -> None:
        self._go_on(context, done=completed.tag)


# --- a workflow that uses them ---------------------------------------------------------------------


def literal(value: Any, type_name: str = "String") -> dict[str, Any]:
    return {"typeName": type_name, "expression": {"type": "Literal", "value": value}}


def script(text: str, type_name: str = "Object") -> dict[str, Any]:
    return {"typeName": type_name, "expression": {"type": "JavaScript", "value": text}}


def into(variable: str) -> dict[str, Any]:
    return {"typeName": "Object", "memoryReference": {"id": variable}}


STORED = "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core"

order_workflow = load_definition(
    {
        "id": "shop-order-1",
        "definitionId": "shop-order",
        "name": "Shop order",
        "version": 1,
        "toolVersion": "3.6.0",
        "isLatest": True,
        "isPublished": True,
        "variables": [
            {"id": "order", "name": "Order", "typeName": "ObjectDictionary", "storageDriverTypeName": STORED},
            {"id": "total", "name": "Total", "typeName": "Decimal", "storageDriverTypeName": STORED},
            {"id": "reply", "name": "Reply", "typeName": "String", "storageDriverTypeName": STORED},
        ],
        "outputs": [{"name": "total", "type": "Decimal"}, {"name": "reply", "type": "String"}],
        "root": {
            "id": "chart",
            "name": "Order",
            "type": "Elsa.Flowchart",
            "activities": [
                {
                    "id": "placed",
                    "name": "An order is placed",
                    "type": "Shop.OrderPlaced",
                    "customProperties": {"canStartWorkflow": True},
                    "shop": literal("north"),
                    "order": into("order"),
                },
                {
                    "id": "cost",
                    "name": "What does it cost?",
                    "type": "Shop.Price",
                    "product": script("getOrder().product", "String"),
                    "quantity": script("getOrder().quantity", "Int64"),
                    "result": into("total"),
                },
                {
                    "id": "ask",
                    "name": "Is that fine?",
                    "type": "Shop.AskCustomer",
                    "question": script("`That is ${getTotal()}. Fine?`", "String"),
                    "answer": into("reply"),
                },
                {
                    "id": "cheer",
                    "name": "Cheer",
                    "type": "Shop.Repeat",
                    "times": literal(2, "Int64"),
                    "body": {
                        "id": "hooray",
                        "name": "Hooray",
                        "type": "Elsa.WriteLine",
                        "text": script("`Sold! (${getVariable('Round')})`", "String"),
                    },
                },
                {"id": "sorry", "name": "Sorry", "type": "Elsa.WriteLine", "text": literal("Another time.")},
            ],
            "connections": [
                {"source": {"activity": "placed", "port": "Done"}, "target": {"activity": "cost"}},
                {"source": {"activity": "cost", "port": "Done"}, "target": {"activity": "ask"}},
                {"source": {"activity": "ask", "port": "Yes"}, "target": {"activity": "cheer"}},
                {"source": {"activity": "ask", "port": "No"}, "target": {"activity": "sorry"}},
            ],
        },
    }
)


async def main() -> None:
    host = Host(activities=[price, AskCustomer, OrderPlaced, Repeat])
    await host.load(order_workflow)

    placed = Stimulus(
        name="Shop.OrderPlaced",
        payload={"shop": "north"},
        input={"order": {"product": "lamp", "quantity": 3}},
        correlation_id="order-7",
    )
    await host.send(placed)
    [order] = host.instances.values()
    print(f"{order.sub_status}: the customer has to say whether {order.variables['Total']} is fine")

    reply = Stimulus(name="Shop.AskCustomer", payload={"order": "order-7"}, input={"answer": "yes"})
    await host.send(reply)
    print(f"{order.sub_status}: {' '.join(host.console.written)}")


if __name__ == "__main__":
    asyncio.run(main())
