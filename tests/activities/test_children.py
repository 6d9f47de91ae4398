"""Children: executed here, dispatched, refused, cancelled with their parent."""

from typing import Any

import pytest

from holdfast.testing import Host
from tests.documents import captured, document, event, literal, sequence, variable, write


def child(root: dict[str, Any], **options: Any) -> dict[str, Any]:
    return document(root, definitionId="child", id="child-1", name="Child", options=options)


def starting(kind: str, **members: Any) -> dict[str, Any]:
    return {
        "id": "start",
        "type": f"Elsa.{kind}Workflow",
        "workflowDefinitionId": literal("child"),
        "waitForCompletion": literal(True),
        "result": captured("answer"),
        **members,
    }


async def family(kind: str, root: dict[str, Any], **options: Any) -> Host:
    host = Host()
    await host.load(
        child(root, **options),
        document(sequence(starting(kind), write("parent done")), variables=[variable("Answer")]),
    )
    return host


@pytest.mark.parametrize("kind", ["Execute", "Dispatch"])
async def test_a_parent_waits_for_its_child_over_a_wait_of_the_childs_own(kind: str) -> None:
    host = await family(kind, sequence(event("go"), write("child done")))
    parent = await host.run("test")
    assert parent.sub_status == "Suspended"
    await host.publish_event("go")
    assert host.console.written == ["child done", "parent done"]
    assert parent.sub_status == "Finished"


@pytest.mark.parametrize("kind", ["Execute", "Dispatch"])
async def test_a_child_that_faults_or_is_cancelled_lets_its_parent_go_on(kind: str) -> None:
    host = await family(kind, event("never"))
    parent = await host.run("test")
    (started,) = [i for i in host.instances.values() if i.state.parent_id == parent.id]
    await host.cancel(started)
    assert host.console.written == ["parent done"]


@pytest.mark.parametrize("kind", ["Execute", "Dispatch"])
async def test_a_parent_hears_that_its_child_was_refused(kind: str) -> None:
    host = await family(kind, event("never"), activationStrategyType="Elsa.SingletonStrategy, Elsa")
    first = await host.run("test")
    second = await host.run("test")
    assert (first.sub_status, second.sub_status) == ("Suspended", "Finished")
    assert host.console.written == ["parent done"]


async def test_cancelling_a_parent_cancels_its_running_children() -> None:
    host = await family("Dispatch", event("never"))
    parent = await host.run("test")
    await host.cancel(parent)
    assert {i.sub_status for i in host.instances.values()} == {"Cancelled"}


@pytest.mark.parametrize("kind", ["Execute", "Dispatch"])
async def test_an_unknown_child_faults_with_what_to_do(kind: str) -> None:
    host = Host()
    await host.load(document(starting(kind)))
    parent = await host.run("test")
    assert "Publish it" in parent.incidents[0].message
    assert parent.incidents[0].code == "definition.not_found"


async def test_the_result_of_an_executed_child_has_one_shape_whether_or_not_it_waited() -> None:
    waited = await family("Execute", sequence(event("go")))
    direct = await family("Execute", sequence())
    one, other = await waited.run("test"), await direct.run("test")
    await waited.publish_event("go")
    for parent in (one, other):
        answer = parent.variables["Answer"]
        assert set(answer) == {"workflowInstanceId", "status", "subStatus", "output"}
        assert (answer["status"], answer["subStatus"]) == ("Finished", "Finished")


async def test_a_bulk_dispatch_tells_of_each_child_and_completes_after_the_last() -> None:
    host = Host()
    faults_on_two = {
        "id": "if",
        "type": "Elsa.If",
        "condition": {
            "typeName": "Boolean",
            "expression": {"type": "JavaScript", "value": "getInput('Item') == 2"},
        },
        "then": {"id": "f", "type": "Elsa.Fault", "message": literal("two")},
    }
    tell = {
        "typeName": "String",
        "expression": {"type": "JavaScript", "value": "`ended ${!!getChildInstanceId()}`"},
    }
    bulk = {
        "id": "bulk",
        "type": "Elsa.BulkDispatchWorkflows",
        "workflowDefinitionId": literal("child"),
        "items": {"typeName": "Object", "expression": {"type": "JavaScript", "value": "[1, 2, 3]"}},
        "childCompleted": {"id": "c", "type": "Elsa.WriteLine", "text": tell},
        "childFaulted": write("faulted"),
    }
    connections = [
        {"source": {"activity": "bulk", "port": "Completed"}, "target": {"activity": "all done"}},
    ]
    chart = {
        "id": "f",
        "type": "Elsa.Flowchart",
        "activities": [bulk, write("all done")],
        "connections": connections,
    }
    await host.load(child(faults_on_two), document(chart))
    parent = await host.run("test")
    assert sorted(host.console.written[:3]) == ["ended true", "ended true", "faulted"]
    assert (host.console.written[3:], parent.sub_status) == (["all done"], "Finished")
