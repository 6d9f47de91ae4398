"""What a store promises about nodes and leases."""

from datetime import timedelta

from holdfast.store import NodeExpired, Pause, Store
from holdfast.testing.conformance.examples import THEN, TTL, PassTime


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

    async def test_a_renewal_says_whether_pauses_came_or_went(self, store: Store) -> None:
        first = await store.join("n1", "here", TTL)
        number = await store.pause(Pause(tenant="acme", scope="tenant", since=THEN))
        assert number > first.pauses
        assert (await store.renew("n1", TTL)).pauses == number
        lifted = await store.lift("acme", "tenant")
        assert lifted > number
        assert (await store.renew("n1", TTL)).pauses == lifted

    async def test_everybody_sees_which_pauses_a_node_has_seen(self, store: Store) -> None:
        await store.join("n1", "here", TTL)
        await store.join("n2", "there", TTL)
        await store.renew("n1", TTL, seen=7)
        assert [(n.id, n.place, n.seen) for n in await store.nodes()] == [
            ("n1", "here", 7),
            ("n2", "there", 0),
        ]

    async def test_leases_are_listed_with_their_owners_dead_or_alive(self, store: Store) -> None:
        await store.join("n1", "here", TTL)
        await store.join("n2", "here", TTL)
        await store.take("n1", ["a", "b"])
        await store.take("n2", ["c"])
        await store.release("n1", ["b"])
        await store.leave("n1")
        assert await store.leases() == {"a": ("n1", 1), "c": ("n2", 1)}

    async def test_of_many_leases_those_that_are_free_are_taken(self, store: Store) -> None:
        await store.join("n1", "here", TTL)
        await store.join("n2", "here", TTL)
        await store.take("n1", ["b"])
        await store.join("n3", "here", TTL)
        await store.take("n3", ["d"])
        await store.leave("n3")
        taken = await store.take("n2", ["a", "b", "c", "d"])
        assert {(lease.name, lease.epoch, lease.is_clean) for lease in taken} == {
            ("a", 1, True),
            ("c", 1, True),
            ("d", 2, False),
        }
        assert await store.take("n2", []) == []
