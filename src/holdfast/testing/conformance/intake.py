"""What a store promises about requests from outside: durable, once, and guarded."""

import msgspec

from holdfast.commit import (
    Answer,
)
from holdfast.instance import SubStatus
from holdfast.store import (
    Activation,
    Admitted,
    InstanceExists,
    KeyReused,
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
    columns,
    envelope,
    everything,
    kinds,
    start,
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
        assert kinds(await store.admit([start("i1", activation=guard)])) == ["Admitted"]
        assert await store.admit([start("i2", activation=guard)]) == [Refused("i1")]
        assert await store.load([("acme", "i2")]) == []

    async def test_an_open_instance_forbids_a_guarded_start(self, store: Store) -> None:
        await store.commit([born("old")])
        guard = Activation(key="singleton order", definition_id="order")
        assert await store.admit([start("i1", activation=guard)]) == [Refused("old")]
        elsewhere = Activation(key="singleton invoice", definition_id="invoice")
        assert kinds(await store.admit([start("i2", activation=elsewhere)])) == ["Admitted"]

    async def test_a_correlated_guard_asks_for_the_correlation_as_it_is_now(self, store: Store) -> None:
        await store.commit([born("old")])
        guard = Activation(key="c1", correlation_id="c1")
        await store.commit([changed("old", columns=columns(correlation_id="c1"))])
        assert await store.admit([start("i1", activation=guard)]) == [Refused("old")]

    async def test_whoever_ends_frees_its_key(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.admit([start("i1", activation=guard)])
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(expects=0, columns=ended, frees_activations=True)])
        assert kinds(await store.admit([start("i2", activation=guard)])) == ["Admitted"]

    async def test_a_refusal_is_the_answer_of_its_key(self, store: Store) -> None:
        guard = Activation(key="singleton order", definition_id="order")
        await store.admit([start("i1", activation=guard)])
        asked = start("i2", activation=guard, key="k", request=b"r", expires=FAR)
        assert await store.admit([asked]) == [Refused("i1")]
        ended = columns(sub_status=SubStatus.FINISHED, finished_at=THEN)
        await store.commit([changed(expects=0, columns=ended, frees_activations=True)])
        assert await store.admit([asked]) == [Refused("i1")]
