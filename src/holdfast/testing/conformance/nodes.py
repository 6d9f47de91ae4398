"""What a store promises about nodes and leases."""

from datetime import timedelta

from holdfast.store import (
    NodeExpired,
    Store,
)
from holdfast.testing.conformance.examples import (
    TTL,
    PassTime,
)


class NodesConformance:
    """What a store promises about nodes and leases."""

    async def test_a_lease_has_one_owner_at_a_time(self, store: Store) -> None:
        await store.join("n1", "here", TTL)
        await store.join("n2", "here", TTL)
        assert [(t.name, t.epoch, t.is_clean) for t in await store.take("n1", ["a", "b"])] == [
            ("a", 1, True),
            ("b", 1, True),
        ]
        assert await store.take("n2", ["a", "b"]) == []
        assert (await store.renew("n1", TTL)).leases == {"a": 1, "b": 1}

    async def test_a_released_lease_is_taken_at_once_and_cleanly(self, store: Store) -> None:
        await store.join("n1", "here", TTL)
        await store.join("n2", "here", TTL)
        await store.take("n1", ["a"])
        await store.release("n2", ["a"])
        assert await store.take("n2", ["a"]) == []
        await store.release("n1", ["a"])
        assert [(t.epoch, t.is_clean) for t in await store.take("n2", ["a"])] == [(2, True)]

    async def test_the_leases_of_the_dead_are_taken_carefully(
        self, store: Store, pass_time: PassTime
    ) -> None:
        await store.join("n1", "here", TTL)
        await store.take("n1", ["a"])
        await pass_time(TTL + TTL)
        await store.join("n2", "here", TTL)
        assert [(t.epoch, t.is_clean) for t in await store.take("n2", ["a"])] == [(2, False)]

    async def test_a_node_that_left_is_dead_at_once(self, store: Store) -> None:
        await store.join("n1", "here", TTL)
        await store.take("n1", ["a"])
        await store.leave("n1")
        await store.join("n2", "here", TTL)
        assert [node.id for node in await store.nodes()] == ["n2"]
        assert [(t.epoch, t.is_clean) for t in await store.take("n2", ["a"])] == [(2, False)]

    async def test_an_expired_node_cannot_come_back(self, store: Store, pass_time: PassTime) -> None:
        await store.join("n1", "here", TTL)
        await pass_time(TTL + TTL)
        for attempt in (store.renew("n1", TTL), store.join("n1", "here", TTL)):
            try:
                await attempt
            except NodeExpired:
                continue
            raise AssertionError("an expired node came back")
        assert await store.take("n1", ["a"]) == []

    async def test_renewing_in_time_keeps_a_node_alive(self, store: Store, pass_time: PassTime) -> None:
        await store.join("n1", "here", TTL)
        await store.take("n1", ["a"])
        for _ in range(3):
            await pass_time(TTL / 3)
            await store.renew("n1", TTL)
        assert (await store.renew("n1", TTL)).leases == {"a": 1}

    async def test_the_store_tells_the_time(self, store: Store, pass_time: PassTime) -> None:
        first = await store.join("n1", "here", TTL)
        await pass_time(timedelta(milliseconds=20))
        second = await store.renew("n1", TTL)
        assert second.now >= first.now + timedelta(milliseconds=20)
