"""What a store promises about activities that are executed outside their turn."""

from datetime import timedelta

from holdfast.commit import Task
from holdfast.store import Attempt, Store
from holdfast.testing.conformance.examples import TTL, PassTime, born, changed, envelope, everything

LONG = timedelta(minutes=1)


async def idle(store: Store, *tasks: Task) -> list[Attempt]:
    """The work of an instance that was just born with it."""
    await store.commit([born(tasks=tasks or (Task(1, b'{"a":1}'),))])
    return await store.idle_attempts([1], 10)


class AttemptsConformance:
    """What a store promises about activities that are executed outside their turn."""

    async def test_work_that_nobody_has_begun_is_idle_in_its_shard(self, store: Store) -> None:
        (attempt,) = await idle(store)
        assert attempt == Attempt(
            tenant="acme", instance_id="i1", execution=1, shard=1, number=0, payload=b'{"a":1}'
        )
        assert await store.idle_attempts([2], 10) == []
        assert await store.idle_attempts([], 10) == []

    async def test_no_more_work_is_found_than_was_asked_for(self, store: Store) -> None:
        await idle(store, *(Task(n, b"{}") for n in range(5)))
        assert len(await store.idle_attempts([1, 2], 3)) == 3

    async def test_work_that_was_claimed_is_not_idle(self, store: Store) -> None:
        await store.join("n1", "here", LONG)
        (attempt,) = await idle(store)
        claimed = await store.claim("n1", attempt)
        assert claimed is not None
        assert (claimed.number, claimed.payload) == (1, attempt.payload)
        assert await store.idle_attempts([1], 10) == []

    async def test_work_is_claimed_by_one(self, store: Store) -> None:
        await store.join("n1", "here", LONG)
        await store.join("n2", "here", LONG)
        (attempt,) = await idle(store)
        claimed = await store.claim("n1", attempt)
        assert claimed is not None
        assert await store.claim("n2", attempt) is None
        assert await store.claim("n2", claimed) is None

    async def test_whoever_claimed_work_and_did_not_hear_so_is_told_so_again(self, store: Store) -> None:
        await store.join("n1", "here", LONG)
        (attempt,) = await idle(store)
        claimed = await store.claim("n1", attempt)
        assert claimed is not None
        assert await store.claim("n1", attempt) == claimed
        assert await store.claim("n1", claimed) is None

    async def test_the_work_of_the_dead_is_claimed_under_a_new_number(
        self, store: Store, pass_time: PassTime
    ) -> None:
        await store.join("n1", "here", TTL)
        await store.join("n2", "here", LONG)
        (attempt,) = await idle(store)
        first = await store.claim("n1", attempt)
        assert first is not None
        await pass_time(TTL + TTL)
        assert await store.idle_attempts([1], 10) == [first]
        second = await store.claim("n2", first)
        assert second is not None
        assert second.number == 2

    async def test_an_outcome_takes_the_place_of_its_work(self, store: Store) -> None:
        await store.join("n1", "here", LONG)
        (attempt,) = await idle(store)
        claimed = await store.claim("n1", attempt)
        assert claimed is not None
        place = await store.conclude(claimed, envelope(kind="outcome"))
        (delivery,) = await everything(store)
        assert (delivery.place, delivery.envelope.kind) == (place, "outcome")
        assert await store.idle_attempts([1], 10) == []
        assert await store.conclude(claimed, envelope(kind="outcome")) is None
        assert len(await everything(store)) == 1

    async def test_the_outcome_of_an_earlier_attempt_is_refused(self, store: Store) -> None:
        await store.join("n1", "here", LONG)
        await store.join("n2", "here", LONG)
        (attempt,) = await idle(store)
        first = await store.claim("n1", attempt)
        assert first is not None
        await store.leave("n1")
        second = await store.claim("n2", first)
        assert second is not None
        assert await store.conclude(first, envelope(kind="outcome")) is None
        assert await everything(store) == []
        assert await store.conclude(second, envelope(kind="outcome")) is not None

    async def test_work_that_nobody_wants_any_more_has_no_outcome(self, store: Store) -> None:
        await store.join("n1", "here", LONG)
        (attempt,) = await idle(store)
        await store.commit([changed(tasks_gone=(1,))])
        assert await store.claim("n1", attempt) is None
        assert await store.conclude(attempt, envelope()) is None
        assert await everything(store) == []
