"""What a store promises about messages that wait, and those that wait for a time."""

from datetime import timedelta

from holdfast.commit import (
    Birth,
    Commit,
    InHand,
    Lane,
    Place,
    Then,
    Timer,
)
from holdfast.store import (
    Committed,
    Store,
)
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    born,
    changed,
    columns,
    envelope,
    everything,
    kinds,
)


class InboxConformance:
    """What a store promises about messages that wait, and those that wait for a time."""

    async def test_messages_are_read_in_the_order_they_were_sent(self, store: Store) -> None:
        sent = tuple(envelope(payload=str(n).encode()) for n in range(20))
        (committed,) = await store.commit([born(messages=sent)])
        assert isinstance(committed, Committed)
        found = await everything(store)
        assert [d.envelope for d in found] == list(sent)
        assert tuple(d.place for d in found) == committed.places
        assert list(committed.places) == sorted(committed.places)

    async def test_reading_goes_on_behind_a_position_and_stops_at_the_limit(self, store: Store) -> None:
        (committed,) = await store.commit([born(messages=tuple(envelope() for _ in range(5)))])
        assert isinstance(committed, Committed)
        found = await store.read([committed.places[1]], 2)
        assert tuple(d.place for d in found) == committed.places[2:4]

    async def test_each_shard_and_lane_is_read_by_itself(self, store: Store) -> None:
        sent = (envelope(shard=1), envelope(shard=2), envelope(shard=1, lane=Lane.CONTROL))
        await store.commit([born(messages=sent)])
        found = await store.read([Place(1, Lane.CONTROL, 0), Place(2, Lane.ORDINARY, 0)], 10)
        assert {(d.envelope.shard, d.envelope.lane) for d in found} == {(1, Lane.CONTROL), (2, Lane.ORDINARY)}

    async def test_every_position_asked_for_has_a_limit_of_its_own(self, store: Store) -> None:
        sent = tuple(envelope(shard=shard) for shard in (1, 2, 3) for _ in range(3))
        (committed,) = await store.commit([born(messages=sent)])
        assert isinstance(committed, Committed)
        found = await store.read([Place(3, 1, 0), Place(1, 1, committed.places[0].seq), Place(9, 1, 0)], 2)
        assert sorted(d.place for d in found if d.place) == [*committed.places[1:3], *committed.places[6:8]]

    async def test_who_asks_for_nothing_finds_nothing(self, store: Store) -> None:
        await store.commit([born(messages=(envelope(),), timers=(Timer(id="t", due=THEN, kind="resume"),))])
        assert (await store.read([], 10), await store.due([], FAR, 10)) == ([], [])
        assert await store.commit([]) == []

    async def test_timers_of_many_shards_are_found_nearest_first(self, store: Store) -> None:
        def near(name: str, shard: int, *seconds: int) -> Commit:
            timers = tuple(
                Timer(id=str(n), due=THEN + timedelta(seconds=n), kind="resume", payload=b"1", trace="t")
                for n in seconds
            )
            birth = Birth(instance_id=name, shard=shard, columns=columns(), state=b"{}", timers=timers)
            return Commit(turn="t", tenant="acme", instance_id=name, births=(birth,))

        await store.commit([near("i1", 1, 5, 1), near("i2", 2, 2, 4), near("i3", 3, 3)])
        found = await store.due([1, 2], FAR, 3)
        assert [(d.envelope.shard, d.timer) for d in found] == [(1, "1"), (2, "2"), (2, "4")]
        assert {(d.envelope.payload, d.envelope.trace, d.attempts) for d in found} == {(b"1", "t", 0)}

    async def test_a_consumed_message_is_gone(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(), envelope()))])
        assert isinstance(first, Committed)
        await store.commit([changed(in_hand=(InHand(Then.CONSUME, place=first.places[0]),))])
        assert [d.place for d in await everything(store)] == [first.places[1]]

    async def test_the_first_checkpoint_turns_its_message_into_a_continue_in_place(
        self, store: Store
    ) -> None:
        (first,) = await store.commit([born(messages=(envelope(payload=b"applied"),))])
        assert isinstance(first, Committed)
        (delivery,) = await everything(store)
        await store.postpone(delivery, FAR, "went wrong before")
        (second,) = await store.commit([changed(in_hand=(InHand(Then.CONTINUE, place=first.places[0]),))])
        assert isinstance(second, Committed)
        (delivery,) = await everything(store)
        assert (delivery.place, second.continued) == (first.places[0], first.places[0])
        assert (delivery.envelope.kind, delivery.envelope.payload) == ("continue", None)
        assert (delivery.attempts, delivery.deaths, delivery.retry_at) == (0, 0, None)

    async def test_a_message_that_became_a_continue_is_not_the_one_that_was_read(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(),))])
        assert isinstance(first, Committed)
        place = first.places[0]
        await store.commit([changed(in_hand=(InHand(Then.CONTINUE, place=place, kind="resume"),))])
        late = changed(expects=2, in_hand=(InHand(Then.CONSUME, place=place, kind="resume"),))
        assert kinds(await store.commit([late])) == ["StaleTurn"]
        onward = changed(expects=2, in_hand=(InHand(Then.CONSUME, place=place, kind="continue"),))
        assert kinds(await store.commit([onward])) == ["Committed"]

    async def test_a_run_without_a_message_gets_one_at_its_first_checkpoint(self, store: Store) -> None:
        (committed,) = await store.commit([born(in_hand=(InHand(Then.CONTINUE),))])
        assert isinstance(committed, Committed)
        (delivery,) = await everything(store)
        assert (delivery.place, delivery.envelope.kind) == (committed.continued, "continue")

    async def test_an_attempt_that_failed_is_counted_and_says_why(self, store: Store) -> None:
        await store.commit([born(messages=(envelope(),))])
        (delivery,) = await everything(store)
        await store.postpone(delivery, FAR, "no such type")
        await store.postpone(delivery, FAR, "still none")
        (again,) = await everything(store)
        assert (again.attempts, again.retry_at, again.error) == (2, FAR, "still none")

    async def test_deaths_are_counted_for_what_is_still_there(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(), envelope()))])
        assert isinstance(first, Committed)
        both = await everything(store)
        await store.commit([changed(in_hand=(InHand(Then.CONSUME, place=first.places[0]),))])
        assert [(d.place, d.deaths) for d in await store.count_deaths(both)] == [(first.places[1], 1)]
        assert [d.deaths for d in await store.count_deaths(both)] == [2]

    async def test_a_place_is_never_used_twice(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(),))])
        assert isinstance(first, Committed)
        in_hand = (InHand(Then.CONSUME, place=first.places[0]),)
        (second,) = await store.commit([changed(in_hand=in_hand, messages=(envelope(),))])
        assert isinstance(second, Committed)
        assert second.places[0] > first.places[0]

    async def test_timers_are_found_when_they_are_due_nearest_first(self, store: Store) -> None:
        timers = tuple(
            Timer(id=str(n), due=THEN + timedelta(seconds=n, microseconds=n), kind="resume")
            for n in (3, 1, 2)
        )
        await store.commit([born(timers=timers)])
        found = await store.due([1], THEN + timedelta(seconds=2, microseconds=2), 10)
        assert [(d.timer, d.due) for d in found] == [(t.id, t.due) for t in (timers[1], timers[2])]
        assert [d.timer for d in await store.due([1], FAR, 1)] == ["1"]
        assert await store.due([2], FAR, 10) == []

    async def test_a_timer_is_deleted_by_the_turn_it_caused(self, store: Store) -> None:
        await store.commit([born(timers=(Timer(id="t", due=THEN, kind="resume"),))])
        in_hand = (InHand(Then.CONSUME, timer="t"),)
        assert kinds(await store.commit([changed(in_hand=in_hand)])) == ["Committed"]
        assert await store.due([1], FAR, 10) == []
        assert kinds(await store.commit([changed(expects=2, in_hand=in_hand)])) == ["StaleTurn"]

    async def test_a_timer_that_was_withdrawn_is_not_due(self, store: Store) -> None:
        await store.commit([born(timers=(Timer(id="t", due=THEN, kind="resume"),))])
        await store.commit([changed(timers_gone=("t",))])
        assert await store.due([1], FAR, 10) == []

    async def test_a_timer_goes_on_in_the_inbox_after_a_checkpoint(self, store: Store) -> None:
        await store.commit([born(timers=(Timer(id="t", due=THEN, kind="resume"),))])
        (committed,) = await store.commit([changed(in_hand=(InHand(Then.CONTINUE, timer="t"),))])
        assert isinstance(committed, Committed)
        assert await store.due([1], FAR, 10) == []
        (delivery,) = await everything(store)
        assert (delivery.place, delivery.envelope.kind) == (committed.continued, "continue")
