"""Many turns share one transaction, and none pays for another."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.commit import Commit
from holdfast.errors import Unavailable
from holdfast.runtime.committer import Committer
from holdfast.store import Committed, StaleTurn
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from holdfast.testing.conformance.examples import born, changed


class Watched:
    """A store that counts its groups, takes its time, and fails when told to."""

    def __init__(self) -> None:
        self.store = MemoryStore(ManualClock())
        self.groups: list[int] = []
        self.under_way = 0
        self.most_under_way = 0
        self.fails = 0

    async def load(self, keys: Sequence[tuple[str, str]]) -> Any:
        return await self.store.load(keys)

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        self.groups.append(len(commits))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(3):
            await asyncio.sleep(0)
        self.under_way -= 1
        if self.fails:
            self.fails -= 1
            raise Unavailable("the disk is on fire")
        return await self.store.commit(commits)


async def test_turns_that_finish_meanwhile_are_written_together() -> None:
    watched = Watched()
    async with Committer(watched) as committer:
        await asyncio.gather(*(committer.write(born(f"i{n}")) for n in range(100)))
    assert sum(watched.groups) == 100
    assert len(watched.groups) <= 4
    assert watched.most_under_way <= 2


async def test_a_lone_turn_does_not_wait_for_company() -> None:
    watched = Watched()
    async with Committer(watched) as committer:
        await committer.write(born("i1"))
        await committer.write(born("i2"))
    assert watched.groups == [1, 1]


async def test_a_group_has_a_limit() -> None:
    watched = Watched()
    async with Committer(watched, most=10, groups=1) as committer:
        await asyncio.gather(*(committer.write(born(f"i{n}")) for n in range(35)))
    assert max(watched.groups) == 10


async def test_a_stale_turn_fails_alone() -> None:
    watched = Watched()
    async with Committer(watched) as committer:
        await committer.write(born("i1"))
        outcomes = await asyncio.gather(
            committer.write(changed("i1", expects=7)), committer.write(born("i2")), return_exceptions=True
        )
    assert [type(outcome) for outcome in outcomes] == [StaleTurn, Committed]


async def test_two_turns_of_one_instance_are_never_in_one_group() -> None:
    watched = Watched()
    async with Committer(watched, groups=1) as committer:
        await committer.write(born("i1"))
        await asyncio.gather(
            committer.write(changed("i1", expects=1)), committer.write(changed("i1", expects=2))
        )
    (loaded,) = await watched.load([("acme", "i1")])
    assert (loaded.revision, watched.groups) == (3, [1, 1, 1])


async def test_a_store_that_is_away_fails_its_group_and_not_the_next() -> None:
    watched = Watched()
    watched.fails = 1
    async with Committer(watched, groups=1) as committer:
        with pytest.raises(Unavailable, match="on fire"):
            await committer.write(born("i1"))
        await committer.write(born("i1"))


async def test_leaving_waits_for_what_was_asked_and_refuses_what_comes_after() -> None:
    watched = Watched()
    async with Committer(watched) as committer:
        asked = asyncio.ensure_future(committer.write(born("i1")))
        await asyncio.sleep(0)
    assert isinstance(await asked, Committed)
    with pytest.raises(Unavailable, match="stopping"):
        await committer.write(born("i2"))


async def test_whoever_gives_up_before_its_group_begins_is_not_written() -> None:
    watched = Watched()
    async with Committer(watched, groups=1) as committer:
        first = asyncio.ensure_future(committer.write(born("i1")))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(committer.write(born("i2")))
        await asyncio.sleep(0)
        second.cancel()
        await first
    assert await watched.load([("acme", "i2")]) == []
