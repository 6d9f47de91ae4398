"""What a store promises about requests from outside: durable, once, and guarded."""

import msgspec

from holdfast.commit import Answer, Commit, KeptStimulus
from holdfast.instance import SubStatus
from holdfast.store import (
    Activation,
    Admitted,
    InstanceExists,
    KeyReused,
    Posted,
    Posting,
    Refused,
    Repeated,
    Store,
)
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    TTL,
    PassTime,
    born,
    changed,
    child,
    columns,
    envelope,
    everything,
    kinds,
    start,
    start_of,
)


class IntakeConformance:
    """What a store promises about requests from outside: durable, once, and guarded."""

    async def test_what_was_admitted_exists_and_waits_in_the_inbox(self, store: Store) -> None:
        (verdict,) = await store.admit([start()])
        assert isinstance(verdict, Admitted)
        (loaded,) = await store.load([("acme", "i1")])
        assert (loaded.revision, loaded.state, loaded.columns.sub_status) == (0, None, SubStatus.PENDING)
        assert [d.place for d in await everything(store)] == [verdict.place]

    async def test_the_same_key_has_one_effect_and_one_answer(self, store: Store) -> None:
        (first,) = await store.admit([start("i1", key="k", request=b"r", expires=FAR)])
        (second,) = await store.admit([start("i2", key="k", request=b"r", expires=FAR)])
        assert isinstance(first, Admitted)
        assert second == Repeated("i1", None)
        assert len(await everything(store)) == 1
        await store.commit([changed(expects=0, answers=(Answer("k", b"42"),))])
        (third,) = await store.admit([start("i3", key="k", request=b"r", expires=FAR)])
        assert third == Repeated("i1", b"42")
        assert await store.answer("acme", "k") == b"42"

    async def test_one_key_twice_in_one_call_is_one_request(self, store: Store) -> None:
        both = [start(i, key="k", request=b"r", expires=FAR) for i in ("i1", "i2")]
        assert kinds(await store.admit(both)) == ["Admitted", "Repeated"]

    async def test_a_key_is_not_used_for_another_request(self, store: Store) -> None:
        await store.admit([start("i1", key="k", request=b"r", expires=FAR)])
        (verdict,) = await store.admit([start("i2", key="k", request=b"other", expires=FAR)])
        assert isinstance(verdict, KeyReused)

    async def test_a_key_of_another_tenant_is_another_key(self, store: Store) -> None:
        await store.admit([start("i1", key="k", request=b"r", expires=FAR)])
        foreign = start("i2", key="k", request=b"other", expires=FAR)
        foreign = msgspec.structs.replace(foreign, message=envelope("i2", tenant="other", kind="start"))
        assert kinds(await store.admit([foreign])) == ["Admitted"]

    async def test_a_key_that_has_expired_is_free_again(self, store: Store, pass_time: PassTime) -> None:
        now = (await store.join("clock", "here", TTL)).now
        await store.admit([start("i1", key="k", request=b"r", expires=now + TTL)])
        await pass_time(TTL + TTL)
        assert kinds(await store.admit([start("i2", key="k", request=b"other", expires=FAR)])) == ["Admitted"]

    async def test_an_id_that_exists_is_refused_and_hinders_nobody(self, store: Store) -> None:
        await store.admit([start("i1")])
        verdicts = await store.admit([start("i1"), start("i2")])
        assert isinstance(verdicts[0], InstanceExists)
        assert isinstance(verdicts[1], Admitted)

    async def test_of_guarded_starts_one_gets_in(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        assert kinds(await store.admit([start("i1", activations=(guard,))])) == ["Admitted"]
        assert await store.admit([start("i2", activations=(guard,))]) == [Refused("i1")]
        assert await store.load([("acme", "i2")]) == []

    async def test_an_open_instance_forbids_a_guarded_start(self, store: Store) -> None:
        await store.commit([born("old")])
        guard = Activation(key="singleton order", definition_id="order")
        assert await store.admit([start("i1", activations=(guard,))]) == [Refused("old")]
        elsewhere = Activation(key="singleton invoice", definition_id="invoice")
        assert kinds(await store.admit([start("i2", activations=(elsewhere,))])) == ["Admitted"]

    async def test_a_correlated_guard_asks_for_the_correlation_as_it_is_now(self, store: Store) -> None:
        await store.commit([born("old")])
        guard = Activation(key="c1", correlation_id="c1")
        await store.commit([changed("old", columns=columns(correlation_id="c1"))])
        assert await store.admit([start("i1", activations=(guard,))]) == [Refused("old")]

    async def test_whoever_ends_frees_its_key(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.admit([start("i1", activations=(guard,))])
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(expects=0, columns=ended, frees_activations=True)])
        assert kinds(await store.admit([start("i2", activations=(guard,))])) == ["Admitted"]

    async def test_a_refusal_is_the_answer_of_its_key(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.admit([start("i1", activations=(guard,))])
        asked = start("i2", activations=(guard,), key="k", request=b"r", expires=FAR)
        assert await store.admit([asked]) == [Refused("i1")]
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(expects=0, columns=ended, frees_activations=True)])
        assert await store.admit([asked]) == [Refused("i1")]

    async def test_a_guard_without_a_look_asks_for_its_key_alone(self, store: Store) -> None:
        await store.commit([born("old")])
        guard = Activation(key="every minute", looks=False)
        assert kinds(await store.admit([start("i1", activations=(guard,))])) == ["Admitted"]
        assert await store.admit([start("i2", activations=(guard,))]) == [Refused("i1")]

    async def test_of_several_guards_the_first_that_refuses_speaks_and_no_key_is_taken(
        self, store: Store
    ) -> None:
        free, taken, taken_too = (Activation(key=key, looks=False) for key in ("free", "taken", "taken too"))
        await store.admit([start("i1", activations=(taken,)), start("i2", activations=(taken_too,))])
        refused = start("i3", activations=(free, taken, taken_too))
        assert await store.admit([refused]) == [Refused("i1")]
        assert kinds(await store.admit([start("i4", activations=(free,))])) == ["Admitted"]

    async def test_a_start_may_have_several_keys_and_frees_them_all(self, store: Store) -> None:
        guards = tuple(Activation(key=key, looks=False) for key in ("a", "b"))
        await store.admit([start("i1", activations=guards)])
        assert await store.admit([start("i2", activations=guards[1:])]) == [Refused("i1")]
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(expects=0, columns=ended, frees_activations=True)])
        assert kinds(await store.admit([start("i2", activations=guards)])) == ["Admitted"]

    async def test_refused_and_admitted_ones_share_a_call(self, store: Store) -> None:
        guard = Activation(key="one", looks=False)
        asked = [
            start("i1"),
            start("i2", activations=(guard,)),
            start("i3", key="k", request=b"r"),
            start("i4", activations=(guard,)),
            start("i1"),
            start("i5"),
        ]
        verdicts = await store.admit(asked)
        assert kinds(verdicts) == [
            "Admitted",
            "Admitted",
            "Admitted",
            "Refused",
            "InstanceExists",
            "Admitted",
        ]
        places = [verdict.place for verdict in verdicts if isinstance(verdict, Admitted)]
        found = {d.place: d.envelope.instance_id for d in await everything(store)}
        assert [found[place] for place in places] == ["i1", "i2", "i3", "i5"]

    async def test_a_child_takes_its_keys_after_it_was_born(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.admit([child("c1"), child("c2")])
        assert await store.activate("acme", "c1", [guard]) is None
        assert await store.activate("acme", "c1", [guard]) is None
        assert await store.activate("acme", "c2", [guard]) == Refused("c1")
        assert await store.admit([start("i1", activations=(guard,))]) == [Refused("c1")]

    async def test_those_born_by_one_commit_do_not_forbid_each_other_before_they_ask(
        self, store: Store
    ) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        births = tuple(birth for name in ("i1", "i2") if (birth := start(name).birth) is not None)
        await store.commit([Commit(turn="t", tenant="acme", instance_id="i1", births=births)])
        assert await store.activate("acme", "i2", [guard]) is None
        assert await store.activate("acme", "i1", [guard]) == Refused("i2")

    async def test_one_that_has_ended_or_is_gone_takes_no_keys_any_more(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.commit([born("i1")])
        over = columns(finished_at=THEN, sub_status=SubStatus.FINISHED)
        await store.commit([changed("i1", columns=over, frees_activations=True)])
        assert await store.activate("acme", "i1", [guard]) == Refused("i1")
        assert await store.activate("acme", "never", [guard]) == Refused("never")
        assert kinds(await store.admit([start("i2", activations=(guard,))])) == ["Admitted"]

    async def test_whoever_has_begun_forbids_a_child_and_so_does_one_without_a_parent(
        self, store: Store
    ) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.admit([child("c1")])
        await store.commit([born("begun")])
        assert await store.activate("acme", "c1", [guard]) == Refused("begun")
        elsewhere = Activation(key="singleton invoice", definition_id="invoice")
        await store.admit([child("c2", definition_id="invoice"), start_of("invoice", "waiting")])
        assert await store.activate("acme", "c2", [elsewhere]) == Refused("waiting")

    async def test_a_child_that_is_refused_one_key_has_none(self, store: Store) -> None:
        free, taken = (Activation(key=key, looks=False) for key in ("free", "taken"))
        await store.admit([start("i1", activations=(taken,)), child("c1")])
        assert await store.activate("acme", "c1", [free, taken]) == Refused("i1")
        assert kinds(await store.admit([start("i2", activations=(free,))])) == ["Admitted"]

    async def test_a_posting_is_written_whole(self, store: Store) -> None:
        kept = KeptStimulus(id="s", tenant="acme", key="k", payload=b"{}", expires=FAR)
        posting = Posting(
            tenant="acme", starts=(start("i1"),), messages=(envelope("i2"), envelope("i3")), keep=kept
        )
        posted = await store.post(posting)
        assert isinstance(posted, Posted)
        assert kinds(list(posted.verdicts)) == ["Admitted"]
        (verdict,) = posted.verdicts
        assert isinstance(verdict, Admitted)
        found = {d.place: d.envelope.instance_id for d in await everything(store)}
        assert [found[place] for place in (verdict.place, *posted.places)] == ["i1", "i2", "i3"]
        assert [stimulus.id for stimulus in await store.kept("acme", ["k"])] == ["s"]

    async def test_a_start_that_is_refused_does_not_hinder_a_posting(self, store: Store) -> None:
        guard = Activation(key="one", looks=False)
        await store.admit([start("i1", activations=(guard,))])
        starts = (start("i2", activations=(guard,)), start("i1"), start("i3"))
        posted = await store.post(Posting(tenant="acme", starts=starts, messages=(envelope("i1"),)))
        assert isinstance(posted, Posted)
        assert kinds(list(posted.verdicts)) == ["Refused", "InstanceExists", "Admitted"]
        assert len(posted.places) == 1

    async def test_a_posting_repeated_under_its_key_has_one_effect(self, store: Store) -> None:
        posting = Posting(
            tenant="acme", messages=(envelope(),), key="k", request=b"r", expires=FAR, answer=b'{"hit":1}'
        )
        assert kinds([await store.post(posting)]) == ["Posted"]
        assert await store.post(posting) == Repeated("", b'{"hit":1}')
        assert kinds([await store.post(msgspec.structs.replace(posting, request=b"other"))]) == ["KeyReused"]
        assert await store.answer("acme", "k") == b'{"hit":1}'
        assert len(await everything(store)) == 1

    async def test_keys_whose_life_is_over_are_forgotten_a_few_at_a_time(
        self, store: Store, pass_time: PassTime
    ) -> None:
        now = (await store.join("clock", "here", TTL)).now
        await store.admit([start(f"i{n}", key=f"k{n}", request=b"r", expires=now + TTL) for n in range(3)])
        await store.admit([start("i4", key="k4", request=b"r", expires=FAR)])
        await store.admit([start("i5", key="k5", request=b"r")])
        assert await store.forget_keys(10) == 0
        await pass_time(TTL + TTL)
        assert [await store.forget_keys(2) for _ in range(3)] == [2, 1, 0]
        again = [start(f"again{n}", key=f"k{n}", request=b"r") for n in (4, 5)]
        assert kinds(await store.admit(again)) == ["Repeated", "Repeated"]

    async def test_of_many_starts_under_one_key_the_first_is_admitted(self, store: Store) -> None:
        guard = Activation(key="only one", looks=False)
        others = [Activation(key=f"its own {n}", looks=False) for n in range(3)]
        wanted = [
            start("i0", activations=(guard,)),
            *(start(f"i{n + 1}", activations=(others[n],)) for n in range(3)),
            start("i4", activations=(guard,)),
            start("i5"),
        ]
        verdicts = await store.admit(wanted)
        assert kinds(verdicts) == ["Admitted", "Admitted", "Admitted", "Admitted", "Refused", "Admitted"]
        assert verdicts[4] == Refused("i0")
        assert [len(await store.load([("acme", f"i{n}")])) for n in (4, 5)] == [0, 1]
