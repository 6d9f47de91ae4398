"""Lifecycle events reach a topic through the outbox: in order for each instance, and none is lost."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.clock import SystemClock
from holdfast.errors import Unavailable
from holdfast.store import OutboxRow
from holdfast.stores.memory import MemoryStore
from holdfast.stream import Message, Stream
from holdfast.streams import open_stream
from holdfast.streams.destination import StreamDestination
from holdfast.streams.memory import MemoryStream
from holdfast.testing.conformance.streams import one_of, read
from tests.streams.relaying import ORDER

LIFE = ["instance.started", "activity.completed", "instance.suspended"]


@pytest.fixture(params=["memory", "nats"])
async def stream(request: pytest.FixtureRequest) -> AsyncIterator[Stream]:
    url = "memory://" if request.param == "memory" else request.getfixturevalue("nats_url")
    stream = await open_stream(url)
    yield stream
    await stream.close()


def events_of(messages: Sequence[Message]) -> dict[str, list[tuple[int, int, str]]]:
    """The events of each instance as they came, without repetitions."""
    seen: set[str] = set()
    found: dict[str, list[tuple[int, int, str]]] = {}
    for message in messages:
        body: dict[str, Any] = json.loads(message.body)
        if message.id not in seen and "instance" in body:
            seen.add(message.id)
            told = (body["revision"], body["number"], body["type"].removeprefix("holdfast."))
            found.setdefault(body["instance"], []).append(told)
    return found


async def until_quiet(stream: Stream, topic: str) -> list[Message]:
    found: list[Message] = []
    async with stream.subscribe(topic, "reader") as subscription:
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(2):
                    delivery = await anext(subscription)
                found.append(delivery.message)
                await delivery.ack()
    return found


async def test_events_of_an_instance_arrive_in_order(stream: Stream, topic: str) -> None:
    streams = {"events": StreamDestination(stream, topic)}
    store = MemoryStore(SystemClock())
    async with Holdfast(store, definitions=[ORDER], streams=streams) as holdfast:
        ids = [(await holdfast.run("order")).id for _ in range(20)]
        await holdfast.publish_event("paid")
        for instance_id in ids:
            await holdfast.result(instance_id, timeout=20)
        found = events_of(await until_quiet(stream, topic))
    assert sorted(found) == sorted(ids)
    for told in found.values():
        assert told == sorted(told)
        assert [kind for _, _, kind in told][:3] == LIFE
        assert told[-1][2] == "instance.finished"


async def test_a_message_carries_the_cloud_event_and_its_identity(topic: str) -> None:
    stream = MemoryStream()
    streams = {"events": StreamDestination(stream, topic)}
    async with Holdfast(
        MemoryStore(SystemClock()), definitions=[ORDER], streams=streams, tenant="acme"
    ) as one:
        instance = await one.run("order")
        async with stream.subscribe(topic, "g") as subscription:
            found = (await one_of(subscription)).message
            while "instance" not in json.loads(found.body):
                [found] = await read(subscription, 1)
    assert found.key == f"acme/{instance.id}"
    assert found.id == f"/holdfast/acme/order/{instance.id}/1/0"
    assert found.headers == {"content-type": "application/cloudevents+json; charset=UTF-8"}


async def test_a_row_that_is_no_cloud_event_arrives_as_it_is(topic: str) -> None:
    stream = MemoryStream()
    row = OutboxRow(shard=3, stream="mine", seq=7, tenant="acme", instance_id=None, body=b"\x00plain")
    await StreamDestination(stream, topic).publish([row])
    async with stream.subscribe(topic, "g") as subscription:
        [found] = await read(subscription, 1)
    assert found == Message(id="mine/3/7", key="acme/", body=b"\x00plain")


async def test_what_was_published_without_an_answer_comes_again_under_its_id(topic: str) -> None:
    class Deaf(MemoryStream):
        failures = 3

        async def publish(self, topic: str, messages: Sequence[Message]) -> None:
            await super().publish(topic, messages)
            if self.failures:
                self.failures -= 1
                raise Unavailable("the answer was lost")

    stream = Deaf()
    streams = {"events": StreamDestination(stream, topic)}
    async with Holdfast(MemoryStore(SystemClock()), definitions=[ORDER], streams=streams) as holdfast:
        ids = [(await holdfast.run("order")).id for _ in range(5)]
        messages = await until_quiet(stream, topic)
    assert len(messages) > len({one.id for one in messages})
    found = events_of(messages)
    assert sorted(found) == sorted(ids)
    assert {tuple(kind for _, _, kind in told) for told in found.values()} == {tuple(LIFE)}


async def test_no_event_is_lost_when_the_node_that_relays_is_killed(
    nats_url: str, topic: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'holdfast.db'}"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.streams.relaying",
        database,
        nats_url,
        topic,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    async with asyncio.timeout(40):
        lines = [(await process.stdout.readline()).decode() for _ in range(90)]
    process.send_signal(signal.SIGKILL)
    rest, _ = await process.communicate()
    lines += rest.decode().splitlines(keepends=True)
    ids = [line.split()[1] for line in lines if line.startswith("started ") and line.endswith("\n")]

    stream = await open_stream(nats_url)
    streams = {"events": StreamDestination(stream, topic)}
    try:
        async with Holdfast(database, definitions=[ORDER], streams=streams) as holdfast:
            found = events_of(await until_quiet(stream, topic))
            held = {one.instance_id for one in (await holdfast.instances(limit=10_000)).items}
    finally:
        await stream.close()
    assert set(ids) <= set(found)
    assert held <= set(found)
    for told in found.values():
        assert told == sorted(told)
        assert [kind for _, _, kind in told] == LIFE
