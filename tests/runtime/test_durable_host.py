"""The durable host for tests: what a test sees of the local host, it sees of the runtime on a store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Activity, ActivityContext, activity
from holdfast.activities.events import PAYLOAD
from holdfast.authoring import Console
from holdfast.bookmark import Stimulus
from holdfast.clock import SystemClock
from holdfast.engine.state import decode_state
from holdfast.message import Migrate, Pause, Unpause
from holdfast.stores.memory import MemoryStore
from holdfast.stores.opening import open_store
from holdfast.testing import Host, ManualClock, durable_rest
from holdfast.testing.corpus_steps import done
from holdfast.testing.durable import AHEAD, DurableHost
from holdfast.testing.durable_rest import Unsettled
from tests.documents import captured, document, event, fault, literal, script, sequence, variable, write

AnyHost = Host | DurableHost
NewHost = Callable[..., Awaitable[AnyHost]]

STARTS = {"customProperties": {"canStartWorkflow": True}}
PAID = {"id": "tell", "type": "Elsa.PublishEvent", "eventName": literal("paid")}
TASK = {
    "id": "task",
    "type": "Elsa.RunTask",
    "taskName": literal("pack"),
    "payload": literal({"box": 7}),
    "result": captured("answer"),
}


def workflow(name: str, *activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(sequence(*activities), id=f"{name}-1", definitionId=name, **members)


def starting(kind: str, child: str) -> dict[str, Any]:
    waits = {"waitForCompletion": literal(True)}
    return {
        "id": "start",
        "type": f"Elsa.{kind}Workflow",
        "workflowDefinitionId": literal(child),
        **waits,
    }


def delay(span: str) -> dict[str, Any]:
    return {"id": "delay", "type": "Elsa.Delay", "timeSpan": literal(span)}


@activity(type="Test.Listener")
class Listener(Activity):
    """Says whatever it hears, until it hears the end."""

    def execute(self, context: ActivityContext) -> None:
        context.wait(self.hear, payload={"topic": "news"}, burns=False)

    def hear(self, context: ActivityContext) -> None:
        if context.input["Text"] == "end":
            context.complete()
        else:
            context.use(Console).write_line(context.input["Text"])


def heard(text: str) -> Stimulus:
    return Stimulus(name="Test.Listener", payload={"topic": "news"}, input={"Text": text})


@pytest.fixture
async def leaving() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture(params=["local", "memory", "sqlite"])
def new_host(request: pytest.FixtureRequest, leaving: AsyncExitStack, tmp_path: Path) -> NewHost:
    async def make(**given: Any) -> AnyHost:
        if request.param == "local":
            return Host(**given)
        if request.param == "memory":
            return await leaving.enter_async_context(DurableHost(**given))
        store = await open_store(f"sqlite:///{tmp_path / 'holdfast.db'}")
        leaving.push_async_callback(store.close)
        return await leaving.enter_async_context(DurableHost(store, **given))

    return make


async def test_the_journal_says_what_was_executed_and_what_came_of_it(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", write("a"), event("go"), write("b")))
    instance = await host.run("one")
    assert (instance.executed(), instance.activity_status("go")) == (["sequence", "a", "go"], "Running")
    await host.publish_event("go")
    assert instance.executed() == ["sequence", "a", "go", "b"]
    records = {record.activity_id: record for record in instance.activity_records()}
    assert records["a"].inputs == {"Text": "a"}
    assert [records[name].status for name in ("sequence", "a", "go", "b")] == ["Completed"] * 4
    assert [record.sequence for record in instance.records] == list(range(1, len(instance.records) + 1))


async def test_a_task_is_handed_over_and_its_completion_goes_on(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", TASK, write("packed"), variables=[variable("Answer")]))
    instance = await host.run("one")
    (task,) = host.tasks
    assert (task.name, task.payload) == ("pack", {"box": 7})
    assert await host.complete_task(task.task_id, "done") == 1
    assert (instance.sub_status, instance.variables["Answer"]) == ("Finished", "done")


async def test_an_instance_that_may_not_start_says_so_and_is_not_there(new_host: NewHost) -> None:
    host = await new_host()
    single = {"activationStrategyType": "Elsa.SingletonStrategy, Elsa"}
    await host.load(workflow("one", event("go"), options=single))
    first, second = await host.run("one"), await host.run("one")
    assert (first.started, second.started) == (True, False)
    assert list(host.instances) == [first.id]


async def test_an_event_of_a_workflow_starts_and_resumes_others(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(
        workflow("teller", PAID),
        workflow("starter", event("paid", **STARTS), write("started")),
        workflow("waiter", event("paid"), write("resumed")),
    )
    waiting = await host.run("waiter")
    await host.run("teller")
    assert sorted(host.console.written) == ["resumed", "started"]
    assert waiting.status == "Finished"
    assert sorted(i.state.definition_id for i in host.instances.values()) == ["starter", "teller", "waiter"]


async def test_what_comes_before_anybody_waits_is_kept_for_him(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", event("paid", result=captured("got")), variables=[variable("Got")]))
    assert await host.publish_event("paid", 12) == 0
    (kept,) = host.unmatched
    assert (kept.payload, kept.correlation_id) == ({"eventName": "paid"}, None)
    instance = await host.run("one")
    assert (instance.status, instance.variables["Got"], host.unmatched) == ("Finished", 12, [])


async def test_of_several_stimuli_that_came_early_each_serves_one_wait_in_their_order(
    new_host: NewHost,
) -> None:
    host = await new_host()
    said = {"id": "said", "type": "Elsa.WriteLine", "text": script("`${getGot()}`")}
    body = sequence(event("paid", result=captured("got")), said)
    loop = {"id": "loop", "type": "Elsa.For", "start": literal(1), "end": literal(3), "body": body}
    await host.load(workflow("one", loop, variables=[variable("Got")]))
    for number in (1, 2, 3, 4):
        await host.publish_event("paid", number)
    instance = await host.run("one")
    assert (instance.status, host.console.written) == ("Finished", ["1", "2", "3"])
    assert [kept.input[PAYLOAD] for kept in host.unmatched] == [4]


async def test_a_bookmark_that_waits_for_more_gets_all_that_came_early(new_host: NewHost) -> None:
    host = await new_host(activities=[Listener])
    await host.load(workflow("one", {"id": "listener", "type": "Test.Listener"}))
    for text in ("a", "b", "c"):
        await host.send(heard(text))
    instance = await host.run("one")
    assert (instance.sub_status, host.console.written) == ("Suspended", ["a", "b", "c"])
    await host.send(heard("end"))
    assert (instance.sub_status, host.unmatched) == ("Finished", [])


async def test_an_instance_that_becomes_the_one_meant_gets_what_was_kept_for_it(new_host: NewHost) -> None:
    host = await new_host()
    correlate = {"id": "become", "type": "Elsa.Correlate", "correlationId": literal("order-7")}
    fork = {
        "id": "fork",
        "type": "Elsa.Fork",
        "joinMode": "WaitAll",
        "branches": [sequence(event("paid"), id="a"), sequence(event("go"), correlate, id="b")],
    }
    await host.load(workflow("one", fork))
    instance = await host.run("one")
    await host.publish_event("paid", correlation_id="order-7")
    assert [b.activity_id for b in instance.bookmarks] == ["paid", "go"]
    await host.publish_event("go")
    assert (instance.sub_status, instance.state.correlation_id) == ("Finished", "order-7")


@pytest.mark.parametrize("new_host", ["local", "memory"], indirect=True)
async def test_what_was_kept_for_anybody_is_gone_after_a_minute(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("teller", PAID), workflow("one", event("paid")))
    await host.run("teller")
    await host.publish_event("paid")
    assert len(host.unmatched) == 2
    await host.advance(timedelta(minutes=1))
    assert (await host.run("one")).status == "Running"


async def test_timers_fire_when_the_test_lets_time_pass_and_never_before(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", delay("90.00:00:00"), write("later"), delay("00:00:01"), write("last")))
    began = host.clock.now()
    await host.run("one")
    assert host.next_due() == began + timedelta(days=90)
    await host.advance(timedelta(days=90, microseconds=-1))
    assert host.console.written == []
    await host.advance(timedelta(seconds=2))
    assert host.console.written == ["later", "last"]
    assert host.next_due() is None


async def test_schedules_start_an_instance_at_each_occurrence(new_host: NewHost) -> None:
    host = await new_host()
    timer = {"id": "timer", "type": "Elsa.Timer", "interval": literal("00:10:00"), **STARTS}
    await host.load(workflow("one", timer, write("tick")))
    await host.advance(timedelta(minutes=35))
    assert host.console.written == ["tick"] * 3
    await done(host.delete("one"))
    assert (host.next_due(), host.triggers) == (None, [])


async def test_a_republished_definition_is_what_the_next_instance_runs(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", event("go"), write("old")))
    old = await host.run("one")
    draft = workflow("one", event("go"), write("new"))
    await done(host.definitions.import_draft(draft))
    published = await done(host.publish("one"))
    new = await host.run("one")
    assert (published.version, old.state.version, new.state.version) == (2, 1, 2)
    await host.publish_event("go")
    assert sorted(host.console.written) == ["new", "old"]


async def test_work_in_the_background_has_come_back_before_a_request_returns(new_host: NewHost) -> None:
    @activity(type="Test.Slow", kind="Task")
    async def slow() -> str:
        await asyncio.sleep(0.01)
        return "done at last"

    host = await new_host(activities=[slow])
    background = {"id": "slow", "type": "Test.Slow", "customProperties": {"runAsynchronously": True}}
    root = (background | {"result": captured("answer")}, write("after"))
    await host.load(workflow("one", *root, variables=[variable("Answer")]))
    instance = await host.run("one")
    assert (instance.status, instance.variables["Answer"]) == ("Finished", "done at last")
    assert [r.event for r in instance.records if r.execution == 3] == [
        "Started",
        "Suspended",
        "Resumed",
        "Completed",
    ]


async def test_incidents_can_be_retried_and_skipped(new_host: NewHost) -> None:
    tries = iter([False, True])

    @activity(type="Test.Flaky")
    def flaky() -> None:
        if not next(tries):
            raise ValueError("not yet")

    host = await new_host(activities=[flaky])
    keeps_going = {"incidentStrategyType": "Elsa.ContinueWithIncidentsStrategy, Elsa"}
    root = ({"id": "flaky", "type": "Test.Flaky"}, fault(), write("after"))
    await host.load(workflow("one", *root, options=keeps_going))
    instance = await host.run("one")
    (incident,) = instance.incidents
    assert incident.message == "not yet"
    await host.retry(instance, incident)
    await host.skip(instance, instance.incidents[-1])
    assert (instance.status, host.console.written) == ("Finished", ["after"])


@pytest.mark.parametrize("kind", ["Execute", "Dispatch"])
async def test_a_parent_hears_of_its_child_and_takes_it_along_when_cancelled(
    new_host: NewHost, kind: str
) -> None:
    host = await new_host()
    await host.load(workflow("child", event("go")), workflow("parent", starting(kind, "child"), write("on")))
    first, second = await host.run("parent"), await host.run("parent")
    await host.cancel(second)
    ended = [i for i in host.instances.values() if i.sub_status == "Cancelled"]
    assert sorted(i.state.definition_id for i in ended) == ["child", "parent"]
    await host.publish_event("go")
    assert (first.sub_status, host.console.written) == ("Finished", ["on"])


async def test_a_resumption_says_whether_it_found_somebody(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", event("go"), event("on")))
    instance = await host.run("one")
    (bookmark,) = instance.bookmarks
    assert await host.resume(instance, "go") is True
    assert await host.resume(instance, bookmark) is False
    assert [b.activity_id for b in instance.bookmarks] == ["on"]


async def test_a_migrated_instance_tells_of_activities_of_both_versions(new_host: NewHost) -> None:
    host = await new_host()
    await host.load(workflow("one", write("a"), event("go"), write("b")))
    instance = await host.run("one")
    await done(host.definitions.import_draft(workflow("one", write("new"), event("go"), write("c"))))
    await done(host.publish("one"))
    (altered,) = await host.alter(instance, Migrate(version=2))
    assert altered.is_applied
    await host.publish_event("go")
    assert instance.executed() == ["sequence", "a", "go", "c"]
    assert instance.state.version == 2


# --- only the durable one -------------------------------------------------------------------------


async def test_a_message_for_an_instance_that_is_paused_does_not_keep_the_host_from_resting() -> None:
    async with DurableHost() as host:
        await host.load(workflow("one", event("go")))
        instance = await host.run("one")
        await host.tell(instance, Pause())
        await host.publish_event("go")
        assert (instance.sub_status, instance.columns.is_paused) == ("Suspended", True)
        await host.tell(instance, Unpause())
        assert instance.sub_status == "Finished"


async def test_a_turn_that_migrates_half_way_writes_a_journal_for_each_version() -> None:
    async with DurableHost() as host:
        await host.load(workflow("one", write("a"), event("go"), write("b"), event("on")))
        instance = await host.run("one")
        await host.definitions.import_draft(
            workflow("one", *map(write, "wxyz"), event("go"), event("on"), write("c"))
        )
        await host.publish("one")
        revision, host.node.lines.is_open = instance.revision, False
        async with asyncio.TaskGroup() as requests:
            requests.create_task(host.publish_event("go"))
            await asyncio.sleep(0.01)
            requests.create_task(host.alter(instance, Migrate(version=2)))
            await asyncio.sleep(0.01)
            host.node.lines.is_open = True
            host.node.lines.wake_takers()
        assert instance.revision == revision + 1
        await host.publish_event("on")
        assert instance.executed() == ["sequence", "a", "go", "b", "on", "c"]


async def test_a_runtime_that_does_not_come_to_rest_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_rest, "PATIENCE", 0.05)

    @activity(type="Test.Endless")
    async def endless() -> None:
        await asyncio.Event().wait()

    async with DurableHost(activities=[endless]) as host:
        await host.load(workflow("one", {"id": "endless", "type": "Test.Endless"}))
        with pytest.raises(Unsettled, match="1 turns are under way"):
            await host.run("one")


async def test_a_failing_commit_is_tried_again_before_the_host_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    async with DurableHost() as host:
        await host.load(workflow("one", write("a"), write("b")))
        commit, refused = host.store.commit, list[Any]()

        async def refusing(commits: Any) -> Any:
            if not refused:
                refused.append(commits)
                raise ValueError("the data is refused")
            return await commit(commits)

        monkeypatch.setattr(host.store, "commit", refusing)
        instance = await host.run("one")
        assert (instance.sub_status, instance.has_begun) == ("Pending", False)
        assert host.next_due() is not None
        await host.advance(timedelta(seconds=1))
        assert instance.sub_status == "Finished"


async def test_what_a_test_sees_is_what_is_stored() -> None:
    async with DurableHost() as host:
        await host.load(workflow("one", event("go"), variables=[variable("Count", "Int32", "3")]))
        instance = await host.run("one", variables={"Count": 4})
        (loaded,) = await host.store.load([("", instance.id)])
        assert loaded.state is not None
        assert decode_state(loaded.state) == instance.state
        assert instance.variables == {"Count": 4}


@pytest.mark.parametrize("url", ["memory", "sqlite"])
async def test_another_host_on_the_same_store_carries_on(url: str, tmp_path: Path) -> None:
    clock = ManualClock(AHEAD)
    database = f"sqlite:///{tmp_path / 'holdfast.db'}"
    store = MemoryStore(SystemClock()) if url == "memory" else await open_store(database)
    async with DurableHost(store, clock=clock) as first:
        await first.load(workflow("one", delay("00:01:00"), write("later")))
        instance_id = (await first.run("one")).id
    async with DurableHost(store, clock=clock) as second:
        instance = second.instances[instance_id]
        assert (instance.sub_status, second.definitions.find("one").version) == ("Suspended", 1)
        await second.advance(timedelta(minutes=1))
        assert (instance.sub_status, second.console.written) == ("Finished", ["later"])
    await store.close()


async def test_scripts_call_the_functions_of_a_test() -> None:
    async with DurableHost(functions={"rate": lambda: 3}) as host:
        await host.load(workflow("one", {"id": "w", "type": "Elsa.WriteLine", "text": script("`${rate()}`")}))
        await host.run("one")
        assert host.console.written == ["3"]
