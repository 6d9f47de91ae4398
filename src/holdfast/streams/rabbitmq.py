"""RabbitMQ: a stream queue for each lane of a topic, and a seat for each lane in each group.

A stream queue keeps its messages for every group, and remembers nothing of its readers. So a group has
a small queue for each lane with one message in it, the seat: it says how far the group has read. Whoever
holds it, unacknowledged, reads the lane; when that member leaves or dies, the broker hands the seat to
the next in line. Who has more seats than a fair share gives some back.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any

import aio_pika
from aio_pika.abc import (
    AbstractChannel,
    AbstractConnection,
    AbstractExchange,
    AbstractIncomingMessage,
    AbstractQueue,
)
from aio_pika.exceptions import AMQPError, ChannelInvalidStateError, ChannelPreconditionFailed
from aiormq.exceptions import DeliveryError

from holdfast.errors import Invalid, Unavailable
from holdfast.stream import Message, Start, Subscription, check_names, lane_of
from holdfast.streams.arrivals import Arrivals
from holdfast.streams.calls import asking, beside
from holdfast.streams.lane import Lane

CONNECT = 5.0
"""Seconds for the first hello."""
WINDOW = 100
"""Messages of one lane that are not done. Beyond, the broker sends no more."""
SHARE = 1.0
"""Seconds between two looks at who else is there."""
HEADER = "h-"
"""Before our headers, so that they are not taken for the broker's own."""
MARK = "holdfast-mark"
"""A message with this header is none: it shows a group that begins at the end where that is."""


class RabbitStream:
    def __init__(self, url: str, *, lanes: int, patience: float) -> None:
        self._url = url
        self._lanes = lanes
        self._patience = patience
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel | None = None
        self._topics: set[str] = set()
        self._connecting = asyncio.Lock()

    @classmethod
    async def open(cls, url: str, *, lanes: int, patience: float) -> "RabbitStream":
        stream = cls(url, lanes=lanes, patience=patience)
        with _translated():
            await stream._connected()
        return stream

    async def publish(self, topic: str, messages: Sequence[Message]) -> None:
        check_names(topic)
        lines: dict[int, list[Message]] = {}
        for message in messages:
            lines.setdefault(lane_of(message, self._lanes), []).append(message)
        with _translated():
            await self._declare(topic)
            exchange = (await self._publishing()).default_exchange
            sent = await asyncio.gather(
                *(_send(exchange, _lane(topic, lane), line) for lane, line in lines.items()),
                return_exceptions=True,
            )
            for outcome in sent:
                if isinstance(outcome, BaseException):
                    raise outcome

    def subscribe(
        self, topic: str, group: str, *, start: Start = "oldest"
    ) -> AbstractAsyncContextManager[Subscription]:
        check_names(topic, group)
        return self._member(topic, group, start)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _connected(self) -> AbstractConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                beat = max(round(self._patience / 2), 1)  # RabbitMQ gives up after two that are missing
                self._connection = await aio_pika.connect(self._url, timeout=CONNECT, heartbeat=beat)
        return self._connection

    async def _publishing(self) -> AbstractChannel:
        connection = await self._connected()
        if self._channel is None or self._channel.is_closed:
            self._channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        return self._channel

    async def _declare(self, topic: str) -> None:
        if topic in self._topics:
            return
        async with await (await self._connected()).channel() as channel:
            try:
                # Nothing is ever in it: it is there to refuse whoever thinks of another number of lanes.
                await channel.declare_queue(
                    _name(topic), durable=True, arguments={"x-max-length": self._lanes}
                )
            except ChannelPreconditionFailed as problem:
                raise Invalid(
                    f"Topic {topic} has another number of lanes than {self._lanes}. "
                    f"Give every program the same, as in amqp://host/?lanes=8. {problem}"
                ) from problem
            for lane in range(self._lanes):
                await channel.declare_queue(
                    _lane(topic, lane), durable=True, arguments={"x-queue-type": "stream"}
                )
        self._topics.add(topic)

    @asynccontextmanager
    async def _member(self, topic: str, group: str, start: Start) -> AsyncGenerator[Subscription]:
        with _translated():
            await self._declare(topic)
            channel = await (await self._connected()).channel(publisher_confirms=True, on_return_raises=True)
            await channel.set_qos(prefetch_count=WINDOW)
            seats = [_Seat(channel, topic, lane, group) for lane in range(self._lanes)]
            arrivals = Arrivals()
            channel.close_callbacks.add(
                lambda _, error: arrivals.fail(Unavailable(f"RabbitMQ closed the channel: {error}"))
            )
        try:
            with _translated():
                for seat in seats:
                    await seat.join(arrivals, start)
            async with beside(_share(seats)):
                yield arrivals
        finally:
            for seat in seats:
                seat.lose()
            # With the channel go its consumers, and the broker has back what they did not acknowledge.
            with suppress(Unavailable), _translated():
                await channel.close()


class _Seat:
    """One lane's seat in a group, as one member sees it."""

    def __init__(self, channel: AbstractChannel, topic: str, lane: int, group: str) -> None:
        self._channel = channel
        self._source = _lane(topic, lane)
        self._name = f"{_lane(topic, lane)}@{group}"
        self._arrivals = Arrivals()
        self._queue: AbstractQueue | None = None
        self._stream: AbstractQueue | None = None
        self._tag = self._reading = ""
        self._is_in_line = False
        self._held: AbstractIncomingMessage | None = None
        self._position = 0
        self._credits: dict[int, AbstractIncomingMessage] = {}
        self.lane: Lane | None = None

    async def join(self, arrivals: Arrivals, start: Start) -> None:
        """Stand in line for it. If the group is new, it is made first."""
        self._arrivals = arrivals
        self._stream = await self._channel.declare_queue(self._source, passive=True)
        self._queue = await self._channel.declare_queue(
            self._name, durable=True, arguments={"x-single-active-consumer": True}
        )
        count = self._queue.declaration_result
        if not count.message_count and not count.consumer_count:
            await self._write(0 if start == "oldest" else await self._end())
        await self._line_up()

    async def members(self) -> int:
        """How many stand in line, the holder among them."""
        found = await self._channel.declare_queue(self._name, passive=True)
        return found.declaration_result.consumer_count or 1

    async def retire(self) -> None:
        """Read no more, finish what is under way, then give it to the next in line and stand at its end."""
        assert self._queue is not None
        if self._reading and self._stream is not None:
            reading, self._reading = self._reading, ""
            await self._stream.cancel(reading)
        if self.lane is None or len(self.lane):
            return
        self._is_in_line = False
        await self._queue.cancel(self._tag)
        self.lose()
        if self._held is not None:
            held, self._held = self._held, None
            await held.nack(requeue=True)
        await self._line_up()

    def lose(self) -> None:
        if self.lane is not None:
            self.lane.lose()
            self.lane = None
            self._credits.clear()

    async def _line_up(self) -> None:
        assert self._queue is not None
        self._is_in_line = True
        self._tag = await self._queue.consume(self._receive)

    async def _receive(self, held: AbstractIncomingMessage) -> None:
        """The seat, or what this member has itself written on it. The furthest position counts."""
        if not self._is_in_line:
            with _unless_closed():
                await held.nack(requeue=True)
            return
        before, self._held = self._held, held
        self._position = max(self._position if before else 0, int(held.body))
        with _unless_closed():
            if before is not None:
                await before.ack()
            if self.lane is None:
                self.lane = Lane(self._arrivals, self._position, self._store)
                await self._read()

    async def _store(self, position: int) -> None:
        with _translated():
            await self._write(position)
            for offset in [offset for offset in self._credits if offset < position]:
                await self._credits.pop(offset).ack()

    async def _write(self, position: int) -> None:
        body = aio_pika.Message(b"%d" % position, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._channel.default_exchange.publish(body, self._name)

    async def _read(self) -> None:
        assert self._stream is not None
        lane = self.lane

        async def take(found: AbstractIncomingMessage) -> None:
            offset = int(str(found.headers["x-stream-offset"]))
            if lane is None or lane.is_lost:
                return
            if offset < lane.position or MARK in found.headers:
                with _unless_closed():
                    await found.ack()
                return
            self._credits[offset] = found
            lane.read(offset, _message(found))

        offset: Any = self._position
        self._reading = await self._stream.consume(take, arguments={"x-stream-offset": offset})

    async def _end(self) -> int:
        """The offset behind the last message: that of a mark, put there to see it come back."""
        assert self._stream is not None
        seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def look(found: AbstractIncomingMessage) -> None:
            with _unless_closed():
                await found.ack()
            if MARK in found.headers and not seen.done():
                seen.set_result(int(str(found.headers["x-stream-offset"])))

        tag = await self._stream.consume(look, arguments={"x-stream-offset": "next"})
        await self._channel.default_exchange.publish(
            aio_pika.Message(b"", headers={MARK: True}), self._source
        )
        async with asyncio.timeout(CONNECT):
            end = await seen
        await self._stream.cancel(tag)
        return end


async def _share(seats: Sequence[_Seat]) -> None:
    """Give back what is more than a fair share."""
    while True:
        await asyncio.sleep(SHARE)
        with suppress(Unavailable), _translated():  # the channel's end is told elsewhere
            mine = [seat for seat in seats if seat.lane is not None]
            if mine:
                fair = -(-len(seats) // await mine[0].members())
                for seat in mine[fair:]:
                    await seat.retire()


async def _send(exchange: AbstractExchange, queue: str, messages: Sequence[Message]) -> None:
    for message in messages:
        headers: dict[str, Any] = {HEADER + name: value for name, value in message.headers.items()}
        made = aio_pika.Message(
            message.body,
            headers={**headers, "holdfast-id": message.id, "holdfast-key": message.key},
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        await exchange.publish(made, queue, mandatory=True)


def _message(found: AbstractIncomingMessage) -> Message:
    """Of one that somebody else published, what there is."""
    place = f"{found.routing_key}/{found.headers['x-stream-offset']}"
    return Message(
        id=str(found.headers.get("holdfast-id", place)),
        key=str(found.headers.get("holdfast-key", "")),
        body=found.body,
        headers={
            name.removeprefix(HEADER): str(value)
            for name, value in found.headers.items()
            if name.startswith(HEADER)
        },
    )


def _name(topic: str) -> str:
    return f"holdfast.{topic}"


def _lane(topic: str, lane: int) -> str:
    return f"holdfast.{topic}/{lane}"


def _translated() -> AbstractContextManager[None]:
    return asking("RabbitMQ", AMQPError, ChannelInvalidStateError, DeliveryError)


@contextmanager
def _unless_closed() -> Generator[None]:
    """For what the broker calls back: the channel's end is told to whoever asks for the next message."""
    with suppress(Unavailable), _translated():
        yield
