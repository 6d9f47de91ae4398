"""What a commit left in the outbox arrives: in order, at least once, whoever dies or fails on the way."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.clock import SystemClock
from holdfast.commit import Birth, Commit, Outgoing
from holdfast.runtime.listeners import EventStream
from holdfast.runtime.relay import Relay
from holdfast.store import OutboxRow, Store
from holdfast.stores.memory import MemoryStore
from holdfast.telemetry import Figures
from holdfast.testing.conformance.examples import born, changed, columns
from tests.documents import document, event, sequence, write
from tests.runtime.operating import opened_store, until

ORDER = document(sequence(write("hello"), event("paid"), write("thanks")), id="order-1", definitionId="order")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


class Inbox(list[dict[str, Any]]):
    """A destination that remembers, and fails as often as it is told to."""

    def __init__(self, *, fails: int = 0) -> None:
        super().__init__()
        self.fails = fails
        self.calls = 0

    async def publish(self, rows: Sequence[OutboxRow]) -> None:
        self.calls += 1
        if self.fails:
            self.fails -= 1
            raise ConnectionError("nobody there")
        self += [json.loads(row.body) for row in rows]

    def of(self, instance_id: str) -> list[tuple[int, int]]:
        return [(one["revision"], one["number"]) for one in self if one.get("instance") == instance_id]


async def arrived(inbox: Inbox, count: int) -> None:
    async def is_there() -> bool:
        return len(inbox) >= count

    await until(is_there, patience=15)


async def is_empty(store: Store, *streams: str) -> bool:
    everywhere = [(shard, 0) for shard in range(64)]
    return not any([await store.outgoing(stream, everywhere, 10) for stream in streams])


async def test_events_arrive_in_the_order_of_their_instance_and_leave_the_outbox(store: Store) -> None:
    inbox = Inbox()
    async with Holdfast(store, definitions=[ORDER], streams={"all": inbox}) as holdfast:
        ids = [await holdfast.dispatch("order") for _ in range(20)]
        await arrived(inbox, 1 + 20 * 3)
        await holdfast.publish_event("paid")
        for instance_id in ids:
            await holdfast.result(instance_id, timeout=10)
        await arrived(inbox, 1 + 20 * 9)

        async def is_done() -> bool:
            return await is_empty(store, "all")

        await until(is_done)
    for instance_id in ids:
        assert inbox.of(instance_id) == [*((1, n) for n in range(3)), *((2, n) for n in range(6))]
    assert max(Counter(one["id"] for one in inbox).values()) == 1
    assert [one["type"] for one in inbox if "instance" not in one] == ["holdfast.definition.published"]


async def test_a_stream_may_be_a_plain_async_function_with_a_filter(store: Store) -> None:
    seen: list[OutboxRow] = []

    async def publish(rows: Sequence[OutboxRow]) -> None:
        seen.extend(rows)

    streams = {"ends": EventStream(publish, ["instance.finished"])}
    async with Holdfast(store, definitions=[ORDER], streams=streams) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.publish_event("paid")
        await holdfast.result(instance.id, timeout=10)
    assert [(row.stream, row.tenant, row.instance_id) for row in seen] == [("ends", "", instance.id)]


async def test_a_destination_that_fails_holds_back_only_itself(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = Inbox(fails=4), Inbox()
    with caplog.at_level(logging.WARNING, "holdfast"):
        async with Holdfast(store, definitions=[ORDER], streams={"bad": bad, "good": good}) as holdfast:
            instance = await holdfast.run("order")
            await arrived(good, 4)
            assert len(bad) == 0
            await arrived(bad, 4)
            told = await holdfast.metrics()
    assert bad.of(instance.id) == good.of(instance.id) == [(1, 0), (1, 1), (1, 2)]
    assert 'holdfast_relay_failures_total{stream="bad"} 4' in told
    assert 'holdfast_relayed_total{stream="good"} 4' in told
    said = [record for record in caplog.records if "nobody there" in record.getMessage()]
    assert {getattr(record, "stream", None) for record in said} == {"bad"}


async def test_what_the_dead_left_is_relayed_by_whoever_takes_their_shards(store: Store) -> None:
    never = Inbox(fails=1_000_000)
    async with Holdfast(store, definitions=[ORDER], streams={"all": never}) as holdfast:
        instance = await holdfast.run("order")
    inbox = Inbox()
    async with Holdfast(store, streams={"all": inbox}):
        await arrived(inbox, 4)
    assert inbox.of(instance.id) == [(1, 0), (1, 1), (1, 2)]
    assert len(never) == 0


async def test_what_arrived_and_was_not_forgotten_comes_again_under_the_same_id() -> None:
    class Forgetful(MemoryStore):
        refuses = True

        async def relayed(self, rows: Sequence[OutboxRow]) -> None:
            if self.refuses:
                self.refuses = False
                raise ConnectionError("the power went off")
            await super().relayed(rows)

    inbox, store = Inbox(), Forgetful(SystemClock())
    streams = {"all": EventStream(inbox, ["instance.started"])}
    async with Holdfast(store, definitions=[ORDER], streams=streams) as holdfast:
        instance = await holdfast.run("order")
        await arrived(inbox, 2)
    assert inbox.of(instance.id) == [(1, 0), (1, 0)]
    assert inbox[0] == inbox[1]


async def test_publishing_is_told_by_the_owner_of_its_shard_whoever_published(store: Store) -> None:
    inbox, other = Inbox(), Inbox()
    async with Holdfast(store, streams={"all": inbox}):
        async with Holdfast(store, works=False, streams={"all": other}) as sender:
            await sender.publish(ORDER)
            await sender.definitions.retract("", "order")
        await arrived(inbox, 2)
    assert [one["type"] for one in inbox] == [
        "holdfast.definition.published",
        "holdfast.definition.retracted",
    ]
    assert len(other) == 0


# --- the relay alone ----------------------------------------------------------------------------------


def in_shard(shard: int, *bodies: str) -> Commit:
    birth = Birth(instance_id=f"i{shard}", shard=shard, columns=columns(), state=b"{}")
    outbox = tuple(Outgoing("s", body.encode()) for body in bodies)
    return Commit(
        turn=f"t{shard}", tenant="acme", instance_id=birth.instance_id, births=(birth,), outbox=outbox
    )


async def test_only_shards_of_this_node_are_relayed(store: Store) -> None:
    await store.commit([in_shard(1, '"1"'), in_shard(2, '"2"')])
    owned, inbox = {1}, Inbox()
    relay = Relay(store, {"s": inbox}, shards=lambda: owned, monotonic=asyncio.get_running_loop().time)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(relay.run())
        await arrived(inbox, 1)
        assert inbox == ["1"]
        owned.add(2)
        await arrived(inbox, 2)
        running.cancel()
    assert inbox == ["1", "2"]


async def test_a_commit_is_relayed_at_once_and_not_at_the_next_look(store: Store) -> None:
    inbox = Inbox()
    relay = Relay(store, {"s": inbox}, shards=lambda: {1}, monotonic=asyncio.get_running_loop().time)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(relay.run())
        await store.commit([born()])
        async with asyncio.timeout(5):
            await relay.settled()
        commit = changed(outbox=(Outgoing("s", b'"x"'),))
        await store.commit([commit])
        began = asyncio.get_running_loop().time()
        relay.committed(commit)
        await arrived(inbox, 1)
        assert asyncio.get_running_loop().time() - began < 0.9
        running.cancel()


async def test_a_backlog_is_relayed_page_by_page_and_delays_no_other_shard(store: Store) -> None:
    await store.commit([in_shard(1, *(f"{n}" for n in range(1200)))])
    figures, inbox = Figures(), Inbox()

    async def publish(rows: Sequence[OutboxRow]) -> None:
        if not inbox.calls:
            await store.commit([in_shard(2, "-1")])
            relay.look()
        await inbox.publish(rows)

    relay = Relay(
        store,
        {"s": publish},
        shards=lambda: {1, 2},
        monotonic=asyncio.get_running_loop().time,
        figures=figures,
    )

    async def is_done() -> bool:
        return figures.counters["relayed", "s"] == 1201

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(relay.run())
        await until(is_done)
        running.cancel()
    assert [one for one in inbox if one != -1] == list(range(1200))
    assert inbox.index(-1) < 1200
    assert inbox.calls > 2


async def test_a_destination_that_comes_back_is_asked_after_a_while_and_not_all_the_time(
    store: Store,
) -> None:
    await store.commit([in_shard(1, '"1"')])
    inbox = Inbox(fails=3)
    relay = Relay(store, {"s": inbox}, shards=lambda: {1}, monotonic=asyncio.get_running_loop().time)
    async with asyncio.TaskGroup() as tasks:
        began = asyncio.get_running_loop().time()
        running = tasks.create_task(relay.run())
        await arrived(inbox, 1)
        assert asyncio.get_running_loop().time() - began >= 0.05 + 0.1 + 0.2
        running.cancel()
    assert inbox.calls == 4
