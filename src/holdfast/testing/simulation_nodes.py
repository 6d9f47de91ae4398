"""A cluster in a simulated world: several real nodes on one store, each at the end of a bad line.

    catalogue = Catalogue(load_plugins(), [order], tenants=["acme"])

    async def story(simulation: Simulation) -> None:
        cluster = Cluster(simulation, catalogue)
        await cluster.begin(3)
        instance = await cluster.ask(lambda node: node.dispatch("acme", "order"))
        cluster.kill(cluster.living[0])

Everything in a node is what an application runs, except that time is the simulation's and renewal is a
task instead of a thread. What goes wrong on the lines is `simulation_line`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from holdfast.activities.composites import workflow_activity_types
from holdfast.authoring import ActivityTypes, Children
from holdfast.bookmark import Stimulus
from holdfast.clock import Clock, Ids
from holdfast.commit import Lane
from holdfast.definitions.document import Definition
from holdfast.definitions.graph import Graph
from holdfast.engine import Environment
from holdfast.engine.environment import BurstMiddleware
from holdfast.errors import HoldfastError, Unavailable
from holdfast.message import Message, Order, Start
from holdfast.plugin import Plugins
from holdfast.runtime.inline import InlineChildren
from holdfast.runtime.letters import WAKES
from holdfast.runtime.library import Library
from holdfast.runtime.membership import StoreClock, Where
from holdfast.runtime.node import Node
from holdfast.runtime.program import Program
from holdfast.runtime.publishing import Publishing
from holdfast.runtime.reception import Reception, Sent
from holdfast.runtime.shards import Shards
from holdfast.runtime.world import World
from holdfast.store import DEFAULT, Definitions, Loaded, Publication, Store
from holdfast.testing.simulation import Simulation, simulate
from holdfast.testing.simulation_line import SHARDS, Faults, SimulatedStore, line_to

T = TypeVar("T")

SLOTS = 4
PATIENCE = 30.0
"""Seconds after which whoever asked a node gives up."""


class NoAnswer(HoldfastError):
    """The node that was asked has died, or takes too long. What was asked may be done or not."""

    code = "simulation.no_answer"


Graphs = dict[tuple[str, str, int], Graph]


class Catalogue:
    """Definitions that are published when a story begins. They are compiled once in a process."""

    def __init__(
        self,
        plugins: Plugins,
        documents: Sequence[Mapping[str, Any]],
        *,
        tenants: Iterable[str] = ("",),
        programs: Iterable[Program] = (),
    ) -> None:
        self.plugins = plugins
        self.programs = tuple(programs)
        """What is not drawn, such as machines."""
        self.graphs: Graphs = {}
        self.publications: list[Publication] = []
        self._documents = documents
        self._tenants = list(tenants)
        simulate(self._prepare, 0)

    async def _prepare(self, simulation: Simulation) -> None:
        store = _RecordingStore(simulation)
        publishing = publishing_of(self, store, simulation.clock_for("database"), simulation.ids)
        for tenant in self._tenants:
            await publishing.provide(tenant, *self._documents)
        self.publications = store.publications


class _RecordingStore(SimulatedStore):
    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self.publications: list[Publication] = []

    async def publish(self, publications: Sequence[Publication]) -> None:
        await super().publish(publications)
        self.publications += publications


class RememberingLibrary(Library):
    """Compiles each document once in a process: a compiled graph holds nothing of a world."""

    def __init__(self, store: Definitions, catalogue: Catalogue) -> None:
        super().__init__(store, catalogue.plugins, workflow_activity_types)
        self._graphs = catalogue.graphs

    def compile(self, definition: Definition, types: ActivityTypes) -> Graph:
        key = (definition.id, definition.content_hash, types.revision)
        found = self._graphs.get(key)
        if found is None:
            found = self._graphs[key] = super().compile(definition, types)
        return found


def publishing_of(
    catalogue: Catalogue, store: Store, clock: Clock, ids: Ids, shards: Shards | None = None
) -> Publishing:
    shards = shards or Shards(SHARDS)
    return Publishing(store, RememberingLibrary(store, catalogue), catalogue.plugins, clock, ids, shards.of)


class SimulatedNode:
    """One process: a node, its reception, and what its callers use."""

    def __init__(self, name: str, cluster: "Cluster", store: Store) -> None:
        self.name = name
        self.is_ready = False
        self._cluster = cluster
        self.store = store
        simulation = cluster.simulation
        offset = simulation.random.uniform(0.0, 1_000.0)
        self._monotonic: Callable[[], float] = lambda: simulation.loop.time() + offset
        self.clock = StoreClock(self._monotonic, datetime.fromtimestamp(0, UTC))

    async def run(self) -> None:
        """Until it dies."""
        cluster = self._cluster
        shards = await self._learn_shards()
        plugins = cluster.catalogue.plugins
        self.library = RememberingLibrary(self.store, cluster.catalogue)
        for program in cluster.catalogue.programs:
            self.library.add(program)
        environment = Environment(
            clock=self.clock,
            services={Children: InlineChildren(), **plugins.services, **cluster.services},
            functions=plugins.functions,
            expressions=plugins.expressions.languages,
            around_activity=tuple(plugins.around_activity),
            around_burst=(*plugins.around_burst, *cluster.around_burst),
            has_background=True,
        )
        world = World(store=self.store, programs=self.library, shards=shards, environment=environment)
        ids = cluster.simulation.ids
        self.node = Node(
            world,
            self.clock,
            Where(self.name, "", "", 0, (DEFAULT,)),
            ids=ids,
            monotonic=self._monotonic,
            slots=SLOTS,
            renews_in_thread=False,
            on_catalogue=self.library.forget,
        )
        self.publishing = Publishing(self.store, self.library, plugins, self.clock, ids, shards.of)
        self.reception = Reception(world, self.node.courier, self.node.matching, ids)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.node.run())
            tasks.create_task(self.reception.run())
            await self.node.ready()
            self.is_ready = True

    async def _learn_shards(self) -> Shards:
        while True:
            try:
                groups = await self.store.shard_groups()
                shards = Shards(groups[DEFAULT].count)
                shards.learn(groups, await self.store.placements())
            except Unavailable:
                await asyncio.sleep(0.1)
            else:
                return shards

    # --- what callers do --------------------------------------------------------------------------

    async def dispatch(
        self,
        tenant: str,
        definition_id: str,
        *,
        instance_id: str | None = None,
        key: str | None = None,
        correlation_id: str | None = None,
        lane: Lane = Lane.ORDINARY,
        **given: Any,
    ) -> str:
        """Start an instance; its id as soon as that is durable."""
        program = await self.library.published(tenant, definition_id)
        start = Start(input=given, correlation_id=correlation_id)
        return await self.reception.start(
            program, start, tenant=tenant, instance_id=instance_id, key=key, lane=lane, reply=WAKES
        )

    async def run_through(self, tenant: str, definition_id: str, **given: Any) -> Loaded:
        """Start an instance; how it is when it has ended or waits."""
        return await self.node.results.rested(tenant, await self.dispatch(tenant, definition_id, **given))

    async def send(self, tenant: str, stimulus: Stimulus, *, key: str | None = None) -> Sent:
        return await self.reception.send(stimulus, tenant=tenant, key=key)

    async def tell(self, tenant: str, instance_id: str, message: Message | Order) -> None:
        await self.reception.tell(message, tenant=tenant, instance_id=instance_id)


class Cluster:
    """Nodes that come and go around one store."""

    def __init__(
        self,
        simulation: Simulation,
        catalogue: Catalogue,
        *,
        store: SimulatedStore | None = None,
        services: Mapping[type[Any], Any] | None = None,
        around_burst: Iterable[BurstMiddleware] = (),
        faults: Faults | None = None,
    ) -> None:
        self.simulation = simulation
        self.catalogue = catalogue
        self.services = services or {}
        self.around_burst = tuple(around_burst)
        self.faults = Faults() if faults is None else faults
        self.store = store or SimulatedStore(simulation)
        self._nodes: dict[str, SimulatedNode] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._count = 0

    async def begin(self, nodes: int, *, without: Container[tuple[str, str]] = ()) -> None:
        """So many nodes, with the definitions of the catalogue except these (tenant and id)."""
        published = self.catalogue.publications
        await self.store.publish([p for p in published if (p.tenant, p.definition_id) not in without])
        for _ in range(nodes):
            self.start()

    def start(self) -> SimulatedNode:
        """A new process. No name is used twice."""
        self._count += 1
        name = f"node-{self._count}"
        with self.simulation.node(name):
            node = SimulatedNode(name, self, line_to(self.store, self.simulation, self.faults))
        self._nodes[name] = node
        self._running[name] = self.simulation.start(name, node.run())
        return node

    @property
    def living(self) -> list[SimulatedNode]:
        """Raises what a node has ended with: none of them ever should."""
        for running in self._running.values():
            if running.done():
                running.result()
        return [node for name, node in self._nodes.items() if self.simulation.is_alive(name)]

    def kill(self, node: SimulatedNode) -> None:
        self.simulation.kill(node.name)

    def stop(self, node: SimulatedNode) -> None:
        """Tell it to end, as a process is told: it finishes what it does, and is gone then."""
        self.simulation.start(node.name, self._end(node))

    async def _end(self, node: SimulatedNode) -> None:
        await node.node.stop()
        self.simulation.kill(node.name)

    async def ask(self, ask: Callable[[SimulatedNode], Awaitable[T]]) -> T:
        """Have one of the nodes do something. Raises NoAnswer, and what the node raises."""
        simulation = self.simulation
        while not (ready := [node for node in self.living if node.is_ready]):
            await asyncio.sleep(0.1)
        node = simulation.random.choice(ready)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def do() -> None:
            try:
                found = await ask(node)
            except Exception as error:  # it is the caller's
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(found)

        simulation.start(node.name, do())
        try:
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError:
            raise NoAnswer(f"{node.name} did not answer in {PATIENCE} s.") from None
