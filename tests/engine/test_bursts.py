"""What a burst promises: order, completion, cancellation, limits, and nothing left behind."""

from typing import Any

import pytest

from holdfast import Activity, ActivityContext, Completed, Input, Invalid, Port, activity
from holdfast.engine import Limits
from holdfast.message import CancelActivity
from holdfast.testing import Host
from tests.documents import document, event, literal, script, sequence, variable, write


async def run(
    root: dict[str, Any], *, members: dict[str, Any] | None = None, **options: Any
) -> tuple[Host, Any]:
    host = Host(**options)
    await host.load(document(root, **(members or {})))
    return host, await host.run("test")


async def test_everything_side_by_side_is_one_queue_first_in_first_out() -> None:
    branches = [
        {**sequence(write(f"{name}1"), write(f"{name}2")), "id": name, "type": "Elsa.Sequence"}
        for name in "ab"
    ]
    host, _ = await run({"id": "p", "type": "Elsa.Parallel", "activities": branches})
    assert host.console.written == ["a1", "b1", "a2", "b2"]


async def test_a_cancelled_instance_has_no_bookmarks_and_takes_no_messages() -> None:
    host, instance = await run(sequence(event("e"), write("after")))
    await host.cancel(instance, "no longer wanted")
    assert (instance.sub_status, instance.bookmarks) == ("Cancelled", [])
    assert instance.records[-1].message == "no longer wanted"
    await host.publish_event("e")
    assert host.console.written == []


async def test_a_cancelled_activity_lets_its_flowchart_go_on() -> None:
    chart = {
        "id": "flowchart",
        "type": "Elsa.Flowchart",
        "activities": [write("start"), event("e"), write("after")],
        "connections": [
            {"source": "start", "target": "e", "sourcePort": "Done"},
            {"source": "e", "target": "after", "sourcePort": "Done"},
        ],
    }
    host, instance = await run(chart)
    await host.handle(instance, CancelActivity(activity_id="e"))
    assert (instance.sub_status, instance.activity_status("e")) == ("Finished", "Canceled")
    assert host.console.written == ["start"]


async def test_a_loop_that_never_waits_is_stopped_and_named() -> None:
    loop = {"id": "w", "type": "Elsa.While", "condition": literal(True), "body": write("again")}
    _, instance = await run(loop, limits=Limits(executions=2000, breath=100))
    assert instance.sub_status == "Faulted"
    assert instance.incidents[0].code == "burst.too_long"
    assert "2000 activities" in instance.incidents[0].message


async def test_an_activity_that_is_not_there_faults_only_when_it_is_reached() -> None:
    branches = {
        "id": "if",
        "type": "Elsa.If",
        "condition": literal(False),
        "then": {"id": "x", "type": "Acme.Missing", "version": 7, "secretSauce": {"kept": True}},
        "else": write("fine"),
    }
    host, instance = await run(branches)
    assert (host.console.written, instance.sub_status) == (["fine"], "Finished")
    _, faulted = await run(sequence({"id": "x", "type": "Acme.Missing", "version": 7}))
    assert "Acme.Missing" in faulted.incidents[0].message
    assert "Register it" in faulted.incidents[0].message


async def test_a_workflow_that_uses_itself_as_an_activity_says_so() -> None:
    host = Host()
    own = {"id": "own", "type": "Test", "version": 1}
    await host.load(document(sequence(own), options={"usableAsActivity": True}))
    instance = await host.run("test")
    assert "uses itself" in instance.incidents[0].message


async def test_variables_without_a_driver_are_back_at_their_default_after_a_wait() -> None:
    root = sequence(
        {
            "id": "set",
            "type": "Elsa.RunJavaScript",
            "script": literal("setKept('kept'); setLost('lost')"),
        },
        event("e"),
        {"id": "tell", "type": "Elsa.WriteLine", "text": script("`${getKept()} ${getLost()}`")},
    )
    variables = [variable("Kept", "String"), variable("Lost", "String", "default", kept=False)]
    host, _ = await run(root, members={"variables": variables})
    await host.publish_event("e")
    assert host.console.written == ["kept default"]


async def test_what_a_failed_input_says_names_the_input_and_the_reason() -> None:
    _, instance = await run({"id": "w", "type": "Elsa.WriteLine", "text": script("nobody.home")})
    message = instance.incidents[0].message
    assert message.startswith("Failed to evaluate activity input 'Text': ")
    assert "nobody" in message


async def test_a_variable_that_is_gone_is_named_in_the_incident() -> None:
    reference = {"typeName": "String", "expression": {"type": "Variable", "value": {"id": "ghost"}}}
    _, instance = await run({"id": "w", "type": "Elsa.WriteLine", "text": reference})
    assert "'ghost'" in instance.incidents[0].message


async def test_inputs_of_a_container_survive_a_wait_without_being_evaluated_again() -> None:
    asked: list[int] = []
    loop = {
        "id": "f",
        "type": "Elsa.ForEach",
        "items": script("countedItems()"),
        "body": {
            **sequence(
                event("go"), {"id": "t", "type": "Elsa.WriteLine", "text": script("getCurrentValue()")}
            )
        },
    }
    host, instance = await run(loop, functions={"countedItems": lambda: asked.append(1) or ["a", "b"]})
    before = len(asked)
    await host.publish_event("go")
    await host.publish_event("go")
    assert host.console.written == ["a", "b"]
    assert instance.sub_status == "Finished"
    assert len(asked) == before


async def test_what_hears_of_a_child_must_not_be_async_and_says_why() -> None:
    @activity(type="Test.Container")
    class Container(Activity):
        body: Port

        def execute(self, context: ActivityContext) -> None:
            context.schedule(self.body, self.body_done)

        async def body_done(self, context: ActivityContext, completed: Completed) -> None:
            """Too late to await anything here."""

    _, instance = await run({"id": "c", "type": "Test.Container", "body": write("x")}, activities=[Container])
    assert "body_done is async" in instance.incidents[0].message


async def test_an_activity_that_cannot_execute_stays_pending() -> None:
    @activity(type="Test.Picky")
    class Picky(Activity):
        ready: Input[bool] = False

        def can_execute(self, context: ActivityContext) -> bool:
            return self.ready

        def execute(self, context: ActivityContext) -> None:
            raise AssertionError("must not be reached")

    _, instance = await run(sequence({"id": "p", "type": "Test.Picky"}), activities=[Picky])
    assert (instance.sub_status, instance.activity_status("p")) == ("Suspended", "Pending")


async def test_an_output_that_does_not_exist_is_refused_with_those_that_do() -> None:
    @activity(type="Test.Typo")
    def typo(*, context: ActivityContext) -> str:
        context.set_output("Resutl", 1)
        return ""

    _, instance = await run({"id": "t", "type": "Test.Typo"}, activities=[typo])
    assert "Its outputs: Result" in instance.incidents[0].message


@pytest.mark.parametrize(
    "raised", [ValueError(""), KeyError("k"), RecursionError(), Invalid("bad"), StopIteration()]
)
async def test_whatever_an_activity_raises_becomes_an_incident(raised: Exception) -> None:
    @activity(type="Test.Raise")
    def raises() -> None:
        raise raised

    _, instance = await run({"id": "r", "type": "Test.Raise"}, activities=[raises])
    assert instance.sub_status == "Faulted"
    assert instance.incidents[0].exception_type == type(raised).__name__
    assert instance.incidents[0].message
