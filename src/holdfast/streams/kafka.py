"""Kafka: its topics, partitions and consumer groups as they are.

A partition is a lane, and a group is called `group.topic` there. Kafka remembers one position for each
partition, so acknowledgements in any order become one in `streams.lane`. Topics are made by whoever runs
the cluster, or by the cluster itself on first use if its settings say so. librdkafka is asked in threads,
and what it calls back is carried to the event loop here.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import Message as Record

from holdfast.errors import Invalid, Unavailable
from holdfast.stream import Message, Start, Subscription, check_names
from holdfast.streams.arrivals import Arrivals
from holdfast.streams.calls import beside
from holdfast.streams.lane import Lane

CONNECT = 10.0
"""Seconds for a question to the cluster."""
DELIVER = 30_000
"""Milliseconds after which librdkafka gives a message up."""
PAGE, LISTEN = 200, 0.01
"""Messages read at once, and the seconds to wait for so many. Storing a position waits as long, too."""
WINDOW = 1_000
"""Messages that are not done, in all lanes of a member. Beyond, no more are read."""
HAND_OVER = 5.0
"""Seconds in which messages that are under way may be finished before another member gets their lane."""
ID = "holdfast-id"


class KafkaStream:
    def __init__(self, settings: Mapping[str, Any], *, patience: float) -> None:
        self._settings = {"socket.nagle.disable": True, **settings}
        self._patience = patience
        self._producer = Producer(
            {
                **self._settings,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": DELIVER,
                "partitioner": "murmur2_random",
            }
        )

    @classmethod
    async def open(cls, hosts: str, options: Mapping[str, str], *, patience: float) -> "KafkaStream":
        settings = {"bootstrap.servers": hosts, **options}
        try:
            stream = cls(settings, patience=patience)
        except KafkaException as problem:
            raise Invalid(f"librdkafka does not take these settings: {problem}") from problem
        with _translated():
            await asyncio.to_thread(stream._producer.list_topics, timeout=CONNECT)
        return stream

    async def publish(self, topic: str, messages: Sequence[Message]) -> None:
        check_names(topic)
        problems: list[KafkaError] = []
        with _translated():
            await asyncio.to_thread(self._send, topic, messages, problems)
        if problems:
            raise _error(problems[0])

    def subscribe(
        self, topic: str, group: str, *, start: Start = "oldest"
    ) -> AbstractAsyncContextManager[Subscription]:
        check_names(topic, group)
        return self._member(topic, group, start)

    async def close(self) -> None:
        with _translated():
            await asyncio.to_thread(self._producer.flush, 5)

    def _send(self, topic: str, messages: Sequence[Message], problems: list[KafkaError]) -> None:
        left = len(messages)

        def delivered(error: KafkaError | None, _: Record) -> None:
            nonlocal left
            left -= 1
            if error is not None:
                problems.append(error)

        for message in messages:
            headers = [(name, value.encode()) for name, value in message.headers.items()]
            while True:
                try:
                    self._producer.produce(
                        topic,
                        message.body,
                        key=message.key.encode() or None,
                        headers=[*headers, (ID, message.id.encode())],
                        on_delivery=delivered,
                    )
                    break
                except BufferError:  # librdkafka's own queue is full
                    self._producer.poll(0.05)
        while left:
            self._producer.poll(0.1)

    @asynccontextmanager
    async def _member(self, topic: str, group: str, start: Start) -> AsyncGenerator[Subscription]:
        patience = round(self._patience * 1000)
        consumer = Consumer(
            {
                **self._settings,
                "group.id": f"{group}.{topic}",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "allow.auto.create.topics": True,
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": patience,
                "heartbeat.interval.ms": max(patience // 5, 100),
            }
        )
        member = _Member(consumer, topic)
        try:
            with _translated():
                if start == "latest":
                    await asyncio.to_thread(member.begin_at_the_end)
                await asyncio.to_thread(member.join, asyncio.get_running_loop())
            async with beside(member.run()):
                with suppress(TimeoutError):  # the group may be busy with itself; it is not lost for that
                    async with asyncio.timeout(CONNECT):
                        await member.joined.wait()
                yield member.arrivals
        finally:
            member.leave()
            # Closing speaks with the cluster, which may be away; it takes us for dead then.
            with suppress(Unavailable), _translated():
                await asyncio.to_thread(consumer.close)


class _Member:
    def __init__(self, consumer: Consumer, topic: str) -> None:
        self.arrivals = Arrivals()
        self._consumer = consumer
        self._topic = topic
        self._lanes: dict[int, Lane] = {}
        self._unstored: dict[int, int] = {}
        self._storing_one = asyncio.Lock()
        self.joined = asyncio.Event()
        self._is_paused = False

    def begin_at_the_end(self) -> None:
        """Store the end as the position of every partition that has none. Others may have been quicker."""
        topics = self._consumer.list_topics(self._topic, timeout=CONNECT).topics
        partitions = [TopicPartition(self._topic, number) for number in topics[self._topic].partitions]
        new = [one for one in self._consumer.committed(partitions, CONNECT) if one.offset == OFFSET_INVALID]
        for one in new:
            one.offset = self._consumer.get_watermark_offsets(one, CONNECT)[1]
        if new:
            try:
                self._consumer.commit(offsets=new, asynchronous=False)
            except KafkaException as problem:
                if problem.args[0].code() not in (
                    KafkaError.UNKNOWN_MEMBER_ID,
                    KafkaError.ILLEGAL_GENERATION,
                ):
                    raise

    def join(self, loop: asyncio.AbstractEventLoop) -> None:
        def lose(_: Consumer, partitions: Sequence[TopicPartition]) -> None:
            loop.call_soon_threadsafe(self._lose, [one.partition for one in partitions])

        def hand_over(_: Consumer, partitions: Sequence[TopicPartition]) -> None:
            # Kafka gives them to somebody else when this returns.
            done = asyncio.run_coroutine_threadsafe(self._retire([one.partition for one in partitions]), loop)
            with suppress(TimeoutError, Unavailable):
                done.result(2 * HAND_OVER)

        def joined(_: Consumer, partitions: Sequence[TopicPartition]) -> None:
            loop.call_soon_threadsafe(self.joined.set)

        self._consumer.subscribe([self._topic], on_assign=joined, on_revoke=hand_over, on_lost=lose)

    async def run(self) -> None:
        try:
            with _translated():
                while True:
                    await self._read()
        except Unavailable as error:
            self.arrivals.fail(error)

    async def _read(self) -> None:
        waiting = sum(map(len, self._lanes.values()))
        if waiting >= WINDOW or self._is_paused:
            await asyncio.to_thread(self._regulate, waiting)
        # Shielded: a thread cannot be cancelled, and the consumer must not be closed under it.
        asking = asyncio.ensure_future(asyncio.to_thread(self._consumer.consume, PAGE, LISTEN))
        try:
            records = await asyncio.shield(asking)
        except asyncio.CancelledError:
            await asyncio.wait([asking])
            raise
        for record in records:
            error = record.error()
            if error is None:
                self._take(record)
            elif error.fatal() or not _passes(error):
                raise KafkaException(error)

    def _take(self, record: Record) -> None:
        partition, offset = record.partition() or 0, record.offset() or 0
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = Lane(self.arrivals, offset, self._storing(partition))
        lane.read(offset, _message(record))

    def _storing(self, partition: int) -> Callable[[int], Any]:
        async def store(position: int) -> None:
            self._unstored[partition] = position
            async with self._storing_one:
                if partition not in self._unstored:  # it went along with another one
                    return
                together, self._unstored = self._unstored, {}
                offsets = [TopicPartition(self._topic, one, at) for one, at in together.items()]
                try:
                    with _translated():
                        await asyncio.to_thread(self._consumer.commit, offsets=offsets, asynchronous=False)
                except BaseException:
                    self._unstored = together | self._unstored
                    raise

        return store

    def _lose(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._unstored.pop(partition, None)
            if lane := self._lanes.pop(partition, None):
                lane.lose()

    async def _retire(self, partitions: Sequence[int]) -> None:
        lanes = [self._lanes.pop(one) for one in partitions if one in self._lanes]
        await asyncio.gather(*(lane.retire(HAND_OVER) for lane in lanes))

    def leave(self) -> None:
        self._lose([*self._lanes])

    def _regulate(self, waiting: int) -> None:
        """Reading must go on, or Kafka takes the member for dead; it may be of nothing."""
        if waiting >= WINDOW:
            self._consumer.pause(self._consumer.assignment())
            self._is_paused = True
        elif self._is_paused:
            self._consumer.resume(self._consumer.assignment())
            self._is_paused = False


def _message(record: Record) -> Message:
    headers = {name: value.decode() for name, value in record.headers() or () if isinstance(value, bytes)}
    place = f"{record.topic()}/{record.partition()}/{record.offset()}"
    key = record.key()
    return Message(
        id=headers.pop(ID, place),
        key=key.decode(errors="replace") if isinstance(key, bytes) else key or "",
        body=record.value() or b"",
        headers=headers,
    )


def _passes(error: KafkaError) -> bool:
    """Whether librdkafka gets over it by itself."""
    return error.retriable() or error.code() in (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._PARTITION_EOF,
    )


def _error(error: KafkaError) -> Invalid | Unavailable:
    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return Invalid("The message is larger than this Kafka allows (message.max.bytes).")
    return Unavailable(f"Kafka does not do it now: {error.name()}: {error.str()}")


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except KafkaException as problem:
        raise _error(problem.args[0]) from problem
