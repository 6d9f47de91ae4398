"""What every stream promises, as tests.

Inherit `StreamConformance` in a test file of your own and provide these fixtures: `stream`, open; `topic`,
a name that no other test uses; `another`, a function that opens one more connection to the same broker
and closes it after the test; and `take_and_die`, where a member takes one message and dies with it. For
brokers outside the process `killed_member` is that.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import pytest

from holdfast.errors import Invalid, Unavailable
from holdfast.stream import Delivery, Message, Stream, Subscription
from holdfast.streams import open_stream

Another = Callable[[], Awaitable[Stream]]
TakeAndDie = Callable[[str, str], Awaitable[str]]

LONG = 60.0
"""Seconds in which everything that is promised has happened."""
SHORT = 0.4
"""Seconds in which what must not happen has not."""


def message(number: int, key: str = "", **members: object) -> Message:
    return Message(id=f"m{number}", key=key, body=b"%d" % number, **members)  # type: ignore[arg-type]  as given


def keyed(count: int, keys: int) -> list[Message]:
    return [message(number, f"key{number % keys}") for number in range(count)]


def numbers(messages: Iterable[Message]) -> list[int]:
    return [int(one.body) for one in messages]


def by_key(messages: Iterable[Message]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for one in messages:
        found.setdefault(one.key, []).append(int(one.body))
    return found


async def one_of(subscription: Subscription) -> Delivery:
    async with asyncio.timeout(LONG):
        return await anext(subscription)


async def read(subscription: Subscription, count: int) -> list[Message]:
    """So many messages, each acknowledged."""
    found: list[Message] = []
    while len(found) < count:
        delivery = await one_of(subscription)
        found.append(delivery.message)
        await delivery.ack()
    return found


async def is_quiet(subscription: Subscription) -> bool:
    try:
        async with asyncio.timeout(SHORT):
            await anext(subscription)
    except TimeoutError:
        return True
    return False


async def take_and_wait(url: str, topic: str, group: str) -> None:
    """What the process does that is killed."""
    stream = await open_stream(url)
    async with stream.subscribe(topic, group) as subscription:
        print((await anext(subscription)).message.id, flush=True)
        await asyncio.sleep(LONG)


async def killed_member(url: str, topic: str, group: str) -> str:
    """A process joins the group, takes a message and is killed. The message's id."""
    code = f"import asyncio, sys, {__name__} as it; asyncio.run(it.take_and_wait(*sys.argv[1:]))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, url, topic, group, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(LONG):
        line = await process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    return line.decode().strip()


class StreamConformance:
    """What every stream promises. Inherit it, provide the fixtures, and you are tested."""

    # --- what arrives ---

    async def test_a_message_arrives_as_it_was_published(self, stream: Stream, topic: str) -> None:
        sent = [
            Message(id="1", key="a/b c%", body=bytes(range(256)), headers={"content-type": "x/y; z=1"}),
            Message(id="ü 2%", key="ключ", body=b"", headers={"Name": "Zoë 100%", "other": ""}),
            Message(id="3", body=b"x" * 200_000),
        ]
        await stream.publish(topic, sent)
        async with stream.subscribe(topic, "g") as subscription:
            found = await read(subscription, 3)
        assert sorted(found, key=lambda one: one.body) == sorted(sent, key=lambda one: one.body)

    async def test_a_group_that_was_there_before_the_topic_gets_its_first_message(
        self, stream: Stream, topic: str, another: Another
    ) -> None:
        async with stream.subscribe(topic, "g") as subscription:
            await (await another()).publish(topic, [message(1)])
            assert numbers(await read(subscription, 1)) == [1]

    async def test_messages_of_one_key_come_in_order(self, stream: Stream, topic: str) -> None:
        sent = keyed(120, keys=7)
        await stream.publish(topic, sent[:50])
        async with stream.subscribe(topic, "g") as subscription:
            for some in (sent[50:51], sent[51:]):
                await stream.publish(topic, some)
            found = await read(subscription, 120)
        assert by_key(found) == by_key(sent)

    async def test_messages_without_a_key_arrive_all(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, [message(number) for number in range(60)])
        async with stream.subscribe(topic, "g") as subscription:
            assert sorted(numbers(await read(subscription, 60))) == list(range(60))
            assert await is_quiet(subscription)

    async def test_two_groups_both_get_everything(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, keyed(30, keys=3))
        for group in ("one", "two"):
            async with stream.subscribe(topic, group) as subscription:
                assert sorted(numbers(await read(subscription, 30))) == list(range(30))

    async def test_topics_do_not_mix(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, [message(1)])
        await stream.publish(f"{topic}.0", [message(2)])
        async with stream.subscribe(topic, "g") as first, stream.subscribe(f"{topic}.0", "g") as second:
            assert (numbers(await read(first, 1)), numbers(await read(second, 1))) == ([1], [2])
            assert await is_quiet(first)

    # --- one at a time, many at a time ---

    async def test_the_next_of_a_key_waits_until_the_one_before_is_done(
        self, stream: Stream, topic: str
    ) -> None:
        await stream.publish(topic, [message(1, "k"), message(2, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            first = await one_of(subscription)
            assert await is_quiet(subscription)
            await first.ack()
            assert numbers([first.message, *(await read(subscription, 1))]) == [1, 2]

    async def test_several_keys_are_under_way_at_once(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, keyed(40, keys=40))
        async with stream.subscribe(topic, "g") as subscription:
            held = [await one_of(subscription), await one_of(subscription)]
            for delivery in held:
                await delivery.ack()
            found = [*(one.message for one in held), *(await read(subscription, 38))]
        assert sorted(numbers(found)) == list(range(40))

    async def test_a_thousand_messages_taken_by_four_tasks_arrive_all_and_in_order(
        self, stream: Stream, topic: str
    ) -> None:
        sent = keyed(1000, keys=37)
        await stream.publish(topic, sent)
        found: list[Message] = []

        async def work(subscription: Subscription) -> None:
            async for delivery in subscription:
                found.append(delivery.message)
                await asyncio.sleep(0)
                await delivery.ack()
                if len(found) >= 1000:
                    is_done.set()

        is_done = asyncio.Event()
        async with stream.subscribe(topic, "g") as subscription:
            tasks = [asyncio.ensure_future(work(subscription)) for _ in range(4)]
            async with asyncio.timeout(LONG):
                await is_done.wait()
            await _cancel(tasks)
        assert by_key(found) == by_key(sent)

    async def test_a_thousand_messages_among_four_members_arrive_all(
        self, stream: Stream, topic: str, another: Another
    ) -> None:
        found: list[Message] = []
        is_done = asyncio.Event()

        async def take() -> None:
            async with (await another()).subscribe(topic, "g") as subscription:
                async for delivery in subscription:
                    found.append(delivery.message)
                    await delivery.ack()
                    if len({one.id for one in found}) == 1000:
                        is_done.set()

        async def member(number: int) -> None:
            while True:
                try:
                    await take()
                except Unavailable:
                    await asyncio.sleep(SHORT)  # a broker may send a member away: it joins again

        tasks = [asyncio.ensure_future(member(number)) for number in range(4)]
        sent = keyed(1000, keys=37)
        for start in range(0, 1000, 100):
            await stream.publish(topic, sent[start : start + 100])
            await asyncio.sleep(0.01)
        async with asyncio.timeout(LONG):
            await is_done.wait()
        await _cancel(tasks)
        assert sorted({int(one.body) for one in found}) == list(range(1000))

    async def test_one_member_of_a_group_gets_a_message(
        self, stream: Stream, topic: str, another: Another
    ) -> None:
        found: list[Message] = []

        async def work(subscription: Subscription) -> None:
            async for delivery in subscription:
                found.append(delivery.message)
                await delivery.ack()

        other = await another()
        async with stream.subscribe(topic, "g") as first, other.subscribe(topic, "g") as second:
            tasks = [asyncio.ensure_future(work(one)) for one in (first, second)]
            await stream.publish(topic, keyed(200, keys=50))
            async with asyncio.timeout(LONG):
                while len(found) < 200:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(SHORT)
            await _cancel(tasks)
        assert sorted(numbers(found)) == list(range(200))

    # --- what is not acknowledged ---

    async def test_what_is_nacked_comes_again_before_the_next_of_its_key(
        self, stream: Stream, topic: str
    ) -> None:
        await stream.publish(topic, [message(1, "k"), message(2, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            first = await one_of(subscription)
            await first.nack()
            again = await one_of(subscription)
            assert (again.message, first.attempt, again.attempt) == (first.message, 1, 2)
            await again.ack()
            assert numbers(await read(subscription, 1)) == [2]

    async def test_what_is_nacked_with_a_delay_comes_after_it(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, [message(1, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            first = await one_of(subscription)
            began = time.monotonic()
            await first.nack(SHORT)
            again = await one_of(subscription)
            assert time.monotonic() - began >= SHORT * 0.95
            await again.ack()
            assert await is_quiet(subscription)

    async def test_leaving_gives_back_what_is_not_acknowledged(
        self, stream: Stream, topic: str, another: Another
    ) -> None:
        await stream.publish(topic, [message(1, "k"), message(2, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            await one_of(subscription)
        async with (await another()).subscribe(topic, "g") as subscription:
            assert numbers(await read(subscription, 2)) == [1, 2]

    async def test_what_is_said_after_leaving_does_not_count(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, [message(1, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            late = await one_of(subscription)
        await late.ack()
        await late.nack()
        async with stream.subscribe(topic, "g") as subscription:
            assert numbers(await read(subscription, 1)) == [1]

    async def test_what_a_member_had_that_died_comes_to_another(
        self, stream: Stream, topic: str, take_and_die: TakeAndDie
    ) -> None:
        await stream.publish(topic, [message(1, "k"), message(2, "k")])
        assert await take_and_die(topic, "g") == "m1"
        async with stream.subscribe(topic, "g") as subscription:
            assert numbers(await read(subscription, 2)) == [1, 2]

    async def test_a_member_that_waits_takes_over_from_one_that_dies(
        self, stream: Stream, topic: str, take_and_die: TakeAndDie
    ) -> None:
        sent = keyed(40, keys=40)
        await stream.publish(topic, sent)
        taken = await take_and_die(topic, "g")
        found: set[str] = set()
        async with stream.subscribe(topic, "g") as subscription:
            while len(found) < 40:
                found |= {one.id for one in await read(subscription, 1)}
        assert taken in found

    async def test_nothing_is_skipped_when_a_later_one_is_acknowledged_first(
        self, stream: Stream, topic: str
    ) -> None:
        await stream.publish(topic, keyed(40, keys=40))
        async with stream.subscribe(topic, "g") as subscription:
            first, second = await one_of(subscription), await one_of(subscription)
            await second.ack()
        done = {second.message.id}
        async with stream.subscribe(topic, "g") as subscription:
            while len(done) < 40:
                done |= {one.id for one in await read(subscription, 1)}
        assert first.message.id in done

    async def test_a_reader_that_gave_up_waiting_has_lost_nothing(self, stream: Stream, topic: str) -> None:
        async with stream.subscribe(topic, "g") as subscription:
            assert await is_quiet(subscription)
            await stream.publish(topic, [message(1)])
            assert numbers(await read(subscription, 1)) == [1]

    async def test_an_ack_counts_once(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, [message(1, "k"), message(2, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            first = await one_of(subscription)
            await first.ack()
            await first.ack()
            await first.nack()
            assert numbers(await read(subscription, 1)) == [2]
            assert await is_quiet(subscription)

    # --- where a group begins, and where it goes on ---

    async def test_a_group_goes_on_where_it_was(self, stream: Stream, topic: str, another: Another) -> None:
        sent = [message(number, "k") for number in range(10)]
        await stream.publish(topic, sent)
        async with stream.subscribe(topic, "g") as subscription:
            assert numbers(await read(subscription, 4)) == [0, 1, 2, 3]
        async with (await another()).subscribe(topic, "g") as subscription:
            assert numbers(await read(subscription, 6)) == [4, 5, 6, 7, 8, 9]
            assert await is_quiet(subscription)

    async def test_from_latest_begins_with_what_comes_after_joining(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, keyed(20, keys=20))
        async with stream.subscribe(topic, "g", start="latest") as subscription:
            await stream.publish(topic, [message(100, "key3")])
            assert numbers(await read(subscription, 1)) == [100]
            assert await is_quiet(subscription)

    async def test_from_latest_is_decided_when_joining_and_not_at_the_first_message(
        self, stream: Stream, topic: str
    ) -> None:
        await stream.publish(topic, keyed(20, keys=20))
        async with stream.subscribe(topic, "g", start="latest"):
            pass
        await stream.publish(topic, [message(100, "key3")])
        async with stream.subscribe(topic, "g", start="latest") as subscription:
            assert numbers(await read(subscription, 1)) == [100]

    async def test_from_latest_means_nothing_to_a_group_that_has_been_there(
        self, stream: Stream, topic: str
    ) -> None:
        await stream.publish(topic, [message(1, "k")])
        async with stream.subscribe(topic, "g") as subscription:
            await read(subscription, 1)
        await stream.publish(topic, [message(2, "k")])
        async with stream.subscribe(topic, "g", start="latest") as subscription:
            assert numbers(await read(subscription, 1)) == [2]

    # --- manners ---

    async def test_what_the_block_raises_comes_out_as_it_is(self, stream: Stream, topic: str) -> None:
        with pytest.raises(ZeroDivisionError):
            async with stream.subscribe(topic, "g"):
                _ = 1 / 0

    @pytest.mark.parametrize("name", ["", "with space", "a/b", "a*", "ü", "x" * 201])
    async def test_a_name_that_not_every_broker_takes_is_refused(self, stream: Stream, name: str) -> None:
        with pytest.raises(Invalid, match="cannot name"):
            await stream.publish(name, [message(1)])
        with pytest.raises(Invalid, match="cannot name"):
            async with stream.subscribe("fine", name):
                pass

    async def test_publishing_nothing_is_fine(self, stream: Stream, topic: str) -> None:
        await stream.publish(topic, [])


async def _cancel(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
