"""Schedules start runs on time, also when nobody called them again after a restart."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Literal

import pytest

from holdfast import Holdfast, Machine, Run, Runs, RunState
from holdfast.clock import SystemClock
from holdfast.errors import Invalid
from holdfast.runtime.run_schedules import ScheduleNotFound
from holdfast.runtime.schedules import ScheduleInvalid
from holdfast.stores.memory import MemoryStore
from holdfast.testing import MachineBench, ManualClock
from tests.machines.conftest import OpenBench


class Phase(IntEnum):
    COLLECT = 1
    HELD = 2
    SENT = 3


@dataclass
class Report:
    title: str = "untitled"


def make_reports() -> Machine[Report, Phase]:
    reports = Machine("reports", object=Report, status=Phase)

    @reports.step(Phase.COLLECT)
    async def collect(run: Run[Report, Phase]) -> Literal[Phase.SENT, Phase.HELD]:
        return Phase.HELD if run.object.title == "held" else Phase.SENT

    @reports.callback(Phase.HELD)
    async def release(run: Run[Report, Phase]) -> Literal[Phase.SENT]:
        return Phase.SENT

    return reports


async def test_a_schedule_starts_a_run_each_time_it_is_due(open_bench_anywhere: OpenBench) -> None:
    bench = await open_bench_anywhere(make_reports())
    await bench.runs.schedule("monthly", Report("May"), cron="0 0 1 * *")
    await bench.advance(days=62)
    assert [run.object.title for run in bench.all] == ["May", "May"]
    assert all(run.state is RunState.COMPLETED and run.foreign_id == "monthly" for run in bench.all)


async def test_an_interval_may_be_any_span(open_bench: OpenBench) -> None:
    bench = await open_bench(make_reports())
    await bench.runs.schedule("often", every=timedelta(minutes=7))
    await bench.advance(minutes=30)
    assert len(bench.all) == 4


async def test_an_occurrence_is_let_go_while_the_last_run_is_unfinished(open_bench: OpenBench) -> None:
    bench = await open_bench(make_reports())
    await bench.runs.schedule("daily", Report("held"), cron="0 3 * * *")
    await bench.advance(days=3)
    assert len(bench.all) == 1
    await bench.callback("daily", Phase.HELD)
    await bench.advance(days=1)
    assert len(bench.all) == 2


async def test_a_condition_decides_about_each_occurrence(open_bench: OpenBench) -> None:
    reports = make_reports()
    asked: list[datetime] = []

    @reports.condition
    async def on_even_days(when: datetime) -> bool:
        asked.append(when)
        return when.day % 2 == 0

    bench = await open_bench(reports)
    await bench.runs.schedule("daily", cron="0 3 * * *", when=on_even_days)
    await bench.advance(days=6)
    assert len(asked) == 6
    assert len(bench.all) == 3


async def test_a_condition_that_raises_is_asked_again_and_the_occurrence_is_not_lost(
    open_bench: OpenBench,
) -> None:
    reports = make_reports()
    failing = [1]

    @reports.condition
    def sometimes(when: datetime) -> bool:
        if failing:
            failing.pop()
            raise OSError("calendar is away")
        return True

    bench = await open_bench(reports)
    await bench.runs.schedule("daily", cron="0 3 * * *", when=sometimes)
    await bench.advance(days=1)
    assert len(bench.all) == 1


async def test_a_condition_must_be_known_to_the_machine(open_bench: OpenBench) -> None:
    bench = await open_bench(make_reports())
    with pytest.raises(Invalid, match=r"@machine\.condition"):
        await bench.runs.schedule("daily", cron="0 3 * * *", when=lambda when: True)


async def test_a_schedule_is_in_the_zone_it_names() -> None:
    clock = ManualClock(datetime(2026, 3, 27, tzinfo=UTC))
    async with MachineBench(make_reports(), clock=clock) as bench:
        await bench.runs.schedule("daily", cron="0 3 * * *", zone="Europe/Zurich")
        await bench.advance(days=4)
        assert [run.created_at.hour for run in bench.all] == [2, 2, 1, 1]


async def test_scheduling_again_changes_nothing_unless_it_says_something_new(open_bench: OpenBench) -> None:
    bench = await open_bench(make_reports())
    await bench.runs.schedule("often", every=timedelta(hours=1))
    (first,) = await bench.runs.schedules()
    await bench.advance(minutes=30)
    await bench.runs.schedule("often", every=timedelta(hours=1))
    assert await bench.runs.schedules() == [first]
    await bench.runs.schedule("often", cron="15 * * * *")
    (changed,) = await bench.runs.schedules()
    assert (changed.cron, changed.every) == ("15 * * * *", None)


async def test_a_schedule_that_is_taken_back_starts_nothing_more(open_bench: OpenBench) -> None:
    bench = await open_bench(make_reports())
    await bench.runs.schedule("a", every=timedelta(hours=1))
    await bench.runs.schedule("b", every=timedelta(hours=1))
    await bench.runs.unschedule("a")
    await bench.advance(hours=2)
    assert [run.foreign_id for run in bench.all] == ["b", "b"]
    with pytest.raises(ScheduleNotFound):
        await bench.runs.unschedule("a")


@pytest.mark.parametrize(
    "wrong",
    [{"cron": "every day"}, {}, {"cron": "* * * * *", "zone": "Europe/Zurch"}, {"every": timedelta(0)}],
)
async def test_a_schedule_that_makes_no_sense_is_refused(
    open_bench: OpenBench, wrong: dict[str, object]
) -> None:
    bench = await open_bench(make_reports())
    with pytest.raises((ScheduleInvalid, Invalid)):
        await bench.runs.schedule("daily", **wrong)


async def test_a_schedule_outlives_whoever_made_it() -> None:
    store, reports = MemoryStore(SystemClock()), make_reports()
    async with Holdfast(store, machines=[reports]) as holdfast:
        await holdfast.machine(reports).schedule("soon", Report("kept"), every=timedelta(seconds=0.2))
    async with Holdfast(store, machines=[reports]) as holdfast:
        runs = holdfast.machine(reports)
        await runs.reached(await _first(runs), Phase.SENT, within=10)
        assert (await runs.list())[0].object == Report("kept")


async def _first(runs: Runs[Report, Phase]) -> str:
    async with asyncio.timeout(10):
        while not (found := await runs.list()):
            await asyncio.sleep(0.01)
    return found[0].id
