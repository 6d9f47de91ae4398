"""Everything a Holdfast is made of, put together around one store.

What an application may set is a `Settings`; what comes of it is `Parts`, joined to nothing yet. The node
among them begins to work when somebody runs it.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast import telemetry
from holdfast.activities.composites import workflow_activity_types
from holdfast.assembly import StandardConsole
from holdfast.authoring import Children, Console
from holdfast.clock import Clock, Ids, SystemClock, TimeOrderedIds
from holdfast.engine import Environment, Limits
from holdfast.engine.alterations import Versions
from holdfast.plugin import Plugins
from holdfast.runtime import spans
from holdfast.runtime.altering import StoredVersions
from holdfast.runtime.archive import Archive
from holdfast.runtime.inline import InlineChildren
from holdfast.runtime.library import Library
from holdfast.runtime.listeners import Listeners
from holdfast.runtime.membership import StoreClock, this_process
from holdfast.runtime.node import SLOTS, Node
from holdfast.runtime.operations import Operations
from holdfast.runtime.program import Program
from holdfast.runtime.publishing import Publishing
from holdfast.runtime.reception import Reception
from holdfast.runtime.retention import AGE, Retention
from holdfast.runtime.shards import Shards
from holdfast.runtime.sizes import Sizes
from holdfast.runtime.world import World
from holdfast.store import DEFAULT, Store


class Settings(msgspec.Struct, kw_only=True, eq=False):
    """What an application decides about its Holdfast."""

    plugins: Plugins
    listeners: Listeners
    figures: telemetry.Figures
    tenant: str = ""
    programs: tuple[Program, ...] = ()
    groups: tuple[str, ...] = (DEFAULT,)
    """Of shards, that it works; with none it only sends and asks."""
    slots: int = SLOTS
    limits: Limits = Limits()
    configuration: Mapping[str, Any] = {}
    sizes: Sizes = Sizes()
    retention: timedelta | None = AGE
    archive: Archive | None = None


class Parts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    clock: Clock
    ids: Ids
    library: Library
    world: World
    node: Node
    definitions: Publishing
    reception: Reception
    operations: Operations


async def assemble(store: Store, settings: Settings) -> Parts:
    plugins = settings.plugins
    around = spans.middleware(settings.figures) if telemetry.turn_on() else ((), ())
    clock = StoreClock(time.monotonic, datetime.fromtimestamp(0, UTC))
    ids = TimeOrderedIds(clock)
    groups = await store.shard_groups()
    shards = Shards(groups[DEFAULT].count)
    shards.learn(groups, await store.placements())
    library = Library(store, plugins, workflow_activity_types)
    for program in settings.programs:
        library.add(program)
    world = World(
        store=store,
        programs=library,
        shards=shards,
        environment=Environment(
            clock=clock,
            services={
                Children: InlineChildren(),
                Console: StandardConsole(),
                Versions: StoredVersions(store, library),
                **plugins.services,
            },
            functions=plugins.functions,
            configuration=settings.configuration,
            expressions=plugins.expressions.languages,
            limits=settings.limits,
            around_activity=(*around[0], *plugins.around_activity),
            around_burst=(*around[1], *plugins.around_burst),
            has_background=True,
        ),
        sizes=settings.sizes,
        listeners=settings.listeners,
        figures=settings.figures,
    )
    node = Node(
        world,
        clock,
        this_process(settings.groups),
        ids=TimeOrderedIds(SystemClock()),
        monotonic=time.monotonic,
        slots=settings.slots,
        on_catalogue=library.forget,
    )
    node.housekeeping.retention = retention = Retention(
        store, clock, age=settings.retention, archive=settings.archive
    )
    reception = Reception(world, node.courier, node.matching, ids)
    return Parts(
        clock=clock,
        ids=ids,
        library=library,
        world=world,
        node=node,
        definitions=Publishing(store, library, plugins, clock, ids, shards.of, settings.listeners),
        reception=reception,
        operations=Operations(
            world,
            reception,
            node.courier,
            clock=clock,
            ids=ids,
            tenant=settings.tenant,
            retention=retention,
            monotonic=time.monotonic,
        ),
    )
