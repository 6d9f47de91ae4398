"""What one member does with one lane of a topic, for brokers that only remember a position.

Keys are worked on beside each other, and one key in order: a message waits here while one of its key
is under way. Acknowledgements come in any order; the position that is stored never passes a message
that is not done.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from holdfast.stream import Message
from holdfast.streams.arrivals import Arrivals

Store = Callable[[int], Awaitable[None]]
"""Remember the offset of the first message that is not done."""


class Entry:
    """A message at its place in the lane."""

    __slots__ = ("attempt", "is_done", "message", "offset")

    def __init__(self, offset: int, message: Message) -> None:
        self.offset = offset
        self.message = message
        self.attempt = 0
        self.is_done = False


class Lane:
    """One lane, while this member has it."""

    def __init__(self, arrivals: Arrivals, position: int, store: Store | None = None) -> None:
        self.position = position
        """Everything below it is done."""
        self._arrivals = arrivals
        self._store = store
        self._stored = position
        self._storing = asyncio.Lock()
        self._unfinished: deque[Entry] = deque()
        self._lines: dict[str, deque[Entry]] = {}
        self.is_lost = False
        self._is_retiring = False
        self.taken = 0
        """Messages that somebody has."""

    def __len__(self) -> int:
        """How many messages are not done."""
        return len(self._unfinished)

    @property
    def is_ending(self) -> bool:
        """What nobody has yet is another member's from now on."""
        return self.is_lost or self._is_retiring

    async def retire(self, patience: float) -> None:
        """Deliver no more, and let those who have something finish, or lose it when they take too long."""
        self._is_retiring = True
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self.taken:
                    await asyncio.sleep(0.01)
        await self.store()
        self.lose()

    def lose(self) -> None:
        """Another member has it from now on."""
        self.is_lost = True

    def read(self, offset: int, message: Message) -> None:
        """The next message of the lane."""
        entry = Entry(offset, message)
        self._unfinished.append(entry)
        line = self._lines.get(message.key)
        if line is not None:
            line.append(entry)
            return
        if message.key:
            self._lines[message.key] = deque()
        self.offer(entry)

    def offer(self, entry: Entry) -> None:
        """Deliver it, or deliver it again."""
        if not self.is_ending:
            entry.attempt += 1
            self._arrivals.offer(LaneDelivery(self, entry))

    def finish(self, entry: Entry) -> None:
        """It is done, and the next of its key may come."""
        entry.is_done = True
        while self._unfinished and self._unfinished[0].is_done:
            self.position = self._unfinished.popleft().offset + 1
        line = self._lines.get(entry.message.key)
        if line:
            self.offer(line.popleft())
        elif line is not None:
            del self._lines[entry.message.key]

    async def store(self) -> None:
        """Store the position; once for all who finished while it was last stored."""
        if self._store is None:
            return
        async with self._storing:
            if self.position > self._stored and not self.is_lost:
                position = self.position
                await self._store(position)
                self._stored = position


class LaneDelivery:
    """One time that a message was delivered. What is said of it counts once."""

    def __init__(self, lane: Lane, entry: Entry) -> None:
        self._lane = lane
        self._entry = entry
        self._is_settled = self._is_taken = False
        self.message = entry.message
        self.attempt = entry.attempt

    @property
    def is_over(self) -> bool:
        return self._is_settled or (self._lane.is_lost if self._is_taken else self._lane.is_ending)

    def take(self) -> None:
        self._is_taken = True
        self._lane.taken += 1

    async def ack(self) -> None:
        if self._is_first():
            self._lane.finish(self._entry)
            try:
                await self._lane.store()
            finally:
                self._lane.taken -= 1

    async def nack(self, delay: float = 0.0) -> None:
        self.give_back(delay)

    def give_back(self, delay: float = 0.0) -> None:
        if self._is_first():
            self._lane.taken -= 1
            asyncio.get_running_loop().call_later(delay, self._lane.offer, self._entry)

    def _is_first(self) -> bool:
        """Whether nothing was said of it before."""
        is_first = not self.is_over
        self._is_settled = True
        return is_first
