"""What a store promises about who waits under a key, and what came too early."""

from holdfast.bookmark import Trigger
from holdfast.commit import (
    KeptStimulus,
    Wait,
)
from holdfast.instance import SubStatus
from holdfast.store import (
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
)


class WaitsConformance:
    """What a store promises about who waits under a key, and what came too early."""

    async def test_a_bookmark_is_found_by_its_key_with_the_correlation_as_it_is_now(
        self, store: Store
    ) -> None:
        await store.commit([born(waits=(Wait("b1", "k"), Wait("b2", "other")))])
        await store.commit([changed(columns=columns(correlation_id="c2"))])
        _, (waiting,) = await store.find("acme", "k")
        assert (waiting.instance_id, waiting.bookmark_id, waiting.correlation_id) == ("i1", "b1", "c2")
        assert (await store.find("other", "k"))[1] == []

    async def test_a_used_bookmark_is_not_found(self, store: Store) -> None:
        await store.commit([born(waits=(Wait("b1", "k"),))])
        await store.commit([changed(waits_gone=("b1",))])
        assert (await store.find("acme", "k"))[1] == []

    async def test_nobody_waits_in_an_instance_that_has_ended(self, store: Store) -> None:
        await store.commit([born(waits=(Wait("b1", "k"),))])
        await store.commit([changed(columns=columns(sub_status=SubStatus.FAULTED, finished_at=THEN))])
        assert (await store.find("acme", "k"))[1] == []

    async def test_a_kept_stimulus_is_exchanged_for_messages_once(self, store: Store) -> None:
        kept = KeptStimulus(id="s1", tenant="acme", key="k", payload=b"{}", expires=FAR)
        await store.keep(kept)
        assert await store.kept("acme", "k") == [kept]
        places = await store.pair("acme", "s1", [envelope()])
        assert places is not None
        assert [d.place for d in await everything(store)] == places
        assert await store.pair("acme", "s1", [envelope()]) is None
        assert len(await everything(store)) == 1
        assert await store.kept("acme", "k") == []

    async def test_a_stimulus_that_expired_is_kept_no_longer(self, store: Store, pass_time: PassTime) -> None:
        now = (await store.join("clock", "here", TTL)).now
        await store.keep(KeptStimulus(id="s1", tenant="acme", key="k", payload=b"{}", expires=now + TTL))
        await pass_time(TTL + TTL)
        assert await store.kept("acme", "k") == []

    async def test_a_turn_puts_back_what_found_nobody(self, store: Store) -> None:
        kept = KeptStimulus(id="s1", tenant="acme", key="k", payload=b"{}", expires=FAR, tries=1)
        await store.commit([born(put_back=(kept,))])
        assert await store.kept("acme", "k") == [kept]

    async def test_publishing_replaces_the_triggers_of_a_definition(self, store: Store) -> None:
        def trigger(definition_id: str, key: str) -> Trigger:
            return Trigger(
                definition_id=definition_id,
                version_id=f"{definition_id}-1",
                activity_id="a",
                name="n",
                key=key,
                payload={"x": 1},
            )

        await store.replace_triggers("acme", "order", [trigger("order", "k1"), trigger("order", "k2")])
        await store.replace_triggers("acme", "other", [trigger("other", "k1")])
        await store.replace_triggers("acme", "order", [trigger("order", "k3")])
        assert [t.definition_id for t in (await store.find("acme", "k1"))[0]] == ["other"]
        assert (await store.find("acme", "k3"))[0] == [trigger("order", "k3")]
