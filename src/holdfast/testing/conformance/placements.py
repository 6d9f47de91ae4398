"""What a store promises about groups of shards, and who is placed in them."""

from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.store import DEFAULT, Placement, ShardGroup, Store
from holdfast.testing.conformance.examples import refusal


class PlacementsConformance:
    """What a store promises about groups of shards, and who is placed in them."""

    async def test_there_is_a_default_group_from_the_first_shard_on(self, store: Store) -> None:
        groups = await store.shard_groups()
        assert list(groups) == [DEFAULT]
        assert (groups[DEFAULT].first, groups[DEFAULT].count) == (0, 64)

    async def test_new_groups_lie_behind_all_others(self, store: Store) -> None:
        assert await store.create_group("gold", 8) == ShardGroup("gold", 64, 8)
        assert await store.create_group("iron", 1) == ShardGroup("iron", 72, 1)
        groups = await store.shard_groups()
        assert [group.name for group in groups.values()] == [DEFAULT, "gold", "iron"]

    async def test_the_size_of_a_group_is_fixed(self, store: Store) -> None:
        await store.create_group("gold", 8)
        for name, count in (("gold", 16), ("gold", 8), (DEFAULT, 1)):
            assert isinstance(await refusal(store.create_group(name, count)), Conflict)
        assert (await store.shard_groups())["gold"] == ShardGroup("gold", 64, 8)

    async def test_a_group_has_a_shard_at_least(self, store: Store) -> None:
        assert isinstance(await refusal(store.create_group("none", 0)), Invalid)

    async def test_a_placement_is_the_last_one_made(self, store: Store) -> None:
        await store.create_group("gold", 8)
        whole = Placement(tenant="acme", group="gold")
        one = Placement(tenant="acme", definition_id="order", group=DEFAULT)
        for placement in (one, whole, whole, Placement(tenant="beta", group="gold")):
            await store.place(placement)
        await store.place(Placement(tenant="beta", group=DEFAULT))
        assert await store.placements() == [whole, one, Placement(tenant="beta", group=DEFAULT)]

    async def test_nobody_is_placed_where_nothing_is(self, store: Store) -> None:
        assert isinstance(await refusal(store.place(Placement(tenant="acme", group="gold"))), NotFound)
        assert await store.placements() == []

    async def test_whoever_is_unplaced_lives_where_everybody_does(self, store: Store) -> None:
        one = Placement(tenant="acme", definition_id="order", group=DEFAULT)
        await store.place(one)
        await store.place(Placement(tenant="acme", group=DEFAULT))
        await store.unplace("acme")
        await store.unplace("nobody")
        assert await store.placements() == [one]
        await store.unplace("acme", "order")
        assert await store.placements() == []
