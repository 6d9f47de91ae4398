"""Instances leave as documents and are taken in again; finished ones go after their time, archived first."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.application import Holdfast
from holdfast.clock import SystemClock
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.engine import StateUnreadable
from holdfast.engine.adoption import StateForeign
from holdfast.errors import Invalid
from holdfast.instance import SubStatus
from holdfast.message import SkipIncidents
from holdfast.runtime import housekeeping
from holdfast.runtime.archive import read_archive
from holdfast.runtime.exported import ExportUnreadable
from holdfast.runtime.sizes import Sizes, TooLarge
from holdfast.store import InstanceExists, InstanceFilter, Store
from holdfast.stores.memory import MemoryStore
from tests.documents import document, event, literal, script, sequence, variable, write
from tests.runtime.operating import become, count, opened_store, until

DELAY = {"id": "delay", "type": "Elsa.Delay", "timeSpan": literal("00:00:01")}
TELL = {"id": "tell", "type": "Elsa.WriteLine", "text": script("getTotal()")}
ORDER = document(
    sequence(write("begin"), event("go"), DELAY, TELL), variables=[variable("Total", "Int32", 4)]
)
SHORT = document(sequence(write("done")))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


# --- export and import ------------------------------------------------------------------------------


async def test_an_exported_instance_goes_on_in_another_database(
    any_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Holdfast(any_store, definitions=[ORDER]) as here:
        waiting = await here.run("test", correlation_id="c-1", name="First", variables={"Total": 9})
        text = waiting.export()
    async with Holdfast(MemoryStore(SystemClock()), definitions=[ORDER]) as there:
        assert await there.operations.restore(text) == waiting.id
        await become(there, waiting.id, "Suspended")
        taken = await there.instance(waiting.id)
        assert (taken.correlation_id, taken.name, taken.created_at) == ("c-1", "First", waiting.created_at)
        assert (await there.publish_event("go", correlation_id="c-1")).hit == 1
        ended = await there.result(waiting.id, timeout=10)
        assert ended.sub_status == "Finished"
        assert capsys.readouterr().out.split() == ["begin", "9"]


async def test_a_timer_fires_where_the_instance_was_taken_in(store: Store) -> None:
    async with Holdfast(MemoryStore(SystemClock()), definitions=[ORDER]) as here:
        waiting = await here.run("test")
        await here.publish_event("go")

        async def waits_for_the_delay() -> bool:
            return [b.activity_id for b in (await here.instance(waiting.id)).bookmarks] == ["delay"]

        await until(waits_for_the_delay)
        text = await here.operations.export(waiting.id)
    async with Holdfast(store, definitions=[ORDER]) as there:
        copy = await there.operations.restore(text, instance_id="copy")
        assert (await there.result(copy, timeout=10)).sub_status == "Finished"


async def test_a_paused_instance_is_taken_in_when_it_shall_go_on(store: Store) -> None:
    async with Holdfast(MemoryStore(SystemClock()), definitions=[ORDER]) as here:
        waiting = await here.run("test")
        await here.pause(waiting.id)

        async def is_paused() -> bool:
            return (await here.instance(waiting.id)).is_paused

        await until(is_paused)
        text = (await here.instance(waiting.id)).export()
    async with Holdfast(store, definitions=[ORDER]) as there:
        await there.operations.restore(text)
        assert (await there.instance(waiting.id)).is_paused
        await there.unpause(waiting.id)
        await become(there, waiting.id, "Suspended")


async def test_what_cannot_be_taken_in_is_refused_before_anything_is_written(store: Store) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        waiting = await holdfast.run("test")
        restore = holdfast.operations.restore
        good: dict[str, Any] = json.loads(waiting.export())
        with pytest.raises(InstanceExists):
            await restore(good)
        with pytest.raises(ExportUnreadable, match="reads up to 1"):
            await restore({**good, "format": 2}, instance_id="new")
        with pytest.raises(StateUnreadable, match="This state has format 99"):
            await restore({**good, "state": {**good["state"], "format": 99}}, instance_id="new")
        with pytest.raises(ExportUnreadable):
            await restore(b'{"kind":"something.else"}')
        with pytest.raises(ExportUnreadable):
            await restore(b"{")
        unknown = {**good, "columns": {**good["columns"], "version_id": "no", "definition_id": "no"}}
        with pytest.raises(DefinitionNotFound, match="Import and publish it first"):
            await restore(unknown, instance_id="new")
        frames = [{**good["state"]["frames"][0], "node": "elsewhere"}]
        with pytest.raises(StateForeign, match="'elsewhere' is open"):
            await restore({**good, "state": {**good["state"], "frames": frames}}, instance_id="new")
        with pytest.raises(Invalid, match="had not begun"):
            await restore({name: good[name] for name in good if name != "state"}, instance_id="new")
        assert await count(holdfast) == 1


async def test_work_outside_the_turn_is_done_again_where_the_instance_was_taken_in(store: Store) -> None:
    from holdfast import activity

    done: list[str] = []
    may_go_on = asyncio.Event()

    @activity(type="Test.Slow", kind="Job")
    async def slow() -> None:
        await may_go_on.wait()
        done.append("done")

    definition = document(sequence({"id": "slow", "type": "Test.Slow"}))
    elsewhere = MemoryStore(SystemClock())
    async with Holdfast(elsewhere, definitions=[definition], activities=[slow]) as here:
        waiting = await here.run("test")
        text: dict[str, Any] = json.loads(waiting.export())
        may_go_on.set()
        await here.result(waiting.id, timeout=10)
    assert text["state"]["bookmarks"][0]["name"] == "Elsa.BackgroundActivity"
    async with Holdfast(store, definitions=[definition], activities=[slow]) as there:
        await there.operations.restore(text)
        assert (await there.result(waiting.id, timeout=10)).sub_status == "Finished"
    assert done == ["done", "done"]


# --- retention --------------------------------------------------------------------------------------


def kept(definition_id: str, said: str | None) -> dict[str, Any]:
    properties = {} if said is None else {"holdfast.retention": said}
    return document(
        sequence(write("done")),
        definitionId=definition_id,
        id=f"{definition_id}-1",
        customProperties=properties,
    )


async def test_each_definition_says_how_long_its_instances_are_kept(any_store: Store) -> None:
    definitions = [
        kept("short", "00:00:00"),
        kept("never", "never"),
        kept("usual", None),
        kept("odd", "soon"),
    ]
    async with Holdfast(any_store, definitions=definitions) as holdfast:
        for name in ("short", "never", "usual", "odd"):
            await holdfast.run(name)
        retention = holdfast.operations.retention
        assert await retention.age_of("", "usual") == timedelta(days=30)
        assert await until(retention.clean) == 1
        left = {one.columns.definition_id for one in (await holdfast.instances()).items}
        assert left == {"never", "usual", "odd"}
        assert retention.progress.erased == 1
        assert "'odd' is not understood" in str(retention.progress.problem)


async def test_what_is_deleted_is_in_a_file_first_and_can_be_read_and_taken_in(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    async with Holdfast(store, definitions=[SHORT], retention=timedelta(), archive=folder) as holdfast:
        ended = await holdfast.run("test", name="The one")
        still = await holdfast.dispatch_many("test", [{} for _ in range(700)])

        async def all_ended() -> bool:
            return await count(holdfast, sub_statuses=(SubStatus.FINISHED,)) == 701

        await until(all_ended)

        async def all_gone() -> bool:
            await holdfast.operations.retention.clean()
            return await count(holdfast) == 0

        await until(all_gone)
        progress = holdfast.operations.retention.progress
        assert (progress.erased, progress.archived, progress.behind) == (701, 701, 0)
        file = next(folder.iterdir())
        found = {one.id: one for one in read_archive(file)}
        assert found.keys() == {ended.id, *(str(one) for one in still)}
        assert found[ended.id].columns.name == "The one"
        assert found[ended.id].journal[0].records > 0
        lines = file.read_bytes().splitlines()
        await holdfast.operations.restore(next(line for line in lines if ended.id.encode() in line))
        assert (await holdfast.result(ended.id, timeout=10)).name == "The one"


async def test_a_line_that_was_cut_off_is_passed_over_and_the_next_begins_anew(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    store = MemoryStore(SystemClock())
    async with Holdfast(store, definitions=[SHORT], retention=timedelta(), archive=folder) as holdfast:
        for name in ("one", "two"):
            await holdfast.run("test", instance_id=name)
            await until(holdfast.operations.retention.clean)
            file = next(folder.iterdir())
            with file.open("ab") as handle:
                handle.write(b'{"format":1,"kind":"holdfast.inst')
    assert [one.id for one in read_archive(file)] == ["one", "two"]


async def test_nothing_is_deleted_when_it_cannot_be_archived(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    store = MemoryStore(SystemClock())
    async with Holdfast(
        store, definitions=[SHORT], retention=timedelta(), archive=blocked / "archive"
    ) as holdfast:
        await holdfast.run("test")
        with pytest.raises(OSError, match="Not a directory"):
            await until(holdfast.operations.retention.clean)
        assert await count(holdfast) == 1


async def test_the_node_that_keeps_house_deletes_by_itself_and_outlives_a_full_disk(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "RETAIN_AFTER", 0.02)
    monkeypatch.setattr(housekeeping, "RETAIN_EVERY", timedelta())
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    async with Holdfast(
        store, definitions=[SHORT], retention=timedelta(), archive=blocked / "archive"
    ) as holdfast:
        await holdfast.run("test")

        async def complains() -> bool:
            return "archive cannot be written" in str(holdfast.operations.retention.progress.problem)

        await until(complains)
        assert await count(holdfast) == 1
        blocked.unlink()

        async def is_gone() -> bool:
            return await count(holdfast) == 0

        await until(is_gone)


# --- sizes ------------------------------------------------------------------------------------------

SMALL = Sizes(value=1_000, state=20_000)


async def test_what_is_too_large_is_refused_by_name_before_anything_is_written(store: Store) -> None:
    async with Holdfast(store, definitions=[ORDER], sizes=SMALL) as holdfast:
        large = "x" * 1_001
        with pytest.raises(TooLarge, match=r"`input.order` has 1003 bytes"):
            await holdfast.dispatch("test", input={"order": large})
        with pytest.raises(TooLarge, match=r"`variables.Total`"):
            await holdfast.run("test", variables={"Total": large})
        with pytest.raises(TooLarge, match=r"`input.b`"):
            await holdfast.dispatch_many("test", [{"a": 1}, {"b": large}])
        with pytest.raises(TooLarge, match=r"`input\."):
            await holdfast.publish_event("go", large)
        with pytest.raises(TooLarge, match="`start`"):
            await holdfast.dispatch("test", input={str(n): "x" * 900 for n in range(30)})
        assert await count(holdfast) == 0
        waiting = await holdfast.run("test", input={"order": "x" * 900})
        with pytest.raises(TooLarge, match=r"`input.answer`"):
            await holdfast.resume(waiting.id, waiting.bookmarks[0], input={"answer": large})


async def test_an_instance_that_grows_too_large_faults_and_keeps_what_it_was(store: Store) -> None:
    grow = {
        "id": "grow",
        "type": "Elsa.SetVariable",
        "variable": {"id": "total", "name": "Total", "typeName": "Object"},
        "value": script("'x'.repeat(30000)"),
    }
    definition = document(sequence(event("go"), grow, event("on")), variables=[variable("Total")])
    async with Holdfast(store, definitions=[definition], sizes=SMALL) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.publish_event("go")
        faulted = await holdfast.result(waiting.id, timeout=10)
        assert faulted.sub_status == "Faulted"
        assert [incident.code for incident in faulted.incidents] == ["state.too_large"]
        assert "20000 bytes are allowed" in faulted.incidents[0].message
        assert [b.activity_id for b in faulted.bookmarks] == ["go"]
        assert (await holdfast.operations.letters.page()).total == 0
        reopened = await holdfast.operations.alter(waiting.id, SkipIncidents())
        assert reopened.succeeded
        assert (await holdfast.instance(waiting.id)).sub_status == "Suspended"


async def test_one_that_is_too_large_from_the_start_faults_as_well(store: Store) -> None:
    grow = {
        "id": "grow",
        "type": "Elsa.SetVariable",
        "variable": {"id": "total", "name": "Total", "typeName": "Object"},
        "value": script("'x'.repeat(30000)"),
    }
    definition = document(
        sequence(grow, event("on")),
        variables=[variable("Total")],
        options={"commitStrategyName": "ActivityExecuted"},
    )
    plain = document(
        sequence(grow, event("on")), variables=[variable("Total")], definitionId="plain", id="plain-1"
    )
    async with Holdfast(store, definitions=[definition, plain], sizes=SMALL) as holdfast:
        for name in ("test", "plain"):
            faulted = await holdfast.run(name)
            assert (name, faulted.sub_status) == (name, "Faulted")
            assert [incident.code for incident in faulted.incidents] == ["state.too_large"]
        wanted = InstanceFilter(tenant="", has_incidents=True)
        assert (await holdfast.instances(wanted)).total == 2
