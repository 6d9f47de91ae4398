"""Who hears of lifecycle events: subscribers in this process, and streams through the outbox.

A subscriber is told after the commit, from a line of its own: a slow one loses the oldest events, and
one that raises is logged; neither holds up a turn. What goes to a stream is part of the commit itself,
and `runtime.relay` brings it there.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any

import msgspec

from holdfast.commit import Outgoing
from holdfast.errors import Invalid
from holdfast.runtime.lifecycle import EventType, LifecycleEvent, cloud_event
from holdfast.telemetry import Figures, trace_now

QUEUE = 1_000
"""Events that wait for one subscriber. Beyond, the oldest are dropped."""

Callback = Callable[[LifecycleEvent], Awaitable[Any] | Any]

_log = logging.getLogger("holdfast")


class EventStream(msgspec.Struct, frozen=True, eq=False):
    """Where events go, and which. `destination` is an async function, or has one called `publish`."""

    destination: Any
    types: Iterable[EventType | str] | None = None
    """None: all of them."""


class Subscription:
    """One subscriber. `close` ends it."""

    def __init__(
        self, callback: Callback, types: frozenset[EventType], tenant: str | None, close: Callable[..., None]
    ) -> None:
        self.types = types
        self.tenant = tenant
        self.dropped = 0
        """Events it was too slow for."""
        self._callback = callback
        self._is_async = iscoroutinefunction(callback) or iscoroutinefunction(
            getattr(callback, "__call__", None)  # noqa: B004  an object with an async __call__
        )
        self._close = close
        self._waiting: deque[LifecycleEvent] = deque()
        self._news = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def close(self) -> None:
        """Nothing more. What waits for it is dropped."""
        self._waiting.clear()
        self._is_idle.set()
        self._close(self)

    def offer(self, event: LifecycleEvent) -> bool:
        """False when another one was dropped for it."""
        self._waiting.append(event)
        self._is_idle.clear()
        self._news.set()
        if len(self._waiting) <= QUEUE:
            return True
        self._waiting.popleft()
        self.dropped += 1
        return False

    async def settled(self) -> None:
        """Returns when it has heard everything."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not self._waiting:
                self._is_idle.set()
                self._news.clear()
                await self._news.wait()
                continue
            try:
                if self._is_async:
                    await self._callback(self._waiting.popleft())
                else:
                    events = [*self._waiting]
                    self._waiting.clear()
                    await asyncio.to_thread(self._call, events)
            except Exception:  # whatever it does, it hurts nobody else
                _log.exception("A subscriber to lifecycle events raised.")

    def _call(self, events: list[LifecycleEvent]) -> None:
        for event in events:
            try:
                self._callback(event)
            except Exception:
                _log.exception("A subscriber to lifecycle events raised.")


class Listeners:
    """All who listen. `wanted` is empty while there is nobody, and then no event is made."""

    def __init__(self, streams: Mapping[str, Any] | None = None, figures: Figures | None = None) -> None:
        given = {
            name: one if isinstance(one, EventStream) else EventStream(one)
            for name, one in (streams or {}).items()
        }
        self.destinations = {name: stream.destination for name, stream in given.items()}
        self._streams = {name: _types(stream.types) for name, stream in given.items()}
        self._subscriptions: list[Subscription] = []
        self._figures = figures or Figures()
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[Subscription, asyncio.Task[None]] = {}
        self.wanted: frozenset[EventType] = frozenset()
        self._gather()

    def _gather(self) -> None:
        subscribed = (one.types for one in self._subscriptions)
        self.wanted = frozenset[EventType]().union(*self._streams.values(), *subscribed)

    def subscribe(
        self, callback: Callback, types: Iterable[EventType | str] | None = None, tenant: str | None = None
    ) -> Subscription:
        subscription = Subscription(callback, _types(types), tenant, self._forget)
        self._subscriptions.append(subscription)
        self._gather()
        self._start(subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._gather()
        task = self._running.pop(subscription, None)
        if task is not None:
            task.cancel()

    def _start(self, subscription: Subscription) -> None:
        if self._tasks is not None:
            self._running[subscription] = self._tasks.create_task(subscription.run())

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for subscription in self._subscriptions:
                    self._start(subscription)
                await asyncio.get_running_loop().create_future()
        finally:
            self._tasks = None
            self._running.clear()

    async def settled(self) -> None:
        """Returns when all subscribers have heard everything."""
        for subscription in list(self._subscriptions):
            await subscription.settled()

    def outgoing(self, events: Iterable[LifecycleEvent]) -> tuple[Outgoing, ...]:
        """What streams shall hear, to be written with the commit that makes it true."""
        if not self._streams:
            return ()
        trace = trace_now()
        outgoing: list[Outgoing] = []
        for event in events:
            streams = [name for name, types in self._streams.items() if event.type in types]
            if streams:
                body = cloud_event(event, trace)
                outgoing += [Outgoing(name, body) for name in streams]
        return tuple(outgoing)

    def tell(self, events: Iterable[LifecycleEvent]) -> None:
        """After the commit, never before."""
        for event in events:
            for subscription in self._subscriptions:
                is_meant = event.type in subscription.types and subscription.tenant in (None, event.tenant)
                if is_meant and not subscription.offer(event):
                    self._figures.count("events_dropped")


def _types(names: Iterable[EventType | str] | None) -> frozenset[EventType]:
    if names is None:
        return frozenset(EventType)
    try:
        return frozenset(EventType(name) for name in names)
    except ValueError as problem:
        known = ", ".join(EventType)
        raise Invalid(f"{problem}. The types of lifecycle events are {known}.") from None
