"""The port to a broker: topics that programs publish to, and groups that read them.

A topic keeps its messages in lanes, and a key always goes to the same lane, so that what has one key
stays in order. A group remembers how far it has read; each message goes to one of its members. Delivery
is at least once: whoever reads tells a repetition by the message's id. Brokers are in `streams/`; what
commits leave in the outbox comes here through `streams.destination`.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol
from zlib import crc32

import msgspec

from holdfast.errors import Invalid

Start = Literal["oldest", "latest"]
"""Where a group begins that has never read a topic."""

LANES = 8
"""Lanes of a topic, unless its broker knows better: how many messages can be worked on at once."""
PATIENCE = 30.0
"""Seconds of silence after which a member is taken for dead, and what it had goes to others."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """The same whenever it is published again. A broker may then drop it; a reader must be able to."""
    body: bytes
    key: str = ""
    """Messages of one key are delivered in order, one at a time; those without one in any order."""
    headers: Mapping[str, str] = {}


class Delivery(Protocol):
    """One message in the hands of one member, until it says what became of it."""

    @property
    def message(self) -> Message: ...

    @property
    def attempt(self) -> int:
        """1 at first. Not all brokers count what happened in other members."""
        ...

    async def ack(self) -> None:
        """It is done. Too late when the member was taken for dead: then it comes to another one, too."""
        ...

    async def nack(self, delay: float = 0.0) -> None:
        """Deliver it again, after so many seconds. What has the same key waits for it, others may."""
        ...


class Subscription(Protocol):
    """A member of a group. Several tasks may ask it for the next message at the same time."""

    def __aiter__(self) -> AsyncIterator[Delivery]: ...

    async def __anext__(self) -> Delivery:
        """The next message, whether or not those before it are done. Raises `Unavailable`."""
        ...


class Stream(Protocol):
    """What Holdfast asks of a broker. Every adapter passes `StreamConformance`."""

    async def publish(self, topic: str, messages: Sequence[Message]) -> None:
        """They are durable when it returns. When it raises `Unavailable` some of them may be."""
        ...

    def subscribe(
        self, topic: str, group: str, *, start: Start = "oldest"
    ) -> AbstractAsyncContextManager[Subscription]:
        """Join the group. `start` counts only for a group that is new, and from the moment of joining.

        Leaving gives back what is not acknowledged: it comes to another member, or when somebody joins.
        """
        ...

    async def close(self) -> None:
        """After its subscriptions are left."""
        ...


def lane_of(message: Message, lanes: int) -> int:
    """Where it goes: the same for equal keys, in every process and for ever."""
    return crc32((message.key or message.id).encode()) % lanes


def check_names(*names: str) -> None:
    """Topics and groups have names that every broker takes."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise Invalid(
                f"{name!r} cannot name a topic or a group: use 1 to 200 letters, digits, '-', '_' and '.'."
            )
