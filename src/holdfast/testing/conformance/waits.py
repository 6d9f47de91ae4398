"""What a store promises about who waits under a key, and what came too early."""

from datetime import timedelta

from holdfast.commit import Wait
from holdfast.instance import SubStatus
from holdfast.message import Resume
from holdfast.runtime.letters import opened
from holdfast.store import Store
from holdfast.testing.conformance.examples import (
    THEN,
    TTL,
    PassTime,
    born,
    changed,
    columns,
    envelope,
    everything,
    publish,
    stimulus,
    trigger,
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

    async def test_of_those_under_a_key_some_are_found_by_instance_or_correlation(self, store: Store) -> None:
        for number in (1, 2, 3):
            name, about = f"i{number}", columns(correlation_id=f"c{number}")
            await store.commit([born(name, waits=(Wait(f"b{number}", "k"),))])
            await store.commit([changed(name, columns=about)])

        async def ids(**narrowed: str) -> list[str]:
            return [waiting.instance_id for waiting in (await store.find("acme", "k", **narrowed))[1]]

        assert await ids() == ["i1", "i2", "i3"]
        assert await ids(correlation_id="c2") == ["i2"]
        assert await ids(instance_id="i3") == ["i3"]
        assert await ids(instance_id="i3", correlation_id="c2") == []
        assert await ids(instance_id="i3é") == []

    async def test_a_used_bookmark_is_not_found(self, store: Store) -> None:
        await store.commit([born(waits=(Wait("b1", "k"),))])
        await store.commit([changed(waits_gone=("b1",))])
        assert (await store.find("acme", "k"))[1] == []

    async def test_nobody_waits_in_an_instance_that_has_ended(self, store: Store) -> None:
        await store.commit([born(waits=(Wait("b1", "k"),))])
        await store.commit([changed(columns=columns(sub_status=SubStatus.FAULTED, finished_at=THEN))])
        assert (await store.find("acme", "k"))[1] == []

    async def test_a_kept_stimulus_is_exchanged_for_messages_once(self, store: Store) -> None:
        await store.keep(stimulus())
        assert await store.kept("acme", ["k"]) == [stimulus()]
        places = await store.pair("acme", "s1", [envelope()])
        assert places is not None
        assert [d.place for d in await everything(store)] == places
        assert await store.pair("acme", "s1", [envelope()]) is None
        assert len(await everything(store)) == 1
        assert await store.kept("acme", ["k"]) == []

    async def test_a_stimulus_of_another_tenant_is_not_paired(self, store: Store) -> None:
        await store.keep(stimulus())
        assert await store.pair("other", "s1", [envelope()]) is None
        assert await store.kept("other", ["k"]) == []
        assert await store.kept("acme", ["k"]) == [stimulus()]

    async def test_a_stimulus_is_given_back_as_it_was_kept(self, store: Store) -> None:
        whole = stimulus(instance_id="i1", correlation_id="c", only=True, tries=3)
        await store.keep(whole)
        assert await store.kept("acme", ["k"]) == [whole]

    async def test_a_stimulus_was_sent_when_it_was_kept_unless_it_says(self, store: Store) -> None:
        now = (await store.join("clock", "here", TTL)).now
        await store.keep(stimulus(sent_at=None))
        (kept,) = await store.kept("acme", ["k"])
        assert kept.sent_at is not None
        assert abs(kept.sent_at - now) < timedelta(seconds=10)

    async def test_stimuli_of_several_keys_come_oldest_first(self, store: Store) -> None:
        for number, key in enumerate(("k2", "k1", "other", "k2")):
            sent_at = THEN + timedelta(seconds=9 - number)
            await store.keep(stimulus(f"s{number}", key=key, sent_at=sent_at))
        assert [kept.id for kept in await store.kept("acme", ["k1", "k2", "k1"])] == ["s3", "s1", "s0"]
        assert await store.kept("acme", []) == []

    async def test_a_stimulus_that_expired_is_kept_no_longer(self, store: Store, pass_time: PassTime) -> None:
        now = (await store.join("clock", "here", TTL)).now
        await store.commit([born(waits=(Wait("b1", "k"),))])
        await store.keep(stimulus(expires=now + TTL))
        await pass_time(TTL + TTL)
        assert await store.kept("acme", ["k"]) == []
        assert await store.meetings(None, 10) == []

    async def test_a_turn_puts_back_what_found_nobody(self, store: Store) -> None:
        kept = stimulus(tries=1, only=True)
        await store.commit([born(put_back=(kept,))])
        assert await store.kept("acme", ["k"]) == [kept]

    async def test_a_stimulus_and_somebody_who_waits_for_it_are_a_meeting(self, store: Store) -> None:
        await store.commit([born(waits=(Wait("b1", "k"),))])
        for number, key in enumerate(("k", "nobody waits", "k")):
            await store.keep(stimulus(f"s{number}", key=key, sent_at=THEN - timedelta(seconds=number)))
        await store.keep(stimulus("foreign", tenant="other"))
        assert [met.id for met in await store.meetings(None, 10)] == ["s2", "s0"]
        assert [met.id for met in await store.meetings(None, 1)] == ["s2"]
        assert await store.meetings(THEN, 10) == [stimulus("s0")]
        await store.commit([changed(columns=columns(sub_status=SubStatus.FINISHED, finished_at=THEN))])
        assert await store.meetings(None, 10) == []

    async def test_nobody_meets_what_was_meant_for_another(self, store: Store) -> None:
        await store.commit([born("i1", waits=(Wait("b1", "k"),)), born("i2")])
        await store.keep(stimulus("elsewhere", instance_id="i2"))
        await store.keep(stimulus("correlated", correlation_id="c"))
        await store.keep(stimulus("here", instance_id="i1"))
        assert [met.id for met in await store.meetings(None, 10)] == ["here"]
        await store.commit([changed(columns=columns(correlation_id="c"))])
        assert [met.id for met in await store.meetings(None, 10)] == ["correlated", "here"]

    async def test_what_expired_goes_and_what_was_meant_for_an_instance_becomes_a_dead_letter(
        self, store: Store
    ) -> None:
        await store.commit([born("i1")])
        await store.keep(stimulus("for anybody", expires=THEN))
        await store.keep(stimulus("for i1", instance_id="i1", correlation_id="c", tries=2, expires=THEN))
        await store.keep(stimulus("later", instance_id="i1"))
        assert await store.expire_stimuli(10) == 2
        assert await store.expire_stimuli(10) == 0
        assert await store.kept("acme", ["k"]) == [stimulus("later", instance_id="i1")]
        (letter,) = (await store.dead_letters("acme")).items
        about = letter.envelope
        assert (about.tenant, about.instance_id, about.shard, about.kind) == ("acme", "i1", 1, "resume")
        assert opened(about) == Resume(key="k", input={"n": 1}, correlation_id="c")
        assert (letter.attempts, letter.sent_at) == (2, THEN)
        assert "Nobody waited" in letter.error

    async def test_what_was_meant_for_nobody_that_exists_is_a_dead_letter_too(self, store: Store) -> None:
        await store.keep(stimulus(instance_id="never was", expires=THEN))
        assert await store.expire_stimuli(10) == 1
        (letter,) = (await store.dead_letters("acme")).items
        assert letter.envelope.instance_id == "never was"

    async def test_not_more_expires_at_once_than_was_asked_for(self, store: Store) -> None:
        for number in range(3):
            await store.keep(stimulus(f"s{number}", expires=THEN))
        assert [await store.expire_stimuli(2) for _ in range(3)] == [2, 1, 0]

    async def test_publishing_replaces_the_triggers_of_a_definition(self, store: Store) -> None:
        await publish(store, triggers=(trigger(key="k1"), trigger(key="k2"), trigger(key="k2")))
        await publish(store, "other", triggers=(trigger("other", "k1"),))
        await publish(store, triggers=(trigger(key="k3"),))
        assert [t.definition_id for t in (await store.find("acme", "k1"))[0]] == ["other"]
        assert (await store.find("acme", "k2"))[0] == []
        assert (await store.find("acme", "k3"))[0] == [trigger(key="k3")]
        await publish(store)
        assert (await store.find("acme", "k3"))[0] == [trigger(key="k3")]
        assert (await store.find("other", "k3"))[0] == []
