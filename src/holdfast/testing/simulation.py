"""A story played in a world that a seed decides: its time, its delays, its chances, its deaths.

    async def story(simulation: Simulation) -> None:
        simulation.start("a", serve(simulation.clock_for("a")))
        await asyncio.sleep(60)
        simulation.kill("a")

    simulate(story, seed=7)

The same seed gives the same trace, in any process, as long as the story takes time, identity and
chance from here and walks through no set of strings. The loop below it is `simulation_loop`.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Token
from datetime import UTC, datetime, timedelta
from random import Random
from types import TracebackType
from typing import Any, Generic, NamedTuple, Never, TypeVar

from holdfast.errors import Invalid, NotFound
from holdfast.testing.simulation_loop import Deadlock, Endless, NotSimulated, SimulatedLoop
from holdfast.testing.simulation_task import NODE, Node

__all__ = [
    "Deadlock",
    "Endless",
    "Entry",
    "Failure",
    "NotSimulated",
    "Result",
    "SimulatedLoop",
    "Simulation",
    "run_seeds",
    "simulate",
]

T = TypeVar("T")

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 1_000_000
OUTSIDE = "story"
"""What the trace calls code that belongs to no node."""


class Entry(NamedTuple):
    """One line of a trace."""

    at: float
    node: str
    words: str


class Result(NamedTuple, Generic[T]):
    """How a story went."""

    value: T
    trace: list[Entry]
    steps: int
    seconds: float


class Failure(NamedTuple):
    """A seed with which the story does not hold."""

    seed: int
    error: Exception
    trace: list[Entry]


class NodeClock:
    """The wall clock of one node: the world's time, and as much more as `skew` says."""

    def __init__(self, simulation: "Simulation") -> None:
        self.skew = timedelta()
        self._simulation = simulation

    def now(self) -> datetime:
        return self._simulation.now() + self.skew

    async def sleep_until(self, when: datetime) -> None:
        while (left := (when - self.now()).total_seconds()) > 0:
            await asyncio.sleep(left)


class SeededIds:
    """Sort by the millisecond in which they were drawn, and within one at random, as real ones do."""

    def __init__(self, simulation: "Simulation") -> None:
        self._simulation = simulation
        self._random = Random(f"ids {simulation.seed}")  # noqa: S311  to be foreseen is its purpose

    def new(self) -> str:
        milliseconds = int(self._simulation.now().timestamp() * 1000)
        return f"{milliseconds:012x}{self._random.getrandbits(64):016x}"


class Simulation:
    """The world of one story. It is played once, by `run`."""

    def __init__(self, seed: int, *, steps: int = STEPS) -> None:
        self.seed = seed
        self.random = Random(seed)  # noqa: S311  to be foreseen is its purpose
        self.ids = SeededIds(self)
        self.trace: list[Entry] = []
        self.loop = SimulatedLoop(steps)
        self._nodes: dict[str, Node] = {}
        self._clocks: dict[str, NodeClock] = {}

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self.loop.time())

    def clock_for(self, node: str) -> NodeClock:
        """One clock per name, however often it is asked for and however often the node dies."""
        return self._clocks.setdefault(node, NodeClock(self))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    async def pause(self, longest: float = 20.0) -> None:
        """Let a random time pass: mostly about a millisecond, sometimes none, rarely many seconds."""
        kind = self.random.random()
        if kind < 0.15:
            delay = 0.0
        elif kind < 0.9:
            delay = self.random.expovariate(1 / 0.001)
        elif kind < 0.99:
            delay = self.random.uniform(0.01, 0.2)
        else:
            delay = self.random.uniform(0.2, 20.0)
        await asyncio.sleep(min(delay, longest))

    def note(self, *words: object) -> None:
        """Put a line into the trace."""
        self.trace.append(Entry(self.loop.time(), self.current or OUTSIDE, " ".join(map(str, words))))

    @property
    def current(self) -> str | None:
        """The name of the node in which this code runs."""
        return None if (node := NODE.get()) is None else node.name

    def node(self, name: str) -> "Within":
        """`with simulation.node("a"):` what is in the block runs in that node.

        So do the tasks, callbacks and timers that begin there, and all that these begin. A story that
        awaits inside the block dies with the node. Under the name of a dead node a new life begins.
        """
        if name not in self._nodes or self._nodes[name].is_dead:
            self._nodes[name] = Node(name)
        return Within(self._nodes[name])

    def start(self, node: str, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task in a node. An error it ends with, and nobody looks at, fails the simulation."""
        with self.node(node):
            return self.loop.create_task(coroutine)

    def is_alive(self, node: str) -> bool:
        return node in self._nodes and not self._nodes[node].is_dead

    def kill(self, node: str) -> None:
        """None of its callbacks is ever called again: no `finally` runs, what others await never comes.

        What it handed over before, such as the result of a future, still arrives. Code that kills its
        own node runs on until it next gives up control, and no further; `die` gives it up at once.
        """
        self.loop.kill(self._known(node))

    async def die(self) -> Never:
        """Kill the node in which this runs. Nothing after it happens."""
        if (node := NODE.get()) is None:
            raise Invalid("Only code of a node can die; this runs in none. Use `kill` with a name.")
        self.loop.kill(node)
        await self.loop.create_future()
        raise AssertionError("A dead node went on.")

    def freeze(self, node: str, seconds: float) -> None:
        """Hold its callbacks back for so long; then they go on, in their order. The longest freeze counts."""
        self.loop.freeze(self._known(node), seconds)

    def _known(self, name: str) -> Node:
        if name not in self._nodes:
            known = ", ".join(self._nodes) or "none"
            raise NotFound(f"No node {name!r} has begun in this simulation. Known: {known}.")
        return self._nodes[name]

    def run(self, story: Callable[["Simulation"], Coroutine[Any, Any, T]]) -> Result[T]:
        """Play the story to its end, end what still lives, forget what died.

        Raises what the story raises, or else the first error that nobody saw.
        """
        # When cycles are collected depends on everything else in the process; what is collected
        # (generators, `__del__`) would then be called at other times in other processes.
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            value, seconds = self._play(story)
        except BaseException as error:
            self.loop.close()
            error.add_note(f"In the simulation of seed {self.seed}, step {self.loop.steps}.")
            for unseen in self.loop.unhandled:
                if unseen is not error:
                    error.add_note(f"Nobody saw: {unseen!r}")
            raise
        finally:
            if was_collecting:
                gc.enable()
        return Result(value, self.trace, self.loop.steps, seconds)

    def _play(self, story: Callable[["Simulation"], Coroutine[Any, Any, T]]) -> tuple[T, float]:
        try:
            value: T = self.loop.run_until_complete(story(self))
        except (Deadlock, Endless):
            raise
        except Exception:
            self._end_after_error()
            raise
        seconds = self.loop.time()
        self.loop.run_until_complete(self.loop.end_living())
        self.loop.close()
        if self.loop.unhandled:
            raise self.loop.unhandled[0]
        return value, seconds

    def _end_after_error(self) -> None:
        try:
            self.loop.run_until_complete(self.loop.end_living())
        except Exception as error:  # the story's own error is the one to tell
            self.loop.unhandled.append(error)


class Within:
    """While entered, what runs belongs to a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._before: list[Token[Node | None]] = []

    def __enter__(self) -> None:
        self._before.append(NODE.set(self._node))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        NODE.reset(self._before.pop())


def simulate(
    story: Callable[[Simulation], Coroutine[Any, Any, T]], seed: int, *, steps: int = STEPS
) -> Result[T]:
    """Play a story once, in the world of that seed."""
    return Simulation(seed, steps=steps).run(story)


def run_seeds(
    story: Callable[[Simulation], Coroutine[Any, Any, object]],
    seeds: Iterable[int],
    on_progress: Callable[[int, Failure | None], None] | None = None,
    *,
    steps: int = STEPS,
) -> list[Failure]:
    """Play a story once for each seed; those with which it failed."""
    failures: list[Failure] = []
    for seed in seeds:
        simulation = Simulation(seed, steps=steps)
        failure: Failure | None = None
        try:
            simulation.run(story)
        except Exception as error:  # whatever it is, the other seeds are still to be played
            failure = Failure(seed, error, simulation.trace)
            failures.append(failure)
        if on_progress is not None:
            on_progress(seed, failure)
    return failures
