"""Messages in memory, a line for each instance, and whose turn it is.

Pure bookkeeping: no clock, no store. One turn per instance at a time; the control lane first, then
ordinary messages and due timers, bulk at least every eighth; by turns among tenants inside each.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime

from holdfast.commit import CONTINUE, Delivery, Lane, Place

MOST = 64
"""Messages in one turn."""
ROOM = 256
"""Messages of one instance in memory."""
BULK_EVERY = 8
ALONE = 2
"""A message whose process died so often runs when nothing else does."""

Name = Place | tuple[str, str, str]
"""How a message is known: by its place, or as a timer by tenant, instance and id."""


def name_of(delivery: Delivery) -> Name:
    if delivery.place is not None:
        return delivery.place
    return delivery.envelope.tenant, delivery.envelope.instance_id, delivery.timer or ""


class Line:
    """The messages of one instance, in the order in which they are handled."""

    __slots__ = (
        "control",
        "is_busy",
        "is_crowded",
        "is_queued",
        "is_waiting",
        "key",
        "not_before",
        "on_control",
        "rest",
        "shard",
        "singly",
    )

    def __init__(self, key: tuple[str, str], shard: int) -> None:
        self.key = key
        self.shard = shard
        self.control: deque[Delivery] = deque()
        self.rest: deque[Delivery] = deque()
        self.is_busy = False
        self.is_crowded = False
        """There are more than it has room for."""
        self.is_queued = False
        self.is_waiting = False
        """Nothing can be done before something else arrives."""
        self.not_before: datetime | None = None
        """A message backs off; what is not control waits behind it."""
        self.on_control: Callable[[], None] | None = None
        """Called when control arrives while a turn is under way."""
        self.singly = 0
        """So many of its next messages are taken one by one, because taken together they failed."""

    def __len__(self) -> int:
        return len(self.control) + len(self.rest)

    @property
    def lane(self) -> Lane:
        if self.control:
            return Lane.CONTROL
        return Lane.ORDINARY if self.rest[0].place is None else Lane(self.rest[0].place.lane)

    @property
    def is_alone(self) -> bool:
        """Whether its next message must run while nothing else does."""
        first = self.control[0] if self.control else self.rest[0]
        return first.deaths >= ALONE

    def add(self, delivery: Delivery) -> None:
        if delivery.envelope.lane is Lane.CONTROL:
            self.control.append(delivery)
        elif delivery.envelope.kind == CONTINUE:
            self.rest.appendleft(delivery)  # what was begun is finished first
        else:
            self.rest.append(delivery)

    def take(self, most: int) -> list[Delivery]:
        """The next messages. One that must be alone comes alone."""
        taken: list[Delivery] = []
        if self.singly:
            self.singly -= 1
            most = 1
        while len(taken) < most and len(self):
            source = self.control or self.rest
            if source is self.rest and self.not_before is not None:
                break
            if source[0].deaths >= ALONE and taken:
                break
            taken.append(source.popleft())
            if taken[-1].deaths >= ALONE:
                break
        return taken

    def take_control(self) -> list[Delivery]:
        taken = list(self.control)
        self.control.clear()
        return taken

    def put_back(self, deliveries: list[Delivery]) -> None:
        for delivery in reversed(deliveries):
            (self.control if delivery.envelope.lane is Lane.CONTROL else self.rest).appendleft(delivery)


class _Ring:
    """Lines that are ready, dealt by turns among tenants."""

    def __init__(self) -> None:
        self._tenants: dict[str, deque[Line]] = {}

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def append(self, line: Line) -> None:
        self._tenants.setdefault(line.key[0], deque()).append(line)

    def popleft(self) -> Line:
        tenant, lines = next(iter(self._tenants.items()))
        line = lines.popleft()
        del self._tenants[tenant]
        if lines:
            self._tenants[tenant] = lines  # behind the others
        return line


class Lines:
    """Everything this node has in memory and has not settled."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], Line] = {}
        self._known: dict[Name, Delivery] = {}
        self._ready = (_Ring(), _Ring(), _Ring())
        self._alone: deque[Line] = deque()
        self._dealt = 0
        self._busy = 0
        self._is_alone = False
        self._by_tenant: dict[str, int] = {}
        self._held: dict[tuple[str, str], Line] = {}
        self._takers: deque[asyncio.Future[None]] = deque()
        self.on_room: Callable[[], None] = _ignore
        """Called when a line that was crowded is so no more."""
        self.is_open = True
        """Closed, it deals nothing more."""

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: Name) -> bool:
        return name in self._known

    @property
    def busy(self) -> int:
        """Turns under way."""
        return self._busy

    def is_busy_in(self, shard: int) -> bool:
        return any(line.is_busy and line.shard == shard for line in self._lines.values())

    def occupied(self) -> set[int]:
        """Shards in which something is being done or can be done now."""
        return {
            line.shard
            for line in self._lines.values()
            if line.is_busy or (len(line) and not line.is_waiting and line.not_before is None)
        }

    def of_tenant(self, tenant: str) -> int:
        return self._by_tenant.get(tenant, 0)

    def has_room(self, tenant: str, instance_id: str) -> bool:
        line = self._lines.get((tenant, instance_id))
        if line is None or len(line) < ROOM:
            return True
        line.is_crowded = True
        return False

    def add(self, delivery: Delivery, *, not_before: datetime | None = None) -> None:
        """A message that is due, unless it is known already. It may have to back off until then."""
        name = name_of(delivery)
        if name in self._known:
            return
        self._known[name] = delivery
        tenant = delivery.envelope.tenant
        self._by_tenant[tenant] = self._by_tenant.get(tenant, 0) + 1
        key = (tenant, delivery.envelope.instance_id)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(key, delivery.envelope.shard)
        line.add(delivery)
        line.is_waiting = False
        if not_before is not None:
            self.hold(line, not_before)
        if delivery.envelope.lane is Lane.CONTROL and line.on_control is not None:
            line.on_control()
        self._queue(line)

    def claim(self, delivery: Delivery) -> None:
        """It belongs to a turn under way, and to no line, even if a reader has put it into one."""
        read = self._known.get(name_of(delivery))
        if read is not None:
            self._take_out(read)
        else:
            self._known[name_of(delivery)] = delivery
            tenant = delivery.envelope.tenant
            self._by_tenant[tenant] = self._by_tenant.get(tenant, 0) + 1

    def hold(self, line: Line, until: datetime) -> None:
        """Let its messages, control excepted, wait until then."""
        line.not_before = until if line.not_before is None else max(until, line.not_before)
        self._held[line.key] = line

    def back_off(self, line: Line, delivery: Delivery, later: Delivery, until: datetime) -> None:
        """A message of a turn under way failed: the same again, before those behind it, but not yet."""
        self.forget(delivery)
        self.claim(later)
        line.put_back([later])
        self.hold(line, until)

    def forget(self, delivery: Delivery) -> None:
        """It is settled, or somebody else's now."""
        if self._known.pop(name_of(delivery), None) is not None:
            tenant = delivery.envelope.tenant
            left = self._by_tenant[tenant] - 1
            if left:
                self._by_tenant[tenant] = left
            else:
                del self._by_tenant[tenant]

    def withdraw(self, name: Name) -> None:
        """A timer that was burned before it was handled."""
        delivery = self._known.get(name)
        if delivery is not None:
            self._take_out(delivery)
            self.forget(delivery)

    def _take_out(self, delivery: Delivery) -> None:
        line = self._lines.get((delivery.envelope.tenant, delivery.envelope.instance_id))
        if line is not None:
            line.rest = deque(one for one in line.rest if one is not delivery)

    def drop_shard(self, shard: int) -> None:
        """Another node's from now on: forget what waits; turns under way find out by themselves."""
        for line in [one for one in self._lines.values() if one.shard == shard]:
            for delivery in (*line.control, *line.rest):
                self.forget(delivery)
            line.control.clear()
            line.rest.clear()
            self._discard_empty(line)

    def drop_line(self, line: Line) -> list[Delivery]:
        """Forget what waits in it; what that was."""
        dropped = [*line.control, *line.rest]
        for delivery in dropped:
            self.forget(delivery)
        line.control.clear()
        line.rest.clear()
        return dropped

    # --- dealing ----------------------------------------------------------------------------------

    def _queue(self, line: Line) -> None:
        if line.is_busy or line.is_queued or line.is_waiting or not len(line):
            return
        if line.not_before is not None and not line.control:
            return
        line.is_queued = True
        if line.is_alone:
            self._alone.append(line)
        else:
            self._ready[line.lane].append(line)
        self._call_taker()

    def _call_taker(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    async def next(self) -> Line:
        """The next line whose turn may be taken. It is busy until `done`."""
        while True:
            line = self._deal()
            if line is not None:
                return line
            taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except asyncio.CancelledError:
                if taker.done() and not taker.cancelled():
                    self._call_taker()  # the call was for somebody; let another one have it
                raise

    def _deal(self) -> Line | None:
        while self.is_open and not self._is_alone:
            line = self._pick()
            if line is None:
                return None
            line.is_queued = False
            if not len(line) or line.is_busy:
                self._is_alone = False  # it was picked to be alone, and does not run after all
                self._discard_empty(line)
                continue
            line.is_busy = True
            self._busy += 1
            return line
        return None

    def _pick(self) -> Line | None:
        if self._alone:
            if self._busy:
                return None  # it waits until nothing else runs, and nothing new begins before it
            self._is_alone = True
            return self._alone.popleft()
        control, ordinary, bulk = self._ready
        if control:
            return control.popleft()
        self._dealt += 1
        if bulk and (not ordinary or self._dealt % BULK_EVERY == 0):
            return bulk.popleft()
        return ordinary.popleft() if ordinary else None

    def done(self, line: Line) -> None:
        """Its turn is over, one way or another."""
        if line.is_crowded and len(line) < MOST:
            line.is_crowded = False
            self.on_room()
        line.is_busy = False
        line.on_control = None
        self._busy -= 1
        if len(line):
            self._queue(line)
        else:
            self._discard_empty(line)
        if self._is_alone:
            self._is_alone = False
            self.wake_takers()
        elif self._alone and not self._busy:
            self._call_taker()

    def _discard_empty(self, line: Line) -> None:
        if not len(line) and not line.is_busy and not line.is_queued:
            self._lines.pop(line.key, None)

    def wake(self, now: datetime) -> datetime | None:
        """Let those go on whose backoff is over; when the next one's is."""
        for line in list(self._held.values()):
            if line.not_before is None or line.not_before <= now:
                del self._held[line.key]
                line.not_before = None
                self._queue(line)
        return min((line.not_before for line in self._held.values() if line.not_before), default=None)

    def wake_takers(self) -> None:
        """Something changed that may let somebody begin."""
        for _ in range(len(self._takers)):
            self._call_taker()


def _ignore() -> None:
    pass
