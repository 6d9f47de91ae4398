"""Messages from outside start and resume workflows: each once, and none is skipped."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from holdfast import Holdfast
from holdfast.clock import SystemClock
from holdfast.errors import Invalid, Unavailable
from holdfast.instance import SubStatus
from holdfast.runtime.connectors import Connector
from holdfast.store import InstanceFilter
from holdfast.stores.memory import MemoryStore
from holdfast.stream import Message, Start, Stream, Subscription
from holdfast.streams import open_stream
from holdfast.streams.calls import beside
from holdfast.streams.memory import MemoryStream
from tests.runtime.operating import until
from tests.streams.relaying import ORDER


@pytest.fixture
async def holdfast() -> AsyncIterator[Holdfast]:
    async with Holdfast(MemoryStore(SystemClock()), definitions=[ORDER]) as holdfast:
        yield holdfast


@pytest.fixture(params=["memory", "nats"])
async def stream(request: pytest.FixtureRequest) -> AsyncIterator[Stream]:
    url = "memory://" if request.param == "memory" else request.getfixturevalue("nats_url")
    stream = await open_stream(url)
    yield stream
    await stream.close()


def orders(count: int) -> list[Message]:
    return [Message(id=f"o{number}", key=f"customer{number % 7}", body=b"") for number in range(count)]


async def start(message: Message, holdfast: Holdfast) -> None:
    await holdfast.dispatch("order", correlation_id=message.id, key=message.id)


async def started(holdfast: Holdfast) -> list[str]:
    page = await holdfast.instances(InstanceFilter(tenant=""), limit=1000)
    return sorted(one.columns.correlation_id or "" for one in page.items)


@pytest.mark.parametrize("parallel", [1, 2, 5])
async def test_every_message_starts_one_workflow_at_any_parallelism(
    stream: Stream, topic: str, holdfast: Holdfast, parallel: int
) -> None:
    sent = orders(200)
    await stream.publish(topic, [*sent, *sent[:20]])

    async def are_there() -> bool:
        return len(await started(holdfast)) >= 200

    async with beside(Connector(stream, topic, "shop", start, parallel=parallel).run(holdfast)):
        await until(are_there, patience=30)
        await asyncio.sleep(0.2)
    assert await started(holdfast) == sorted(one.id for one in sent)


async def test_a_message_resumes_who_waits_for_it(stream: Stream, topic: str, holdfast: Holdfast) -> None:
    instance = await holdfast.run("order", correlation_id="o1")

    async def paid(message: Message, holdfast: Holdfast) -> None:
        await holdfast.publish_event("paid", correlation_id=message.key, key=message.id)

    async with beside(Connector(stream, topic, "shop", paid).run(holdfast)):
        await stream.publish(topic, [Message(id="p1", key="o1", body=b"")])
        assert (await holdfast.result(instance.id, timeout=20)).sub_status is SubStatus.FINISHED


async def test_a_function_that_fails_after_its_request_has_asked_once(
    stream: Stream, topic: str, holdfast: Holdfast
) -> None:
    tries: list[str] = []
    is_done = asyncio.Event()

    async def fails_first(message: Message, holdfast: Holdfast) -> None:
        tries.append(await holdfast.dispatch("order", correlation_id=message.id, key=message.id))
        if len(tries) == 1:
            raise ValueError("after the commit")
        is_done.set()

    await stream.publish(topic, orders(1))
    async with beside(Connector(stream, topic, "shop", fails_first).run(holdfast)), asyncio.timeout(20):
        await is_done.wait()
    assert len(tries) == 2
    assert len(set(tries)) == 1
    assert await started(holdfast) == ["o0"]


async def test_a_message_that_always_fails_does_not_hold_up_other_keys(
    topic: str, holdfast: Holdfast
) -> None:
    stream = MemoryStream()

    async def poisoned(message: Message, holdfast: Holdfast) -> None:
        if message.key == "customer3":
            raise ValueError("poison")
        await start(message, holdfast)

    async def are_there() -> bool:
        return len(await started(holdfast)) == 18

    await stream.publish(topic, orders(21))
    async with beside(Connector(stream, topic, "shop", poisoned, parallel=1).run(holdfast)):
        await until(are_there)


async def test_a_connector_outlives_a_broker_that_goes_away(topic: str, holdfast: Holdfast) -> None:
    class Away(MemoryStream):
        failures = 2

        def subscribe(
            self, topic: str, group: str, *, start: Start = "oldest"
        ) -> AbstractAsyncContextManager[Subscription]:
            if self.failures:
                self.failures -= 1
                raise Unavailable("gone for a moment")
            return super().subscribe(topic, group, start=start)

    stream = Away()
    await stream.publish(topic, orders(3))

    async def are_there() -> Sequence[str]:
        return await started(holdfast)

    async with beside(Connector(stream, topic, "shop", start).run(holdfast)):
        await until(are_there)
    assert stream.failures == 0


def test_no_parallelism_is_refused() -> None:
    with pytest.raises(Invalid, match="at least one"):
        Connector(MemoryStream(), "t", "g", start, parallel=0)
