"""A step is kept before the next begins; repeated after a crash it sees the same run under the same key."""

import asyncio
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Literal

import pytest

from holdfast import Machine, Run, RunState
from tests.guarantees.bench import Bench, until
from tests.guarantees.conftest import bench_on


class Stage(IntEnum):
    FIRST = 1
    SECOND = 2
    THIRD = 3
    DONE = 4


@dataclass
class Trail:
    notes: list[str] = field(default_factory=list[str])


class Outside:
    """What steps did, and a gate at which one of them stands."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, tuple[str, ...]]] = []
        self.blocks = ""
        self.stood = asyncio.Event()

    async def did(self, name: str, run: Run[Trail, Stage]) -> None:
        self.calls.append((name, run.key, tuple(run.object.notes)))
        run.object.notes.append(name)
        if self.blocks == name:
            self.blocks = ""
            self.stood.set()
            await asyncio.Event().wait()


def make_trail(outside: Outside) -> Machine[Trail, Stage]:
    trail = Machine("trail", object=Trail, status=Stage)

    @trail.step(Stage.FIRST)
    async def first(run: Run[Trail, Stage]) -> Literal[Stage.SECOND]:
        await outside.did("first", run)
        return Stage.SECOND

    @trail.step(Stage.SECOND)
    async def second(run: Run[Trail, Stage]) -> Literal[Stage.THIRD]:
        await outside.did("second", run)
        return Stage.THIRD

    @trail.step(Stage.THIRD)
    async def third(run: Run[Trail, Stage]) -> Literal[Stage.DONE]:
        await outside.did("third", run)
        return Stage.DONE

    return trail


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    local = f"sqlite:///{tmp_path / 'holdfast.db'}"
    return await bench_on(
        local if request.param == "sqlite" else request.getfixturevalue(f"{request.param}_url")
    )


@pytest.mark.parametrize("dies_in", ["first", "second", "third"])
async def test_after_a_crash_the_step_is_repeated_and_those_before_it_are_not(
    bench: Bench, dies_in: str
) -> None:
    outside = Outside()
    outside.blocks = dies_in
    trail = make_trail(outside)
    async with bench.node(machines=[trail]) as holdfast:
        run = await holdfast.machine(trail).trigger("a")
        await asyncio.wait_for(outside.stood.wait(), 20)
        await bench.kill(holdfast)
    async with bench.node(machines=[trail]) as holdfast:
        done = await holdfast.machine(trail).finished(run, within=60)
    assert done.state is RunState.COMPLETED
    assert done.object.notes == ["first", "second", "third"]
    assert sorted(name for name, _, _ in outside.calls) == sorted(["first", "second", "third", dies_in])
    before, after = [(key, notes) for name, key, notes in outside.calls if name == dies_in]
    assert before == after


async def test_a_pause_takes_effect_before_the_next_step(bench: Bench) -> None:
    outside = Outside()
    trail = make_trail(outside)
    going = asyncio.Event()

    async def stand(run: Run[Trail, Stage]) -> Literal[Stage.THIRD]:
        await outside.did("second", run)
        outside.stood.set()
        await going.wait()
        return Stage.THIRD

    slow = Machine("trail", object=Trail, status=Stage)
    slow.step(Stage.FIRST)(trail.built.steps[Stage.FIRST].given.function)
    slow.step(Stage.SECOND)(stand)
    slow.step(Stage.THIRD)(trail.built.steps[Stage.THIRD].given.function)
    async with bench.node(machines=[slow]) as holdfast:
        runs = holdfast.machine(slow)
        run = await runs.trigger("a")
        await asyncio.wait_for(outside.stood.wait(), 20)
        await runs.pause(run, "stop")
        await asyncio.sleep(0.1)
        going.set()

        async def is_paused() -> bool:
            return (await runs.get(run)).state is RunState.PAUSED

        await until(is_paused)
        assert (await runs.get(run)).status is Stage.THIRD
        assert [name for name, _, _ in outside.calls] == ["first", "second"]
        await runs.resume(run)
        assert (await runs.finished(run, within=20)).object.notes == ["first", "second", "third"]


async def test_what_is_cancelled_while_a_step_works_is_not_overwritten_by_it(bench: Bench) -> None:
    outside = Outside()
    outside.blocks = "second"
    trail = make_trail(outside)
    async with bench.node(machines=[trail]) as holdfast:
        runs = holdfast.machine(trail)
        run = await runs.trigger("a")
        await asyncio.wait_for(outside.stood.wait(), 20)
        await holdfast.cancel(run, "enough", at_once=True)
        ended = await runs.finished(run, within=20)
        assert (ended.state, ended.status, ended.reason) == (RunState.CANCELLED, Stage.SECOND, "enough")


async def test_leaving_finishes_the_step_under_way(bench: Bench) -> None:
    outside = Outside()
    trail = make_trail(outside)
    finished: list[str] = []

    async def slowly(run: Run[Trail, Stage]) -> Literal[Stage.SECOND]:
        outside.stood.set()
        await asyncio.sleep(0.3)
        finished.append(run.key)
        return Stage.SECOND

    slow = Machine("trail", object=Trail, status=Stage)
    slow.step(Stage.FIRST)(slowly)
    slow.step(Stage.SECOND)(trail.built.steps[Stage.SECOND].given.function)
    slow.step(Stage.THIRD)(trail.built.steps[Stage.THIRD].given.function)
    async with bench.node(machines=[slow]) as holdfast:
        run = await holdfast.machine(slow).trigger("a")
        await asyncio.wait_for(outside.stood.wait(), 20)
    async with bench.node(machines=[slow]) as holdfast:
        await holdfast.machine(slow).finished(run, within=20)
    assert len(finished) == 1


async def test_of_two_nodes_either_may_be_asked_about_a_run_of_the_other(bench: Bench) -> None:
    outside = Outside()
    trail = make_trail(outside)
    async with bench.node(machines=[trail]) as worker, bench.node(machines=[trail], works=False) as client:
        run = await client.machine(trail).trigger("a")
        assert (await client.machine(trail).reached(run, Stage.THIRD, within=20)).id == run
        assert (await worker.machine(trail).finished(run, within=20)).state is RunState.COMPLETED
