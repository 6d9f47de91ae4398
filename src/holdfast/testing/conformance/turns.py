"""What a store promises about instances and the turns that change them."""

from typing import Any

import msgspec

from holdfast.commit import (
    Answer,
    Birth,
    Commit,
    DeadLetter,
    InHand,
    KeptStimulus,
    Outgoing,
    Segment,
    Task,
    Then,
    Timer,
    Wait,
)
from holdfast.instance import SubStatus
from holdfast.store import Activation, Committed, Store
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    born,
    changed,
    columns,
    envelope,
    everything,
    kinds,
    start,
)

SEGMENT = Segment(sequence=0, records=3, version=1, summary=b"{}", body=b"\x00\xffrecords")


class TurnsConformance:
    """What a store promises about instances and the turns that change them."""

    async def test_a_commit_is_what_the_next_load_returns(self, store: Store) -> None:
        await store.commit([born()])
        about = columns(correlation_id="c", name="n", incident_count=2, is_paused=True)
        await store.commit([changed(state=b'{"a":"\\u0000"}', columns=about)])
        (loaded,) = await store.load([("acme", "i1")])
        assert (loaded.revision, loaded.state, loaded.columns) == (2, b'{"a":"\\u0000"}', about)
        assert (loaded.shard, loaded.turn) == (1, "i1 from 1")

    async def test_text_comes_back_whatever_is_in_it(self, store: Store) -> None:
        state = """{"a": "'; -- %s %% \\\\ \\" ` $1 ? 漢 😀"}""".encode()
        await store.commit([born()])
        about = columns(name='it\'s \\ 100 % "漢"', correlation_id="o'clock \\")
        await store.commit([changed(state=state, columns=about, messages=(envelope(payload=state),))])
        (loaded,) = await store.load([("acme", "i1")])
        assert (loaded.state, loaded.columns) == (state, about)
        assert [d.envelope.payload for d in await everything(store)] == [state]

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
        assert kinds(await store.commit([changed(expects=7), changed(expects=2)])) == [
            "StaleTurn",
            "StaleTurn",
        ]

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
        assert kinds(await store.commit([born()])) == ["Unwritable"]

    async def test_tenants_with_the_same_ids_never_meet(self, store: Store) -> None:
        other = msgspec.structs.replace(born(), tenant="other")
        assert kinds(await store.commit([born(), other])) == ["Committed", "Committed"]
        await store.commit([changed(state=b'"acme"')])
        (loaded,) = await store.load([("other", "i1")])
        assert (loaded.state, loaded.revision) == (b"{}", 1)

    async def test_instances_are_found_where_they_live(self, store: Store) -> None:
        far = Birth(instance_id="far", shard=7, columns=columns())
        await store.commit([born()])
        await store.commit([changed(births=(far,))])
        found = await store.shards("acme", ["far", "i1", "ghost"])
        assert dict(found) == {"i1": 1, "far": 7}
        assert dict(await store.shards("other", ["i1"])) == {}
        assert dict(await store.shards("acme", [])) == {}

    async def test_many_are_loaded_at_once(self, store: Store) -> None:
        names = [f"i{n}" for n in range(150)]
        await store.commit([born(name) for name in names])
        found = await store.load([("acme", name) for name in [*names, "ghost"]])
        assert sorted(loaded.instance_id for loaded in found) == sorted(names)
        assert await store.load([]) == []

    async def test_a_large_group_is_written_whole(self, store: Store) -> None:
        names = [f"i{n}" for n in range(120)]
        await store.commit([born(name, messages=(envelope(name),)) for name in names])
        places = {d.envelope.instance_id: d.place for d in await everything(store)}
        stale = {"i7", "i63"}
        group = [
            changed(
                name,
                expects=9 if name in stale else 1,
                state=f'"{name}"'.encode(),
                in_hand=(InHand(Then.CONSUME, place=places[name]),),
                messages=(envelope(name, payload=b"1"), envelope(name, payload=b"2")),
            )
            for name in names
        ]
        outcomes = await store.commit(group)
        assert {names[n] for n, kind in enumerate(kinds(outcomes)) if kind == "StaleTurn"} == stale
        found = {d.place: (d.envelope.instance_id, d.envelope.payload) for d in await everything(store)}
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, Committed):
                assert [found[place] for place in outcome.places] == [(name, b"1"), (name, b"2")]
        assert len(found) == 2 * (len(names) - len(stale)) + len(stale)

    async def test_a_key_that_is_taken_fails_its_turn_alone(self, store: Store) -> None:
        await store.commit([born("taken"), *(born(f"i{n}") for n in range(5))])
        newborn = Birth(instance_id="taken", shard=1, columns=columns())
        group = [
            changed(f"i{n}", births=(newborn,) if n == 3 else (), messages=(envelope(f"i{n}"),))
            for n in range(5)
        ]
        outcomes = await store.commit(group)
        assert kinds(outcomes) == ["Committed", "Committed", "Committed", "Unwritable", "Committed"]
        assert len(await everything(store)) == 4

    async def test_one_message_is_not_in_hand_twice(self, store: Store) -> None:
        (first, _) = await store.commit([born(messages=(envelope(),)), born("i2")])
        assert isinstance(first, Committed)
        in_hand = (InHand(Then.CONSUME, place=first.places[0]),)
        group = [changed(in_hand=in_hand), changed("i2", in_hand=in_hand)]
        assert kinds(await store.commit(group)) == ["Committed", "StaleTurn"]

    async def test_background_work_waits_until_somebody_does_it(self, store: Store) -> None:
        await store.commit([born(tasks=(Task(1, b'"one"'), Task(2, b'"two"')))])
        found = await store.idle_attempts([1], 10)
        assert sorted((a.execution, a.number, a.payload) for a in found) == [
            (1, 0, b'"one"'),
            (2, 0, b'"two"'),
        ]
        assert {(a.tenant, a.instance_id, a.shard) for a in found} == {("acme", "i1", 1)}

    async def test_background_work_that_nobody_wants_any_more_is_gone(self, store: Store) -> None:
        await store.commit([born(tasks=(Task(1, b"{}"), Task(2, b"{}")))])
        await store.commit([changed(tasks_gone=(1, 7))])
        assert [a.execution for a in await store.idle_attempts([1], 10)] == [2]

    async def test_an_inline_child_is_born_with_all_it_waits_for(self, store: Store) -> None:
        await store.commit([born()])
        newborn = Birth(
            instance_id="child",
            shard=1,
            columns=columns(parent_id="i1", correlation_id="c"),
            state=b'"waits"',
            timers=(Timer(id="t", due=THEN, kind="resume", payload=b"1"),),
            waits=(Wait("b", "k"),),
            tasks=(Task(4, b"{}"),),
            journal=(SEGMENT,),
        )
        mine = Segment(sequence=5, records=1, version=1, summary=b"{}", body=b"mine")
        await store.commit([changed(births=(newborn,), waits=(Wait("b", "k"),), journal=(mine,))])
        (loaded,) = await store.load([("acme", "child")])
        assert (loaded.revision, loaded.state, loaded.turn) == (1, b'"waits"', "i1 from 1")
        waiting = (await store.find("acme", "k"))[1]
        assert sorted((w.instance_id, w.bookmark_id, w.correlation_id) for w in waiting) == [
            ("child", "b", "c"),
            ("i1", "b", None),
        ]
        (timer,) = await store.due([1], FAR, 10)
        assert (timer.envelope.instance_id, timer.timer, timer.envelope.payload) == ("child", "t", b"1")
        assert [(a.instance_id, a.execution) for a in await store.idle_attempts([1], 10)] == [("child", 4)]
        assert await store.journal_of("acme", "child") == [SEGMENT]
        assert await store.journal_of("acme", "i1") == [mine]

    async def test_a_deleted_instance_goes_with_all_that_belongs_to_it(self, store: Store) -> None:
        guard = Activation(key="one", looks=False)
        kept = KeptStimulus(id="s", tenant="acme", key="k", payload=b"{}", expires=FAR, instance_id="i1")
        others = msgspec.structs.replace(kept, id="other", instance_id="i2")
        belongings: dict[str, Any] = {
            "timers": (Timer(id="t", due=THEN, kind="resume"),),
            "waits": (Wait("b", "k"),),
            "tasks": (Task(1, b"{}"),),
            "journal": (SEGMENT,),
        }
        await store.admit([start("i1", activations=(guard,))])
        await store.commit(
            [changed(expects=0, put_back=(kept, others), **belongings), born("i2", **belongings)]
        )
        (place,) = [d.place for d in await everything(store)]
        in_hand = (InHand(Then.CONSUME, place=place),)
        gone = changed(
            deletes=True, in_hand=in_hand, messages=(envelope("parent"),), outbox=(Outgoing("s", b"{}"),)
        )
        stale = msgspec.structs.replace(gone, change=changed(expects=7).change)
        assert kinds(await store.commit([stale])) == ["StaleTurn"]
        assert kinds(await store.commit([gone])) == ["Committed"]
        assert [loaded.instance_id for loaded in await store.load([("acme", "i1"), ("acme", "i2")])] == ["i2"]
        assert [w.instance_id for w in (await store.find("acme", "k"))[1]] == ["i2"]
        assert [d.envelope.instance_id for d in await store.due([1], FAR, 10)] == ["i2"]
        assert [a.instance_id for a in await store.idle_attempts([1], 10)] == ["i2"]
        assert [stimulus.id for stimulus in await store.kept("acme", ["k"])] == ["other"]
        assert await store.journal_of("acme", "i1") == []
        assert await store.journal_of("acme", "i2") == [SEGMENT]
        assert [d.envelope.instance_id for d in await everything(store)] == ["parent"]
        assert kinds(await store.admit([start("i3", activations=(guard,)), start("i1")])) == ["Admitted"] * 2

    async def test_what_has_ended_may_be_deleted(self, store: Store) -> None:
        await store.commit([born()])
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(columns=ended)])
        assert kinds(await store.commit([changed(expects=2, deletes=True)])) == ["Committed"]
        assert await store.load([("acme", "i1")]) == []

    async def test_a_dead_letter_remembers_when_its_message_was_sent(self, store: Store) -> None:
        letter = DeadLetter(
            id="l",
            envelope=envelope(kind="start", payload=b'"x"', reply="r", trace="t"),
            error="no such type",
            attempts=8,
            deaths=1,
            at=FAR,
            sent_at=THEN,
        )
        await store.commit([born(dead_letters=(letter,))])
        found = await store.dead_letter("acme", "l")
        assert (found.error, found.attempts, found.deaths, found.at, found.sent_at) == (
            "no such type",
            8,
            1,
            FAR,
            THEN,
        )
        assert (found.envelope.payload, found.envelope.reply, found.envelope.trace) == (b'"x"', "r", "t")

    async def test_a_stimulus_put_back_remembers_who_it_is_for_and_since_when(self, store: Store) -> None:
        kept = KeptStimulus(
            id="s",
            tenant="acme",
            key="k",
            payload=b"{}",
            expires=FAR,
            instance_id="i1",
            correlation_id="c",
            only=True,
            tries=3,
            sent_at=THEN,
        )
        await store.commit([born(put_back=(kept,))])
        assert await store.kept("acme", ["k"]) == [kept]

    async def test_an_answer_to_nobody_is_no_hindrance(self, store: Store) -> None:
        assert kinds(await store.commit([born(answers=(Answer("never asked", b"{}"),))])) == ["Committed"]
        assert await store.answer("acme", "never asked") is None

    async def test_what_a_turn_publishes_lies_in_the_outbox_in_its_order(self, store: Store) -> None:
        outbox = tuple(Outgoing("orders", str(n).encode()) for n in range(5))
        await store.commit([born(outbox=outbox)])
        found = await store.outgoing("orders", [(1, 0)], 10)
        assert [row.body for row in found] == [out.body for out in outbox]
        assert {(row.tenant, row.instance_id, row.stream) for row in found} == {("acme", "i1", "orders")}
