"""What a store promises about instances and the turns that change them."""

import msgspec

from holdfast.commit import (
    Birth,
    Commit,
    InHand,
    Then,
    Timer,
    Wait,
)
from holdfast.instance import SubStatus
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


class TurnsConformance:
    """What a store promises about instances and the turns that change them."""

    async def test_a_commit_is_what_the_next_load_returns(self, store: Store) -> None:
        await store.commit([born()])
        about = columns(correlation_id="c", name="n", incident_count=2, is_paused=True)
        await store.commit([changed(state=b'{"a":"\\u0000"}', columns=about)])
        (loaded,) = await store.load([("acme", "i1")])
        assert (loaded.revision, loaded.state, loaded.columns) == (2, b'{"a":"\\u0000"}', about)
        assert (loaded.shard, loaded.turn) == (1, "i1 from 1")

    async def test_what_does_not_exist_is_not_loaded(self, store: Store) -> None:
        await store.commit([born()])
        assert await store.load([("acme", "i2"), ("other", "i1")]) == []

    async def test_of_two_turns_from_one_revision_only_the_first_counts(self, store: Store) -> None:
        await store.commit([born()])
        await store.commit([changed(state=b'"first"')])
        outcomes = await store.commit([changed(state=b'"second"'), born("i2")])
        assert kinds(outcomes) == ["StaleTurn", "Committed"]
        (loaded,) = await store.load([("acme", "i1")])
        assert (loaded.state, loaded.revision) == (b'"first"', 2)

    async def test_two_turns_of_one_instance_do_not_share_a_group(self, store: Store) -> None:
        await store.commit([born()])
        assert kinds(await store.commit([changed(), changed(expects=2)])) == ["Committed", "StaleTurn"]

    async def test_a_stale_turn_writes_nothing_at_all(self, store: Store) -> None:
        await store.commit([born()])
        lost = changed(
            expects=7,
            messages=(envelope(),),
            timers=(Timer(id="t", due=THEN, kind="resume"),),
            waits=(Wait("b", "k"),),
            births=(Birth(instance_id="child", shard=1, columns=columns()),),
        )
        assert kinds(await store.commit([lost])) == ["StaleTurn"]
        assert await everything(store) == []
        assert await store.due([1], FAR, 10) == []
        assert (await store.find("acme", "k"))[1] == []
        assert await store.load([("acme", "child")]) == []

    async def test_a_turn_whose_message_is_gone_is_stale(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(),))])
        assert isinstance(first, Committed)
        in_hand = (InHand(Then.CONSUME, place=first.places[0]),)
        assert kinds(await store.commit([changed(in_hand=in_hand)])) == ["Committed"]
        assert kinds(await store.commit([changed(expects=2, in_hand=in_hand)])) == ["StaleTurn"]

    async def test_a_checkpoint_proves_that_its_message_is_still_there(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(),))])
        assert isinstance(first, Committed)
        place = first.places[0]
        await store.commit([changed(in_hand=(InHand(Then.CONSUME, place=place),))])
        kept = changed(expects=2, in_hand=(InHand(Then.KEEP, place=place),))
        assert kinds(await store.commit([kept])) == ["StaleTurn"]

    async def test_an_instance_that_has_ended_does_not_change(self, store: Store) -> None:
        await store.commit([born()])
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(columns=ended)])
        assert kinds(await store.commit([changed(expects=2)])) == ["StaleTurn"]

    async def test_a_message_that_comes_too_late_is_consumed_without_a_change(self, store: Store) -> None:
        (first,) = await store.commit([born(messages=(envelope(),))])
        assert isinstance(first, Committed)
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(columns=ended)])
        in_hand = (InHand(Then.CONSUME, place=first.places[0]),)
        late = Commit(turn="late", tenant="acme", instance_id="i1", in_hand=in_hand)
        assert kinds(await store.commit([late])) == ["Committed"]
        assert kinds(await store.commit([late])) == ["StaleTurn"]
        assert await everything(store) == []
        (loaded,) = await store.load([("acme", "i1")])
        assert (loaded.revision, loaded.turn) == (2, "i1 from 1")

    async def test_only_an_operator_reopens_what_has_ended(self, store: Store) -> None:
        await store.commit([born()])
        await store.commit([changed(columns=columns(sub_status=SubStatus.FAULTED, finished_at=THEN))])
        assert kinds(await store.commit([changed(expects=2, reopens=True)])) == ["Committed"]
        (loaded,) = await store.load([("acme", "i1")])
        assert loaded.columns.finished_at is None

    async def test_a_change_of_what_does_not_exist_is_stale(self, store: Store) -> None:
        assert kinds(await store.commit([changed("ghost")])) == ["StaleTurn"]

    async def test_an_id_is_born_once(self, store: Store) -> None:
        await store.commit([born()])
        assert kinds(await store.commit([born()])) == ["StaleTurn"]

    async def test_tenants_with_the_same_ids_never_meet(self, store: Store) -> None:
        other = msgspec.structs.replace(born(), tenant="other")
        assert kinds(await store.commit([born(), other])) == ["Committed", "Committed"]
        await store.commit([changed(state=b'"acme"')])
        (loaded,) = await store.load([("other", "i1")])
        assert (loaded.state, loaded.revision) == (b"{}", 1)
