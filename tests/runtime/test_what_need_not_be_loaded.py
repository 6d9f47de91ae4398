"""What a node knows without asking the store: who was just born here, and what its own commit wrote."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.commit import Birth, Change, Columns, Commit
from holdfast.instance import SubStatus
from holdfast.message import Cancel, Resume, Start
from holdfast.runtime.letters import opened, sealed
from holdfast.runtime.loader import Loader
from holdfast.runtime.results import InstanceNotFound, Results
from holdfast.store import Loaded

KEY = ("acme", "i1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def columns(sub_status: SubStatus = SubStatus.PENDING) -> Columns:
    is_over = sub_status is SubStatus.FINISHED
    return Columns(
        definition_id="d",
        version_id="d-1",
        version=1,
        sub_status=sub_status,
        created_at=NOW,
        updated_at=NOW,
        finished_at=NOW if is_over else None,
    )


BIRTH = Birth(instance_id="i1", shard=3, columns=columns())


def finished(**more: Any) -> Commit:
    change = Change(shard=3, expects=0, columns=columns(SubStatus.FINISHED), state=b"{}")
    return Commit(turn="t1", tenant="acme", instance_id="i1", change=change, **more)


class Asked:
    """A store that counts how often it is asked, and has the instance at revision 1, or nothing."""

    def __init__(self, *found: Loaded) -> None:
        self.found = list(found)
        self.times = 0

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        self.times += 1
        return self.found


def at_revision_1(sub_status: SubStatus = SubStatus.SUSPENDED) -> Loaded:
    return Loaded(
        tenant="acme",
        instance_id="i1",
        shard=3,
        revision=1,
        turn="t1",
        columns=columns(sub_status),
        state=b"{}",
    )


async def loaded(store: Any, loader: Loader) -> Loaded | None:
    async with asyncio.timeout(5):
        running = asyncio.ensure_future(loader.run())
        try:
            return (await loader.load(KEY))[0]
        finally:
            running.cancel()


async def test_who_was_born_here_is_known_here() -> None:
    store = Asked()
    loader = Loader(store)  # type: ignore[arg-type]  it only loads
    loader.expect([KEY])
    loader.bear("acme", BIRTH)
    found = await loaded(store, loader)
    assert found is not None
    assert (found.revision, found.turn, found.state, found.shard) == (0, "", None, 3)
    assert store.times == 0


async def test_who_was_asked_for_before_the_birth_was_heard_of_is_not_taken_for_new() -> None:
    store = Asked(at_revision_1())
    loader = Loader(store)  # type: ignore[arg-type]
    loader.expect([KEY])
    await loaded(store, loader)  # its message was read, and its turn has committed
    loader.bear("acme", BIRTH)
    found = await loaded(store, loader)
    assert found is not None
    assert found.revision == 1


async def test_who_was_born_while_its_shard_changed_hands_is_loaded() -> None:
    store = Asked(at_revision_1())
    loader = Loader(store)  # type: ignore[arg-type]
    loader.expect([KEY])
    loader.forget_shard(3)
    loader.bear("acme", BIRTH)
    found = await loaded(store, loader)
    assert found is not None
    assert found.revision == 1


async def test_who_was_not_expected_is_loaded() -> None:
    store = Asked(at_revision_1())
    loader = Loader(store)  # type: ignore[arg-type]
    loader.expect([KEY])
    loader.expect_no_more([KEY])
    loader.bear("acme", BIRTH)
    assert (await loaded(store, loader)) == at_revision_1()


async def test_whoever_waits_gets_what_the_commit_wrote_without_a_look() -> None:
    store = Asked()
    results = Results(store)  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(results.rested("acme", "i1"))
    await asyncio.sleep(0)
    results.committed(finished())
    found = await waiting
    assert (found.revision, found.turn, found.state) == (1, "t1", b"{}")
    assert store.times == 0


async def test_a_commit_in_the_middle_is_not_the_result() -> None:
    store = Asked(at_revision_1(SubStatus.EXECUTING))
    results = Results(store)  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(results.ended("acme", "i1"))
    await asyncio.sleep(0.01)
    assert store.times == 1
    results.committed(finished())
    assert (await waiting).columns.finished_at == NOW
    assert store.times == 1


async def test_whoever_waits_for_one_that_is_deleted_hears_that_it_is_gone() -> None:
    store = Asked()
    results = Results(store)  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(results.rested("acme", "i1"))
    await asyncio.sleep(0)
    results.committed(finished(deletes=True))
    with pytest.raises(InstanceNotFound):
        await waiting


async def test_what_was_told_here_is_doubted_after_a_word_from_elsewhere() -> None:
    store = Asked(at_revision_1(SubStatus.FINISHED))
    results = Results(store)  # type: ignore[arg-type]
    waiting = asyncio.ensure_future(results.rested("acme", "i1"))
    await asyncio.sleep(0)
    middle = Change(shard=3, expects=0, columns=columns(SubStatus.EXECUTING), state=b"{}")
    results.committed(Commit(turn="t0", tenant="acme", instance_id="i1", change=middle))
    results.wake("acme", "i1")
    assert (await waiting).columns.sub_status is SubStatus.FINISHED
    assert store.times == 1


def test_a_message_that_says_nothing_unusual_has_no_payload() -> None:
    envelope = sealed(Start(), tenant="acme", instance_id="i1", shard=3)
    assert envelope.payload is None
    assert opened(envelope) == Start()


@pytest.mark.parametrize(
    "message",
    [
        Start(input={"a": None, "b": {}}, correlation_id=""),
        Resume(bookmark_id="b", input={"x": [1]}, tries=3, expires=NOW),
        Cancel(reason="enough", at_once=True),
    ],
)
def test_a_message_comes_out_of_its_envelope_as_it_went_in(message: Any) -> None:
    assert opened(sealed(message, tenant="acme", instance_id="i1", shard=3)) == message
