"""Topics in the memory of one process: for tests, and to try things out. They end with the process."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from holdfast.errors import Unavailable
from holdfast.stream import Delivery, Message, Start, Subscription, check_names
from holdfast.streams.arrivals import Arrivals
from holdfast.streams.lane import Lane, LaneDelivery

KEPT = 100_000
"""Messages of a topic that a new group can still read."""


class MemoryStream:
    """Whoever shall read what is published here needs this very object."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._is_closed = False

    async def publish(self, topic: str, messages: Sequence[Message]) -> None:
        found = self._topic(topic)
        for message in messages:
            found.append(message)

    def subscribe(
        self, topic: str, group: str, *, start: Start = "oldest"
    ) -> AbstractAsyncContextManager[Subscription]:
        check_names(group)
        return self._member(topic, group, start)

    async def close(self) -> None:
        self._is_closed = True

    @asynccontextmanager
    async def _member(self, topic: str, group: str, start: Start) -> AsyncGenerator[Subscription]:
        member = _Member(self._topic(topic).group(group, start))
        try:
            yield member
        finally:
            member.leave()

    def _topic(self, name: str) -> "_Topic":
        check_names(name)
        if self._is_closed:
            raise Unavailable("This stream was closed.")
        return self._topics.setdefault(name, _Topic())


class _Topic:
    def __init__(self) -> None:
        self._messages: deque[tuple[int, Message]] = deque(maxlen=KEPT)
        self._groups: dict[str, _Group] = {}
        self._next = 0

    def append(self, message: Message) -> None:
        self._messages.append((self._next, message))
        for group in self._groups.values():
            group.lane.read(self._next, message)
        self._next += 1

    def group(self, name: str, start: Start) -> "_Group":
        if name not in self._groups:
            group = self._groups[name] = _Group()
            for offset, message in self._messages if start == "oldest" else ():
                group.lane.read(offset, message)
        return self._groups[name]


class _Group:
    """All members take from one line, so one lane is enough."""

    def __init__(self) -> None:
        self.arrivals = Arrivals()
        self.lane = Lane(self.arrivals, 0)


class _Member:
    def __init__(self, group: _Group) -> None:
        self._group = group
        self._mine: list[LaneDelivery] = []

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        delivery = await self._group.arrivals.__anext__()
        assert isinstance(delivery, LaneDelivery)
        self._mine = [one for one in self._mine if not one.is_over]
        self._mine.append(delivery)
        return delivery

    def leave(self) -> None:
        for delivery in self._mine:
            delivery.give_back()
