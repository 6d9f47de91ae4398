"""Every example is valid and does what it says."""

import runpy
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast import Stimulus
from holdfast.testing import Host

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_no_example_has_a_problem() -> None:
    host = Host()
    files = sorted(EXAMPLES.glob("*.json"))
    await host.load(*files)
    for definition in list(host.definitions):
        assert host.validate(definition) == [], definition.definition_id
    assert len(files) >= 6


@pytest.mark.parametrize(
    ("name", "greeting"), [("Ada", "Hello, Ada!"), ("", "Hello, world!"), (None, "Hello, world!")]
)
async def test_hello_greets_by_name_and_else_the_world(name: str | None, greeting: str) -> None:
    host = Host()
    await host.load(EXAMPLES / "hello.json")
    hello = await host.run("hello", input={} if name is None else {"name": name})
    assert (hello.sub_status, hello.output) == ("Finished", {"greeting": greeting})
    assert host.console.written[-1] == greeting


async def test_a_small_request_is_approved_without_asking() -> None:
    host = Host()
    await host.load(EXAMPLES / "approval.json")
    approval = await host.run("approval", input={"amount": 20})
    assert approval.output == {"approved": True}
    assert host.console.written == ["20 will be paid."]


@pytest.mark.parametrize(("decision", "said"), [(True, "2000 will be paid."), (False, "Not this time.")])
async def test_a_large_request_waits_for_a_decision_however_long(decision: bool, said: str) -> None:
    host = Host()
    await host.load(EXAMPLES / "approval.json")
    approval = await host.run("approval", input={"amount": 2000})
    await host.advance(timedelta(days=30))
    assert approval.sub_status == "Suspended"
    await host.publish_event("decided", decision)
    assert (approval.sub_status, approval.output) == ("Finished", {"approved": decision})
    assert host.console.written[-1] == said


async def test_the_countdown_says_one_number_a_second() -> None:
    host = Host()
    await host.load(EXAMPLES / "countdown.json")
    countdown = await host.run("countdown")
    begun = host.clock.now()
    assert host.console.written == ["3 ..."]
    await host.advance(timedelta(seconds=2))
    assert host.console.written == ["3 ...", "2 ...", "1 ..."]
    await host.advance(timedelta(seconds=1))
    assert host.console.written[-1] == "Lift off!"
    assert countdown.sub_status == "Finished"
    assert host.clock.now() - begun == timedelta(seconds=3)


async def test_an_order_without_an_address_is_undone_last_step_first() -> None:
    host = Host()
    await host.load(EXAMPLES / "order-saga.json")
    order = await host.run("order-saga", input={"product": "A chair"})
    assert (order.sub_status, order.output, order.incidents) == ("Finished", {"outcome": "undone"}, [])
    assert host.console.written == [
        "A chair is reserved.",
        "The card is charged.",
        "Refunded, because: The order has no address.",
        "Back on the shelf.",
    ]


async def test_an_order_with_an_address_is_shipped() -> None:
    host = Host()
    await host.load(EXAMPLES / "order-saga.json")
    order = await host.run("order-saga", input={"address": "1 Main Street"})
    assert order.output == {"outcome": "placed"}
    assert host.console.written[-1] == "On its way to 1 Main Street."


async def test_the_parent_uses_the_child_like_an_activity() -> None:
    host = Host()
    await host.load(EXAMPLES / "child.json", EXAMPLES / "parent.json")
    invoice = await host.run("invoice", input={"net": 40})
    assert invoice.output == {"gross": 50.0}


async def test_custom_activities_of_each_form_work_together() -> None:
    made = runpy.run_path(str(EXAMPLES / "custom_activity.py"))
    activities = [made[name] for name in ("price", "AskCustomer", "OrderPlaced", "Repeat")]
    host = Host(activities=activities)
    definition = await host.load(made["order_workflow"])
    assert host.validate(definition) == []
    placed = Stimulus(
        name="Shop.OrderPlaced",
        payload={"shop": "north"},
        input={"order": {"product": "chair", "quantity": 2}},
        correlation_id="order-1",
    )
    assert await host.send(placed) == 1
    [order] = host.instances.values()
    assert order.variables["Total"] == Decimal("98.00")
    await host.send(Stimulus(name="Shop.AskCustomer", payload={"order": "order-1"}, input={"answer": "no"}))
    assert order.sub_status == "Finished"
    assert host.console.written == ["Another time."]


def test_the_custom_activities_show_themselves_when_run() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "custom_activity.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "Suspended: the customer has to say whether 59.70 is fine",
        "Finished: Sold! (1) Sold! (2)",
    ]
