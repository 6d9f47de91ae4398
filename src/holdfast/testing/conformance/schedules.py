"""What a store promises about schedules: every occurrence once, and none from a version that is gone."""

from datetime import timedelta
from typing import Any

import msgspec

from holdfast.store import (
    Activation,
    Admission,
    Admitted,
    Cursor,
    Firing,
    InstanceExists,
    Refused,
    Schedule,
    Store,
)
from holdfast.testing.conformance.examples import (
    FAR,
    THEN,
    changed,
    columns,
    everything,
    kinds,
    publish,
    schedule,
    start,
)

NEXT = THEN + timedelta(minutes=1, microseconds=1)
OVERLAP = Activation(key="overlap of order/timer", looks=False)


def firing(of: Schedule, starts: Admission | None = None, **members: Any) -> Firing:
    """One occurrence, after which the schedule goes on at NEXT."""
    nominal = members.pop("nominal", THEN)
    then = members.pop("then", Cursor(next_at=NEXT, last_at=nominal))
    return Firing(schedule=of, nominal=nominal, start=starts, then=then, **members)


class SchedulesConformance:
    """What a store promises about schedules: every occurrence once, and none from a version that is gone."""

    async def test_schedules_are_found_when_they_are_due_nearest_first(self, store: Store) -> None:
        late, early = schedule("late", NEXT), schedule("early", THEN)
        idle = schedule("retracted", None)
        elsewhere = schedule("elsewhere", THEN, shard=2)
        await publish(store, schedules=(late, early, idle, elsewhere))
        assert await store.due_schedules([1, 3], NEXT, 10) == [early, late]
        assert await store.due_schedules([1], THEN, 10) == [early]
        assert await store.due_schedules([1], FAR, 1) == [early]
        assert await store.due_schedules([2], FAR, 10) == [elsewhere]

    async def test_schedules_are_listed_by_definition(self, store: Store) -> None:
        other = schedule(definition_id="other")
        await publish(store, schedules=(schedule("b"), schedule("a")))
        await publish(store, "other", schedules=(other,))
        assert await store.schedules("acme", "order") == [schedule("a"), schedule("b")]
        assert await store.schedules("acme") == [schedule("a"), schedule("b"), other]
        assert await store.schedules("other") == []

    async def test_schedules_are_replaced_by_what_is_published(self, store: Store) -> None:
        await publish(store, schedules=(schedule("a"), schedule("b")))
        retracted = schedule("b", None, cursor=Cursor(next_at=None, last_at=THEN))
        await publish(store, schedules=(retracted, schedule("c", version_id="order-2")))
        assert await store.schedules("acme") == [retracted, schedule("c", version_id="order-2")]

    async def test_a_firing_starts_an_instance_and_moves_the_cursor(self, store: Store) -> None:
        await publish(store, schedules=(schedule(),))
        verdict = await store.fire(firing(schedule(), start()))
        assert isinstance(verdict, Admitted)
        assert [d.place for d in await everything(store)] == [verdict.place]
        (loaded,) = await store.load([("acme", "i1")])
        assert loaded.revision == 0
        (now,) = await store.schedules("acme")
        assert now == schedule(cursor=Cursor(next_at=NEXT, last_at=THEN))

    async def test_an_occurrence_is_fired_once(self, store: Store) -> None:
        await publish(store, schedules=(schedule(),))
        assert kinds([await store.fire(firing(schedule(), start("i1")))]) == ["Admitted"]
        assert await store.fire(firing(schedule(), start("i2"))) is None
        assert len(await everything(store)) == 1
        assert await store.load([("acme", "i2")]) == []

    async def test_an_occurrence_that_was_fired_is_not_fired_again_though_the_cursor_went_back(
        self, store: Store
    ) -> None:
        await publish(store, schedules=(schedule(),))
        await store.fire(firing(schedule(), start("i1")))
        await publish(store, schedules=(schedule(),))
        assert await store.fire(firing(schedule(), start("i2"))) is None
        assert await store.schedules("acme") == [schedule()]
        assert len(await everything(store)) == 1

    async def test_whoever_read_another_version_fires_nothing(self, store: Store) -> None:
        await publish(store, schedules=(schedule(),))
        await publish(store, schedules=(schedule(version_id="order-2"),))
        assert await store.fire(firing(schedule(), start())) is None
        await publish(store, schedules=())
        assert await store.fire(firing(schedule(), start())) is None
        assert await everything(store) == []

    async def test_the_whole_cursor_must_be_as_it_was_read(self, store: Store) -> None:
        present = schedule(cursor=Cursor(next_at=NEXT, last_at=THEN, waiting=(THEN,)))
        await publish(store, schedules=(present,))
        for other in (
            Cursor(next_at=NEXT, last_at=THEN),
            Cursor(next_at=NEXT, waiting=(THEN,)),
            Cursor(next_at=FAR, last_at=THEN, waiting=(THEN,)),
        ):
            read = msgspec.structs.replace(present, cursor=other)
            assert await store.fire(firing(read, start())) is None
        assert await store.schedules("acme") == [present]
        assert kinds([await store.fire(firing(present, start()))]) == ["Admitted"]

    async def test_an_occurrence_that_is_let_go_moves_the_cursor_only(self, store: Store) -> None:
        await publish(store, schedules=(schedule(),))
        assert await store.fire(firing(schedule())) == Refused("")
        assert await everything(store) == []
        (now,) = await store.schedules("acme")
        assert now.cursor == Cursor(next_at=NEXT, last_at=THEN)
        await publish(store, schedules=(schedule(),))
        assert await store.fire(firing(schedule(), start())) is None

    async def test_an_occurrence_that_is_refused_moves_the_cursor_as_it_says(self, store: Store) -> None:
        await store.admit([start("earlier", activations=(OVERLAP,))])
        await publish(store, schedules=(schedule("a"), schedule("b")))
        guarded = start("i1", activations=(OVERLAP,))
        queued = Cursor(next_at=NEXT, last_at=THEN, waiting=(THEN,))
        assert await store.fire(firing(schedule("a"), guarded, if_refused=queued)) == Refused("earlier")
        assert await store.fire(firing(schedule("b"), guarded)) == Refused("earlier")
        skipped = Cursor(next_at=NEXT, last_at=THEN)
        assert [planned.cursor for planned in await store.schedules("acme")] == [queued, skipped]
        assert await store.load([("acme", "i1")]) == []
        assert await store.waiting_schedules([1], 10) == [schedule("a", cursor=queued)]
        assert await store.waiting_schedules([2], 10) == []

    async def test_an_occurrence_that_waited_is_fired_once_when_its_time_comes(self, store: Store) -> None:
        await store.admit([start("earlier", activations=(OVERLAP,))])
        await publish(store, schedules=(schedule(),))
        guarded = start("i1", activations=(OVERLAP,))
        queued = Cursor(next_at=NEXT, last_at=THEN, waiting=(THEN,))
        await store.fire(firing(schedule(), guarded, if_refused=queued))
        (waits,) = await store.waiting_schedules([1], 10)
        again = firing(waits, guarded, if_refused=queued)
        assert await store.fire(again) == Refused("earlier")
        ended = columns(finished_at=THEN)
        await store.commit([changed("earlier", 0, columns=ended, frees_activations=True)])
        assert kinds([await store.fire(again)]) == ["Admitted"]
        assert await store.waiting_schedules([1], 10) == []
        await publish(store, schedules=(waits,))
        assert await store.fire(again) is None

    async def test_what_is_let_go_as_one_that_waits_may_be_fired_later(self, store: Store) -> None:
        await publish(store, schedules=(schedule(),))
        noted = Cursor(next_at=NEXT, last_at=THEN, waiting=(THEN,))
        assert await store.fire(firing(schedule(), then=noted)) == Refused("")
        (waits,) = await store.waiting_schedules([1], 10)
        assert kinds([await store.fire(firing(waits, start()))]) == ["Admitted"]

    async def test_an_id_that_exists_does_not_hold_a_schedule_up(self, store: Store) -> None:
        await store.admit([start("i1")])
        await publish(store, schedules=(schedule(),))
        assert isinstance(await store.fire(firing(schedule(), start("i1"))), InstanceExists)
        (now,) = await store.schedules("acme")
        assert now.cursor.next_at == NEXT
        assert len(await everything(store)) == 1

    async def test_names_in_any_alphabet_and_length_are_told_apart(self, store: Store) -> None:
        names = ("ж" * 200, "ж" * 199 + "з", "a/b")
        planned = tuple(schedule(name) for name in names)
        await publish(store, schedules=planned)
        verdicts = [await store.fire(firing(one, start(f"i{n}"))) for n, one in enumerate(planned)]
        assert kinds(verdicts) == ["Admitted"] * 3

    async def test_firings_are_forgotten_when_they_are_old(self, store: Store) -> None:
        names = ("a", "b", "c")
        await publish(store, schedules=tuple(schedule(name) for name in names))
        for name in names:
            nominal = NEXT if name == "c" else THEN
            await store.fire(firing(schedule(name), start(name), nominal=nominal))
        assert [await store.forget_firings(NEXT, 1) for _ in range(3)] == [1, 1, 0]
        assert await store.forget_firings(FAR, 10) == 1
