"""NATS JetStream: a stream for each topic, a subject for each of its lanes.

A group has a durable consumer for each lane, with one message under way at a time: so the server itself
keeps the order, whichever member asks, and members share the work message by message. A member that
lives says so for all it has; what a dead one had is delivered again after `patience`.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from urllib.parse import quote, unquote

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import APIError, BadRequestError, NotFoundError

from holdfast.errors import Invalid, Unavailable
from holdfast.stream import Message, Start, Subscription, check_names, lane_of
from holdfast.streams.arrivals import Arrivals
from holdfast.streams.calls import asking, beside

CONNECT = 5.0
"""Seconds for the first hello."""
ASK = 0.5
"""Seconds that a question for the next message waits at the server. Leaving takes no longer."""
ID, KEY = "Nats-Msg-Id", "Holdfast-Key"

_PLAIN = "".join(map(chr, range(33, 127))).replace("%", "")
_log = logging.getLogger("holdfast")


class NatsStream:
    def __init__(self, client: Client, *, lanes: int, patience: float, replicas: int) -> None:
        self._client = client
        self._jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]  its keywords have no types
        self._lanes = lanes
        self._patience = patience
        self._replicas = replicas
        self._topics: dict[str, int] = {}

    @classmethod
    async def open(cls, url: str, *, lanes: int, patience: float, replicas: int = 1) -> "NatsStream":
        with _translated():
            async with asyncio.timeout(CONNECT):
                client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]  the same
                    url, max_reconnect_attempts=-1, error_cb=_note
                )
        stream = cls(client, lanes=lanes, patience=patience, replicas=replicas)
        try:
            with _translated():
                await stream._jetstream.account_info()
        except BaseException:
            await client.close()
            raise
        return stream

    async def publish(self, topic: str, messages: Sequence[Message]) -> None:
        check_names(topic)
        with _translated():
            lanes = await self._topic(topic)
            lines: dict[int, list[Message]] = {}
            for message in messages:
                lines.setdefault(lane_of(message, lanes), []).append(message)
            # All of them are told to end before any error is: nothing is sent behind the caller's back.
            sent = await asyncio.gather(
                *(self._send(f"{topic}.{lane}", line) for lane, line in lines.items()), return_exceptions=True
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
        await self._client.close()

    async def _send(self, subject: str, messages: Sequence[Message]) -> None:
        for message in messages:
            headers = {name: quote(value, safe=_PLAIN + " ") for name, value in message.headers.items()}
            headers |= {ID: quote(message.id, safe=_PLAIN), KEY: quote(message.key, safe=_PLAIN)}
            await self._jetstream.publish(subject, message.body, headers=headers)

    async def _topic(self, topic: str) -> int:
        """How many lanes it has. It is made if it is not there."""
        if topic not in self._topics:
            name = _stream_name(topic)
            try:
                found = await self._jetstream.stream_info(name)
            except NotFoundError:
                subjects = [f"{topic}.{lane}" for lane in range(self._lanes)]
                config = StreamConfig(name=name, subjects=subjects, num_replicas=self._replicas)
                try:
                    found = await self._jetstream.add_stream(config)  # pyright: ignore[reportUnknownMemberType]
                except BadRequestError:  # somebody made it meanwhile, with another number of lanes
                    found = await self._jetstream.stream_info(name)
            self._topics[topic] = len(found.config.subjects or ())
        return self._topics[topic]

    @asynccontextmanager
    async def _member(self, topic: str, group: str, start: Start) -> AsyncGenerator[Subscription]:
        member = _Member(self._patience)
        with _translated():
            for lane in range(await self._topic(topic)):
                member.subscriptions.append(await self._consumer(topic, lane, group, start))
        async with beside(member.run()):
            try:
                yield member.arrivals
            finally:
                await member.leave()

    async def _consumer(
        self, topic: str, lane: int, group: str, start: Start
    ) -> JetStreamContext.PullSubscription:
        stream, name = _stream_name(topic), f"{_stream_name(group)}-{lane}"
        try:
            await self._jetstream.consumer_info(stream, name)
        except NotFoundError:
            config = ConsumerConfig(
                durable_name=name,
                filter_subject=f"{topic}.{lane}",
                deliver_policy=DeliverPolicy.ALL if start == "oldest" else DeliverPolicy.NEW,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=self._patience,
                max_ack_pending=1,
            )
            # Somebody who joined at the same moment, with another start, was first.
            with suppress(BadRequestError):
                await self._jetstream.add_consumer(stream, config)  # pyright: ignore[reportUnknownMemberType]
        return await self._jetstream.pull_subscribe_bind(name, stream)


class _Member:
    def __init__(self, patience: float) -> None:
        self.arrivals = Arrivals()
        self.subscriptions: list[JetStreamContext.PullSubscription] = []
        self._patience = patience
        self._under_way: set[_NatsDelivery] = set()
        self._is_leaving = False
        self._asking: asyncio.Future[list[None]] | None = None

    async def run(self) -> None:
        self._asking = asyncio.gather(*(self._read(one) for one in self.subscriptions))
        async with beside(self._say_alive()):
            try:
                with _translated():
                    await self._asking
            except Unavailable as error:
                self.arrivals.fail(error)

    async def leave(self) -> None:
        """Not in the middle of a question: its answer would be nobody's until `patience` is over."""
        self._is_leaving = True
        # The server may be away, and finds out by itself then.
        with suppress(Unavailable):
            await self._give_back()
            if self._asking is not None:
                await asyncio.wait([self._asking], timeout=2 * ASK)
            await self._give_back()
            with _translated():
                for subscription in self.subscriptions:
                    await subscription.unsubscribe()

    async def _read(self, subscription: JetStreamContext.PullSubscription) -> None:
        while not self._is_leaving:
            try:
                [found] = await subscription.fetch(1, timeout=ASK)
            except TimeoutError:
                continue
            delivery = _NatsDelivery(found, self._under_way)
            self._under_way.add(delivery)
            self.arrivals.offer(delivery)
            # The server has nothing more for this lane until then, and asking costs.
            if not self._is_leaving:
                await delivery.settled.wait()

    async def _give_back(self) -> None:
        for delivery in [*self._under_way]:
            await delivery.nack()

    async def _say_alive(self) -> None:
        while True:
            await asyncio.sleep(self._patience / 3)
            for delivery in [*self._under_way]:
                with suppress(nats.errors.Error):  # not connected at the moment
                    await delivery.say_alive()


class _NatsDelivery:
    def __init__(self, found: Msg, under_way: "set[_NatsDelivery]") -> None:
        headers = found.headers or {}
        self.message = Message(
            id=unquote(headers.get(ID, f"{found.subject}/{found.metadata.sequence.stream}")),
            key=unquote(headers.get(KEY, "")),
            body=found.data,
            headers={name: unquote(value) for name, value in headers.items() if name not in (ID, KEY)},
        )
        self.attempt = found.metadata.num_delivered or 1
        self.settled = asyncio.Event()
        self._found = found
        self._under_way = under_way

    @property
    def is_over(self) -> bool:
        return self.settled.is_set()

    def take(self) -> None:
        """The server knows already."""

    async def ack(self) -> None:
        if not self.is_over:
            with _translated():
                await self._found.ack_sync()
            self._settle()

    async def nack(self, delay: float = 0.0) -> None:
        if not self.is_over:
            self._settle()
            with _translated():
                await self._found.nak(delay or None)

    async def say_alive(self) -> None:
        await self._found.in_progress()

    def _settle(self) -> None:
        self._under_way.discard(self)
        self.settled.set()


def _stream_name(topic: str) -> str:
    """JetStream has no dots in names."""
    return topic.replace(".", "=")


async def _note(error: Exception) -> None:
    _log.warning("NATS: %s", error or type(error).__name__)


@contextmanager
def _translated() -> Generator[None]:
    try:
        with asking("NATS", nats.errors.Error, APIError):
            yield
    except Unavailable as problem:
        if isinstance(problem.__cause__, nats.errors.MaxPayloadError):
            raise Invalid("The message is larger than this NATS server allows (max_payload).") from problem
        raise
