"""The doctor names what waits without a cause, what was left behind and what is late, and what to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from holdfast import Holdfast
from holdfast.activities.composites import workflow_activity_types
from holdfast.assembly import load_plugins
from holdfast.clock import SystemClock
from holdfast.runtime.doctor import Doctor, Examination, Finding
from holdfast.runtime.library import Library
from holdfast.store import Vitals
from holdfast.stores.opening import open_store
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import bookmarks, inbox, instances, schedules, timers
from tests.documents import document, event, flowchart, literal, sequence, write

WAITS = document(sequence(event("paid")), definitionId="waits", id="waits-1")
SLEEPS = document(
    sequence({"id": "nap", "type": "Elsa.Delay", "timeSpan": literal("01:00:00")}),
    definitionId="sleeps",
    id="sleeps-1",
)
HOURLY = document(
    sequence(
        {
            "id": "tick",
            "type": "Elsa.Timer",
            "interval": literal("01:00:00"),
            "customProperties": {"canStartWorkflow": True},
        },
        write("tick tock"),
    ),
    definitionId="hourly",
    id="hourly-1",
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'holdfast.db'}"


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[SqlStore]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def examine(url: str, clock: Any = None) -> Examination:
    plugins = load_plugins()
    async with opened(url) as store:
        library = Library(store, plugins, workflow_activity_types)
        return await Doctor(store, library, plugins, clock or SystemClock()).examine()


async def fill(url: str, *starts: tuple[str, str]) -> None:
    async with Holdfast(url, definitions=[WAITS, SLEEPS, HOURLY]) as holdfast:
        for definition_id, instance_id in starts:
            await holdfast.run(definition_id, instance_id=instance_id)


async def tell(url: str, *statements: Any) -> None:
    """Do what nobody should: change rows by hand."""

    def execute(connection: sa.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    async with opened(url) as store:
        await store._database.write(execute)


def found(examination: Examination, code: str) -> Finding:
    by_code = {finding.code: finding for finding in examination.findings}
    assert code in by_code, sorted(by_code)
    return by_code[code]


async def test_a_database_in_which_all_is_well_has_no_findings(url: str) -> None:
    await fill(url, ("waits", "w1"), ("sleeps", "s1"))
    examination = await examine(url)
    assert (examination.findings, examination.waiting, examination.nodes) == ((), 0, 0)


async def test_waits_whose_rows_are_gone_are_named(url: str) -> None:
    await fill(url, ("waits", "w1"), ("waits", "w2"), ("sleeps", "s1"))
    await tell(url, sa.delete(bookmarks).where(bookmarks.c.instance_id == "w1"), sa.delete(timers))
    finding = found(await examine(url), "waits.rows_lost")
    assert finding.about == ("s1", "w1")
    assert "holdfast instances show ID" in finding.advice


async def test_an_instance_whose_start_is_lost_is_named(url: str) -> None:
    async with Holdfast(url, definitions=[WAITS], works=False) as holdfast:
        await holdfast.dispatch("waits", instance_id="w1")
    await tell(url, sa.delete(inbox))
    assert found(await examine(url), "waits.start_lost").about == ("w1",)


async def test_a_join_that_nothing_can_reach_is_told_from_a_lost_wait(url: str) -> None:
    decision = {"id": "either", "type": "Elsa.FlowDecision", "condition": literal(True, "Boolean")}
    join = {"id": "both", "type": "Elsa.FlowJoin", "mode": literal("WaitAll")}
    root = flowchart(
        write("begin"),
        decision,
        write("left"),
        write("right"),
        join,
        connections=[
            "begin>either",
            "either:True>left",
            "either:False>right",
            "left>both",
            "right>both",
        ],
    )
    tokens = {"Flowchart:ExecutionMode": "TokenBased"}
    blocked = document(root, definitionId="blocked", id="blocked-1", customProperties=tokens)
    async with Holdfast(url, definitions=[blocked]) as holdfast:
        assert (await holdfast.run("blocked", instance_id="b1")).sub_status == "Suspended"
    assert found(await examine(url), "waits.join").about == ("b1",)


async def test_rows_without_an_instance_are_named_by_kind(url: str) -> None:
    await fill(url, ("waits", "w1"), ("sleeps", "s1"))
    await tell(url, sa.delete(instances))
    examination = await examine(url)
    assert found(examination, "orphan.bookmark").about[0].startswith("w1/")
    assert found(examination, "orphan.timer").about[0].startswith("s1/")


async def test_schedules_that_differ_from_what_is_published_are_named(url: str) -> None:
    await fill(url)
    assert (await examine(url)).findings == ()
    other = b'{"name":"Elsa.Timer","payload":{"interval":"02:00:00"}}'.decode()
    await tell(url, sa.update(schedules).values(spec=other))
    assert found(await examine(url), "schedules.differ").about == ("hourly",)
    await tell(url, sa.delete(schedules))
    assert found(await examine(url), "schedules.differ").about == ("hourly",)


async def test_work_that_is_late_and_that_nobody_does_is_named(url: str) -> None:
    async with Holdfast(url, definitions=[WAITS, SLEEPS, HOURLY], works=False) as holdfast:
        await holdfast.dispatch("waits", instance_id="w1")

    class Tomorrow:
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(days=1)  # noqa: TID251

    examination = await examine(url, Tomorrow())
    assert found(examination, "shards.unowned").what.startswith("1 message in 1 shard")
    assert "holdfast worker" in found(examination, "shards.unowned").advice
    found(examination, "inbox.late")
    assert found(examination, "schedules.late").about == ("/hourly/tick",)
    assert (examination.waiting, examination.lag > timedelta(hours=23)) == (1, True)


async def test_timers_that_should_have_fired_are_named(url: str) -> None:
    await fill(url, ("sleeps", "s1"))

    class Tomorrow:
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(days=1)  # noqa: TID251

    assert found(await examine(url, Tomorrow()), "timers.late").about == ("s1",)


async def test_what_is_under_way_is_no_finding(url: str) -> None:
    """While instances start, wait and end, no look finds anything that waits without a cause."""
    async with Holdfast(url, definitions=[WAITS, SLEEPS, HOURLY]) as holdfast:

        async def live(number: int) -> None:
            await holdfast.run("waits", instance_id=f"w{number}")
            await holdfast.publish_event("paid", instance_id=f"w{number}")
            await holdfast.result(f"w{number}", timeout=30)

        async with asyncio.TaskGroup() as tasks:
            for number in range(40):
                tasks.create_task(live(number))
            for _ in range(5):
                codes = [finding.code for finding in (await examine(url)).findings]
                assert [code for code in codes if code.startswith(("waits", "orphan"))] == []


async def test_a_database_that_cannot_clean_up_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(url)

    async def feels_bad(_: SqlStore) -> Vitals:
        return Vitals(oldest_snapshot=timedelta(hours=2), dead_rows=1_000_000)

    monkeypatch.setattr(SqlStore, "vitals", feels_bad)
    examination = await examine(url)
    assert "120 minutes" in found(examination, "database.old_snapshot").what
    assert "1,000,000 dead rows" in found(examination, "database.dead_rows").what
