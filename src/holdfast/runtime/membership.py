"""A node among the others: alive by one renewal a second, and what it learns from it.

Time is the database's: with each renewal the node learns it, and from then on counts by a clock that
never goes back. Renewal may run in a thread of its own, so that a busy event loop does not lose its
leases; it stops when that loop has not moved for a while, so that a hung one does.
"""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from holdfast.errors import Unavailable
from holdfast.runtime.backoff import Backoff
from holdfast.store import NodeExpired, Renewal, Store

TTL = timedelta(seconds=5)
MARGIN = 1.0
"""Seconds before its lease may end in which a node begins nothing more."""
HUNG = 15.0
"""Seconds after which an event loop that has not moved is taken for dead."""


class StoreClock:
    """The store's time: never ahead of it, behind by one round trip at most."""

    def __init__(self, monotonic: Callable[[], float], beginning: datetime) -> None:
        self._monotonic = monotonic
        self._known = beginning
        self._at = monotonic()
        self._latest = beginning

    def learn(self, now: datetime) -> None:
        self._known, self._at = now, self._monotonic()

    def now(self) -> datetime:
        # Cut off, and a microsecond less: both times are rounded, and rounded up it would be ahead.
        passed = int((self._monotonic() - self._at) * 1_000_000) - 1
        now = self._known + timedelta(0, 0, passed)
        self._latest = max(self._latest, now)
        return self._latest

    async def sleep_until(self, when: datetime) -> None:
        while (left := (when - self.now()).total_seconds()) > 0:
            await asyncio.sleep(left)


class Where(msgspec.Struct, frozen=True):
    """The process a node is, so that others on the same machine see when it is gone."""

    host: str
    boot: str
    namespace: str
    pid: int
    groups: tuple[str, ...] = ()

    def is_surely_gone(self, here: "Where") -> bool:
        """A process of this machine that does not run any more."""
        if (self.host, self.boot, self.namespace) != (here.host, here.boot, here.namespace):
            return False
        if self.pid == here.pid:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


def this_process(groups: tuple[str, ...]) -> Where:
    return Where(
        socket.gethostname(),
        _read("/proc/sys/kernel/random/boot_id"),
        _link("/proc/self/ns/pid"),
        os.getpid(),
        groups,
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


class Membership:
    """One life of a node, from joining to leaving. An expired one cannot come back."""

    def __init__(
        self,
        store: Store,
        node_id: str,
        where: Where,
        clock: StoreClock,
        *,
        monotonic: Callable[[], float],
        on_renewal: Callable[[float, Renewal], None],
    ) -> None:
        """`on_renewal` is called with when it was asked for, on the event loop that joined."""
        self.node_id = node_id
        self.seen = 0
        """The pauses this node knows of."""
        self._store = store
        self._where = where
        self._clock = clock
        self._monotonic = monotonic
        self._on_renewal = on_renewal
        self._sent = float("-inf")
        self._moved = monotonic()
        self._expired = asyncio.Event()

    def may_begin(self) -> bool:
        """Whether its leases surely hold long enough to begin something."""
        return self._monotonic() < self._sent + TTL.total_seconds() - MARGIN

    async def join(self) -> Renewal:
        sent = self._monotonic()
        place = msgspec.json.encode(self._where).decode()
        renewal = await self._store.join(self.node_id, place, TTL)
        self._accept(sent, renewal)
        return renewal

    async def expired(self) -> None:
        """Returns when the node has not renewed in time."""
        await self._expired.wait()

    def _accept(self, sent: float, renewal: Renewal) -> None:
        self._moved = self._monotonic()
        self._sent = max(self._sent, sent)
        self._clock.learn(renewal.now)
        self._on_renewal(sent, renewal)

    async def renew_forever(
        self,
        store: Store,
        accept: Callable[[float, Renewal], None] | None = None,
        expire: Callable[[], None] | None = None,
    ) -> None:
        """Once a second, until cancelled or expired."""
        backoff = Backoff()
        while self._monotonic() - self._moved < HUNG:
            sent = self._monotonic()
            try:
                renewal = await store.renew(self.node_id, TTL, seen=self.seen)
            except NodeExpired:
                break
            except Unavailable:
                await backoff.wait()
                continue
            backoff.reset()
            (accept or self._accept)(sent, renewal)
            await asyncio.sleep(max(0.0, 1.0 - (self._monotonic() - sent)))
        (expire or self._expired.set)()

    async def renew_in_thread(self) -> None:
        """The same, in a thread with connections of its own."""
        loop = asyncio.get_running_loop()
        stopping = threading.Event()

        def accept(sent: float, renewal: Renewal) -> None:
            loop.call_soon_threadsafe(self._accept, sent, renewal)

        def expire() -> None:
            loop.call_soon_threadsafe(self._expired.set)

        async def renew() -> None:
            store = self._store.apart()
            task = asyncio.ensure_future(self.renew_forever(store, accept, expire))
            try:
                while not stopping.is_set() and not task.done():
                    await asyncio.sleep(0.05)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if store is not self._store:
                    await store.close()

        thread = threading.Thread(target=lambda: asyncio.run(renew()), name="holdfast-renewal", daemon=True)
        thread.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopping.set()
            await asyncio.shield(asyncio.to_thread(thread.join, 10))
