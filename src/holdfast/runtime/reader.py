"""Brings messages and timers of the shards this node owns into memory, and nothing twice.

It has one query, asked from different places: where a wake-up points, from where the cursor stood a
while ago, from what was left behind for a reason, and from the beginning after a takeover or any
doubt. What this node's own commits send is handed over and never read back.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from heapq import heapify, heappop, heappush

from holdfast.clock import Clock
from holdfast.commit import Delivery, Lane, Place
from holdfast.errors import Unavailable
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.letters import is_urgent
from holdfast.runtime.lines import ALONE, Lines, Name, name_of
from holdfast.runtime.positions import Position
from holdfast.store import Inbox

PAGE, SMALLEST = 500, 16
"""Messages of one lane that are read at a time."""
RECENT = 5_000
"""Messages remembered as settled."""
HORIZON = timedelta(minutes=1)
"""Timers that are due so soon are in memory."""
RELOAD = 30.0
"""Seconds after which they are looked for again."""
SOON = 0.05
"""Seconds after which a node that works carefully looks whether it may take more."""

DOUBT, CROWD, FULL, PAUSE, LEASE = "doubt", "crowd", "full", "pause", "lease"
"""Why something was left behind: to be read again at once, when its line has room, when there is room at
all, when a pause is lifted, when the node has renewed."""


class _Fate(Enum):
    KEPT = "kept"
    LEFT = "left"
    """Its position is remembered; the walk goes on."""
    REFUSED = "refused"
    """There is no room for anything."""


Moment = Callable[[], float]
"""A clock that never goes back, in seconds."""


class Reader:
    def __init__(self, store: Inbox, lines: Lines, clock: Clock, *, slots: int, monotonic: Moment) -> None:
        self._store = store
        self._lines = lines
        self._clock = clock
        self._slots = slots
        self._capacity = 10 * slots
        self._monotonic = monotonic
        self._positions: dict[tuple[int, int], Position] = {}
        self._careful: set[int] = set()
        self._reads = 0
        self._gone: set[Name] = set()
        """Settled while a read was under way, which may bring them once more."""
        self._recent: dict[Name, None] = {}
        """Settled not long ago: whoever sent one of them may hand it over only now."""
        self._timers: list[tuple[datetime, int, Delivery]] = []
        self._timer_names: dict[Name, int] = {}
        self._left_timers: set[str] = set()
        """Why timers were left behind."""
        self._count = 0
        self._horizon: datetime | None = None
        self._loaded_at = float("-inf")
        self._hints: dict[tuple[int, int], int] = {}
        lines.on_room = lambda: self.resume(CROWD)
        self.news = asyncio.Event()
        """Set when there may be something to read before it is time to look anyway."""
        self.paused_tenants: frozenset[str] = frozenset()

    # --- which shards -----------------------------------------------------------------------------

    @property
    def shards(self) -> list[int]:
        return sorted({shard for shard, _ in self._positions})

    def owns(self, shard: int) -> bool:
        return (shard, Lane.ORDINARY) in self._positions

    def take(self, shard: int, *, carefully: bool) -> None:
        """This node's from now on. Carefully, when whoever had it died with work in hand."""
        for lane in Lane:
            self._positions[shard, lane] = Position(shard, lane)
        if carefully:
            self._careful.add(shard)
        self._loaded_at = float("-inf")
        self.news.set()

    def drop(self, shard: int) -> None:
        """Another node's from now on: all that memory holds of it goes."""
        for lane in Lane:
            self._positions.pop((shard, lane), None)
            self._hints.pop((shard, lane), None)
        self._careful.discard(shard)
        self._lines.drop_shard(shard)
        self._timers = [entry for entry in self._timers if entry[2].envelope.shard != shard]
        heapify(self._timers)
        self._timer_names = {name_of(d): n for _, n, d in self._timers}

    def doubt(self, shard: int | None = None) -> None:
        """What memory holds may be wrong: read from the beginning again."""
        for position in self._positions.values():
            if shard in (None, position.shard):
                position.leave(0, DOUBT)
        self._loaded_at = float("-inf")
        self.news.set()

    # --- what comes and goes ----------------------------------------------------------------------

    def hint(self, place: Place) -> None:
        """Somebody says that a message lies there."""
        key = (place.shard, place.lane)
        if key in self._positions and place not in self._lines:
            self._hints[key] = min(place.seq, self._hints.get(key, place.seq))
            self.news.set()

    def hand_over(self, delivery: Delivery) -> bool:
        """A message that this node itself has just sent. False when its shard is another node's."""
        place = delivery.place
        assert place is not None
        position = self._positions.get((place.shard, place.lane))
        if position is None:
            return False
        if place in self._recent:
            return True  # read and settled before its sender heard that it was sent
        if place.shard in self._careful:
            position.leave(place.seq, DOUBT)
        elif self._keep(delivery, position) is _Fate.REFUSED:
            position.leave(place.seq, FULL)
            self.news.set()
        elif not position.is_behind:
            position.advance(place.seq)
        return True

    def add_timer(self, delivery: Delivery) -> None:
        """A timer that one of this node's commits has set."""
        if (
            self.owns(delivery.envelope.shard)
            and self._horizon is not None
            and delivery.due is not None
            and delivery.due <= self._horizon
        ):
            self._push(delivery)

    def withdraw(self, name: Name) -> None:
        """A timer that one of this node's commits has burned."""
        self._timer_names.pop(name, None)
        self._lines.withdraw(name)
        self._note_gone(name)

    def settled(self, delivery: Delivery) -> None:
        """A commit has consumed it."""
        self._lines.forget(delivery)
        name = name_of(delivery)
        self._note_gone(name)
        self._recent[name] = None
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]

    def _note_gone(self, name: Name) -> None:
        if self._reads:
            self._gone.add(name)

    def leave(self, deliveries: Iterable[Delivery], reason: str) -> None:
        """They cannot be handled now; they are read again when the reason ends."""
        for delivery in deliveries:
            self._lines.forget(delivery)
            place = delivery.place
            if place is None:
                if reason == DOUBT:
                    self._loaded_at = float("-inf")
                else:
                    self._left_timers.add(reason)
                continue
            position = self._positions.get((place.shard, place.lane))
            if position is not None:
                position.leave(place.seq, reason)
        self.news.set()

    def doubt_timers(self) -> None:
        """There may be timers that nobody here has heard of."""
        self._loaded_at = float("-inf")
        self.news.set()

    def resume(self, reason: str) -> None:
        """The reason has ended."""
        for position in self._positions.values():
            if reason in position.left:
                position.leave(position.left.pop(reason), DOUBT)
                self.news.set()
        if reason == PAUSE or reason in self._left_timers:
            self._left_timers.discard(reason)
            self._loaded_at = float("-inf")
            self.news.set()

    def _keep(self, delivery: Delivery, position: Position) -> _Fate:
        """Into memory, if there is room for it and nothing holds it back."""
        envelope = delivery.envelope
        if position.lane != Lane.CONTROL:
            reason: str | None = None
            if len(self._lines) >= self._capacity:
                return _Fate.REFUSED
            if envelope.tenant in self.paused_tenants and not is_urgent(envelope):
                reason = PAUSE
            elif not self._lines.has_room(envelope.tenant, envelope.instance_id):
                reason = CROWD
            elif self._lines.of_tenant(envelope.tenant) >= self._capacity // 2:
                reason = FULL
            if reason is not None:
                position.leave(_seq(delivery), reason)
                return _Fate.LEFT
        now = self._clock.now()
        backs_off = delivery.retry_at is not None and delivery.retry_at > now
        self._lines.add(delivery, not_before=delivery.retry_at if backs_off else None)
        return _Fate.KEPT

    # --- reading ----------------------------------------------------------------------------------

    async def run(self, tick: float = 1.0) -> None:
        """Until cancelled: look where there is news, and everywhere once in a while."""
        next_round = float("-inf")
        backoff = Backoff()
        while True:
            now = self._monotonic()
            is_time = now >= next_round
            if is_time:
                next_round = now + tick
            self.news.clear()
            try:
                await self.look(everywhere=is_time)
                backoff.reset()
            except Unavailable:
                self.doubt()  # what was to be read is not known any more
                await backoff.wait()
                continue
            soonest = self._wake()
            if self._has_work():
                await asyncio.sleep(0)
                continue
            try:
                patience = min(next_round - self._monotonic(), soonest, SOON if self._careful else tick)
                async with asyncio.timeout(max(0.0, patience)):
                    await self.news.wait()
            except TimeoutError:
                pass

    def _has_work(self) -> bool:
        if any(shard not in self._careful for shard, _ in self._hints):
            return True
        room = len(self._lines) < self._capacity // 2
        return any(
            DOUBT in position.left or (room and (position.is_behind or FULL in position.left))
            for position in self._positions.values()
            if position.shard not in self._careful
        )

    async def look(self, *, everywhere: bool) -> None:
        """One round: careful shards first, then news, what was left, and the frontier."""
        moment = self._monotonic()
        await self._look_carefully()
        if moment - self._loaded_at >= RELOAD:
            await self._load_timers()
        after: dict[tuple[int, int], int] = {}
        room = len(self._lines) < self._capacity // 2
        for key, position in self._positions.items():
            if position.shard in self._careful:
                continue
            starts: list[int] = []
            if (hint := self._hints.pop(key, None)) is not None:
                starts.append(hint - 1)
            if everywhere:
                starts.append(position.trailing(moment))
                position.mark(moment)
            if DOUBT in position.left:
                starts.append(position.left.pop(DOUBT) - 1)
            if room and FULL in position.left:
                starts.append(position.left.pop(FULL) - 1)
            if position.is_behind and (room or position.lane == Lane.CONTROL):
                starts.append(position.cursor)
            if starts:
                after[key] = max(0, min(*starts, position.cursor))
        await self._walk(after)

    async def _walk(self, after: dict[tuple[int, int], int]) -> None:
        """From each of these to the end of what there is, page by page."""
        walked = {key: self._positions[key] for key in after}
        limit = PAGE
        while after:
            if not self._passes_over(walked, after):
                room = max(0, self._capacity - len(self._lines))
                limit = max(SMALLEST, min(PAGE, room // len(after)))  # what is not kept is read in vain
            found = await self._read([Place(shard, lane, seq) for (shard, lane), seq in after.items()], limit)
            pages: dict[tuple[int, int], list[Delivery]] = {}
            for delivery in found:
                if delivery.place is not None:
                    pages.setdefault((delivery.place.shard, delivery.place.lane), []).append(delivery)
            onward: dict[tuple[int, int], int] = {}
            for key in after:
                position, page = walked[key], pages.get(key, [])
                if self._positions.get(key) is not position:
                    continue  # dropped meanwhile, and perhaps taken again from its beginning
                if self._take_page(position, page, limit) and len(page) == limit:
                    onward[key] = _seq(page[-1])
            after, limit = onward, PAGE

    def _passes_over(
        self, walked: Mapping[tuple[int, int], Position], after: Mapping[tuple[int, int], int]
    ) -> bool:
        """Whether rows are being left behind for a reason, which goes in big steps."""
        return any(walked[key].left and seq >= walked[key].cursor for key, seq in after.items())

    def _take_page(self, position: Position, page: Sequence[Delivery], limit: int) -> bool:
        """Whether the walk goes on. What was seen before is not walked through again to the end."""
        for delivery in page:
            seq = _seq(delivery)
            is_new = seq > position.cursor
            if name_of(delivery) not in self._lines and name_of(delivery) not in self._gone:
                fate = self._keep(delivery, position)
                if fate is _Fate.REFUSED:
                    if is_new:
                        position.is_behind = True
                    else:
                        position.leave(seq, FULL)
                    return False
                if fate is _Fate.LEFT and not is_new and PAUSE not in position.left:
                    return False
            position.advance(seq)
        if len(page) < limit:
            position.is_behind = False
        return True

    async def _read(self, places: Sequence[Place], limit: int) -> list[Delivery]:
        self._reads += 1
        try:
            return await self._store.read(places, limit)
        finally:
            self._reads -= 1
            if not self._reads:
                asyncio.get_running_loop().call_soon(self._forget_gone)

    def _forget_gone(self) -> None:
        if not self._reads:
            self._gone.clear()

    # --- carefully --------------------------------------------------------------------------------

    async def _look_carefully(self) -> None:
        """After somebody died: count a death for what is due before it is taken, a page at a time.

        Bystanders finish on the way, so only what kills its process gets to the end of the count.
        """
        occupied = self._lines.occupied() if self._careful else set[int]()
        shards = [shard for shard in sorted(self._careful) if shard not in occupied]  # others: not done yet
        if not shards:
            return
        positions = {(shard, lane): self._positions[shard, lane] for shard in shards for lane in Lane}
        places = [Place(shard, lane, position.cursor) for (shard, lane), position in positions.items()]
        found = (await self._store.read(places, self._slots))[: self._slots]
        if not found:
            found = await self._store.due(shards, self._clock.now(), self._slots)
        if len(found) < self._slots:
            with_more = {d.envelope.shard for d in found if d.place is not None}
            self._careful.difference_update(shard for shard in shards if shard not in with_more)
            self._loaded_at = float("-inf")
        # One that will run alone is counted when it does: only that tells it from those it died with.
        young = [delivery for delivery in found if delivery.deaths < ALONE]
        counted = {name_of(one): one for one in (await self._store.count_deaths(young) if young else ())}
        for delivery in found:
            one = delivery if delivery.deaths >= ALONE else counted.get(name_of(delivery))
            if one is not None and self._is_still(positions, one.envelope.shard):
                self._lines.add(one)
        for place in (delivery.place for delivery in found):
            if place is not None and self._is_still(positions, place.shard):
                self._positions[place.shard, place.lane].advance(place.seq)
        self.news.set()

    def _is_still(self, positions: Mapping[tuple[int, Lane], Position], shard: int) -> bool:
        """Whether it was not dropped meanwhile, and perhaps taken again."""
        key = (shard, Lane.CONTROL)
        return self._positions.get(key) is positions[key]

    # --- timers -----------------------------------------------------------------------------------

    async def _load_timers(self) -> None:
        shards = [shard for shard in self.shards if shard not in self._careful]
        self._loaded_at = self._monotonic()
        if not shards:
            return
        # Moved first: what a commit of ours sets while the query runs may not be in its answer.
        self._horizon = horizon = self._clock.now() + HORIZON
        self._reads += 1
        try:
            found = await self._store.due(shards, horizon, self._capacity)
        finally:
            self._reads -= 1
        for delivery in found:
            if name_of(delivery) not in self._gone:
                self._push(delivery)
        # With more than fit, those behind the last one are looked for as soon as these are done.
        is_all = len(found) < self._capacity
        if not is_all:
            self._horizon = min(horizon, found[-1].due or horizon)
            self._loaded_at = self._monotonic() - RELOAD + 1
        if not self._reads:
            self._gone.clear()

    def _push(self, delivery: Delivery) -> None:
        name = name_of(delivery)
        if name in self._timer_names or name in self._lines or delivery.due is None:
            return
        self._count += 1
        at = max(delivery.due, delivery.retry_at or delivery.due)
        self._timer_names[name] = self._count
        heappush(self._timers, (at, self._count, delivery))
        if self._timers[0][1] == self._count:
            self.news.set()

    def _wake(self) -> float:
        """Hand out what is due now; in how many seconds the next one is."""
        now = self._clock.now()
        while self._timers and self._timers[0][0] <= now:
            _, number, delivery = heappop(self._timers)
            name = name_of(delivery)
            if self._timer_names.get(name) != number:
                continue  # withdrawn
            del self._timer_names[name]
            if self.owns(delivery.envelope.shard) and delivery.envelope.tenant not in self.paused_tenants:
                self._lines.add(delivery)
        soonest = self._lines.wake(now)
        if self._timers:
            soonest = min(self._timers[0][0], soonest or self._timers[0][0])
        return float("inf") if soonest is None else max(0.0, (soonest - now).total_seconds())


def _seq(delivery: Delivery) -> int:
    assert delivery.place is not None
    return delivery.place.seq
