"""The front door: what an application does with Holdfast, on a store in memory and on real databases."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from holdfast import ActivityContext, Holdfast, NotFound, activity
from holdfast.clock import SystemClock
from holdfast.errors import Invalid
from holdfast.instance import SubStatus
from holdfast.runtime import turn
from holdfast.runtime.results import InstanceNotFound
from holdfast.sources.folders import FolderReport
from holdfast.store import InstanceFilter, Placement, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.opening import open_store
from tests.documents import document, event, fault, literal, script, sequence, variable, write
from tests.guarantees.bench import until
from tests.stores.test_sql_stores import empty

COUNT = [variable("Count", "Int32", "0")]


def workflow(name: str, *activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(sequence(*activities), id=f"{name}-1", definitionId=name, variables=COUNT, **members)


def dispatch_of(name: str, *, waits: bool = True, kind: str = "Elsa.DispatchWorkflow") -> dict[str, Any]:
    return {
        "id": f"start {name}",
        "type": kind,
        "workflowDefinitionId": literal(name),
        "waitForCompletion": literal(waits, "Boolean"),
        "result": {"typeName": "Object", "memoryReference": {"id": "count"}},
    }


@pytest.fixture(params=["memory", "sqlite", "postgres", "mariadb"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(SystemClock())
        return
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    opened = await open_store(url, migrate_first=True)
    await opened._database.write(empty)
    yield opened
    await opened.close()


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Holdfast]:
    """One node on SQLite, for what does not depend on the database."""
    async with Holdfast(f"sqlite:///{tmp_path / 'alone.db'}") as holdfast:
        yield holdfast


def happens(what: Callable[[], Any]) -> Any:
    async def ask() -> bool:
        return bool(what())

    return until(ask)


async def rests(holdfast: Holdfast, instance_id: str, sub_status: SubStatus) -> None:
    async def is_there() -> bool:
        return (await holdfast.instance(instance_id)).sub_status is sub_status

    await until(is_there)


async def test_a_workflow_runs_to_its_first_wait_and_goes_on_with_an_event(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", event("paid"), write("thanks"))]) as holdfast:
        instance = await holdfast.run("order", correlation_id="o-1", name="Order 1")
        assert (instance.sub_status, instance.correlation_id) == (SubStatus.SUSPENDED, "o-1")
        sent = await holdfast.publish_event("paid", correlation_id="o-1")
        assert sent.resumed == (instance.id,)
        assert (await holdfast.result(instance.id, timeout=20)).sub_status is SubStatus.FINISHED


async def test_work_goes_on_where_it_was_when_the_application_starts_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    async with Holdfast(url, definitions=[workflow("order", event("paid"))]) as holdfast:
        instance = await holdfast.run("order")
    async with Holdfast(url) as holdfast:
        await holdfast.resume(instance.id, instance.bookmarks[0])
        assert (await holdfast.result(instance.id, timeout=20)).sub_status is SubStatus.FINISHED


async def test_an_event_that_a_definition_begins_with_starts_it(store: Store) -> None:
    begins = workflow("begins", event("ordered", canStartWorkflow=True), write("hello"))
    async with Holdfast(store, definitions=[begins]) as holdfast:
        sent = await holdfast.publish_event("ordered", {"n": 1})
        assert len(sent.started) == 1
        assert (await holdfast.result(sent.started[0], timeout=20)).sub_status is SubStatus.FINISHED


async def test_a_parent_hears_of_its_children_dispatched_or_inline(store: Store) -> None:
    child = workflow("child", event("go"))
    quick = workflow("quick", write("quick"))
    parents = [
        workflow("dispatcher", dispatch_of("child")),
        workflow("executor", dispatch_of("child", kind="Elsa.ExecuteWorkflow")),
        workflow("inline", dispatch_of("quick", kind="Elsa.ExecuteWorkflow")),
    ]
    async with Holdfast(store, definitions=[child, quick, *parents]) as holdfast:
        inline = await holdfast.run("inline")
        assert inline.sub_status is SubStatus.FINISHED
        waiting = [await holdfast.run(name) for name in ("dispatcher", "executor")]
        for parent in waiting:
            assert parent.sub_status is SubStatus.SUSPENDED
            wanted = InstanceFilter(tenant="", parent_id=parent.id)

            async def has_child(wanted: InstanceFilter = wanted) -> bool:
                page = await holdfast.instances(wanted)
                return [s.columns.sub_status for s in page.items] == [SubStatus.SUSPENDED]

            await until(has_child)
        assert (await holdfast.publish_event("go")).hit == 2
        for parent in waiting:
            assert (await holdfast.result(parent.id, timeout=20)).sub_status is SubStatus.FINISHED


async def test_a_cancel_reaches_all_children_in_steps(store: Store) -> None:
    child = workflow("child", event("go"))
    many = {
        "id": "many",
        "type": "Elsa.BulkDispatchWorkflows",
        "workflowDefinitionId": literal("child"),
        "items": script("[1, 2, 3, 4, 5, 6, 7]"),
        "waitForCompletion": literal(True, "Boolean"),
    }
    with patch.object(turn, "CHILDREN", 3):
        async with Holdfast(store, definitions=[child, workflow("parent", many)]) as holdfast:
            parent = await holdfast.run("parent")
            children = InstanceFilter(tenant="", parent_id=parent.id)

            async def all_are(sub_status: SubStatus) -> bool:
                found = [s.columns.sub_status for s in (await holdfast.instances(children)).items]
                return found == [sub_status] * 7

            await until(lambda: all_are(SubStatus.SUSPENDED))
            await holdfast.cancel(parent.id, "not wanted any more")
            await until(lambda: all_are(SubStatus.CANCELLED))


async def test_a_paused_instance_stands_still_and_loses_nothing(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", event("paid"))]) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.pause(instance.id, "being looked at")

        async def is_paused() -> bool:
            return (await holdfast.instance(instance.id)).is_paused

        await until(is_paused)
        await holdfast.publish_event("paid")
        await asyncio.sleep(0.3)
        assert (await holdfast.instance(instance.id)).sub_status is SubStatus.SUSPENDED
        await holdfast.unpause(instance.id)
        assert (await holdfast.result(instance.id, timeout=20)).sub_status is SubStatus.FINISHED


async def test_a_deleted_instance_is_gone_with_all_that_belongs_to_it(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", event("paid"))]) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.delete(instance.id)

        async def is_gone() -> bool:
            return not await holdfast.store.load([("", instance.id)])

        await until(is_gone)
        assert (await holdfast.publish_event("paid")).hit == 0
        assert await holdfast.store.journal_of("", instance.id) == []
        with pytest.raises(InstanceNotFound):
            await holdfast.cancel(instance.id)


async def test_an_activity_in_the_background_comes_back_with_its_outcome(store: Store) -> None:
    @activity(type="Test.Slow", category="Test", runs_in_background=True)
    async def slow(*, context: ActivityContext) -> int:
        """Takes its time."""
        await asyncio.sleep(0.05)
        return 42

    done = {
        "id": "slow",
        "type": "Test.Slow",
        "result": {"typeName": "Object", "memoryReference": {"id": "count"}},
    }
    async with Holdfast(store, definitions=[workflow("order", done)], activities=[slow]) as holdfast:
        instance = await holdfast.result(await holdfast.dispatch("order"), timeout=20)
        assert instance.variables == {"Count": 42}


async def test_many_starts_are_one_request(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", write("hello"))]) as holdfast:
        started = await holdfast.dispatch_many("order", [{"n": n} for n in range(200)])
        assert all(isinstance(one, str) for one in started) and len(set(map(str, started))) == 200

        async def all_ended() -> bool:
            wanted = InstanceFilter(tenant="", sub_statuses=(SubStatus.FINISHED,))
            return (await holdfast.instances(wanted)).total == 200

        await until(all_ended)


async def test_an_incident_is_retried_with_other_inputs_or_skipped(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", fault("no"), write("after"))]) as holdfast:
        for retry in (True, False):
            instance = await holdfast.result(await holdfast.dispatch("order"), timeout=20)
            assert instance.sub_status is SubStatus.FAULTED
            execution = instance.incidents[0].execution
            if retry:
                await holdfast.retry(instance.id, execution, inputs={"Message": "still no"})

                async def said(instance_id: str = instance.id) -> bool:
                    found = (await holdfast.instance(instance_id)).incidents
                    return bool(found) and "still no" in found[0].message

                await until(said)
            else:
                await holdfast.skip(instance.id, execution)
                await rests(holdfast, instance.id, SubStatus.FINISHED)


async def test_a_second_node_takes_half_the_shards_and_gives_them_back(store: Store) -> None:
    async with Holdfast(store) as one:
        await happens(lambda: len(one.node.reader.shards) == 64)
        async with Holdfast(store) as other:
            await happens(lambda: len(one.node.reader.shards) == len(other.node.reader.shards) == 32)
            assert not set(one.node.reader.shards) & set(other.node.reader.shards)
        await happens(lambda: len(one.node.reader.shards) == 64)


async def test_a_group_of_shards_is_worked_by_its_own_nodes_only(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", write("hello"))]) as usual:
        group = await store.create_group("special", 4)
        await store.place(Placement(tenant="", definition_id="order", group="special"))
        await happens(lambda: usual.world.shards.of("", "order", "x") >= group.first)
        instance_id = await usual.dispatch("order")
        await asyncio.sleep(0.3)
        pending = await usual.instance(instance_id)
        assert pending.sub_status is SubStatus.PENDING, "nobody is there for it"
        async with Holdfast(store, groups=["special"]) as special:
            assert (await usual.result(instance_id, timeout=20)).sub_status is SubStatus.FINISHED
            assert set(special.node.reader.shards) == set(range(group.first, group.first + group.count))


async def test_who_only_sends_works_nothing(store: Store) -> None:
    async with Holdfast(store, definitions=[workflow("order", write("hello"))], works=False) as sender:
        instance_id = await sender.dispatch("order")
        with pytest.raises(TimeoutError):
            await sender.result(instance_id, timeout=0.3)
        async with Holdfast(store):
            assert (await sender.result(instance_id, timeout=20)).sub_status is SubStatus.FINISHED


async def test_a_parent_of_many_children_hears_them_all(store: Store) -> None:
    many = {
        "id": "many",
        "type": "Elsa.BulkDispatchWorkflows",
        "workflowDefinitionId": literal("child"),
        "items": script("Array.from({length: 400}, (_, n) => n)"),
        "waitForCompletion": literal(True, "Boolean"),
    }
    definitions = [workflow("child", write("done")), workflow("parent", many)]
    async with Holdfast(store, definitions=definitions, slots=16) as holdfast:
        parent = await holdfast.dispatch("parent")
        assert (await holdfast.result(parent, timeout=60)).sub_status is SubStatus.FINISHED


async def test_a_folder_is_watched_and_a_broken_file_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "workflows"
    folder.mkdir()
    (folder / "hello.json").write_text(json.dumps(workflow("hello", write("one"))))
    (folder / "broken.json").write_text('{"root": ')
    reports: list[FolderReport] = []
    holdfast = Holdfast(f"sqlite:///{tmp_path / 'holdfast.db'}", folders=[folder])
    holdfast.on_folder = reports.append
    async with holdfast:
        assert [path.name for path in reports[0].problems] == ["broken.json"]
        first = await holdfast.run("hello")
        assert (first.version, first.sub_status) == (1, SubStatus.FINISHED)
        changed = workflow("hello", write("two"), write("three"))
        (folder / "hello.json").write_text(json.dumps(changed | {"version": 2, "id": "hello-2"}))
        await happens(lambda: len(reports) > 1 and reports[-1].taken)
        assert (await holdfast.run("hello")).version == 2


async def test_a_module_brings_its_workflows_and_activities(tmp_path: Path) -> None:
    (tmp_path / "orders_module.py").write_text(
        "from holdfast import Workflow, activity, place, sequence\n"
        "@activity\n"
        "def greet(name: str) -> str:\n"
        "    '''Greets.'''\n"
        "    return f'Hello {name}'\n"
        "hello = Workflow('hello')\n"
        "hello.root = sequence(place(greet, 'you'))\n"
    )
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    async with Holdfast(url, modules=[str(tmp_path / "orders_module.py")]) as holdfast:
        assert (await holdfast.run("hello")).sub_status is SubStatus.FINISHED


@pytest.mark.parametrize("instance_id", ["", "with space", "a/b", "x" * 65, "ümlaut"])
async def test_an_id_that_nobody_can_use_is_refused(alone: Holdfast, instance_id: str) -> None:
    await alone.publish(workflow("order", write("hello")))
    with pytest.raises(Invalid, match="instance id"):
        await alone.dispatch("order", instance_id=instance_id)


async def test_what_does_not_exist_is_said_plainly(alone: Holdfast) -> None:
    with pytest.raises(NotFound, match="nonsense"):
        await alone.run("nonsense")
    with pytest.raises(InstanceNotFound, match="nobody"):
        await alone.instance("nobody")


async def test_an_error_of_the_caller_stays_the_callers(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with Holdfast(f"sqlite:///{tmp_path / 'holdfast.db'}"):
            _ = 1 / 0


async def test_a_timer_is_set_and_withdrawn_with_its_wait(store: Store) -> None:
    race = {
        "id": "race",
        "type": "Elsa.Fork",
        "joinMode": "WaitAny",
        "branches": [
            event("paid"),
            {"id": "late", "type": "Elsa.Delay", "timeSpan": literal("00:00:01")},
        ],
    }
    async with Holdfast(store, definitions=[workflow("order", race, write("after"))]) as holdfast:
        in_time, late = await holdfast.run("order"), await holdfast.run("order")
        await holdfast.publish_event("paid", instance_id=in_time.id)
        assert (await holdfast.result(in_time.id, timeout=20)).sub_status is SubStatus.FINISHED
        assert (await holdfast.result(late.id, timeout=20)).sub_status is SubStatus.FINISHED
        assert await store.due(range(64), SystemClock().now() + timedelta(days=1), 10) == []


async def test_a_request_that_cannot_be_written_fails_alone(alone: Holdfast) -> None:
    await alone.publish(workflow("order", write("hello")))
    outcomes = await asyncio.gather(
        *(alone.dispatch("order", name="\ud800" if n == 3 else None) for n in range(6)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, str) for outcome in outcomes] == [n != 3 for n in range(6)]


async def test_a_parent_hears_of_a_child_that_is_deleted(store: Store) -> None:
    definitions = [workflow("child", event("go")), workflow("parent", dispatch_of("child"), write("after"))]
    async with Holdfast(store, definitions=definitions) as holdfast:
        parent = await holdfast.run("parent")
        children = InstanceFilter(tenant="", parent_id=parent.id, sub_statuses=(SubStatus.SUSPENDED,))

        async def waits() -> bool:
            return (await holdfast.instances(children)).total == 1

        await until(waits)
        await holdfast.delete((await holdfast.instances(children)).items[0].instance_id)
        assert (await holdfast.result(parent.id, timeout=20)).sub_status is SubStatus.FINISHED
