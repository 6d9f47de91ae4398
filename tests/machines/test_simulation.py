"""Runs in a cluster whose nodes die, freeze and lose calls: in the end each has done each of its steps.

A step may be called more than once, then under the same key and with the same object; what is kept of it
is kept once, and in order.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from random import Random
from typing import Any, Literal, TypeVar

import pytest

from holdfast import Again, Machine, Run, RunInProgress, RunState
from holdfast.assembly import load_plugins
from holdfast.errors import Unavailable
from holdfast.machines.burst import Burst
from holdfast.machines.draft import WAITS, Draft
from holdfast.machines.handler import Handler
from holdfast.machines.state import CALLBACK, KeptRun, Paused, Work
from holdfast.runtime.coded import Coded, programs_of
from holdfast.runtime.runs import RunNotInState, Runs
from holdfast.testing.simulation import Simulation, simulate
from holdfast.testing.simulation_line import SimulatedStore
from holdfast.testing.simulation_nodes import Catalogue, Cluster, NoAnswer, SimulatedNode
from tests.simulation.story import some_faults

T = TypeVar("T")
RUNS = 4
CALM = 300


class Step(IntEnum):
    BEGUN = 1
    REPEATING = 2
    WAITING = 3
    SHORT = 4
    DONE = 5


@dataclass
class Trail:
    notes: list[str] = field(default_factory=list[str])


class Outside:
    """What steps have done, under which key and seeing what; and how they fail."""

    def __init__(self) -> None:
        self.random = Random(0)
        self.seen: dict[str, list[str]] = {}
        self.hooked: set[str] = set()
        self.fails = 0.3
        self.mismatches: list[str] = []

    async def did(self, name: str, run: Run[Trail, Step]) -> None:
        before = self.seen.setdefault(run.key, list(run.object.notes))
        if before != run.object.notes:
            self.mismatches.append(f"{run.key} saw {run.object.notes}, and {before} before")
        run.object.notes.append(name)
        await asyncio.sleep(self.random.uniform(0.0, 0.5))
        if self.random.random() < self.fails:
            raise RuntimeError("as it happens")


OUTSIDE = Outside()
trail = Machine("trail", object=Trail, status=Step)


@trail.step(Step.BEGUN, backoff=timedelta(milliseconds=100), longest=timedelta(seconds=2), pause_after=None)
async def begin(run: Run[Trail, Step]) -> Literal[Step.REPEATING]:
    await OUTSIDE.did("begin", run)
    return Step.REPEATING


@trail.step(
    Step.REPEATING,
    backoff=timedelta(milliseconds=100),
    longest=timedelta(seconds=2),
    pause_after=2,
    pause_retry=timedelta(seconds=3),
)
async def repeat(run: Run[Trail, Step]) -> Literal[Step.WAITING] | Again:
    await OUTSIDE.did("repeat", run)
    return Again() if run.object.notes.count("repeat") < 3 else Step.WAITING


@trail.callback(Step.WAITING, backoff=timedelta(milliseconds=100), pause_after=None)
async def hear(run: Run[Trail, Step], said: str) -> Literal[Step.SHORT]:
    await OUTSIDE.did(said, run)
    return Step.SHORT


@trail.timeout(Step.SHORT, after=timedelta(seconds=1), backoff=timedelta(milliseconds=100), pause_after=None)
async def elapse(run: Run[Trail, Step]) -> Literal[Step.DONE]:
    await OUTSIDE.did("elapse", run)
    return Step.DONE


@trail.on_complete
async def tell(run: Run[Trail, Step]) -> None:
    if OUTSIDE.random.random() < OUTSIDE.fails:
        raise RuntimeError("as it happens")
    OUTSIDE.hooked.add(run.foreign_id)


CATALOGUE = Catalogue(load_plugins(()), [], programs=programs_of(trail))


class Play:
    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self.store = SimulatedStore(simulation)
        self.cluster = Cluster(simulation, CATALOGUE, store=self.store, faults=some_faults(self.random))
        self.size = self.random.choice([1, 2, 3])
        OUTSIDE.__init__()  # type: ignore[misc]
        OUTSIDE.random = self.random

    async def surely(self, ask: Callable[[Runs[Trail, Step]], Awaitable[T]]) -> T:
        async def asked(node: SimulatedNode) -> T:
            program = CATALOGUE.programs[0]
            assert isinstance(program, Coded)
            return await ask(Runs(program, node.node, node.reception, self.simulation.ids, ""))

        while True:
            try:
                return await self.cluster.ask(asked)
            except (NoAnswer, Unavailable):
                await asyncio.sleep(self.random.uniform(0.0, 0.5))

    async def live(self, name: str) -> None:
        """One run, from its trigger to its callback, which may come before."""

        async def call_back() -> None:
            await asyncio.sleep(self.random.uniform(0.0, 8.0))
            await self.surely(
                lambda runs: runs.callback(name, Step.WAITING, f"heard {name}", key=f"c-{name}")
            )

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(call_back())
            await asyncio.sleep(self.random.uniform(0.0, 2.0))
            try:
                run = await self.surely(lambda runs: runs.trigger(name, key=f"t-{name}"))
            except RunInProgress as refused:
                run = refused.run_id
            if self.random.random() < 0.5:
                await asyncio.sleep(self.random.uniform(0.0, 3.0))
                with suppress(RunNotInState):
                    await self.surely(lambda runs: runs.pause(run, "for a moment"))
        self.paused.append(run)

    paused: list[str]

    async def disturb(self) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(1 / 3))
            living = self.cluster.living
            if living:
                victim = self.random.choice(living)
                if self.random.random() < 0.5:
                    self.cluster.kill(victim)
                else:
                    self.simulation.freeze(victim.name, self.random.uniform(1.0, 9.0))

    async def keep_alive(self) -> None:
        while True:
            if len(self.cluster.living) < self.size:
                self.cluster.start()
            await asyncio.sleep(0.3)

    async def go(self) -> None:
        self.paused = []
        await self.cluster.begin(self.size)
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(self.keep_alive())
            disturbing = tasks.create_task(self.disturb())
            async with asyncio.TaskGroup() as playing:
                for number in range(RUNS):
                    playing.create_task(self.live(f"run-{number}"))
            disturbing.cancel()
            self._calm_down()
            await self._end()
            keeping.cancel()

    def _calm_down(self) -> None:
        faults: Any = self.cluster.faults
        for name in faults.__struct_fields__:
            if isinstance(getattr(faults, name), float):
                setattr(faults, name, 0.0)
        OUTSIDE.fails = 0.0

    async def _end(self) -> None:
        for _ in range(CALM):
            await asyncio.sleep(1)
            for run in self.paused:
                with suppress(RunNotInState):
                    await self.surely(lambda runs, run=run: runs.resume(run))
            if (
                all(run.run_state is RunState.COMPLETED for run in self._kept())
                and len(OUTSIDE.hooked) == RUNS
            ):
                return
        states = [(run.correlation_id, run.at, run.run_state, run.reason) for run in self._kept()]
        raise AssertionError(f"not all have come to their end: {states}, told {OUTSIDE.hooked}")

    def _kept(self) -> list[KeptRun]:
        program = CATALOGUE.programs[0]
        rows = [row for row in self.store.tables.instances.values() if row.columns.definition_id == "trail"]
        return [program.decode(row.state) for row in rows if row.state is not None]  # type: ignore[misc]

    def check(self) -> None:
        kept = self._kept()
        assert len(kept) == RUNS
        assert OUTSIDE.mismatches == []
        for run in kept:
            name = run.correlation_id
            notes = CATALOGUE.programs[0].variables(run)["object"]["notes"]
            assert notes == ["begin", "repeat", "repeat", "repeat", f"heard {name}", "elapse"]
            assert run.passed == (1, 2, 3, 4, 5)
            assert run.bookmarks == ()
        left = {key for key, row in self.store.tables.instances.items() if row.columns.finished_at is None}
        assert not [key for key in self.store.tables.timers if key[:2] not in left]


async def story(simulation: Simulation) -> None:
    play = Play(simulation)
    await play.go()
    play.check()


@pytest.mark.parametrize("block", range(10))
def test_every_run_does_each_of_its_steps_whatever_dies(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        simulate(story, seed=seed)


@pytest.mark.parametrize("seed", [1561, 1855, 2154, 2785, 4533, 5010])
def test_seeds_that_once_found_something(seed: int) -> None:
    """Among others a start that arrived while another message of its run was looking for it."""
    simulate(story, seed=seed)


def without_execution(self: Burst, work: Work, handler: Handler) -> str:
    return f"{self._kept.id}/{handler.name}"


def keeps_bookmarks(self: Draft) -> None:
    self._queue.clear()
    self._retries.clear()


_PAUSE, _FAILED, _RESUME = Draft._pause, Burst._fail, Draft.resume


def forgets_retries(self: Draft, paused: Paused) -> None:
    self._retries.clear()
    _PAUSE(self, paused)


def does_not_wait_again(self: Draft) -> bool:
    has_resumed = _RESUME(self)
    self._drop(WAITS)
    return has_resumed


def loses_a_callback(self: Burst, work: Work, handler: Handler, error: Exception) -> None:
    if work.kind == CALLBACK:
        self._wait_for_callbacks()
    else:
        _FAILED(self, work, handler, error)


@pytest.mark.parametrize(
    ("owner", "name", "mistake"),
    [
        (Burst, "_key", without_execution),
        (Draft, "_leave", keeps_bookmarks),
        (Draft, "_pause", forgets_retries),
        (Draft, "resume", does_not_wait_again),
        (Burst, "_fail", loses_a_callback),
    ],
)
def test_a_planted_mistake_is_found(
    owner: type, name: str, mistake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mistake)
    with pytest.raises((AssertionError, ExceptionGroup)):
        for seed in range(100):
            simulate(story, seed=seed)
