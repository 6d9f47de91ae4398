"""A node at work: everything that keeps instances going, put together, from joining to leaving.

Several nodes share a store without knowing each other: each renews itself once a second, takes its
fair share of the shards and works the messages in them. One that did not renew in time has lost
everything; it forgets all it knew, joins again under a new id and begins afresh.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count

from holdfast.clock import Ids
from holdfast.commit import Commit
from holdfast.errors import Unavailable
from holdfast.runtime.background import Background
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.committer import Committer
from holdfast.runtime.courier import CATALOGUE, PAUSES, RESULT, Courier, place_in
from holdfast.runtime.firing import Clockwork
from holdfast.runtime.gate import Gate
from holdfast.runtime.housekeeping import ROLE, Housekeeping
from holdfast.runtime.lines import Lines
from holdfast.runtime.loader import Loader
from holdfast.runtime.matching import Matching
from holdfast.runtime.membership import Membership, StoreClock, Where
from holdfast.runtime.program import Snapshot
from holdfast.runtime.reader import LEASE, PAUSE, Reader
from holdfast.runtime.relay import Relay
from holdfast.runtime.results import Results
from holdfast.runtime.shares import Shares
from holdfast.runtime.worker import Observer, Worker
from holdfast.runtime.world import World
from holdfast.store import Committed, Renewal

SLOTS = 512
"""Turns at a time: enough that while one group of them is being written, others still run."""
FLUSH = 1.0
"""Seconds in which the outbox may be relayed when the node stops."""
DRAIN = 30.0
"""Seconds in which turns under way may come to an end when the node stops."""

_log = logging.getLogger("holdfast")


class Node:
    """It works between `start` and `stop`. Without groups it works nothing, and may still send."""

    def __init__(
        self,
        world: World,
        clock: StoreClock,
        where: Where,
        *,
        ids: Ids,
        monotonic: Callable[[], float],
        slots: int = SLOTS,
        tick: float = 1.0,
        renews_in_thread: bool = True,
        on_catalogue: Callable[[], None] = lambda: None,
        observers: tuple[Observer, ...] = (),
    ) -> None:
        store = world.store
        self.world = world
        self.where = where
        self._clock = clock
        self._ids = ids
        self._monotonic = monotonic
        self._slots = slots
        self._tick = tick
        self._renews_in_thread = renews_in_thread
        self._on_catalogue = on_catalogue
        self._observers = observers
        self.lines = Lines()
        self.reader = Reader(store, self.lines, clock, slots=slots, monotonic=monotonic)
        self.loader = Loader(store)
        self.courier = Courier(self.reader, self.loader, store)
        self.matching = Matching(world, self.courier)
        self.results = Results(store)
        self.gate = Gate()
        self.clockwork = Clockwork(world, self.courier, self.gate, shards=lambda: self.reader.shards)
        self.background = Background(
            world,
            self.courier,
            shards=lambda: self.reader.shards,
            node_id=lambda: self.id,
            slots=slots,
        )
        self.housekeeping = Housekeeping(
            store,
            self.matching,
            clock,
            has_role=lambda: self.shares is not None and ROLE in self.shares.roles,
        )
        self.relay = Relay(
            store,
            world.listeners.destinations,
            shards=lambda: self.reader.shards,
            monotonic=monotonic,
            figures=world.figures,
        )
        self.id = ""
        self._at_work: Worker | None = None
        self.shares: Shares | None = None
        self._membership: Membership | None = None
        self._renewal: Renewal | None = None
        self._numbers = count(1)
        self._catalogue: int | None = None
        self._pauses: int | None = None
        self._news = asyncio.Event()
        self._is_stopping = False
        self._has_stopped = asyncio.Event()
        self._is_ready = asyncio.Event()

    # --- its life ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until `stop`. A node that expired begins a new life."""
        backoff = Backoff()
        try:
            while not self._is_stopping:
                try:
                    await self._live()
                    if not self._is_stopping:
                        self.world.figures.count("expirations")
                        _log.warning(
                            "Node %s did not renew in time; it joins again.", self.id, extra={"node": self.id}
                        )
                    backoff.reset()
                except* Unavailable:
                    self._forget_everything()
                    await backoff.wait()
        finally:
            self._has_stopped.set()

    async def ready(self) -> None:
        """Returns when it has joined and has looked for shards once."""
        await self._is_ready.wait()

    async def stop(self, patience: float = DRAIN) -> None:
        """Take nothing more, finish what is under way, give everything back."""
        self._is_stopping = True
        self.lines.is_open = False
        self._news.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                while self.lines.busy or (self._at_work is not None and self._at_work.looks.are_owed):
                    await asyncio.sleep(0.01)
        with suppress(TimeoutError):  # what is left is relayed by whoever takes the shard
            async with asyncio.timeout(FLUSH):
                await self.relay.settled()
        self._stopping.set()
        await self._has_stopped.wait()

    async def _live(self) -> None:
        self.id = self._ids.new()
        self._stopping = asyncio.Event()
        membership = self._membership = Membership(
            self.world.store,
            self.id,
            self.where,
            self._clock,
            monotonic=self._monotonic,
            on_renewal=self._renewed,
        )
        self.shares = Shares(
            self.world.store,
            membership,
            self.where,
            shards=self.world.shards,
            reader=self.reader,
            lines=self.lines,
            loader=self.loader,
            monotonic=self._monotonic,
            on_takeover=self.housekeeping.news.set,
            figures=self.world.figures,
        )
        await membership.join()
        await self._work(membership)

    async def _work(self, membership: Membership) -> None:
        try:
            async with (
                Committer(self.world.store, figures=self.world.figures) as committer,
                asyncio.TaskGroup() as tasks,
            ):
                worker = self._at_work = self._worker(committer, membership)
                self._committer = committer
                if self._renews_in_thread:
                    renewing = tasks.create_task(membership.renew_in_thread())
                else:
                    renewing = tasks.create_task(membership.renew_forever(self.world.store))
                tending = tasks.create_task(self._tend())
                running = [
                    tasks.create_task(work)
                    for work in (
                        self.reader.run(self._tick),
                        self.courier.run(),
                        self.loader.run(),
                        self.clockwork.run(),
                        self.background.run(),
                        self.housekeeping.run(),
                        self.relay.run(),
                        self.world.store.listen(self.hear),
                        worker.run(self._slots),
                    )
                ]
                ended = [tasks.create_task(membership.expired()), tasks.create_task(self._stopping.wait())]
                await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
                is_clean = self._stopping.is_set()
                if is_clean and self.shares is not None:
                    # Given back before the work is cancelled: nothing is in hand any more, or its turn is
                    # abandoned, and whoever takes the shard reads what is true. Nothing is taken any more.
                    tending.cancel()
                    await asyncio.wait([tending])
                    with suppress(Unavailable):
                        await self.shares.give_all()
                        await self.world.store.leave(self.id)
                for task in (tending, *running, *ended, renewing):
                    task.cancel()
        finally:
            self._forget_everything()

    def _worker(self, committer: Committer, membership: Membership) -> Worker:
        return Worker(
            self.world,
            lines=self.lines,
            reader=self.reader,
            loader=self.loader,
            committer=committer,
            courier=self.courier,
            matching=self.matching,
            gate=self.gate,
            observer=self,
            names=self.turn_name,
            may_begin=membership.may_begin,
        )

    def turn_name(self) -> str:
        return f"{self.id}-{next(self._numbers)}"

    def _forget_everything(self) -> None:
        if self.shares is not None:
            self.shares.lose_all()
        self.loader.forget_shard(None)
        self._is_ready.clear()

    # --- what it hears ----------------------------------------------------------------------------

    def _renewed(self, sent: float, renewal: Renewal) -> None:
        self._renewal = renewal
        if self.shares is not None:
            self.shares.check(sent, renewal)
        self.reader.resume(LEASE)
        self._news.set()

    def hear(self, word: str) -> None:
        """A wake-up, from another node or this one."""
        place = place_in(word)
        if place is not None:
            self.reader.hint(place)
        elif word.startswith(RESULT):
            self.results.wake(*word.removeprefix(RESULT).rsplit("/", 1))
        elif word == CATALOGUE:
            self._on_catalogue()
            self.clockwork.look()
            self.relay.look()
        elif word == PAUSES:
            self._pauses = None
            self._news.set()
        elif word == "":
            self.reader.doubt()
            self.results.wake_all()

    async def _tend(self) -> None:
        """Once a second: learn what changed, give and take shards."""
        backoff = Backoff()
        while True:
            self._news.clear()
            try:
                await self._learn()
                if self.shares is not None and not self._is_stopping and self.where.groups:
                    await self.shares.balance((ROLE,))
                self._is_ready.set()
                backoff.reset()
            except Unavailable:
                await backoff.wait()
                continue
            await self._news.wait()

    async def _learn(self) -> None:
        renewal = self._renewal
        if renewal is None:
            return
        store = self.world.store
        if renewal.catalogue != self._catalogue:
            self._catalogue = renewal.catalogue
            self._on_catalogue()
            self.clockwork.look()
            self.world.shards.learn(await store.shard_groups(), await store.placements())
        if renewal.pauses != self._pauses or self.gate.has_expired(self._clock.now()):
            self.gate.learn(await store.pauses(), (self.id, self.where.host))
            self._pauses = renewal.pauses
            self.reader.paused_tenants = self.gate.tenants
            self.reader.resume(PAUSE)
            if self._membership is not None:
                self._membership.seen = renewal.pauses

    def committed(
        self, commit: Commit, committed: Committed, before: Snapshot | None, after: Snapshot | None
    ) -> None:
        """After each commit of this node, in this order: who waits, who works, who watches."""
        self.results.committed(commit)
        self.background.committed(commit)
        if commit.outbox:
            self.relay.committed(commit)
        if commit.frees_activations:
            self.clockwork.key_freed()
        for observer in self._observers:
            observer.committed(commit, committed, before, after)
