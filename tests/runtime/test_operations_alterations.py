"""Operators change what an instance does: all alterations of a request or none."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.application import Holdfast
from holdfast.codec import decode_payload
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.engine.alterations import read_alterations
from holdfast.errors import Invalid
from holdfast.message import (
    Cancel,
    CancelActivity,
    Migrate,
    RetryIncidents,
    ScheduleActivity,
    SetVariable,
    SkipIncidents,
)
from holdfast.runtime.results import InstanceNotFound
from holdfast.store import InstanceFilter, Store
from holdfast.testing import Host
from tests.documents import document, event, fault, flowchart, literal, script, sequence, variable, write
from tests.runtime.operating import ALL, become, opened_store

TOTAL = variable("Total", "Int32", 1)


def tell(text: str, activity_id: str) -> dict[str, Any]:
    return {"id": activity_id, "type": "Elsa.WriteLine", "text": script(text)}


def version(number: int, root: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(root, id=f"test-{number}", version=number, variables=[TOTAL], **members)


ONE = version(1, sequence(write("begin"), event("go"), tell("'one ' + getTotal()", "tell")))
TWO = version(
    2,
    sequence(write("begin"), write("added"), event("go"), tell("'two ' + getTotal()", "tell"), write("end")),
)
RENAMED = version(2, sequence(event("carry-on"), tell("'renamed ' + getTotal()", "tell")))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


async def journal(holdfast: Holdfast, instance_id: str) -> list[tuple[int, str, str | None]]:
    """Of every record: the version it names activities by, its event, its message."""
    found = await holdfast.store.journal_of("", instance_id, limit=1000)
    return [(one.version, r[1], r[6]) for one in found for r in decode_payload(one.body)]


async def test_a_waiting_instance_goes_on_as_another_version(
    any_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Holdfast(any_store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.publish(TWO)
        report = await holdfast.operations.alter(
            waiting.id, Migrate(version=2), SetVariable(variable="Total", value="7")
        )
        assert report.succeeded, report
        assert (await holdfast.instance(waiting.id)).version == 2
        await holdfast.publish_event("go")
        ended = await holdfast.result(waiting.id, timeout=10)
        assert (ended.sub_status, ended.version) == ("Finished", 2)
        assert capsys.readouterr().out.split("\n")[:3] == ["begin", "two 7", "end"]
        told = await journal(holdfast, waiting.id)
        assert (2, "Altered", "Goes on as version 2.") in told
        assert {number for number, name, _ in told if name == "Started"} == {1, 2}


async def test_an_activity_that_is_called_otherwise_is_found_by_the_mapping(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.publish(RENAMED)
        refused = await holdfast.operations.alter(waiting.id, Migrate(version=2))
        assert not refused.succeeded
        assert refused.alterations[0].text == (
            "It cannot go on as version 2: Activity 'go' is open, and version 2 has no 'go'."
        )
        moved = Migrate(version=2, activities={"go": "carry-on"})
        assert (await holdfast.operations.alter(waiting.id, moved)).succeeded
        assert [b.activity_id for b in (await holdfast.instance(waiting.id)).bookmarks] == ["carry-on"]
        await holdfast.publish_event("go")
        await holdfast.result(waiting.id, timeout=10)
        assert "renamed 1" in capsys.readouterr().out


async def test_a_dry_run_says_what_cannot_be_mapped_and_changes_nothing(store: Store) -> None:
    typed = version(3, sequence(write("go")))
    dropped = version(4, sequence(event("go")))
    dropped["variables"] = []
    moved = version(5, sequence({"id": "inner", "type": "Elsa.Sequence", "activities": [event("go")]}))
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.publish(TWO)
        await holdfast.publish(typed)
        await holdfast.publish(dropped)
        await holdfast.publish(moved)
        plan = holdfast.operations.plan_migration
        assert (await plan(waiting.id, 2)).is_possible
        assert (await plan(waiting.id, 3)).problems == (
            "Activity 'go' is a Elsa.Event in version 1, and 'go' a Elsa.WriteLine in version 3.",
        )
        assert (await plan(waiting.id, 4)).lost == ("Total",)
        assert (await plan(waiting.id, 5)).problems == (
            "Activity 'go' is open inside 'sequence', and 'go' is inside 'inner' in version 5.",
        )
        assert "nothing-like-it" in str((await plan(waiting.id, 2, {"nothing-like-it": "go"})).problems)
        with pytest.raises(DefinitionNotFound):
            await plan(waiting.id, 99)
        with pytest.raises(InstanceNotFound):
            await plan("nobody", 2)
        over_all = await holdfast.operations.plan_migrations(ALL, 3)
        assert (over_all.possible, over_all.impossible, list(over_all.problems)) == (0, 1, [waiting.id])
        assert (await holdfast.instance(waiting.id)).revision == waiting.revision


async def test_of_several_alterations_all_are_applied_or_none(store: Store) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        report = await holdfast.operations.alter(
            waiting.id,
            SetVariable(variable="Total", value=5),
            CancelActivity(activity_id="nothing"),
            SetVariable(variable="Total", value=6),
        )
        assert [one.text for one in report.alterations] == [
            "Not applied, because another one was refused.",
            "No execution of activity 'nothing' is open.",
            "Not tried, because another one was refused.",
        ]
        after = await holdfast.instance(waiting.id)
        assert (after.variables["Total"], after.sub_status) == (1, "Suspended")
        told = await journal(holdfast, waiting.id)
        assert told[-1] == (1, "Alteration failed", "2 of 3: No execution of activity 'nothing' is open.")
        with pytest.raises(Invalid):
            await holdfast.operations.alter(waiting.id)


async def test_a_request_repeated_under_its_key_is_applied_once(store: Store) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        setting = SetVariable(variable="total", value=5)
        first = await holdfast.operations.alter(waiting.id, setting, key="once")
        revision = (await holdfast.instance(waiting.id)).revision
        assert await holdfast.operations.alter(waiting.id, setting, key="once") == first
        assert (await holdfast.instance(waiting.id)).revision == revision


async def test_a_paused_instance_can_be_altered_and_stays_paused(store: Store) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.pause(waiting.id)
        report = await holdfast.operations.alter(waiting.id, SetVariable(variable="Total", value=3))
        after = await holdfast.instance(waiting.id)
        assert (report.succeeded, after.is_paused, after.variables["Total"]) == (True, True, 3)


async def test_an_operator_jumps_over_a_wait_in_a_sequence(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        busy = await holdfast.operations.alter(waiting.id, ScheduleActivity(activity_id="tell"))
        assert "Cancel the one it executes first" in busy.alterations[0].text
        report = await holdfast.operations.alter(
            waiting.id, CancelActivity(activity_id="go"), ScheduleActivity(activity_id="tell")
        )
        assert report.succeeded
        assert (await holdfast.result(waiting.id, timeout=10)).sub_status == "Finished"
        assert "one 1" in capsys.readouterr().out


async def test_an_operator_jumps_over_a_wait_in_a_flowchart(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = document(flowchart(event("go"), write("behind"), connections=["go>behind"]))
    async with Holdfast(store, definitions=[chart]) as holdfast:
        waiting = await holdfast.run("test")
        report = await holdfast.operations.alter(
            waiting.id, ScheduleActivity(activity_id="behind"), CancelActivity(activity_id="go")
        )
        assert report.succeeded, report
        assert (await holdfast.result(waiting.id, timeout=10)).sub_status == "Finished"
        assert capsys.readouterr().out == "behind\n"


async def test_what_faulted_is_executed_again_or_skipped(store: Store) -> None:
    broken = document(sequence(fault(), write("behind")))
    async with Holdfast(store, definitions=[broken]) as holdfast:
        faulted = await holdfast.run("test")
        again = await holdfast.operations.alter(faulted.id, RetryIncidents())
        assert again.succeeded
        assert (await holdfast.instance(faulted.id)).sub_status == "Faulted"
        over = await holdfast.operations.alter(faulted.id, SkipIncidents(activity_ids=("fault",)))
        assert over.alterations[0].text == "1 incidents: skipped."
        ended = await holdfast.result(faulted.id, timeout=10)
        assert (ended.sub_status, list(ended.incidents)) == ("Finished", [])


async def test_an_ended_instance_changes_its_version_and_stays_ended(store: Store) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        cancelled = await holdfast.run("test")
        await holdfast.cancel(cancelled.id)
        before = await holdfast.result(cancelled.id, timeout=10)
        await holdfast.publish(TWO)
        assert (await holdfast.operations.alter(cancelled.id, Migrate(version=2))).succeeded
        after = await holdfast.instance(cancelled.id)
        assert (after.version, after.sub_status) == (2, "Cancelled")
        assert after.finished_at == before.finished_at
        late = await holdfast.operations.alter(cancelled.id, ScheduleActivity(activity_id="tell"))
        assert late.alterations[0].text == "The instance has ended; nothing more can be scheduled in it."


async def test_cancelling_by_an_alteration_reaches_the_children(store: Store) -> None:
    child = document(sequence(event("never")), definitionId="child", id="child-1")
    call = {
        "id": "call",
        "type": "Elsa.DispatchWorkflow",
        "workflowDefinitionId": literal("child"),
        "waitForCompletion": literal(True),
    }
    parent = document(sequence(call))
    async with Holdfast(store, definitions=[child, parent]) as holdfast:
        waiting = await holdfast.run("test")
        children = (await holdfast.instances(InstanceFilter(tenant="", parent_id=waiting.id))).items
        await become(holdfast, children[0].instance_id, "Suspended")
        assert (await holdfast.operations.alter(waiting.id, Cancel())).succeeded
        assert (await holdfast.result(children[0].instance_id, timeout=10)).sub_status == "Cancelled"


async def test_messages_behind_a_migration_are_handled_as_the_new_version(store: Store) -> None:
    async with Holdfast(store, definitions=[ONE]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.publish(TWO)
        await holdfast.pause(waiting.id)  # so that one turn takes them both
        await holdfast.operations.bulk.alter(ALL, Migrate(version=2))
        await holdfast.publish_event("go")
        await holdfast.unpause(waiting.id)
        ended = await holdfast.result(waiting.id, timeout=10)
        assert (ended.version, ended.sub_status) == (2, "Finished")


async def test_an_altered_instance_that_commits_after_every_activity_answers_as_well(store: Store) -> None:
    careful = {"options": {"commitStrategyName": "ActivityExecuted"}}
    async with Holdfast(store, definitions=[ONE | careful]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.publish(TWO | careful)
        report = await holdfast.operations.alter(
            waiting.id,
            Migrate(version=2),
            CancelActivity(activity_id="go"),
            ScheduleActivity(activity_id="tell"),
        )
        assert [one.text for one in report.alterations] == [
            "Goes on as version 2.",
            "1 executions cancelled.",
            "Activity 'tell' scheduled.",
        ]
        ended = await holdfast.instance(waiting.id)
        assert (ended.version, ended.sub_status) == (2, "Finished")


async def test_alterations_are_read_as_elsa_writes_them() -> None:
    assert read_alterations(
        [
            {"type": "Migrate", "targetVersion": 2},
            {"type": "ModifyVariable", "variableId": "v", "value": [1]},
            {"type": "ScheduleActivity", "activityId": "a"},
            {"type": "CancelActivity", "activityInstanceId": "i-7"},
            {"Type": "Cancel"},
        ]
    ) == (
        Migrate(version=2),
        SetVariable(variable="v", value=[1]),
        ScheduleActivity(activity_id="a"),
        CancelActivity(execution=7),
        Cancel(),
    )
    for wrong in ({"type": "Migrate"}, {"type": "Migrate", "targetVersion": "x"}, {"type": "Dance"}):
        with pytest.raises(Invalid):
            read_alterations([wrong])


async def test_a_join_does_not_wait_for_a_branch_that_is_new_behind_what_was_left() -> None:
    """On the local host: what a flowchart has counted fits the other version."""
    old = flowchart(
        write("first"), event("go"), {"id": "join", "type": "Elsa.FlowJoin"}, write("last"),
        connections=["first>go", "go>join", "join>last"],
    )  # fmt: skip
    new = flowchart(
        write("first"), event("go"), write("more"), {"id": "join", "type": "Elsa.FlowJoin"}, write("last"),
        connections=["first>go", "first>more", "go>join", "more>join", "join>last"],
    )  # fmt: skip
    host = Host()
    await host.load(version(1, old))
    instance = await host.run("test")
    await host.load(version(2, new))
    told = await host.alter(instance, Migrate(version=2))
    assert all(one.is_applied for one in told), told
    await host.publish_event("go")
    assert (instance.sub_status, host.console.written) == ("Finished", ["first", "last"])


async def test_a_sequence_goes_on_behind_the_activity_it_executes_wherever_that_is_now() -> None:
    host = Host()
    await host.load(ONE)
    instance = await host.run("test")
    await host.load(TWO)
    await host.alter(instance, Migrate(version=2))
    await host.publish_event("go")
    assert host.console.written == ["begin", "two 1", "end"]


def test_alterations_are_written_as_they_are_read() -> None:
    from holdfast.message import Alter
    from holdfast.runtime.letters import opened, sealed

    message = Alter(
        alterations=(
            Migrate(version=2, activities={"a": "b"}),
            SetVariable(variable="x", value={"deep": [1, None]}),
            SkipIncidents(activity_ids=("a",), outcomes=("Done",)),
        )
    )
    envelope = sealed(message, tenant="", instance_id="i", shard=0)
    assert msgspec.json.encode(opened(envelope)) == msgspec.json.encode(message)
