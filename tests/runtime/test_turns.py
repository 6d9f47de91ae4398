"""Turns and commits carry instances through waits, children and deaths, on every store."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.events import event as happened
from holdfast.codec import encode_payload
from holdfast.commit import Envelope, KeptStimulus, Lane, Place
from holdfast.engine import decode_state
from holdfast.message import Cancel, Pause, Resume, Retry, Skip, Start
from holdfast.runtime.letters import MessageUnreadable, opened, sealed
from holdfast.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata
from holdfast.testing import Host, ManualClock
from tests.documents import (
    captured,
    document,
    event,
    fault,
    flowchart,
    literal,
    script,
    sequence,
    variable,
    write,
)
from tests.runtime.driver import SHARDS, TENANT, Died, Driver
from tests.stores.test_sql_stores import empty


@pytest.fixture
def host() -> Host:
    """Its clock is ahead of every database's, so that nothing expires while a test runs."""
    return Host(clock=ManualClock(datetime(2900, 1, 1, tzinfo=UTC)))


@pytest.fixture(params=["memory", "sqlite", "postgres", "mariadb"])
async def store(request: pytest.FixtureRequest, host: Host, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(host.clock)
        return
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    url = local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    database = create(url)
    await database.write(metadata.create_all)
    await database.write(empty)
    yield SqlStore(database)
    await database.close()


async def publish(store: Store, name: str, payload: Any, host: Host) -> None:
    stimulus = happened(name, payload)
    kept = KeptStimulus(
        id=f"sent-{name}",
        tenant=TENANT,
        key=stimulus.key,
        payload=encode_payload(dict(stimulus.input)),
        expires=host.clock.now() + timedelta(days=36500),
    )
    await store.keep(kept)


ORDER = flowchart(
    write("begin"),
    event("paid", result=captured("amount")),
    {"id": "wait", "type": "Elsa.Delay", "timeSpan": literal("00:00:01")},
    {
        "id": "child",
        "type": "Elsa.DispatchWorkflow",
        "workflowDefinitionId": literal("parcel"),
        "waitForCompletion": literal(True),
    },
    {"id": "tell", "type": "Elsa.WriteLine", "text": script("`paid ${getAmount()}`")},
    connections=["begin>paid", "paid>wait", "wait>child", "child>tell"],
)


async def load(host: Host, **options: Any) -> None:
    parcel = document(
        sequence(write("packed"), write("sent")), definitionId="parcel", id="parcel-1", options=options
    )
    await host.load(parcel, document(ORDER, variables=[variable("Amount")], options=options))


EXPECTED = ["begin", "packed", "sent", "paid 12"]


async def test_an_instance_goes_through_an_event_a_timer_and_a_child(store: Store, host: Host) -> None:
    await load(host)
    driver = Driver(store, host)
    await driver.dispatch("test", "order-1")
    await driver.settle()
    assert await driver.status("order-1") == "Suspended"
    await publish(store, "paid", 12, host)
    await driver.look(happened("paid").key)
    await driver.settle()
    host.clock.advance(timedelta(seconds=1))
    await driver.settle()
    assert (await driver.status("order-1"), host.console.written) == ("Finished", EXPECTED)
    assert await driver.next_due() is None


async def test_whenever_the_process_dies_another_goes_on_and_nothing_is_done_twice(
    store: Store, host: Host
) -> None:
    await load(host, commitStrategyName="ActivityExecuted")
    for dies_at in range(1, 40):
        host.console.written.clear()
        name = f"order-{dies_at}"
        deaths = 0
        await Driver(store, host).dispatch("test", name)
        await publish(store, "paid", 12, host)
        driver = Driver(store, host, dies_at=dies_at)
        while await driver.status(name) != "Finished":
            try:
                await driver.settle()
                await driver.look(happened("paid").key)
                await driver.settle()
                host.clock.advance(timedelta(seconds=1))
            except Died:
                deaths += 1
                driver = Driver(store, host)
        assert host.console.written == EXPECTED, f"died at commit {dies_at}"
        if not deaths:
            assert dies_at > 8
            return
    raise AssertionError("it never ran to its end without dying")


async def test_a_stimulus_that_finds_nobody_any_more_is_put_back(store: Store, host: Host) -> None:
    await host.load(document(sequence(event("go"), event("stop"), event("go"))))
    driver = Driver(store, host)
    await driver.dispatch("test", "i1")
    await driver.settle()
    key = happened("go").key
    _, (waiting,) = await store.find(TENANT, key)
    resume = Resume(key=key, expires=host.clock.now() + timedelta(days=36500))
    for number in range(2):  # two hit the same bookmark before its turn comes
        await publish(store, f"go{number}", None, host)
        messages = [sealed(resume, tenant=TENANT, instance_id="i1", shard=waiting.shard)]
        await store.pair(TENANT, f"sent-go{number}", messages)
    await driver.settle()
    (kept,) = await store.kept(TENANT, [key])
    assert (kept.instance_id, kept.tries) == ("i1", 1)


async def test_a_cancel_is_a_message_like_any_other(store: Store, host: Host) -> None:
    await host.load(document(event("never")))
    driver = Driver(store, host)
    await driver.dispatch("test", "i1")
    await driver.settle()
    await driver.cancel("i1")
    await driver.settle()
    assert await driver.status("i1") == "Cancelled"
    assert (await store.find(TENANT, happened("never").key))[1] == []


async def test_what_stands_behind_a_pause_in_one_turn_waits(store: Store, host: Host) -> None:
    await host.load(document(event("never")))
    driver = Driver(store, host)
    await driver.dispatch("test", "i1")
    await driver.send("i1", Pause())
    waiting = await store.read([Place(shard, lane, 0) for shard in range(SHARDS) for lane in Lane], 10)
    await driver.take_turn("i1", sorted(waiting, key=lambda delivery: delivery.envelope.lane))
    (loaded,) = await store.load([(TENANT, "i1")])
    assert (loaded.columns.is_paused, loaded.columns.sub_status, loaded.state) == (True, "Pending", None)
    left = await store.read([Place(shard, Lane.ORDINARY, 0) for shard in range(SHARDS)], 10)
    assert [delivery.envelope.kind for delivery in left] == ["start"]


async def test_what_comes_after_the_end_is_consumed_and_changes_nothing(store: Store, host: Host) -> None:
    await host.load(document(event("never")))
    driver = Driver(store, host)
    await driver.dispatch("test", "i1")
    await driver.settle()
    await driver.cancel("i1")
    await driver.settle()
    (ended,) = await store.load([(TENANT, "i1")])
    await driver.cancel("i1")
    await driver.settle()
    assert await store.load([(TENANT, "i1")]) == [ended]


async def test_a_child_tells_its_parent_once_however_often_it_is_cancelled(store: Store, host: Host) -> None:
    starting = {
        "id": "start",
        "type": "Elsa.DispatchWorkflow",
        "workflowDefinitionId": literal("child"),
        "waitForCompletion": literal(True),
    }
    never = document(event("never"), definitionId="child", id="child-1")
    await host.load(never, document(sequence(starting, write("heard"), event("open"))))
    driver = Driver(store, host)
    await driver.dispatch("test", "parent")
    await driver.settle()
    (loaded,) = await store.load([(TENANT, "parent")])
    (bookmark,) = decode_state(loaded.state or b"").bookmarks
    child = bookmark.payload["childInstanceId"]
    for _ in range(2):
        await driver.cancel(child)
        await driver.settle()
    assert host.console.written == ["heard"]
    assert await store.kept(TENANT, [bookmark.key]) == []


async def test_an_operator_reopens_what_has_faulted(store: Store, host: Host) -> None:
    await host.load(document(sequence(fault(), write("after"))))
    driver = Driver(store, host)
    await driver.dispatch("test", "i1")
    await driver.settle()
    assert await driver.status("i1") == "Faulted"
    await driver.send("i1", Skip(execution=3))
    await driver.settle()
    assert (await driver.status("i1"), host.console.written) == ("Finished", ["after"])


@pytest.mark.parametrize(
    "message",
    [
        Start(input={"a": [1, {"b": None}]}, trigger="t", correlation_id="c"),
        Resume(key="k", input={"$odd": 1.5}),
        Cancel(reason="no longer wanted"),
        Retry(execution=3, inputs={"Number": 5}),
        Skip(execution=3, outcomes=("Approved",)),
    ],
)
def test_a_message_comes_out_of_its_envelope_as_it_went_in(message: Any) -> None:
    assert opened(sealed(message, tenant="t", instance_id="i", shard=0)) == message


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("nonsense", None), ("start", b"["), ("retry", b'{"execution":"x"}'), ("start", b"[]")],
)
def test_what_is_no_message_is_refused_by_name(kind: str, payload: bytes | None) -> None:
    with pytest.raises(MessageUnreadable, match=kind):
        opened(Envelope(tenant="t", instance_id="i", shard=0, kind=kind, payload=payload))
