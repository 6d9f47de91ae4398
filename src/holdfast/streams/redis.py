"""Redis streams: one for each lane of a topic, and a consumer group of its own in each.

A script takes the next message of a lane only when none of it is under way: so each lane stays in
order, whichever member asks, and members share the work message by message. What nobody spoke for during
`patience` is taken over. Redis keeps what its settings for persistence say, and all of it unless `keep`
limits the messages of a lane.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from secrets import token_hex
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from holdfast.errors import Unavailable
from holdfast.stream import Message, Start, Subscription, check_names, lane_of
from holdfast.streams.arrivals import Arrivals
from holdfast.streams.calls import asking, beside

LOOK = 0.5
"""Seconds after which a member looks again although no bell rang."""
NEVER = 2_000_000_000
"""Milliseconds, longer than anybody's patience: what has been idle for so long is taken at once."""

# KEYS: the lanes. ARGV: group, member, patience in milliseconds, where to begin looking.
# Returns the lane, the message's id and fields, and how often it was delivered; or nothing.
TAKE = """
for step = 0, #KEYS - 1 do
  local lane = (ARGV[4] + step) % #KEYS
  local key = KEYS[lane + 1]
  if redis.call('XPENDING', key, ARGV[1])[1] == 0 then
    local got = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 1, 'STREAMS', key, '>')
    if got then return {lane, got[1][2][1][1], got[1][2][1][2], 1} end
  else
    local got = redis.call('XAUTOCLAIM', key, ARGV[1], ARGV[2], ARGV[3], '0-0', 'COUNT', 1)[2][1]
    if got then
      return {lane, got[1], got[2], redis.call('XPENDING', key, ARGV[1], got[1], got[1], 1)[1][4]}
    end
  end
end
return false
"""

# Done, if the message is still this member's. KEYS: the lane. ARGV: group, member, message.
ACK = """
local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)[1]
if held and held[2] == ARGV[2] then redis.call('XACK', KEYS[1], ARGV[1], ARGV[3]) end
return held and 1 or 0
"""

# Still at it; with a long time given, whoever wants it may take it.
# KEYS: the lane. ARGV: group, member, message, milliseconds it shall seem to have been idle.
HOLD = """
local held = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1)[1]
if held and held[2] == ARGV[2] then
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3], 'IDLE', ARGV[4], 'JUSTID')
  return 1
end
return 0
"""


class RedisStream:
    def __init__(self, client: Redis, *, lanes: int, patience: float, keep: int) -> None:
        self._client: Any = client
        self._lanes = lanes
        self._patience = patience
        self._keep = keep
        self._topics: dict[str, int] = {}

    @classmethod
    async def open(cls, url: str, *, lanes: int, patience: float, keep: int = 0) -> "RedisStream":
        with _translated():
            client: Any = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]  its keywords have no types
                url, socket_connect_timeout=5, health_check_interval=15
            )
            try:
                await client.ping()
            except BaseException:
                await client.aclose()
                raise
        return cls(client, lanes=lanes, patience=patience, keep=keep)

    async def publish(self, topic: str, messages: Sequence[Message]) -> None:
        check_names(topic)
        with _translated():
            lanes = await self._topic(topic)
            trim = {"maxlen": self._keep, "approximate": True} if self._keep else {}
            async with self._client.pipeline(transaction=True) as together:
                for message in messages:
                    fields = {
                        "id": message.id,
                        "key": message.key,
                        "body": message.body,
                        "headers": msgspec.json.encode(message.headers),
                    }
                    together.xadd(_lane(topic, lane_of(message, lanes)), fields, **trim)
                together.publish(_bell(topic), b"")
                await together.execute()

    def subscribe(
        self, topic: str, group: str, *, start: Start = "oldest"
    ) -> AbstractAsyncContextManager[Subscription]:
        check_names(topic, group)
        return self._member(topic, group, start)

    async def close(self) -> None:
        await self._client.aclose()

    async def _topic(self, topic: str) -> int:
        """How many lanes it has. Whoever uses it first decides."""
        if topic not in self._topics:
            key = f"holdfast:{{{topic}}}"
            await self._client.set(key, self._lanes, nx=True)
            self._topics[topic] = int(await self._client.get(key))
        return self._topics[topic]

    @asynccontextmanager
    async def _member(self, topic: str, group: str, start: Start) -> AsyncGenerator[Subscription]:
        with _translated():
            lanes = await self._topic(topic)
            for lane in range(lanes):
                await self._join(_lane(topic, lane), group, start)
            bells: Any = self._client.pubsub(ignore_subscribe_messages=True)
            await bells.subscribe(_bell(topic))
        member = _Member(self._client, bells, topic, lanes, group, self._patience)
        try:
            async with beside(member.run()), beside(member.say_alive()):
                yield member.arrivals
        finally:
            # Redis may be away: then the others wait for as long as their patience lasts.
            with suppress(Unavailable), _translated():
                await member.leave()
                await bells.aclose()

    async def _join(self, key: str, group: str, start: Start) -> None:
        try:
            await self._client.xgroup_create(key, group, id="0" if start == "oldest" else "$", mkstream=True)
        except ResponseError as problem:
            if "BUSYGROUP" not in str(problem):
                raise


class _Member:
    def __init__(self, client: Any, bells: Any, topic: str, lanes: int, group: str, patience: float) -> None:
        self.arrivals = Arrivals()
        self.name = token_hex(8)
        self.under_way: set[_RedisDelivery] = set()
        self._bells = bells
        self._topic = topic
        self._keys = [_lane(topic, lane) for lane in range(lanes)]
        self._group = group
        self._patience = patience
        self._next = 0
        self._client = client
        self._take = client.register_script(TAKE)
        self._ack = client.register_script(ACK)
        self._hold = client.register_script(HOLD)

    async def run(self) -> None:
        try:
            with _translated():
                while True:
                    await self.arrivals.wanted()
                    if not await self.take():
                        await self._bells.get_message(timeout=LOOK)
        except Unavailable as error:
            self.arrivals.fail(error)

    async def take(self) -> bool:
        patience = round(self._patience * 1000)
        arguments = [self._group, self.name, patience, self._next]
        found: tuple[int, bytes, list[bytes], int] | None = await self._take(keys=self._keys, args=arguments)
        if found is None:
            return False
        lane, id_, fields, attempt = found
        self._next = (lane + 1) % len(self._keys)
        delivery = _RedisDelivery(self, self._keys[lane], id_, _message(id_, fields), attempt)
        self.under_way.add(delivery)
        self.arrivals.offer(delivery)
        return True

    async def ack(self, lane: str, id_: bytes) -> None:
        await self._ack(keys=[lane], args=[self._group, self.name, id_])
        await self._client.publish(_bell(self._topic), b"")

    async def hold(self, lane: str, id_: bytes, idle: int = 0) -> None:
        await self._hold(keys=[lane], args=[self._group, self.name, id_, idle])

    async def say_alive(self) -> None:
        while True:
            await asyncio.sleep(self._patience / 3)
            # If Redis is away, whoever asks for the next message is told.
            with suppress(RedisError, OSError):
                for delivery in [*self.under_way]:
                    await self.hold(delivery.lane, delivery.id)

    async def leave(self) -> None:
        for delivery in [*self.under_way]:
            delivery.forget()
            await self.hold(delivery.lane, delivery.id, NEVER)
        await self._client.publish(_bell(self._topic), b"")


class _RedisDelivery:
    def __init__(self, member: _Member, lane: str, id_: bytes, message: Message, attempt: int) -> None:
        self.message = message
        self.attempt = attempt
        self.is_over = False
        self.lane = lane
        self.id = id_
        self._member = member

    def take(self) -> None:
        """Redis knows already."""

    async def ack(self) -> None:
        if not self.is_over:
            with _translated():
                await self._member.ack(self.lane, self.id)
            self.forget()

    async def nack(self, delay: float = 0.0) -> None:
        """This member keeps it meanwhile: Redis can wait no longer than `patience`."""
        if not self.is_over:
            self.is_over = True
            asyncio.get_running_loop().call_later(delay, self._again)

    def forget(self) -> None:
        self.is_over = True
        self._member.under_way.discard(self)

    def _again(self) -> None:
        if self in self._member.under_way:
            self._member.under_way.discard(self)
            again = _RedisDelivery(self._member, self.lane, self.id, self.message, self.attempt + 1)
            self._member.under_way.add(again)
            self._member.arrivals.offer(again)


def _message(id_: bytes, fields: Sequence[bytes]) -> Message:
    """Of fields that somebody else wrote, what there is."""
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    return Message(
        id=found.get(b"id", id_).decode(),
        key=found.get(b"key", b"").decode(),
        body=found.get(b"body", b""),
        headers=msgspec.json.decode(found.get(b"headers", b"{}"), type=dict[str, str]),
    )


def _lane(topic: str, lane: int) -> str:
    """In braces, so that a Redis cluster keeps the lanes of a topic together."""
    return f"holdfast:{{{topic}}}:{lane}"


def _bell(topic: str) -> str:
    return f"holdfast:{{{topic}}}:bell"


def _translated() -> AbstractContextManager[None]:
    return asking("Redis", RedisError)
