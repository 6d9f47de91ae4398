"""Dead letters are shown, mended and sent again; definitions, tenants and nodes stand still on request."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from holdfast.application import Holdfast
from holdfast.errors import Invalid
from holdfast.message import Start
from holdfast.runtime import worker
from holdfast.runtime.changes import newborn
from holdfast.runtime.dead_letters import contents
from holdfast.runtime.letters import MessageUnreadable, sealed
from holdfast.runtime.standstill import PauseUnseen
from holdfast.store import Admission, LetterNotFound, Store
from tests.documents import document, event, sequence, write
from tests.runtime.operating import become, opened_store, sub_status, until

WAITS = document(sequence(write("begin"), event("go"), write("behind")))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


@pytest.fixture
def hopeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first failure makes a dead letter."""
    monkeypatch.setattr(worker, "ATTEMPTS", 1)


async def start_badly(holdfast: Holdfast, instance_id: str) -> str:
    """A start whose input is no object: nobody can handle it. The id of its dead letter."""
    program = await holdfast.library.published("", "test")
    shard = holdfast.world.shards.of("", "test", instance_id)
    birth = newborn(program, instance_id=instance_id, shard=shard, now=holdfast.clock.now())
    good = sealed(Start(), tenant="", instance_id=instance_id, shard=shard)
    spoiled = msgspec.structs.replace(good, payload=b'{"input":5}')
    await holdfast.store.admit([Admission(message=spoiled, birth=birth)])
    holdfast.node.reader.doubt()

    async def died() -> str | None:
        found = await holdfast.operations.letters.page(instance_id=instance_id)
        return found.items[0].id if found.items else None

    return str(await until(died))


async def test_a_dead_start_is_mended_and_sent_again(any_store: Store, hopeless: None) -> None:
    async with Holdfast(any_store, definitions=[WAITS]) as holdfast:
        letters = holdfast.operations.letters
        letter_id = await start_badly(holdfast, "one")
        assert await sub_status(holdfast, "one") == "Interrupted"
        letter = await letters.find(letter_id)
        assert (letter.envelope.kind, contents(letter)) == ("start", {"input": 5})
        assert "cannot be read" in letter.error
        with pytest.raises(MessageUnreadable):
            await letters.replay(letter_id, {"input": [1]})
        await letters.replay(letter_id, {"input": {"amount": 1}})
        await become(holdfast, "one", "Suspended")
        with pytest.raises(LetterNotFound):
            await letters.find(letter_id)
        await holdfast.publish_event("go")
        assert (await holdfast.result("one", timeout=10)).sub_status == "Finished"


async def test_all_that_match_are_sent_again_and_what_dies_again_is_left(
    store: Store, hopeless: None
) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        letters = holdfast.operations.letters
        for name in ("one", "two"):
            await start_badly(holdfast, name)
        assert await letters.replay_all(kind="cancel") == 0
        assert await letters.replay_all(error="no such words") == 0
        assert await letters.replay_all(kind="start", error="cannot be read") == 2

        async def both_died_again() -> bool:
            return (await letters.page()).total == 2

        await until(both_died_again)


async def test_a_discarded_letter_is_gone(store: Store, hopeless: None) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        letter_id = await start_badly(holdfast, "one")
        await holdfast.operations.letters.discard(letter_id)
        assert (await holdfast.operations.letters.page()).items == ()
        with pytest.raises(LetterNotFound):
            await holdfast.operations.letters.discard(letter_id)


async def test_an_instance_whose_start_died_can_still_be_cancelled(store: Store, hopeless: None) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        await start_badly(holdfast, "one")
        await holdfast.cancel("one")
        assert (await holdfast.result("one", timeout=10)).sub_status == "Cancelled"


async def test_a_paused_definition_begins_nothing_until_it_is_lifted(any_store: Store) -> None:
    async with Holdfast(any_store, definitions=[WAITS]) as holdfast:
        pauses = holdfast.operations.pauses
        await pauses.pause(definition="test", reason="a bad release")
        assert [(one.scope, one.reason) for one in await pauses.list()] == [
            ("definition:test", "a bad release")
        ]
        waiting = await holdfast.dispatch("test")
        other = await holdfast.dispatch("test")
        await holdfast.cancel(other)  # control passes, so the node has looked
        await holdfast.result(other, timeout=10)
        assert await sub_status(holdfast, waiting) == "Pending"
        await pauses.lift(definition="test")
        assert await pauses.list() == []
        await become(holdfast, waiting, "Suspended")


async def test_a_paused_tenant_does_not_hinder_another(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        await holdfast.publish(WAITS, tenant="acme")
        await holdfast.operations.pauses.pause(tenant="acme")
        held = await holdfast.dispatch("test", tenant="acme")
        assert (await holdfast.run("test")).sub_status == "Suspended"
        assert (await holdfast.instance(held, tenant="acme")).sub_status == "Pending"
        await holdfast.operations.pauses.lift(tenant="acme")
        rested = await holdfast.node.results.rested("acme", held)
        assert rested.columns.sub_status == "Suspended"


async def test_a_pause_ends_by_itself_at_its_time(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        until_then = holdfast.clock.now() + timedelta(seconds=2)
        await holdfast.operations.pauses.pause(node=holdfast.node.id, until=until_then)
        held = await holdfast.dispatch("test")
        await become(holdfast, held, "Suspended")
        assert holdfast.clock.now() >= until_then


async def test_a_node_that_does_not_hear_of_a_pause_is_named(store: Store) -> None:
    async with Holdfast(store, definitions=[WAITS]) as holdfast:
        await store.join("deaf", "elsewhere", timedelta(seconds=30))
        with pytest.raises(PauseUnseen) as unseen:
            await holdfast.operations.pauses.pause(definition="test", patience=3)
        assert unseen.value.nodes == ("deaf",)
        assert "deaf (elsewhere)" in str(unseen.value)


async def test_what_shall_stand_still_must_be_said(store: Store) -> None:
    async with Holdfast(store) as holdfast:
        with pytest.raises(Invalid):
            await holdfast.operations.pauses.pause()
        with pytest.raises(Invalid):
            await holdfast.operations.pauses.pause(node="n", tenant="acme")
        async with asyncio.timeout(5):
            await holdfast.operations.pauses.lift(definition="never-paused")
