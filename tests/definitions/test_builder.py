"""Workflows written in Python: the documents they give, and how these run."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from holdfast.activities import BUILT_IN
from holdfast.activities.code import RunJavaScript
from holdfast.activities.composites import workflow_activity_types
from holdfast.activities.control import Fork, If, Parallel, Sequence, Switch
from holdfast.activities.data import RaiseFault, SetVariable, WriteLine
from holdfast.activities.events import Event, PublishEvent
from holdfast.activities.flow import FlowDecision, FlowFork, FlowJoin, FlowSwitch
from holdfast.activities.loops import Break, For, ForEach, ParallelForEach, While
from holdfast.activities.scopes import Saga, Try
from holdfast.activities.state_machine import StateMachine
from holdfast.activities.timers import Delay
from holdfast.authoring import Activity, ActivityContext, Property, activity
from holdfast.definitions.builder import (
    BuilderInvalid,
    Placed,
    Workflow,
    case,
    choice,
    decision,
    flowchart,
    for_,
    for_each,
    fork,
    if_,
    js,
    liquid,
    parallel,
    place,
    plain,
    python,
    saga,
    sequence,
    switch,
    try_,
    variable,
    while_,
)
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.graph import RetryPolicy
from holdfast.testing import Host


@activity
def charge(card: str, amount: int, note: str = "") -> int:
    """Take the money."""
    return amount * 2


@activity(outcomes=("Approved", "Rejected"))
def review(context: ActivityContext, score: int) -> None:
    context.complete("Approved" if score > 5 else "Rejected")


@activity
def remember(thing: Any, context: ActivityContext) -> str:
    return type(thing).__name__


OWN = [charge, review, remember]


def say(text: Any, **about: Any) -> Placed:
    return place(WriteLine, text, **about)


def built(root: Placed) -> Definition:
    workflow = Workflow("w")
    workflow.root = root
    return workflow.build()


def json_of(root: Placed) -> dict[str, Any]:
    return dict(built(root).root)


async def lines(root: Placed | Definition, **given: Any) -> list[str]:
    """What a workflow writes when it runs to its end."""
    host = Host(activities=OWN)
    definition = await host.load(root if isinstance(root, Definition) else built(root))
    instance = await host.run(definition.definition_id, **given)
    assert (instance.sub_status, instance.incidents) == ("Finished", [])
    return host.console.written


def order() -> Workflow:
    workflow = Workflow("order", name="Order", description="Takes orders")
    amount = workflow.variable("Amount", int, default=0)
    customer = workflow.input("Customer", str)
    total = workflow.output("Total", int)
    workflow.root = sequence(
        amount.set(12),
        say(js("`Amount: ${getAmount()}`")),
        say(customer),
        if_(js("getAmount() > 10"), then=[say("big"), say("deal")], else_=say("small")),
        place(charge, "4111", amount, result=total, id="pay"),
        say(liquid("{{ Variables.Amount }}")),
    )
    return workflow


# --- the document ---------------------------------------------------------------------------------


async def test_a_workflow_runs_as_it_reads() -> None:
    host = Host(activities=OWN)
    await host.load(order().build())
    instance = await host.run("order", input={"Customer": "Ann"})
    assert host.console.written == ["Amount: 12", "Ann", "big", "deal", "12"]
    assert instance.output == {"Total": 24}


async def test_the_document_survives_the_round_trip_and_runs_alike() -> None:
    definition = order().build()
    loaded = load_definition(definition.save())
    assert loaded.source == definition.source
    assert loaded.content_hash == definition.content_hash
    given = {"input": {"Customer": "Ann"}}
    assert await lines(loaded, **given) == await lines(definition, **given)


def test_the_same_code_gives_the_same_document() -> None:
    assert order().build().save() == order().build().save()


def test_one_workflow_can_be_built_again() -> None:
    workflow = order()
    assert workflow.build().save() == workflow.build().save()


def test_activities_without_an_id_are_numbered_in_the_order_of_the_document() -> None:
    root = json_of(sequence(say("a"), say("b", id="WriteLine2"), say("c", name="Last"), sequence(say("d"))))
    first, second, third, inner = root["activities"]
    assert [a["id"] for a in (first, second, third, inner)] == [
        "WriteLine1",
        "WriteLine2",
        "WriteLine3",
        "Sequence2",
    ]
    assert inner["activities"][0]["id"] == "WriteLine4"
    assert [a["name"] for a in (first, third)] == ["WriteLine1", "Last"]


async def test_scripts_reach_an_output_by_the_name_of_its_activity() -> None:
    root = sequence(place(charge, "4111", 4, name="Pay"), say(js("getResultFromPay()")))
    assert await lines(root) == ["8"]


def test_what_can_be_said_about_any_activity_stands_where_elsa_has_it() -> None:
    policy = RetryPolicy(attempts=5, delay=2.0)
    found = json_of(
        say(
            "x",
            display_text="Hello",
            description="Says hello",
            can_start=True,
            run_asynchronously=True,
            merge_mode="Race",
            commit_strategy="Always",
            retry=policy,
            custom={"mine": 1},
            metadata={"designer": {"position": {"x": 1, "y": 2}}},
        )
    )
    assert found["customProperties"] == {
        "canStartWorkflow": True,
        "runAsynchronously": True,
        "mergeMode": "Race",
        "commitStrategyName": "Always",
        "retryPolicy": {"attempts": 5, "delay": 2.0, "factor": 2.0, "longest": 300.0},
        "mine": 1,
    }
    assert found["metadata"] == {
        "designer": {"position": {"x": 1, "y": 2}},
        "displayText": "Hello",
        "description": "Says hello",
    }


def test_saying_more_about_an_activity_leaves_the_first_one_as_it_was() -> None:
    plain_one = say("x")
    named = plain_one.about(name="Hello", id="hello")
    assert json_of(sequence(plain_one, named))["activities"][1]["name"] == "Hello"
    assert plain_one.said == {}


def test_a_workflow_says_how_it_wants_to_be_run() -> None:
    workflow = Workflow(
        "w",
        version=3,
        published=False,
        outcomes=["Yes", "No"],
        usable_as_activity=True,
        auto_update_consumers=True,
        activity_category="Mine",
        activation="Singleton",
        incidents="ContinueWithIncidents",
        commit_strategy="Always",
        flowchart_mode="TokenBased",
        custom={"a": 1},
    )
    workflow.root = sequence()
    definition = workflow.build()
    options = definition.options
    assert (definition.id, definition.version, definition.is_published) == ("w-3", 3, False)
    assert (options.usable_as_activity, options.auto_update_consumers) == (True, True)
    assert (options.activation_strategy, options.incident_strategy) == (
        "SingletonStrategy",
        "ContinueWithIncidentsStrategy",
    )
    assert (options.activity_category, options.commit_strategy) == ("Mine", "Always")
    assert definition.outcomes == ("Yes", "No")
    assert definition.custom_properties == {"Flowchart:ExecutionMode": "TokenBased", "a": 1}


# --- values ---------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


@dataclass
class Line:
    item: str
    count: int


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        ("text", {"type": "Literal", "value": "text"}),
        (12, {"type": "Literal", "value": 12}),
        (1.5, {"type": "Literal", "value": 1.5}),
        (True, {"type": "Literal", "value": True}),
        (None, {"type": "Literal", "value": None}),
        (Decimal("1.10"), {"type": "Literal", "value": "1.10"}),
        (timedelta(hours=1, days=2), {"type": "Literal", "value": "2.01:00:00"}),
        (datetime(2026, 1, 2, tzinfo=UTC), {"type": "Literal", "value": "2026-01-02T00:00:00+00:00"}),
        (Colour.RED, {"type": "Literal", "value": "red"}),
        ([1, 2], {"type": "JavaScript", "value": "([1,2])"}),
        (Line("anvil", 2), {"type": "JavaScript", "value": '({"item":"anvil","count":2})'}),
        (js("1 + 1"), {"type": "JavaScript", "value": "1 + 1"}),
        (liquid("{{ 1 }}"), {"type": "Liquid", "value": "{{ 1 }}"}),
        (python("1 + 1"), {"type": "Python", "value": "1 + 1"}),
    ],
)
def test_values_become_expressions(value: Any, expression: dict[str, Any]) -> None:
    assert json_of(place(remember, value))["thing"] == {"typeName": "Object", "expression": expression}


def test_lists_for_a_typed_input_are_json_text() -> None:
    found = json_of(for_each(["a"], say("x")))
    assert found["items"]["expression"] == {"type": "Object", "value": '["a"]'}


async def test_a_dict_for_an_input_of_any_type_arrives_as_a_dict() -> None:
    workflow = Workflow("w")
    kind = workflow.output("Kind", str)
    workflow.root = place(remember, {"a": [1]}, result=kind)
    host = Host(activities=OWN)
    await host.load(workflow.build())
    assert (await host.run("w")).output == {"Kind": "dict"}


def test_variables_are_declared_with_elsas_types_and_defaults() -> None:
    workflow = Workflow("w")
    workflow.variable("Count", int, default=3)
    workflow.variable("Names", list[str], default=["a"])
    workflow.variable("Ready", bool, default=True, kept=False)
    workflow.variable("Wait", timedelta, default=timedelta(minutes=5))
    workflow.variable("Price", "Decimal", default="1.5", id="p1")
    workflow.variable("Order", Line, default=Line("anvil", 1))
    workflow.variable("Anything")
    workflow.root = sequence()
    definition = workflow.build()
    assert [(v.name, v.type.name, v.default, v.is_kept) for v in definition.variables] == [
        ("Count", "Int64", 3, True),
        ("Names", "String[]", ["a"], True),
        ("Ready", "Boolean", True, False),
        ("Wait", "TimeSpan", timedelta(minutes=5), True),
        ("Price", "Decimal", Decimal("1.5"), True),
        ("Order", "Object", {"item": "anvil", "count": 1}, True),
        ("Anything", "Object", None, True),
    ]
    assert definition.source["variables"][1] == {
        "id": "namesVariable",
        "name": "Names",
        "typeName": "String",
        "isArray": True,
        "value": '["a"]',
        "storageDriverTypeName": "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core",
    }
    assert definition.variables[4].id == "p1"


async def test_a_container_can_declare_variables_of_its_own() -> None:
    count = variable("Count", int, default=1)
    root = sequence(
        sequence(count.set(js("getCount() + 1")), say(js("getCount()")), variables=[count]),
        place(Sequence, count.set(5), say(count), variables=[count]),
    )
    assert await lines(root) == ["2", "5"]


async def test_outputs_are_captured_in_variables_and_workflow_outputs() -> None:
    workflow = Workflow("w")
    paid = workflow.variable("Paid", int)
    was_big = workflow.variable("WasBig", bool)
    done = workflow.output("Done", str)
    workflow.root = sequence(
        place(charge, card="4111", amount=21, result=paid),
        if_(js("getPaid() > 40"), result=was_big),
        done.set(js("`${getPaid()} ${getWasBig()}`")),
    )
    host = Host(activities=OWN)
    await host.load(workflow.build())
    assert (await host.run("w")).output == {"Done": "42 true"}


async def test_kept_inputs_and_variables_survive_a_wait() -> None:
    workflow = Workflow("w")
    who = workflow.input("Who", str)
    count = workflow.variable("Count", int)
    workflow.root = sequence(count.set(3), place(Delay, timedelta(hours=1)), say(who), say(count))
    host = Host()
    await host.load(workflow.build())
    await host.run("w", input={"Who": "Ann"})
    await host.advance(timedelta(hours=1))
    assert host.console.written == ["Ann", "3"]


# --- any activity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("made", BUILT_IN, ids=lambda made: made.__name__)
def test_every_registered_type_can_be_placed(made: Any) -> None:
    kind = made.__activity_type__
    inputs = {i.attribute: js("null") for i in kind.descriptor.inputs if i.required and i.wrapped}
    host = Host()
    definition = host.definitions.provide(built(sequence(place(made, **inputs))).source)
    node = host.definitions.graph(definition).nodes[2]
    assert node.type_name == kind.name


@pytest.mark.parametrize(
    ("block", "placed"),
    [
        (lambda: sequence(say("a")), lambda: place(Sequence, say("a"))),
        (lambda: parallel(say("a"), say("b")), lambda: place(Parallel, say("a"), say("b"))),
        (lambda: fork(say("a"), join="WaitAny"), lambda: place(Fork, say("a"), join_mode="WaitAny")),
        (
            lambda: if_(js("x"), then=say("a"), else_=say("b")),
            lambda: place(If, js("x"), then=say("a"), else_=say("b")),
        ),
        (
            lambda: switch(case("A", js("x"), say("a")), default=say("b"), mode="MatchAny"),
            lambda: place(
                Switch,
                mode="MatchAny",
                cases=plain(
                    [{"label": "A", "condition": {"type": "JavaScript", "value": "x"}, "activity": say("a")}]
                ),
                default=say("b"),
            ),
        ),
        (lambda: decision(js("x")), lambda: place(FlowDecision, js("x"))),
        (
            lambda: choice(case("A", True)),
            lambda: place(
                FlowSwitch,
                mode="MatchFirst",
                cases=plain([{"label": "A", "condition": {"type": "Literal", "value": True}}]),
            ),
        ),
        (lambda: while_(js("x"), say("a")), lambda: place(While, js("x"), say("a"))),
        (
            lambda: for_(1, 3, say("a"), step=2, inclusive=False),
            lambda: place(For, 1, 3, 2, False, body=say("a")),
        ),
        (lambda: for_each([1], say("a"), say("b")), lambda: place(ForEach, [1], say("a"), say("b"))),
        (lambda: for_each([1], say("a"), at_once=True), lambda: place(ParallelForEach, [1], say("a"))),
        (
            lambda: try_(say("a"), catch=say("b"), finally_=say("c"), codes=["x"]),
            lambda: place(Try, codes=["x"], body=say("a"), catch=say("b"), finally_=say("c")),
        ),
        (
            lambda: saga((say("a"), say("b")), say("c"), rethrow=True),
            lambda: place(
                Saga,
                rethrow=True,
                steps=plain([{"action": say("a"), "undo": say("b")}, {"action": say("c"), "undo": None}]),
            ),
        ),
        (
            lambda: variable("X", int).set(1),
            lambda: place(SetVariable, variable("X", int), 1),
        ),
    ],
)
def test_a_block_is_what_its_type_asks_for(block: Callable[[], Placed], placed: Callable[[], Placed]) -> None:
    left, right = block(), placed()
    around = [variable("X", int)]
    written, expected = (json_of(sequence(one, variables=around)) for one in (left, right))
    assert without_type_names(written) == without_type_names(expected)
    assert left.outcomes == right.outcomes


def without_type_names(json: Any) -> Any:
    """The type an input claims to have means nothing to anybody."""
    if isinstance(json, dict):
        return {k: without_type_names(v) for k, v in json.items() if k != "typeName"}
    return [without_type_names(item) for item in json] if isinstance(json, list) else json


async def test_a_type_known_only_by_name_is_placed_unchecked() -> None:
    workflow = Workflow("w")
    paid = workflow.variable("Paid", int)
    workflow.root = place(
        "Elsa.Sequence",
        place("Charge", card="4111", amount=4, result=paid),
        place("Elsa.WriteLine", text=paid),
        place("Elsa.If", condition=True, then=place("Elsa.WriteLine", text="yes")),
    )
    assert await lines(workflow.build()) == ["8", "yes"]


async def test_a_workflow_is_placed_in_another_like_any_activity() -> None:
    child = Workflow("greet", name="Greet", usable_as_activity=True)
    who = child.input("Who", str)
    greeting = child.output("Greeting", str)
    child.root = sequence(say(who), greeting.set(js("`Hello ${getWho()}`")))
    kind = workflow_activity_types(child.build())[0]
    parent = Workflow("parent")
    text = parent.variable("Text", str)
    parent.root = sequence(place(kind, who="Ann", greeting=text), say(text))
    host = Host()
    await host.load(child.build())
    await host.load(parent.build())
    await host.run("parent")
    assert host.console.written == ["Ann", "Hello Ann"]
    with pytest.raises(BuilderInvalid, match=r"Greet has no 'whom'. Did you mean"):
        place(kind, whom="Ann")


async def test_members_that_are_neither_inputs_nor_ports_are_written_plain() -> None:
    root = place(
        StateMachine,
        initial_state="New",
        states=plain([{"name": "New", "entry": say("new")}, {"name": "Paid", "entry": say("paid")}]),
        transitions=plain(
            [{"name": "Pay", "from": "New", "to": "Paid", "trigger": place(Delay, "00:00:01")}]
        ),
    )
    host = Host()
    await host.load(built(root))
    await host.run("w")
    await host.advance(timedelta(seconds=1))
    assert host.console.written == ["new", "paid"]


def test_a_property_takes_lists_and_dicts_as_they_are() -> None:
    @activity
    class Table(Activity):
        columns: Property[list[str]] = []  # noqa: RUF012  never changed

    assert json_of(place(Table, ["a", "b"]))["columns"] == ["a", "b"]


async def test_an_input_may_have_the_name_that_every_activity_has() -> None:
    @activity
    def greet(name: str, description: str = "") -> str:
        return f"{name} {description}"

    workflow = Workflow("w")
    said = workflow.output("Said", str)
    workflow.root = sequence(place(greet, name="Ann", description="x", result=said).about(description="y"))
    host = Host(activities=[greet])
    definition = await host.load(workflow.build())
    assert definition.root["activities"][0]["metadata"] == {"description": "y"}
    assert (await host.run("w")).output == {"Said": "Ann x"}


# --- how blocks run -------------------------------------------------------------------------------


async def test_loops_and_choices_run_as_they_read() -> None:
    count = variable("Count", int, default=0)
    item = js("getCurrentValue()")
    root = sequence(
        while_(js("getCount() < 2"), count.set(js("getCount() + 1")), say(count)),
        for_(1, 5, say(item), step=2),
        for_each(["a", "b", "c"], if_(js("getCurrentValue() == 'c'"), then=place(Break)), say(item)),
        switch(
            case("no", False, say("no")),
            case("yes", js("true"), say("yes"), say("indeed")),
            default=say("else"),
        ),
        parallel(say("left"), say("right")),
        variables=[count],
    )
    assert await lines(root) == ["1", "2", "1", "3", "5", "a", "b", "yes", "indeed", "left", "right"]


async def test_faults_are_caught_and_steps_undone() -> None:
    root = sequence(
        try_(
            say("try"),
            place(RaiseFault, message="broken", code="E1"),
            catch=say(js("getError().message")),
            finally_=say("finally"),
            codes=["E1"],
        ),
        saga(
            (say("book"), say("cancel")),
            (say("pay"), say("refund")),
            place(RaiseFault, message="no"),
        ),
    )
    assert await lines(root) == ["try", "broken", "finally", "book", "pay", "refund", "cancel"]


async def test_an_activity_is_tried_as_often_as_its_author_says() -> None:
    tries: list[int] = []

    @activity
    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not yet")
        return "done"

    host = Host(activities=[flaky])
    await host.load(built(place(flaky, retry=3)))
    instance = await host.run("w")
    await host.advance(timedelta(minutes=1))
    assert (instance.status, len(tries)) == ("Finished", 3)


# --- paths ----------------------------------------------------------------------------------------


def connections(root: Placed) -> list[str]:
    return [
        f"{c['source']['activity']}:{c['source']['port']}>{c['target']['activity']}"
        for c in json_of(root)["connections"]
    ]


async def test_a_flowchart_follows_its_paths() -> None:
    workflow = Workflow("w")
    count = workflow.variable("Count", int, default=0)
    start, done = say("start"), say("done")
    check = decision(js("getCount() < 2"))
    workflow.root = flowchart(
        start >> check,
        check["True"] >> count.set(js("getCount() + 1")) >> say(count) >> check,
        check["False"] >> done,
    )
    assert await lines(workflow.build()) == ["start", "1", "2", "done"]


def test_a_path_forks_to_several_and_joins_again() -> None:
    a, b, c, d, e = (say(name, id=name) for name in "abcde")
    assert connections(flowchart(a >> (b, c >> d) >> e)) == [
        "a:Done>b",
        "a:Done>c",
        "c:Done>d",
        "b:Done>e",
        "d:Done>e",
    ]


def test_a_path_goes_on_from_the_outcome_it_names() -> None:
    a, b = say("a", id="a"), say("b", id="b")
    check, other = decision(True, id="check"), decision(True, id="other")
    chart = flowchart(a >> check["True"] >> b, (check["False"], other["False"]) >> b, other["True"] >> b)
    assert connections(chart) == [
        "a:Done>check",
        "check:True>b",
        "check:False>b",
        "other:False>b",
        "other:True>b",
    ]


async def test_a_flowchart_begins_with_what_is_mentioned_first() -> None:
    first, again, loose = say("first"), decision(False), say("loose")
    chart = flowchart(first >> again, again["True"] >> first, loose >> again)
    assert json_of(chart)["activities"][0]["type"] == "Elsa.Start"
    assert await lines(chart) == ["first"]


async def test_a_trigger_in_a_flowchart_starts_it() -> None:
    host = Host()
    await host.load(built(flowchart(place(Event, "Ordered", can_start=True) >> say("ordered"))))
    await host.publish_event("Ordered")
    assert host.console.written == ["ordered"]


async def test_every_activity_has_an_error_path() -> None:
    broken = place(RaiseFault, message="broken")
    assert await lines(flowchart(broken >> say("fine"), broken["Error"] >> say("caught"))) == ["caught"]


async def test_outcomes_may_depend_on_what_the_author_wrote() -> None:
    script = place(RunJavaScript, "setOutcome('Blue'); 1", possible_outcomes=["Red", "Blue"])
    split = place(FlowFork, ["Left", "Right"])
    join = place(FlowJoin, "WaitAll")
    chosen = choice(case("Big", False), case("Small", True))
    chart = flowchart(
        script["Blue"] >> split,
        split["Left"] >> say("left") >> join,
        split["Right"] >> say("right") >> join,
        join >> chosen["Small"] >> say("small"),
        chosen["Default"] >> say("default"),
    )
    assert await lines(chart) == ["left", "right", "small"]
    with pytest.raises(BuilderInvalid, match=r"no outcome 'Green'. .*Its outcomes: Red, Blue"):
        script["Green"]


async def test_own_outcomes_are_followed() -> None:
    check = place(review, score=7)
    chart = flowchart(check["Approved"] >> say("yes"), check["Rejected"] >> say("no"))
    assert await lines(chart) == ["yes"]


def test_a_connection_written_twice_counts_once() -> None:
    a, b = say("a", id="a"), say("b", id="b")
    assert connections(flowchart(a >> b, a >> b)) == ["a:Done>b"]


# --- what makes no sense --------------------------------------------------------------------------

PATH = say("a") >> say("b")
CHECK = decision(True)
FOREIGN = Workflow("other").variable("Foreign", int)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: place(WriteLine, txet="x"),
            "no 'txet'. Did you mean 'text'. It has inputs: text.",
        ),
        (lambda: place(charge, "1", 2, resullt=FOREIGN), "Did you mean 'result'"),
        (lambda: place(If, then_=say("a"), esle=say("b")), "Did you mean 'else_'.*ports: then, else_"),
        (lambda: place(WriteLine, "x", can_strat=True), "Did you mean 'can_start'"),
        (lambda: sequence(say("a"), nmae="x"), "Did you mean 'name'"),
        (lambda: place(charge, "4111"), "Charge needs a value for amount"),
        (lambda: place(charge, "4111", "many"), "Charge.amount: 'many' .* cannot become Int64"),
        (lambda: place(charge, "4111", 1, "x", "y"), "Charge takes 3 values by position: card, amount, note"),
        (lambda: place(charge, "4111", card="x", amount=1), "Charge.card is given twice"),
        (lambda: place(charge, "4111", 1, result=5), "Charge.result is an output: give it the variable"),
        (lambda: place(charge, say("x"), amount=1), "Charge cannot tell where the activities belong"),
        (lambda: place(charge, card=say("x"), amount=1), "Charge.card takes a value or an expression"),
        (lambda: place(If, True, say("a")), "Name the port: then, else_"),
        (lambda: place(If, then=5), "If.then takes a list of placed activities, not 5"),
        (lambda: place(Sequence, "a"), "Sequence takes 0 values by position"),
        (lambda: place(Fork, join_mode=js("x")), "Fork.join_mode is fixed when the workflow is written"),
        (lambda: place(Fork, join_mode="WaitSome"), "Fork.join_mode"),
        (lambda: place(Sequence, variables=[5]), "takes what variable"),
        (lambda: place(print), "is not an activity. Decorate it"),
        (lambda: place(WriteLine, object()), "WriteLine.text: .* no JSON form"),
        (lambda: place(WriteLine, "x", id=5), "WriteLine: Expected `str`, got `int`"),
        (lambda: place(WriteLine, "x", merge_mode="Zip"), "Invalid enum value 'Zip'"),
        (lambda: CHECK["Treu"], "FlowDecision has no outcome 'Treu'. Did you mean 'True'"),
        (lambda: CHECK >> say("a"), "no outcome 'Done'. Say which way to go on"),
        (lambda: say("a") >> ["b"], "Only placed activities can be connected"),
        (lambda: sequence(PATH), "this is a path: make it a flowchart"),
        (lambda: for_each([1], "x"), "takes placed activities"),
        (lambda: choice(case("A", True, say("a"))), "Case 'A' has activities"),
        (lambda: variable("X", "Int33"), "There is no type 'Int33'"),
        (lambda: variable("X", int, default="many"), "variable 'X': 'many'"),
        (lambda: Workflow("w").build(), "Workflow 'w' has no root activity"),
        (lambda: built(PATH), "has no root activity"),
        (lambda: built(sequence(FOREIGN.set(1))), "SetVariable uses the variable 'Foreign'.*Declared: none"),
        (lambda: built(sequence(say("a", id="x"), say("b", id="x"))), "have the same id"),
        (lambda: built(sequence(*[say("a")] * 2)), "stands at two places"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(BuilderInvalid, match=message) as refused:
        wrong()
    assert refused.value.code == "builder.invalid"


def test_nothing_is_declared_twice() -> None:
    workflow = Workflow("w")
    workflow.variable("Amount", int)
    workflow.input("Amount", int)
    with pytest.raises(BuilderInvalid, match="The variable 'amount' is declared already"):
        workflow.variable("amount", str)


def test_a_variable_is_known_only_inside_the_container_that_declares_it() -> None:
    count = variable("Count", int)
    workflow = Workflow("w")
    workflow.variable("Counter", int)
    workflow.root = sequence(sequence(count.set(1), variables=[count]), say(count))
    with pytest.raises(BuilderInvalid, match=r"'Count', which nothing around .* Did you mean 'Counter'"):
        workflow.build()


def test_an_activity_is_no_list() -> None:
    with pytest.raises(TypeError):
        list(place("Some.Type"))  # type: ignore[call-overload]


def test_events_are_published_with_what_they_carry() -> None:
    found = json_of(place(PublishEvent, "Paid", payload={"id": 1}))
    assert found["payload"]["expression"]["value"] == '({"id":1})'
