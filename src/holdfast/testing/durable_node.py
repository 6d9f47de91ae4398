"""One node of the durable runtime, put together for a test: its own clock and ids, a console that remembers.

It is what `holdfast.application` puts together for an application, with other time and identity.
"""

import asyncio
import time
from types import TracebackType

from holdfast.activities.composites import workflow_activity_types
from holdfast.authoring import Children
from holdfast.clock import Ids, SystemClock, TimeOrderedIds
from holdfast.engine import Environment, Limits
from holdfast.engine.alterations import Versions
from holdfast.plugin import Plugins
from holdfast.runtime.altering import StoredVersions
from holdfast.runtime.inline import InlineChildren
from holdfast.runtime.library import Library
from holdfast.runtime.membership import this_process
from holdfast.runtime.node import Node
from holdfast.runtime.publishing import Publishing
from holdfast.runtime.reception import Reception
from holdfast.runtime.shards import Shards
from holdfast.runtime.worker import Observer
from holdfast.runtime.world import World
from holdfast.store import DEFAULT, Store
from holdfast.testing.durable_clock import FollowingClock

PATIENCE = 1.0
"""Seconds for turns that are still under way when the test is over."""


class RunningNode:
    """A node, and what requests to it pass through. Use it with `async with`."""

    def __init__(
        self,
        store: Store,
        plugins: Plugins,
        clock: FollowingClock,
        ids: Ids,
        *,
        shards: Shards,
        limits: Limits,
        flowchart_mode: str,
        observer: Observer,
    ) -> None:
        self.library = Library(store, plugins, workflow_activity_types)
        self.versions = StoredVersions(store, self.library)
        self.environment = Environment(
            clock=clock,
            services={Children: InlineChildren(), Versions: self.versions, **plugins.services},
            functions=plugins.functions,
            expressions=plugins.expressions.languages,
            limits=limits,
            around_activity=tuple(plugins.around_activity),
            around_burst=tuple(plugins.around_burst),
            has_background=True,
            flowchart_mode=flowchart_mode,
        )
        world = World(store=store, programs=self.library, shards=shards, environment=self.environment)
        self.node = Node(
            world,
            clock,
            this_process((DEFAULT,)),
            ids=TimeOrderedIds(SystemClock()),
            monotonic=time.monotonic,
            renews_in_thread=False,
            on_catalogue=self.library.forget,
            observers=(observer,),
        )
        self.publishing = Publishing(store, self.library, plugins, clock, ids, shards.of)
        self.reception = Reception(world, self.node.courier, self.node.matching, ids)
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "RunningNode":
        await self._tasks.__aenter__()
        self._tasks.create_task(self.node.run())
        self._receiving = self._tasks.create_task(self.reception.run())
        try:
            await self.node.ready()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.node.stop(PATIENCE)
        self._receiving.cancel()
        # An error of the block is the test's, not the group's; a cancellation may be the group's.
        is_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await self._tasks.__aexit__(*((kind, error, trace) if is_cancelled else (None, None, None)))
