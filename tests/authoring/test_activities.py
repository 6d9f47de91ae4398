"""Writing activities: functions, classes, waits, triggers, containers, and what is read from them."""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest

from holdfast import (
    Activity,
    ActivityContext,
    Completed,
    Field,
    Input,
    Output,
    Port,
    Ports,
    Stimulus,
    TriggerContext,
    activity,
)
from holdfast.authoring import ActivityTypes, DuplicateActivityType, activity_type
from holdfast.authoring.activity import ActivityInvalid
from holdfast.testing import Host
from tests.documents import captured, document, literal, script, sequence, variable, write


@activity(category="Payments")
async def charge(card: str, amount: Decimal = Decimal(1), *, context: ActivityContext) -> str:
    """Charges a card.

    The long story is not shown.

    Args:
        card: The card to charge.
        amount: How much, in the
            currency of the card.
    """
    return f"{card} {amount} {context.idempotency_key}"


def test_a_function_tells_everything_by_its_signature_and_docstring() -> None:
    descriptor = activity_type(charge).descriptor
    assert (descriptor.type_name, descriptor.category) == ("Charge", "Payments")
    assert descriptor.description == "Charges a card."
    card, amount = descriptor.inputs
    assert (card.name, card.type.name, card.required, card.description) == (
        "Card",
        "String",
        True,
        "The card to charge.",
    )
    assert (amount.type.name, amount.default, amount.required) == ("Decimal", Decimal(1), False)
    assert amount.description == "How much, in the currency of the card."
    assert [(o.name, o.type.name) for o in descriptor.outputs] == [("Result", "String")]


async def test_a_function_is_called_with_its_inputs_and_its_value_is_the_result() -> None:
    host = Host(activities=[charge])
    root = sequence(
        {
            "id": "c",
            "type": "Charge",
            "card": literal("visa"),
            "amount": literal("9.90"),
            "result": captured("answer"),
        }
    )
    await host.load(document(root, variables=[variable("Answer")]))
    instance = await host.run("test")
    assert instance.variables["Answer"] == f"visa 9.90 {instance.id}/c/3"


class Address(msgspec.Struct):
    city: str
    tags: list[str] = []


@activity
def greet(where: Address, mood: Literal["glad", "sad"] = "glad") -> Address:
    """Takes a struct and gives one back."""
    assert isinstance(where, Address)
    return Address(city=where.city.upper(), tags=[mood])


async def test_structured_inputs_arrive_as_what_was_annotated() -> None:
    host = Host(activities=[greet])
    root = sequence(
        {"id": "g", "type": "Greet", "where": script("({city: 'Bern'})"), "result": captured("answer")},
        {"id": "t", "type": "Elsa.WriteLine", "text": script("getAnswer().city")},
    )
    await host.load(document(root, variables=[variable("Answer")]))
    await host.run("test")
    assert host.console.written == ["BERN"]


@activity(category="Approvals", outcomes=("Approved", "Rejected"))
class Approve(Activity):
    """Waits until somebody decides."""

    who: Input[str]
    note: Input[Annotated[str, Field("Shown to the approver.", hint="multiline")]] = ""
    decision: Output[str]

    def execute(self, context: ActivityContext) -> None:
        context.wait(self.decided, payload={"who": self.who})

    def decided(self, context: ActivityContext) -> None:
        decision = str(context.input["decision"])
        context.set_output("decision", decision)
        context.complete(decision)


async def test_a_blocking_activity_waits_under_its_payload_and_resumes_with_a_method() -> None:
    host = Host(activities=[Approve])
    chart = {
        "id": "f",
        "type": "Elsa.Flowchart",
        "activities": [{"id": "a", "type": "Approve", "who": literal("ada")}, write("yes"), write("no")],
        "connections": [
            {"source": {"activity": "a", "port": "Approved"}, "target": {"activity": "yes"}},
            {"source": {"activity": "a", "port": "Rejected"}, "target": {"activity": "no"}},
        ],
    }
    await host.load(document(chart))
    instance = await host.run("test")
    assert [(b.name, b.payload) for b in instance.bookmarks] == [("Approve", {"who": "ada"})]
    assert await host.send(Stimulus(name="Approve", payload={"who": "bob"})) == 0
    assert (
        await host.send(Stimulus(name="Approve", payload={"Who": "ada"}, input={"decision": "Rejected"})) == 1
    )
    assert host.console.written == ["no"]
    assert [r.outputs for r in instance.records if r.event == "Completed" and r.outputs] == [
        {"Decision": "Rejected"}
    ]


@activity(category="Mail", kind="Trigger")
class MailArrives(Activity):
    """Starts a workflow when a mail for an address arrives, or waits for one."""

    address: Input[str]
    mail: Output[Any]

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        return [{"address": self.address.lower()}]

    def execute(self, context: ActivityContext) -> None:
        if context.started_here:
            self.arrived(context)
        else:
            context.wait(self.arrived, payload={"address": self.address.lower()})

    def arrived(self, context: ActivityContext) -> None:
        context.set_output("mail", context.input.get("mail"))


async def test_a_trigger_is_indexed_at_publish_and_knows_that_it_started_the_workflow() -> None:
    host = Host(activities=[MailArrives])
    starting = {"customProperties": {"canStartWorkflow": True}}
    root = sequence(
        {
            "id": "m",
            "type": "MailArrives",
            "address": literal("Me@Example.org"),
            "mail": captured("mail"),
            **starting,
        },
        {"id": "t", "type": "Elsa.WriteLine", "text": script("`got ${getMail()}`")},
    )
    await host.load(document(root, variables=[variable("Mail")]))
    assert [t.payload for t in host.triggers] == [{"address": "me@example.org"}]
    hit = await host.send(
        Stimulus(name="MailArrives", payload={"address": "me@example.org"}, input={"mail": "hello"})
    )
    assert (hit, host.console.written) == (1, ["got hello"])
    waiting = await host.run("test")
    assert waiting.sub_status == "Suspended"


@activity(category="Control")
class Race(Activity):
    """Runs all, completes with the first, tells the loser's name."""

    runners: Ports
    photo_finish: Port

    def execute(self, context: ActivityContext) -> None:
        for runner in self.runners:
            context.schedule(runner, self.arrived, variables={"Lane": runner.id})

    def arrived(self, context: ActivityContext, completed: Completed) -> None:
        if "Winner" in context.state:
            return
        context.state["Winner"] = completed.child.id
        context.cancel_children()
        context.schedule(self.photo_finish, self.developed, variables={"Winner": completed.child.id})

    def developed(self, context: ActivityContext, completed: Completed) -> None:
        context.complete()


async def test_a_container_schedules_cancels_and_gives_its_children_variables() -> None:
    host = Host(activities=[Race])
    waits = [
        {"id": name, "type": "Elsa.Delay", "timeSpan": literal(span)}
        for name, span in (("hare", "00:02:00"), ("tortoise", "00:01:00"))
    ]
    photo = {"id": "photo", "type": "Elsa.WriteLine", "text": script("getWinner()")}
    await host.load(document({"id": "race", "type": "Race", "runners": waits, "photoFinish": photo}))
    instance = await host.run("test")
    assert len(instance.bookmarks) == 2
    await host.advance(timedelta(minutes=1))
    assert (host.console.written, instance.sub_status) == (["tortoise"], "Finished")
    assert instance.activity_status("hare") == "Canceled"


def test_ports_outcomes_and_hints_are_in_the_descriptor() -> None:
    race = activity_type(Race).descriptor
    assert [(p.name, p.json_name, p.many) for p in race.ports] == [
        ("Runners", "runners", True),
        ("PhotoFinish", "photoFinish", False),
    ]
    approve = activity_type(Approve).descriptor
    assert approve.outcomes == ("Approved", "Rejected")
    assert [(i.name, i.hint, i.required) for i in approve.inputs] == [
        ("Who", "singleline", True),
        ("Note", "multiline", False),
    ]


def test_inputs_without_names_are_refused_when_decorating() -> None:
    with pytest.raises(ActivityInvalid, match="takes \\*things"):

        @activity
        def many(*things: str) -> None: ...


def test_a_class_that_is_no_activity_is_refused_with_the_way_out() -> None:
    with pytest.raises(ActivityInvalid, match="class Lost\\(Activity\\)"):

        @activity
        class Lost: ...


def test_two_activities_cannot_have_one_name_and_version() -> None:
    @activity(type="Charge")
    def other() -> None: ...

    with pytest.raises(DuplicateActivityType, match="another `type` or `version`"):
        ActivityTypes([charge, other])


def test_something_undecorated_is_no_activity() -> None:
    with pytest.raises(ActivityInvalid, match="@activity"):
        Host(activities=[lambda: None])


def test_without_a_version_the_highest_one_is_meant() -> None:
    @activity(type="Versioned", version=1)
    def old() -> None: ...

    @activity(type="Versioned", version=2)
    def new() -> None: ...

    types = ActivityTypes([new, old])
    found = types.find("Versioned"), types.find("Versioned", 1), types.find("Versioned", 9)
    assert [t.descriptor.version for t in found if t] == [2, 1, 2]


async def test_a_mutable_default_is_not_shared_between_executions() -> None:
    seen: list[list[int]] = []

    @activity(type="Test.Collect")
    def collect(into: list[int] = []) -> None:  # noqa: B006  that is the point
        into.append(1)
        seen.append(into)

    host = Host(activities=[collect])
    await host.load(
        document(sequence({"id": "a", "type": "Test.Collect"}, {"id": "b", "type": "Test.Collect"}))
    )
    await host.run("test")
    assert seen == [[1], [1]]


async def test_an_input_may_be_called_like_a_member_of_the_activity_itself() -> None:
    @activity(type="Test.Greet")
    def greet_by(name: str, id: int = 0) -> str:  # noqa: A002  that is the point
        return f"{name} {id}"

    assert [i.json_name for i in activity_type(greet_by).descriptor.inputs] == ["_name", "_id"]
    host = Host(activities=[greet_by])
    for members in ({"_name": literal("Ada"), "_id": literal(7)}, {"name": literal("Ada"), "id": literal(7)}):
        await host.load(
            document(
                {"type": "Test.Greet", **members, "result": captured("answer")},
                variables=[variable("Answer")],
            )
        )
        assert (await host.run("test")).variables["Answer"] == "Ada 7"


def test_an_input_cannot_be_called_type_and_says_what_to_do() -> None:
    with pytest.raises(ActivityInvalid, match="such as `kind`"):

        @activity
        def typed(type: str) -> None: ...  # noqa: A002  that is the point


@activity(type="Test.Parcel")
def parcel(to: str, country: str = "DE") -> str:
    """Needs an address; the country has a default."""
    return f"{to} {country}"


@pytest.mark.parametrize("missing", [None, script("null"), script("getInput('nothing')")])
async def test_what_evaluates_to_nothing_gets_the_default(missing: Any) -> None:
    host = Host(activities=[parcel])
    root = {
        "id": "p",
        "type": "Test.Parcel",
        "to": literal("Ada"),
        "country": missing,
        "result": captured("answer"),
    }
    await host.load(document(root, variables=[variable("Answer")]))
    assert (await host.run("test")).variables["Answer"] == "Ada DE"


@pytest.mark.parametrize("missing", [None, script("null")])
async def test_a_required_input_without_a_value_faults_and_names_it(missing: Any) -> None:
    host = Host(activities=[parcel])
    await host.load(document({"id": "p", "type": "Test.Parcel", "to": missing}))
    message = (await host.run("test")).incidents[0].message
    assert message.startswith("Failed to evaluate activity input 'To': it has no value")
    assert message.endswith("Give 'To' a value.")


async def test_an_activity_with_named_outcomes_must_choose_one() -> None:
    @activity(type="Test.Pay", outcomes=("Paid", "Declined"))
    def pay() -> str:
        return "paid"

    host = Host(activities=[pay])
    await host.load(document({"id": "p", "type": "Test.Pay"}))
    message = (await host.run("test")).incidents[0].message
    assert "without choosing an outcome" in message
    assert "Paid, Declined" in message


def test_a_literal_offers_its_choices() -> None:
    (_, mood) = activity_type(greet).descriptor.inputs
    assert (mood.hint, mood.options) == ("dropdown", ("glad", "sad"))
