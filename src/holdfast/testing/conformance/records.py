"""What a store promises about lists of instances, their journals, and how they end."""

from datetime import datetime, timedelta
from typing import Any

from holdfast.commit import (
    Birth,
    Commit,
    DeadLetter,
    KeptStimulus,
    Outgoing,
    Segment,
    Task,
    Timer,
    Wait,
)
from holdfast.errors import Invalid
from holdfast.instance import Status, SubStatus
from holdfast.store import Activation, InstanceFilter, Store
from holdfast.store.records import COUNTED
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    born,
    changed,
    columns,
    envelope,
    everything,
    refusal,
    start,
)

DAY = timedelta(days=1)


def an_instance(instance_id: str, tenant: str = "acme", **about: Any) -> Commit:
    """The birth of an instance with these columns."""
    birth = Birth(instance_id=instance_id, shard=1, columns=columns(**about), state=b'{"s":1}')
    return Commit(turn="t", tenant=tenant, instance_id=instance_id, births=(birth,))


def over(at: datetime = THEN, **about: Any) -> dict[str, Any]:
    return {"sub_status": SubStatus.FINISHED, "finished_at": at, **about}


def segment(sequence: int, records: int = 10) -> Segment:
    return Segment(
        sequence=sequence,
        records=records,
        version=1,
        summary=b'{"n":1}',
        body=bytes([sequence % 256, 0, 255]),
    )


def letter(letter_id: str = "l1", **changes: Any) -> DeadLetter:
    return DeadLetter(
        id=letter_id, envelope=envelope(**changes), error="no such type", attempts=8, deaths=1, at=THEN
    )


async def found(store: Store, **wanted: Any) -> set[str]:
    page = await store.instances(InstanceFilter(tenant="acme", **wanted))
    assert page.total == len(page.items)
    return {summary.instance_id for summary in page.items}


async def pages(store: Store, order: str, *, descending: bool, limit: int = 2) -> list[str]:
    """All ids, a page at a time."""
    ids: list[str] = []
    while True:
        page = await store.instances(
            InstanceFilter(tenant="acme"), order=order, descending=descending, skip=len(ids), limit=limit
        )
        if not page.items:
            return ids
        ids += [summary.instance_id for summary in page.items]


class RecordsConformance:
    """What a store promises about lists of instances, their journals, and how they end."""

    # --- lists ------------------------------------------------------------------------------------

    async def test_a_list_shows_all_but_the_state(self, store: Store) -> None:
        about = columns(correlation_id="c", name="Order 7", parent_id="p", incident_count=2, is_paused=True)
        await store.commit([born()])
        await store.commit([changed(columns=about)])
        page = await store.instances(InstanceFilter(tenant="acme"))
        (summary,) = page.items
        assert (summary.tenant, summary.instance_id, summary.shard, summary.revision) == ("acme", "i1", 1, 2)
        assert summary.columns == about
        assert (page.total, page.is_capped) == (1, False)

    async def test_a_list_never_shows_another_tenant(self, store: Store) -> None:
        await store.commit([an_instance("i1"), an_instance("i1", tenant="other"), an_instance("i2", "other")])
        assert await found(store) == {"i1"}
        assert await found(store, ids=("i2",)) == set()

    async def test_every_filter_narrows(self, store: Store) -> None:
        odd: dict[str, Any] = {
            "definition_id": "invoice",
            "version_id": "invoice-3",
            "version": 3,
            "sub_status": SubStatus.CANCELLED,
            "correlation_id": "c9",
            "parent_id": "p9",
            "name": "Odd",
            "incident_count": 1,
            "is_paused": True,
            "created_at": THEN + DAY,
            "updated_at": THEN + DAY,
            "finished_at": THEN + DAY,
        }
        await store.commit([an_instance("even"), an_instance("odd", **odd)])
        for wanted in (
            {"ids": ("odd", "nobody", "Zoë")},
            {"definition_ids": ("invoice", "other")},
            {"version_ids": ("invoice-3",)},
            {"version": 3},
            {"status": Status.FINISHED},
            {"sub_statuses": (SubStatus.CANCELLED, SubStatus.FAULTED)},
            {"correlation_id": "c9"},
            {"parent_id": "p9"},
            {"name": "Odd"},
            {"has_incidents": True},
            {"is_paused": True},
            {"created_from": THEN + DAY},
            {"updated_from": THEN + DAY},
            {"finished_from": THEN + DAY},
            {"finished_until": THEN + 2 * DAY},
        ):
            assert await found(store, **wanted) == {"odd"}, wanted
        for wanted in (
            {"has_incidents": False},
            {"is_paused": False},
            {"status": Status.RUNNING},
            {"created_until": THEN + DAY},
            {"updated_until": THEN + DAY},
        ):
            assert await found(store, **wanted) == {"even"}, wanted
        for wanted in ({"name": "odd"}, {"parent_id": "Zoë"}, {"ids": ("Zoë",)}, {"correlation_id": ""}):
            assert await found(store, **wanted) == set(), wanted
        assert await found(store, version=3, is_paused=False) == set()

    async def test_a_search_finds_parts_of_names_in_any_case(self, store: Store) -> None:
        await store.commit(
            [
                an_instance("ab-17"),
                an_instance("i2", name="Annual Report"),
                an_instance("i3", correlation_id="customer-42"),
                an_instance("i4", definition_id="reporting"),
            ]
        )
        assert await found(store, search="B-1") == {"ab-17"}
        assert await found(store, search="report") == {"i2", "i4"}
        assert await found(store, search="MER-4") == {"i3"}
        assert await found(store, search="Zoë") == set()

    async def test_signs_that_databases_take_for_anything_are_searched_as_they_are(
        self, store: Store
    ) -> None:
        names = {"i1": "100 %", "i2": "100 x", "i3": "a_b", "i4": "axb", "i5": "a/b", "i6": "a\\b"}
        await store.commit([an_instance(instance_id, name=name) for instance_id, name in names.items()])
        assert await found(store, search="0 %") == {"i1"}
        assert await found(store, search="a_b") == {"i3"}
        assert await found(store, search="a/b") == {"i5"}
        assert await found(store, search="a\\b") == {"i6"}
        assert await found(store, search="'") == set()

    async def test_pages_are_in_order_and_leave_out_nobody(self, store: Store) -> None:
        await store.commit(
            [
                an_instance("a", created_at=THEN, updated_at=THEN + 3 * DAY, name="x"),
                an_instance("b", created_at=THEN + DAY, updated_at=THEN, **over(THEN + DAY)),
                an_instance("c", created_at=THEN, updated_at=THEN, name="y", **over(THEN)),
                an_instance("d", created_at=THEN, updated_at=THEN),
                an_instance("e", created_at=THEN, updated_at=THEN, name="x"),
            ]
        )
        assert await pages(store, "created_at", descending=True) == ["b", "e", "d", "c", "a"]
        assert await pages(store, "created_at", descending=False) == ["a", "c", "d", "e", "b"]
        assert await pages(store, "updated_at", descending=True, limit=3) == ["a", "e", "d", "c", "b"]
        assert await pages(store, "finished_at", descending=True) == ["b", "c", "e", "d", "a"]
        assert await pages(store, "finished_at", descending=False) == ["c", "b", "a", "d", "e"]
        assert await pages(store, "name", descending=False) == ["a", "e", "c", "b", "d"]
        assert await pages(store, "name", descending=True) == ["c", "e", "a", "d", "b"]

    async def test_an_unknown_order_is_refused(self, store: Store) -> None:
        wanted = InstanceFilter(tenant="acme")
        assert isinstance(await refusal(store.instances(wanted, order="state; drop table")), Invalid)

    async def test_a_total_counts_what_is_on_other_pages(self, store: Store) -> None:
        await store.commit([an_instance(f"i{n}") for n in range(7)])
        for skip, shown in ((0, 3), (6, 1), (7, 0), (100, 0)):
            page = await store.instances(InstanceFilter(tenant="acme"), skip=skip, limit=3)
            assert (len(page.items), page.total, page.is_capped) == (shown, 7, False)

    async def test_a_total_is_exact_up_to_a_limit_and_says_when_there_are_more(self, store: Store) -> None:
        births = [an_instance(f"i{n:05}", definition_id="bulk") for n in range(COUNTED)]
        for begin in range(0, COUNTED, 500):
            await store.commit(births[begin : begin + 500])
        page = await store.instances(InstanceFilter(tenant="acme"), limit=1)
        assert (page.total, page.is_capped) == (COUNTED, False)
        await store.commit([an_instance("one more"), an_instance("two more")])
        for skip in (0, COUNTED, 2 * COUNTED):
            page = await store.instances(InstanceFilter(tenant="acme"), skip=skip, limit=10)
            assert (page.total, page.is_capped) == (COUNTED, True)
        assert len((await store.instances(InstanceFilter(tenant="acme"), skip=COUNTED)).items) == 2

    async def test_open_children_are_found_by_their_parent(self, store: Store) -> None:
        await store.commit(
            [
                an_instance("c3", parent_id="p"),
                an_instance("c1", parent_id="p"),
                an_instance("c2", parent_id="p", **over()),
                an_instance("c4", parent_id="q"),
                an_instance("c5", tenant="other", parent_id="p"),
            ]
        )
        children = await store.open_children("acme", "p", 10)
        assert [child.instance_id for child in children] == ["c1", "c3"]
        assert len(await store.open_children("acme", "p", 1)) == 1
        behind = await store.open_children("acme", "p", 10, children[0].instance_id)
        assert behind == children[1:]

    # --- the journal ------------------------------------------------------------------------------

    async def test_a_journal_is_read_in_order_from_any_record(self, store: Store) -> None:
        first, second, third = segment(0), segment(10), segment(20)
        await store.commit([born(journal=(first, second))])
        await store.commit([changed(journal=(third,))])
        assert await store.journal_of("acme", "i1") == [first, second, third]
        assert await store.journal_of("acme", "i1", after=0) == [second, third]
        assert await store.journal_of("acme", "i1", after=9, limit=1) == [second]
        assert await store.journal_of("acme", "i1", after=20) == []
        assert await store.journal_of("other", "i1") == []

    async def test_a_journal_is_summed_up_without_reading_it(self, store: Store) -> None:
        await store.commit([born(journal=(segment(0), segment(10, records=3)))])
        assert await store.journal_summaries("acme", "i1") == [(0, 10, b'{"n":1}'), (10, 3, b'{"n":1}')]
        assert await store.journal_summaries("acme", "i2") == []

    # --- how instances end ------------------------------------------------------------------------

    async def test_what_finished_before_a_time_is_found_with_all_that_is_known_of_it(
        self, store: Store
    ) -> None:
        await store.commit(
            [
                an_instance("late", **over(THEN + 2 * DAY)),
                an_instance("second", **over(THEN + DAY)),
                an_instance("first", tenant="other", **over(THEN, definition_id="invoice")),
                an_instance("open"),
            ]
        )
        await store.commit([born("told", journal=(segment(0), segment(10)))])
        await store.commit([changed("told", columns=columns(**over(THEN + DAY)))])
        burials = await store.finished(THEN + 2 * DAY, 10)
        assert [burial.summary.instance_id for burial in burials] == ["first", "second", "told"]
        assert burials[0].summary.columns.definition_id == "invoice"
        assert (burials[1].state, burials[1].journal) == (b'{"s":1}', ())
        assert burials[2].journal == (segment(0), segment(10))
        assert [b.summary.instance_id for b in await store.finished(FAR, 1)] == ["first"]
        ordered = await store.finished(FAR, 10, "order")
        assert [burial.summary.instance_id for burial in ordered] == ["second", "told", "late"]

    async def test_only_what_finished_before_a_time_is_erased(self, store: Store) -> None:
        await store.commit(
            [
                an_instance("old", **over(THEN)),
                an_instance("young", **over(THEN + DAY)),
                an_instance("open"),
                an_instance("old", tenant="other", **over(THEN)),
            ]
        )
        asked = [("acme", name) for name in ("old", "young", "open", "nobody", "old")]
        assert await store.erase(asked, THEN + DAY) == 1
        assert await found(store) == {"young", "open"}
        assert len(await store.load([("other", "old")])) == 1
        assert await store.erase([], FAR) == 0

    async def test_what_was_reopened_is_not_erased(self, store: Store) -> None:
        await store.commit([an_instance("i1", **over())])
        (burial,) = await store.finished(FAR, 10)
        await store.commit([changed(reopens=True)])
        assert await store.erase([("acme", burial.summary.instance_id)], FAR) == 0
        assert await found(store) == {"i1"}

    async def test_whoever_has_finished_instances_is_known_once(self, store: Store) -> None:
        await store.commit([an_instance("a", **over()), an_instance("b", **over()), born("open")])
        assert await store.retired(FAR) == [("acme", columns().definition_id)]
        assert await store.retired(THEN) == []

    async def test_all_that_belongs_to_an_instance_is_erased_with_it(self, store: Store) -> None:
        guard = Activation(key="one order", looks=False)
        addressed = KeptStimulus(id="s", tenant="acme", key="k", payload=b"{}", expires=FAR, instance_id="i1")
        for name in ("i1", "i2"):
            guards = (guard,) if name == "i1" else ()
            await store.admit([start(name, activations=guards)])
            ended = changed(
                name,
                expects=0,
                columns=columns(**over()),
                timers=(Timer(id="t", due=THEN, kind="resume"),),
                waits=(Wait("b", "k"),),
                tasks=(Task(1, b"{}"),),
                journal=(segment(0),),
                outbox=(Outgoing("orders", b"{}"),),
                dead_letters=(letter(f"l-{name}", instance_id=name),),
            )
            await store.commit([ended])
        await store.keep(addressed)
        assert await store.erase([("acme", "i1")], FAR) == 1
        assert [d.envelope.instance_id for d in await store.due([1], FAR, 10)] == ["i2"]
        assert [a.instance_id for a in await store.idle_attempts([1], 10)] == ["i2"]
        assert await store.journal_of("acme", "i1") == []
        assert await store.journal_of("acme", "i2") == [segment(0)]
        assert [one.id for one in (await store.dead_letters("acme")).items] == ["l-i2"]
        assert await store.kept("acme", ["k"]) == []
        assert [row.instance_id for row in await store.outgoing("orders", [(1, 0)], 10)] == ["i1", "i2"]
        again = await store.admit([start("i1", activations=(guard,))])
        assert type(again[0]).__name__ == "Admitted"

    async def test_an_instance_that_nothing_will_wake_is_stuck(self, store: Store) -> None:
        await store.commit([born("b"), born("a"), an_instance("over", **over())])
        stuck = await store.stuck(10)
        assert [(summary.instance_id, state) for summary, state in stuck] == [("a", b"{}"), ("b", b"{}")]
        assert len(await store.stuck(1)) == 1

    async def test_whatever_has_a_cause_to_wait_is_not_stuck(self, store: Store) -> None:
        await store.commit(
            [
                born("bookmark", waits=(Wait("b", "k"),)),
                born("message", messages=(envelope("message"),)),
                born("timer", timers=(Timer(id="t", due=FAR, kind="resume"),)),
                born("work", tasks=(Task(1, b"{}"),)),
                born("letter", dead_letters=(letter(instance_id="letter"),)),
                an_instance("paused", is_paused=True),
                an_instance("parent"),
                an_instance("child", parent_id="parent", is_paused=True),
                an_instance("widow"),
                an_instance("former child", parent_id="widow", **over()),
                an_instance("elsewhere", tenant="other", parent_id="widow", is_paused=True),
            ]
        )
        assert [summary.instance_id for summary, _ in await store.stuck(10)] == ["widow"]

    # --- figures ----------------------------------------------------------------------------------

    async def test_the_depth_of_each_shard_is_known(self, store: Store) -> None:
        assert await store.depth() == []
        sent = (envelope(), envelope(), envelope(shard=5))
        now = (await store.join("clock", "here", DAY)).now
        await store.commit([born(messages=sent)])
        oldest = min(d.sent_at or FAR for d in await everything(store))
        (first, second) = await store.depth()
        assert first == (1, 2, oldest)
        assert second[:2] == (5, 1)
        assert oldest >= now
