"""What a store promises about dead letters, pauses and the outbox."""

from datetime import timedelta

import msgspec

from holdfast.commit import Lane, Outgoing, Place
from holdfast.store import LetterNotFound, Pause, Store
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    TTL,
    PassTime,
    born,
    changed,
    envelope,
    everything,
    refusal,
)
from holdfast.testing.conformance.records import letter

DAY = timedelta(days=1)


class LettersConformance:
    """What a store promises about dead letters, pauses and the outbox."""

    # --- dead letters -----------------------------------------------------------------------------

    async def test_a_dead_letter_is_kept_as_it_is(self, store: Store) -> None:
        dead = letter(kind="start", payload=b'{"a":1}', reply="key-1", trace="00-1")
        await store.commit([born(dead_letters=(dead,))])
        assert await store.dead_letter("acme", "l1") == dead
        assert (await store.dead_letters("acme")).items == (dead,)
        assert isinstance(await refusal(store.dead_letter("other", "l1")), LetterNotFound)

    async def test_dead_letters_are_listed_a_page_at_a_time(self, store: Store) -> None:
        await store.commit([born(dead_letters=tuple(letter(f"l{n}") for n in range(5)))])
        await store.commit([changed(dead_letters=(letter("l9", instance_id="i2"),))])
        page = await store.dead_letters("acme", skip=2, limit=2)
        assert (page.total, len(page.items), page.is_capped) == (6, 2, False)
        everywhere = await store.dead_letters(None)
        assert [one.id for one in everywhere.items] == ["l9", "l4", "l3", "l2", "l1", "l0"]
        assert [one.id for one in (await store.dead_letters("acme", instance_id="i2")).items] == ["l9"]
        assert (await store.dead_letters("other")).total == 0

    async def test_a_replay_exchanges_the_letter_for_its_message_in_the_bulk_lane(self, store: Store) -> None:
        dead = letter(kind="start", payload=b'{"a":1}', reply="key-1", trace="00-1")
        await store.commit([born(dead_letters=(dead,))])
        place = await store.replay("acme", "l1")
        (delivery,) = await everything(store)
        sent = envelope(kind="start", payload=b'{"a":1}', reply="key-1", trace="00-1", lane=Lane.BULK)
        assert (delivery.place, delivery.envelope) == (place, sent)
        assert (delivery.attempts, delivery.deaths, place.lane) == (0, 0, Lane.BULK)
        assert isinstance(await refusal(store.replay("acme", "l1")), LetterNotFound)
        assert (await store.dead_letters("acme")).total == 0
        assert len(await everything(store)) == 1

    async def test_a_replay_may_say_something_else(self, store: Store) -> None:
        await store.commit([born(dead_letters=(letter(payload=b"wrong"),))])
        await store.replay("acme", "l1", b'{"right":true}')
        (delivery,) = await everything(store)
        assert delivery.envelope.payload == b'{"right":true}'

    async def test_a_replay_leaves_the_instance_to_its_turn(self, store: Store) -> None:
        await store.commit([born(dead_letters=(letter(),))])
        before = await store.load([("acme", "i1")])
        await store.replay("acme", "l1")
        assert await store.load([("acme", "i1")]) == before

    async def test_a_discarded_letter_is_gone(self, store: Store) -> None:
        await store.commit([born(dead_letters=(letter("l1"), letter("l2")))])
        assert isinstance(await refusal(store.discard("other", "l1")), LetterNotFound)
        await store.discard("acme", "l1")
        assert [one.id for one in (await store.dead_letters("acme")).items] == ["l2"]
        assert isinstance(await refusal(store.discard("acme", "l1")), LetterNotFound)
        assert await everything(store) == []

    # --- pauses -----------------------------------------------------------------------------------

    async def test_a_pause_is_in_force_until_it_is_lifted(self, store: Store) -> None:
        tenant = Pause(tenant="acme", scope="tenant", since=THEN, reason="Inventory", until=FAR)
        order = Pause(tenant="acme", scope="definition:order", since=THEN)
        first = await store.pause(tenant)
        second = await store.pause(order)
        assert second > first
        assert await store.pauses() == [order, tenant]
        assert await store.lift("acme", "tenant") > second
        assert await store.pauses() == [order]

    async def test_pausing_again_replaces_the_pause(self, store: Store) -> None:
        await store.pause(Pause(tenant="acme", scope="tenant", since=THEN, reason="Inventory"))
        again = Pause(tenant="acme", scope="tenant", since=THEN + DAY, reason="Fire")
        await store.pause(again)
        await store.pause(again)
        assert await store.pauses() == [again]

    async def test_lifting_what_is_not_paused_is_a_change_like_any_other(self, store: Store) -> None:
        first = await store.lift("acme", "tenant")
        assert await store.lift("acme", "tenant") > first
        assert await store.pauses() == []

    async def test_a_pause_ends_with_its_time(self, store: Store, pass_time: PassTime) -> None:
        now = (await store.join("clock", "here", DAY)).now
        await store.pause(Pause(tenant="acme", scope="tenant", since=now, until=now + TTL))
        assert len(await store.pauses()) == 1
        await pass_time(TTL + TTL)
        assert await store.pauses() == []
        await store.pause(Pause(tenant="acme", scope="tenant", since=now))
        assert len(await store.pauses()) == 1

    # --- outbox -----------------------------------------------------------------------------------

    async def test_the_outbox_is_read_in_order_behind_a_position(self, store: Store) -> None:
        sent = tuple(Outgoing("s", str(n).encode()) for n in range(6))
        await store.commit([born(outbox=sent)])
        rows = await store.outgoing("s", [(1, 0)], 10)
        assert [(row.stream, row.body) for row in rows] == [(out.stream, out.body) for out in sent]
        assert {(row.tenant, row.instance_id, row.shard, row.attempts, row.retry_at) for row in rows} == {
            ("acme", "i1", 1, 0, None)
        }
        assert await store.outgoing("s", [(1, rows[1].seq), (2, 0)], 2) == rows[2:4]
        assert await store.outgoing("s", [], 2) == []

    async def test_the_outbox_is_read_shard_by_shard_in_the_order_asked_for(self, store: Store) -> None:
        for shard in (1, 2):
            sent = tuple(Outgoing("s", f"{shard}{n}".encode()) for n in range(3))
            commit = born(f"i{shard}", outbox=sent)
            births = (msgspec.structs.replace(commit.births[0], shard=shard),)
            await store.commit([msgspec.structs.replace(commit, births=births)])
        rows = await store.outgoing("s", [(2, 0), (1, 0)], 2)
        assert [row.body for row in rows] == [b"20", b"21", b"10", b"11"]

    async def test_a_stream_sees_nothing_of_another(self, store: Store) -> None:
        sent = tuple(Outgoing(f"s{n % 2}", str(n).encode()) for n in range(6))
        await store.commit([born(outbox=sent)])
        rows = await store.outgoing("s1", [(1, 0)], 10)
        assert [row.body for row in rows] == [b"1", b"3", b"5"]
        await store.relayed(rows)
        assert await store.outgoing("s1", [(1, 0)], 10) == []
        assert [row.body for row in await store.outgoing("s0", [(1, 0)], 10)] == [b"0", b"2", b"4"]

    async def test_what_has_arrived_leaves_the_outbox(self, store: Store) -> None:
        await store.commit([born(outbox=tuple(Outgoing("s", str(n).encode()) for n in range(3)))])
        first, second, third = await store.outgoing("s", [(1, 0)], 10)
        await store.relayed([first, third])
        await store.relayed([first])
        await store.relayed([])
        assert await store.outgoing("s", [(1, 0)], 10) == [second]

    async def test_what_could_not_be_sent_is_counted_and_stays(self, store: Store) -> None:
        await store.commit([born(outbox=(Outgoing("s", b"1"), Outgoing("s", b"2")))])
        first, second = await store.outgoing("s", [(1, 0)], 10)
        await store.postpone_relay(first, FAR)
        await store.postpone_relay(first, FAR)
        again, other = await store.outgoing("s", [(1, 0)], 10)
        assert (again.seq, again.attempts, again.retry_at, other) == (first.seq, 2, FAR, second)

    async def test_a_place_is_not_a_position_in_the_outbox(self, store: Store) -> None:
        await store.commit([born(outbox=(Outgoing("s", b"1"),), messages=(envelope(),))])
        assert len(await store.outgoing("s", [(1, 0)], 10)) == 1
        assert len(await store.read([Place(1, Lane.ORDINARY, 0)], 10)) == 1
