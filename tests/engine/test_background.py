"""Activities that leave the burst, and come back with what they did."""

from typing import Any

from holdfast import Fault, activity
from holdfast.testing import Host
from tests.documents import captured, document, sequence, variable, write


def in_background(**members: Any) -> dict[str, Any]:
    return {"id": "slow", "type": "Test.Slow", "customProperties": {"runAsynchronously": True}, **members}


async def test_a_background_activity_leaves_the_burst_and_comes_back_with_its_result() -> None:
    @activity(type="Test.Slow", kind="Task")
    async def slow() -> str:
        return "done at last"

    host = Host(activities=[slow])
    root = sequence(in_background(result=captured("answer")), write("after"))
    await host.load(document(root, variables=[variable("Answer")]))
    instance = await host.run("test")
    assert (host.console.written, instance.variables["Answer"]) == (["after"], "done at last")
    events = [r.event for r in instance.records if r.execution == 3]
    assert events == ["Started", "Suspended", "Resumed", "Completed"]


async def test_a_fault_in_the_background_is_an_incident_of_that_activity() -> None:
    @activity(type="Test.Slow", kind="Job")
    def slow() -> None:
        raise Fault("no answer", fault_code="E7")

    host = Host(activities=[slow])
    await host.load(document(in_background()))
    instance = await host.run("test")
    assert [(i.activity_id, i.message, i.code) for i in instance.incidents] == [("slow", "no answer", "E7")]


async def test_an_action_stays_in_the_burst_whatever_the_definition_asks() -> None:
    @activity(type="Test.Slow")
    def slow() -> None:
        """An action, not a task."""

    host = Host(activities=[slow])
    await host.load(document(in_background()))
    instance = await host.run("test")
    assert "Suspended" not in [r.event for r in instance.records]
