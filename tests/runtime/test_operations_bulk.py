"""One request reaches all instances that match a filter, in pages, without their states."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.application import Holdfast
from holdfast.commit import Commit
from holdfast.instance import Status, SubStatus
from holdfast.runtime.bulk import BulkReport, pages_of
from holdfast.store import Admission, InstanceFilter, KeyReused, Loaded, Store, Verdict
from holdfast.stores.memory import MemoryStore
from tests.documents import document, event, fault, sequence, write
from tests.runtime.operating import ALL, count, opened_store, until

WAITS = document(sequence(event("go"), write("behind")))
BROKEN = document(sequence(fault(), event("go")), definitionId="broken", id="broken-1")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


async def dispatch(holdfast: Holdfast, number: int, definition_id: str, wanted: SubStatus) -> None:
    await holdfast.dispatch_many(definition_id, [{} for _ in range(number)])

    async def is_there() -> bool:
        there = await count(holdfast, definition_ids=(definition_id,), sub_statuses=(wanted,))
        return there == number

    await until(is_there, patience=30)


async def become_all(holdfast: Holdfast, number: int, **members: Any) -> None:
    async def is_it() -> bool:
        return await count(holdfast, **members) == number

    await until(is_it, patience=30)


async def test_all_that_match_are_cancelled_and_no_others(any_store: Store) -> None:
    async with Holdfast(any_store, definitions=[WAITS, BROKEN]) as holdfast:
        await dispatch(holdfast, 1200, "test", SubStatus.SUSPENDED)
        other = await holdfast.run("broken")
        seen: list[BulkReport] = []
        report = await holdfast.operations.bulk.cancel(
            InstanceFilter(tenant="", definition_ids=("test",)), "enough", on_progress=seen.append
        )
        assert report == BulkReport(1200, 1200)
        assert [one.sent for one in seen] == [500, 1000, 1200]
        await become_all(holdfast, 1200, sub_statuses=(SubStatus.CANCELLED,))
        assert (await holdfast.instance(other.id)).sub_status == "Faulted"


async def test_paused_instances_are_cancelled_deleted_and_let_go_as_well(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        bulk = holdfast.operations.bulk
        await dispatch(holdfast, 6, "test", SubStatus.SUSPENDED)
        await bulk.pause(ALL)
        await become_all(holdfast, 6, is_paused=True)
        ids = [one.instance_id for one in (await holdfast.instances()).items]
        some = [msgspec.structs.replace(ALL, ids=tuple(ids[n : n + 2])) for n in (0, 2, 4)]
        assert (await bulk.unpause(some[0])).sent == 2
        assert (await bulk.terminate(some[1])).sent == 2
        assert (await bulk.delete(some[2])).sent == 2
        await become_all(holdfast, 4)
        await become_all(holdfast, 2, sub_statuses=(SubStatus.CANCELLED,))
        await become_all(holdfast, 0, is_paused=True, status=Status.RUNNING)
        await holdfast.publish_event("go")
        await become_all(holdfast, 2, sub_statuses=(SubStatus.FINISHED,))


async def test_what_arrived_during_a_pause_is_handled_after_it(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        waiting = await holdfast.run("test")
        await holdfast.operations.bulk.pause(ALL)
        await become_all(holdfast, 1, is_paused=True)
        await holdfast.publish_event("go")
        assert (await holdfast.instance(waiting.id)).sub_status == "Suspended"
        await holdfast.operations.bulk.unpause(ALL)
        assert (await holdfast.result(waiting.id, timeout=10)).sub_status == "Finished"


async def test_incidents_of_many_are_retried_and_skipped(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS, BROKEN]) as holdfast:
        await dispatch(holdfast, 5, "broken", SubStatus.FAULTED)
        healthy = await holdfast.run("test")
        assert await holdfast.operations.bulk.retry(ALL) == BulkReport(5, 5)
        assert await holdfast.operations.bulk.skip(ALL, ["fault"]) == BulkReport(5, 5)
        await become_all(holdfast, 6, sub_statuses=(SubStatus.SUSPENDED,))
        assert (await holdfast.instance(healthy.id)).revision == healthy.revision


async def test_a_request_repeated_under_its_key_reaches_nobody_twice(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        await dispatch(holdfast, 3, "test", SubStatus.SUSPENDED)
        bulk = holdfast.operations.bulk
        await bulk.pause(ALL, key="tonight")
        await become_all(holdfast, 3, is_paused=True)
        await bulk.unpause(ALL)
        await become_all(holdfast, 0, is_paused=True)
        assert (await bulk.pause(ALL, key="tonight")).matched == 3
        await holdfast.operations.alter((await holdfast.instances()).items[0].instance_id, _nothing())
        assert await count(holdfast, is_paused=True) == 0
        with pytest.raises(KeyReused):
            await bulk.cancel(ALL, key="tonight")


def _nothing() -> Any:
    from holdfast.message import CancelActivity

    return CancelActivity(activity_id="nothing")


async def test_pages_skip_nobody_when_those_seen_match_no_more_or_share_an_instant(store: Store) -> None:
    """Seven at one instant, read three at a time, while each page seen is deleted."""
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        await dispatch(holdfast, 7, "test", SubStatus.SUSPENDED)
        found = (await holdfast.instances()).items
        at = found[0].columns.created_at
        for one in found:
            same = await store.load([("", one.instance_id)])
            await store.commit([_aged(same[0], at)])
        seen: list[str] = []
        async for page in pages_of(store, ALL, at + timedelta(hours=1), 3):
            seen += [one.instance_id for one in page]
        assert sorted(seen) == sorted(one.instance_id for one in found)
        assert len(seen) == 7


def _aged(loaded: Loaded, at: Any) -> Commit:
    from holdfast.commit import Change

    columns = msgspec.structs.replace(loaded.columns, created_at=at)
    change = Change(shard=loaded.shard, expects=loaded.revision, columns=columns, state=loaded.state)
    return Commit(turn="aged", tenant=loaded.tenant, instance_id=loaded.instance_id, change=change)


async def test_no_state_is_loaded_and_no_transaction_holds_more_than_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from holdfast.clock import SystemClock

    store = MemoryStore(SystemClock())
    async with Holdfast(store, definitions=[WAITS], works=False) as holdfast:
        await holdfast.dispatch_many("test", [{} for _ in range(1300)])
        largest = 0
        admit = store.admit

        async def counting(admissions: Sequence[Admission]) -> list[Verdict]:
            nonlocal largest
            largest = max(largest, len(admissions))
            return await admit(admissions)

        async def refuse(keys: Any) -> Any:
            raise AssertionError("a state was loaded")

        monkeypatch.setattr(store, "admit", counting)
        monkeypatch.setattr(store, "load", refuse)
        assert (await holdfast.operations.bulk.delete(ALL)).sent == 1300
        assert largest == 500
