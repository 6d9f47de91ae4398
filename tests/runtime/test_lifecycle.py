"""Whoever listens hears what happened, in order, after it was committed, and disturbs nobody."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Activity, Holdfast, activity
from holdfast.clock import SystemClock
from holdfast.commit import Commit, Envelope
from holdfast.errors import Invalid, Unavailable
from holdfast.instance import SubStatus
from holdfast.message import HandOver
from holdfast.runtime.lifecycle import EventType, LifecycleEvent, cloud_event
from holdfast.runtime.listeners import QUEUE, EventStream
from holdfast.store import Admission, Committed, OutboxRow, StaleTurn, Store
from holdfast.stores.memory import MemoryStore
from tests.documents import document, event, fault, literal, sequence, write
from tests.runtime.operating import opened_store, until

INSTANCES = [kind for kind in EventType if kind.startswith("instance.")]


def workflow(name: str, *activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(sequence(*activities), id=f"{name}-1", definitionId=name, **members)


ORDER = workflow("order", write("hello"), event("paid"), write("thanks"))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


class Heard(list[LifecycleEvent]):
    """A subscriber that remembers."""

    async def __call__(self, one: LifecycleEvent) -> None:
        self.append(one)

    @property
    def types(self) -> list[str]:
        return [one.type.value for one in self]

    def of(self, instance_id: str | None) -> list[str]:
        return [one.type.value for one in self if one.instance_id == instance_id]


async def hears(heard: Heard, what: Callable[[], bool]) -> None:
    async def is_true() -> bool:
        return what()

    await until(is_true)


async def test_a_subscriber_hears_the_life_of_an_instance_in_order(store: Store) -> None:
    heard = Heard()
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        holdfast.subscribe(heard)
        instance = await holdfast.run("order", correlation_id="o-1", name="Order 1")
        await holdfast.publish_event("paid")
        await holdfast.result(instance.id, timeout=10)
    assert heard.types == [
        "instance.started",
        "activity.completed",
        "instance.suspended",
        "instance.resumed",
        "activity.completed",
        "activity.completed",
        "activity.completed",
        "activity.completed",
        "instance.finished",
    ]
    assert [one.data["activityId"] for one in heard if one.type is EventType.ACTIVITY_COMPLETED] == [
        "hello",
        "paid",
        "thanks",
        "sequence",
        "Workflow1",
    ]
    assert {(one.tenant, one.definition_id, one.version, one.instance_id) for one in heard} == {
        ("", "order", 1, instance.id)
    }
    assert {one.correlation_id for one in heard} == {"o-1"}
    assert heard[0].data == {"name": "Order 1"}
    assert [(one.revision, one.number) for one in heard] == [
        *((1, number) for number in range(3)),
        *((2, number) for number in range(6)),
    ]


async def test_nobody_hears_of_what_was_not_committed() -> None:
    class Away(MemoryStore):
        is_away = False

        async def commit(self, commits: Any) -> list[Committed | StaleTurn]:
            if self.is_away:
                raise Unavailable("gone for a moment")
            return await super().commit(commits)

    heard = Heard()
    store = Away(SystemClock())
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        holdfast.subscribe(heard, INSTANCES)
        store.is_away = True
        started = await holdfast.dispatch("order")
        await asyncio.sleep(0.2)
        assert heard == []
        store.is_away = False
        await hears(heard, lambda: len(heard) == 2)
    assert [(one.type.value, one.instance_id, one.revision) for one in heard] == [
        ("instance.started", started, 1),
        ("instance.suspended", started, 1),
    ]


async def test_a_subscriber_may_want_some_types_of_one_tenant(store: Store) -> None:
    heard = Heard()
    async with Holdfast(store) as holdfast:
        for tenant in ("acme", "other"):
            await holdfast.publish(ORDER, tenant=tenant)
        holdfast.subscribe(heard, ["instance.suspended"], tenant="acme")
        ids = [(await holdfast.run("order", tenant=tenant)).id for tenant in ("other", "acme")]
    assert [(one.type, one.instance_id) for one in heard] == [(EventType.INSTANCE_SUSPENDED, ids[1])]


async def test_an_unknown_type_is_refused_with_those_there_are(store: Store) -> None:
    async with Holdfast(store) as holdfast:
        with pytest.raises(Invalid, match=r"instance\.exploded.*instance\.started"):
            holdfast.subscribe(print, ["instance.exploded"])


async def test_the_ends_of_instances_say_how_they_ended(store: Store) -> None:
    heard = Heard()
    output = {
        "id": "out",
        "type": "Elsa.SetOutput",
        "outputName": literal("Total"),
        "outputValue": literal(42),
    }
    good = workflow("good", output, outputs=[{"name": "Total", "type": "Int32"}])
    bad = workflow("bad", fault("no money", "funds"))
    async with Holdfast(store, definitions=[good, bad, ORDER]) as holdfast:
        holdfast.subscribe(heard)
        await holdfast.run("good")
        broken = await holdfast.run("bad")
        waiting = await holdfast.run("order")
        await holdfast.cancel(waiting.id)
        await holdfast.result(waiting.id, timeout=10)
    finished = next(one for one in heard if one.type is EventType.INSTANCE_FINISHED)
    assert finished.data == {"output": {"Total": 42}}
    assert heard.of(broken.id) == [
        "instance.started",
        "activity.faulted",
        "incident.raised",
        "instance.faulted",
    ]
    incident = next(one for one in heard if one.type is EventType.INCIDENT_RAISED)
    assert (incident.data["message"], incident.data["code"]) == ("no money", "funds")
    assert heard.of(waiting.id)[-1] == "instance.cancelled"
    assert "instance.resumed" not in heard.of(waiting.id)


async def test_a_cancel_before_the_start_is_heard_as_well() -> None:
    heard = Heard()
    store = MemoryStore(SystemClock())
    async with Holdfast(store, definitions=[ORDER], works=False) as sender:
        started = await sender.dispatch("order")
        await sender.cancel(started)
    async with Holdfast(store) as holdfast:
        holdfast.subscribe(heard)
        await holdfast.result(started, timeout=10)
        await hears(heard, lambda: bool(heard))
    assert heard.of(started) == ["instance.cancelled"]


async def test_a_task_is_handed_over_with_what_there_is_to_do(store: Store) -> None:
    heard = Heard()
    asked = {"taskName": literal("approve"), "payload": literal({"sum": 3})}
    task = {"id": "ask", "type": "Elsa.RunTask", **asked}
    async with Holdfast(store, definitions=[workflow("approval", task)]) as holdfast:
        holdfast.subscribe(heard, [EventType.TASK_HANDED_OVER])
        instance = await holdfast.run("approval")
        await hears(heard, lambda: bool(heard))
        (handed,) = heard
        assert (handed.data["name"], handed.data["payload"]) == ("approve", {"sum": 3})
        await holdfast.complete_task(handed.data["taskId"])
        assert (await holdfast.result(instance.id, timeout=10)).sub_status is SubStatus.FINISHED


async def test_a_message_that_becomes_a_dead_letter_interrupts(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    rows: list[OutboxRow] = []

    async def publish(some: Any) -> None:
        rows.extend(some)

    async with Holdfast(
        store, definitions=[ORDER], streams={"s": EventStream(publish, ["instance.interrupted"])}
    ) as holdfast:
        holdfast.subscribe(heard, INSTANCES)
        instance = await holdfast.run("order")
        (loaded,) = await store.load([("", instance.id)])
        unknown = Envelope(tenant="", instance_id=instance.id, shard=loaded.shard, kind="nonsense")
        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.ERROR, "holdfast"):
            patch.setattr("holdfast.runtime.worker.ATTEMPTS", 1)
            await store.admit([Admission(message=unknown)])
            await hears(heard, lambda: "instance.interrupted" in heard.of(instance.id))
        assert "nonsense" in heard[-1].data["message"]
        assert heard[-1].revision == loaded.revision + 1
        await hears(heard, lambda: bool(rows))
        assert "holdfast_dead_letters_total 1" in await holdfast.metrics()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert {name: getattr(record, name) for name in ("tenant", "definition", "instance")} == {
        "tenant": "",
        "definition": "order",
        "instance": instance.id,
    }
    assert json.loads(rows[0].body)["type"] == "holdfast.instance.interrupted"


async def test_a_checkpoint_is_heard_when_it_is_committed_and_suspends_nothing(store: Store) -> None:
    heard = Heard()
    often = workflow(
        "often",
        write("one"),
        write("two"),
        event("go"),
        options={"commitStrategyName": "ActivityExecuted"},
    )
    async with Holdfast(store, definitions=[often]) as holdfast:
        holdfast.subscribe(heard)
        instance = await holdfast.run("often")
        await hears(heard, lambda: "instance.suspended" in heard.types)
    (loaded,) = await store.load([("", instance.id)])
    assert loaded.revision > 2
    assert heard.types.count("instance.started") == heard.types.count("instance.suspended") == 1
    assert "instance.resumed" not in heard.types
    places = [(one.revision, one.number) for one in heard]
    assert places == sorted(set(places))
    assert {revision for revision, _ in places} > {1}


async def test_a_child_executed_inside_its_parent_tells_its_own_life(store: Store) -> None:
    heard = Heard()
    inner = workflow("inner", write("inside"), event("go"))
    outer = workflow(
        "outer",
        {
            "id": "call",
            "type": "Elsa.ExecuteWorkflow",
            "workflowDefinitionId": literal("inner"),
            "waitForCompletion": literal(True, "Boolean"),
        },
    )
    async with Holdfast(store, definitions=[inner, outer]) as holdfast:
        holdfast.subscribe(heard)
        parent = await holdfast.run("outer")
        await hears(heard, lambda: len(heard.types) >= 5)
    (child,) = {one.instance_id for one in heard} - {parent.id}
    assert heard.of(child) == ["instance.started", "activity.completed", "instance.suspended"]
    assert [(one.revision, one.number) for one in heard if one.instance_id == child] == [
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert heard[-3].data["parentId"] == parent.id


async def test_publishing_and_retracting_are_heard(store: Store) -> None:
    heard = Heard()
    async with Holdfast(store) as holdfast:
        holdfast.subscribe(heard)
        await holdfast.publish(ORDER)
        await holdfast.publish(ORDER)
        await holdfast.definitions.retract("", "order")
        await hears(heard, lambda: len(heard) >= 2)
    assert [(one.type.value, one.definition_id, one.version, one.instance_id) for one in heard] == [
        ("definition.published", "order", 1, None),
        ("definition.retracted", "order", 1, None),
    ]
    assert len({one.id for one in heard}) == 2


# --- what subscribers cannot do -----------------------------------------------------------------------


async def test_one_that_raises_is_logged_and_hurts_nobody(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()

    async def breaks(one: LifecycleEvent) -> None:
        raise ValueError("not today")

    def breaks_too(one: LifecycleEvent) -> None:
        raise ValueError("nor tomorrow")

    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        with caplog.at_level(logging.ERROR, "holdfast"):
            for callback in (breaks, breaks_too, heard):
                holdfast.subscribe(callback, INSTANCES)
            await holdfast.run("order")
            await hears(heard, lambda: len(heard) == 2)
    said = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert sorted(said) == ["nor tomorrow"] * 2 + ["not today"] * 2


async def test_a_plain_function_that_blocks_holds_up_no_turn() -> None:
    heard: list[LifecycleEvent] = []

    def slow(one: LifecycleEvent) -> None:
        time.sleep(0.5)
        heard.append(one)

    async with Holdfast(MemoryStore(SystemClock()), definitions=[ORDER]) as holdfast:
        holdfast.subscribe(slow, ["instance.started"])
        await holdfast.run("order")
        began = time.monotonic()
        for _ in range(5):
            await holdfast.run("order")
        assert time.monotonic() - began < 0.4
    assert len(heard) == 6


async def test_a_slow_one_loses_the_oldest_and_knows_how_many() -> None:
    heard: list[int] = []
    free = asyncio.Event()

    async def slow(one: LifecycleEvent) -> None:
        await free.wait()
        heard.append(one.number)

    async with Holdfast(MemoryStore(SystemClock())) as holdfast:
        subscription = holdfast.subscribe(slow)
        await asyncio.sleep(0)
        listeners = holdfast.world.listeners
        for number in range(QUEUE + 10):
            listeners.tell([an_event(number=number)])
            await asyncio.sleep(0)
        assert subscription.dropped == 9
        assert "holdfast_events_dropped_total 9" in await holdfast.metrics()
        free.set()
    assert heard == [0, *range(10, QUEUE + 10)]


async def test_a_closed_subscription_hears_nothing_more(store: Store) -> None:
    heard = Heard()
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        subscription = holdfast.subscribe(heard, INSTANCES)
        await holdfast.run("order")
        await hears(heard, lambda: len(heard) == 2)
        subscription.close()
        subscription.close()
        await holdfast.run("order")
        assert not holdfast.world.listeners.wanted
    assert len(heard) == 2


async def test_nothing_is_made_while_nobody_listens(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("nobody asked for this")

    monkeypatch.setattr("holdfast.runtime.turn.events_of_turn", refuse)
    monkeypatch.setattr("holdfast.runtime.turn.executed_in", refuse)
    monkeypatch.setattr("holdfast.runtime.turn.told_by", refuse)
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.publish_event("paid")
        assert (await holdfast.result(instance.id, timeout=10)).sub_status is SubStatus.FINISHED


# --- cloud events -------------------------------------------------------------------------------------


def an_event(**members: Any) -> LifecycleEvent:
    about: dict[str, Any] = {
        "type": EventType.INSTANCE_FINISHED,
        "tenant": "acme",
        "definition_id": "orders/eu",
        "version": 3,
        "instance_id": "i1",
        "correlation_id": "o-1",
        "revision": 7,
        "number": 2,
        "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "data": {"output": {"Total": 42}},
    }
    return LifecycleEvent(**{**about, **members})


def test_an_event_becomes_a_cloud_event() -> None:
    assert json.loads(cloud_event(an_event(), "00-1-2-01")) == {
        "specversion": "1.0",
        "id": "i1/7/2",
        "source": "/holdfast/acme/orders%2Feu",
        "type": "holdfast.instance.finished",
        "time": "2026-03-01T12:00:00+00:00",
        "subject": "i1",
        "datacontenttype": "application/json",
        "tenant": "acme",
        "definition": "orders/eu",
        "version": 3,
        "instance": "i1",
        "revision": 7,
        "number": 2,
        "correlationid": "o-1",
        "traceparent": "00-1-2-01",
        "data": {"output": {"Total": 42}},
    }


def test_attributes_of_cloud_events_have_names_that_are_allowed() -> None:
    names = json.loads(cloud_event(an_event(), "00-1-2-01")).keys() - {"data"}
    assert all(name.isalnum() and name == name.lower() and len(name) <= 20 for name in names)


def test_what_has_no_json_does_not_keep_the_event_from_being_sent() -> None:
    told = json.loads(cloud_event(an_event(data={"payload": object()})))
    assert "payload" in told["data"]["problem"]
    assert told["id"] == "i1/7/2"


def test_an_event_of_a_definition_has_no_revision() -> None:
    told = json.loads(
        cloud_event(an_event(type=EventType.DEFINITION_PUBLISHED, instance_id=None, correlation_id=None))
    )
    assert told["subject"] == "orders/eu"
    assert not {"instance", "revision", "number", "correlationid"} & told.keys()


# --- with the commit ----------------------------------------------------------------------------------


class Watched(MemoryStore):
    """Remembers what was written together."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.commits: list[Commit] = []

    async def commit(self, commits: Any) -> list[Committed | StaleTurn]:
        self.commits += commits
        return await super().commit(commits)


async def test_what_streams_shall_hear_is_part_of_the_commit_that_makes_it_true() -> None:
    async def publish(rows: Any) -> None:
        pass

    streams = {"all": publish, "ends": EventStream(publish, ["instance.finished"])}
    store = Watched()
    async with Holdfast(store, definitions=[workflow("short", write("x"))], streams=streams) as holdfast:
        instance = await holdfast.run("short")
    (commit,) = [one for one in store.commits if one.instance_id == instance.id]
    sent = [(out.stream, json.loads(out.body)["type"]) for out in commit.outbox]
    assert sent == [
        ("all", "holdfast.instance.started"),
        ("all", "holdfast.activity.completed"),
        ("all", "holdfast.activity.completed"),
        ("all", "holdfast.activity.completed"),
        ("all", "holdfast.instance.finished"),
        ("ends", "holdfast.instance.finished"),
    ]


@activity(type="Test.Odd")
class Odd(Activity):
    """Hands over a task that has no JSON."""

    async def execute(self, context: Any) -> None:
        context.ask(HandOver(task_id="t", name="odd", payload=msgspec.UNSET))
        context.complete()


async def test_a_task_without_json_does_not_fail_its_turn() -> None:
    async def publish(rows: Any) -> None:
        pass

    store = Watched()
    odd = workflow("odd", {"id": "odd", "type": "Test.Odd"})
    async with Holdfast(store, definitions=[odd], activities=[Odd], streams={"all": publish}) as holdfast:
        instance = await holdfast.run("odd")
    assert instance.sub_status is SubStatus.FINISHED
    (body,) = [
        json.loads(out.body)
        for commit in store.commits
        for out in commit.outbox
        if b"handed-over" in out.body
    ]
    assert "problem" in body["data"]
