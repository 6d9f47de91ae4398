"""When triggers fire: what is due, what was missed, what waits."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from time import perf_counter
from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from holdfast.bookmark import Trigger
from holdfast.cron import CronInvalid
from holdfast.runtime.schedules import (
    GRACE,
    ScheduleInvalid,
    following,
    given,
    guard,
    instance_id_of,
    renewed,
    retracted,
    schedule_of,
    step,
    steps,
    waiting_step,
)
from holdfast.store import Cursor, Schedule

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def scheduled(name: str, payload: dict[str, Any], now: datetime = NOON, **settings: Any) -> Schedule:
    trigger = Trigger(
        definition_id="d", version_id="d-1", activity_id="t", name=name, key="k", payload=payload
    )
    found = schedule_of(trigger, settings, tenant="acme", shard=3, now=now)
    assert found is not None
    return found


def cron(expression: str, now: datetime = NOON, **settings: Any) -> Schedule:
    return scheduled("Elsa.Cron", {"cronExpression": expression}, now, **settings)


def timer(interval: str, now: datetime = NOON, **settings: Any) -> Schedule:
    payload = {"startAt": now.isoformat(), "interval": interval}
    return scheduled("Elsa.Timer", payload, now, **settings)


def start_at(when: datetime, now: datetime = NOON, **settings: Any) -> Schedule:
    return scheduled("Elsa.StartAt", {"executeAt": when.isoformat()}, now, **settings)


def at(schedule: Schedule, **cursor: Any) -> Schedule:
    return msgspec.structs.replace(schedule, cursor=msgspec.structs.replace(schedule.cursor, **cursor))


def fired(schedule: Schedule, now: datetime) -> list[datetime]:
    return [s.nominal for s in steps(schedule, now) if s.starts]


# --- what is due ----------------------------------------------------------------------------------


def test_a_trigger_that_time_does_not_hit_has_no_schedule() -> None:
    trigger = Trigger(definition_id="d", version_id="d-1", activity_id="t", name="Elsa.Event", key="k")
    assert schedule_of(trigger, {}, tenant="acme", shard=0, now=NOON) is None


def test_a_timer_is_first_due_one_interval_after_it_was_published() -> None:
    assert timer("00:10:00").cursor.next_at == NOON + 10 * MINUTE


def test_nothing_is_done_before_it_is_due() -> None:
    assert step(timer("00:10:00"), NOON + 10 * MINUTE - timedelta(microseconds=1)) is None


def test_a_timer_does_not_drift_however_late_it_is_served() -> None:
    schedule = timer("00:10:00")
    now = NOON
    for turn in range(1, 100):
        now = NOON + turn * 10 * MINUTE + turn % 7 * SECOND
        first = step(schedule, now)
        assert first is not None
        assert first.nominal == NOON + turn * 10 * MINUTE
        schedule = msgspec.structs.replace(schedule, cursor=first.then)
    assert schedule.cursor.next_at == NOON + 1000 * MINUTE


def test_occurrences_that_are_hardly_late_are_all_fired() -> None:
    assert fired(cron("* * * * * *"), NOON + 3 * SECOND) == [NOON + n * SECOND for n in (1, 2, 3)]


def test_a_cursor_moves_from_each_occurrence_to_the_next_and_ends_behind_now() -> None:
    *_, last = steps(cron("*/10 * * * * *"), NOON + 25 * SECOND)
    assert last.then == Cursor(next_at=NOON + 30 * SECOND, last_at=NOON + 20 * SECOND)


def test_start_at_fires_once_and_never_again() -> None:
    schedule = start_at(NOON + HOUR)
    (only,) = steps(schedule, NOON + HOUR)
    assert (only.nominal, only.starts, only.then.next_at) == (NOON + HOUR, True, None)


def test_start_at_in_the_past_fires_once_as_catch_up() -> None:
    assert fired(start_at(NOON - 30 * DAY), NOON) == [NOON - 30 * DAY]
    assert fired(start_at(NOON - 30 * DAY, missed="skip"), NOON) == []


def test_start_at_without_a_zone_means_utc() -> None:
    schedule = start_at(datetime(2026, 3, 2))
    assert schedule.cursor.next_at == datetime(2026, 3, 2, tzinfo=UTC)


def test_a_cron_expression_that_never_comes_true_is_never_due() -> None:
    assert cron("0 0 0 30 2 *").cursor.next_at is None


def test_a_timer_that_would_fire_after_the_last_year_there_is_never_does() -> None:
    assert timer("3000000.00:00:00").cursor.next_at is None


# --- zones ----------------------------------------------------------------------------------------


def test_a_cron_expression_is_read_in_its_zone_and_utc_without_one() -> None:
    assert cron("0 0 9 * * *").cursor.next_at == datetime(2026, 3, 2, 9, tzinfo=UTC)
    vienna = cron("0 0 9 * * *", timeZone="Europe/Vienna")
    assert (vienna.zone, vienna.cursor.next_at) == ("Europe/Vienna", datetime(2026, 3, 2, 8, tzinfo=UTC))


def test_an_occurrence_in_the_hour_that_does_not_exist_moves_to_its_end() -> None:
    schedule = cron("0 30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), timeZone="Europe/Vienna")
    assert schedule.cursor.next_at == datetime(2026, 3, 29, 1, tzinfo=UTC)
    after = following(schedule, datetime(2026, 3, 29, 1, tzinfo=UTC))
    assert after == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_a_fixed_time_in_the_hour_that_comes_twice_is_fired_once() -> None:
    schedule = cron("0 30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), timeZone="Europe/Vienna")
    assert schedule.cursor.next_at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert following(schedule, datetime(2026, 10, 25, 0, 30, tzinfo=UTC)) == datetime(
        2026, 10, 26, 1, 30, tzinfo=UTC
    )


def test_a_repeating_expression_runs_through_the_hour_that_comes_twice_both_times() -> None:
    before = datetime(2026, 10, 24, 23, 59, tzinfo=UTC)
    schedule = cron("0 */30 * * * *", before, timeZone="Europe/Vienna", missed="all")
    assert len(fired(schedule, before + 2 * HOUR)) == 4


def test_missed_occurrences_are_found_across_a_change_of_the_clock() -> None:
    schedule = cron("0 30 2 * * *", datetime(2026, 3, 27, tzinfo=UTC), timeZone="Europe/Vienna", missed="all")
    assert fired(schedule, datetime(2026, 3, 31, tzinfo=UTC)) == [
        datetime(2026, 3, 27, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, tzinfo=UTC),
        datetime(2026, 3, 30, 0, 30, tzinfo=UTC),
    ]


# --- what was missed ------------------------------------------------------------------------------


def test_of_missed_occurrences_the_last_one_is_fired_unless_said_otherwise() -> None:
    assert fired(cron("0 0 * * * *"), NOON + 5 * DAY + MINUTE) == [NOON + 5 * DAY]
    assert fired(timer("01:00:00"), NOON + 5 * DAY + MINUTE) == [NOON + 5 * DAY]


def test_an_occurrence_of_this_very_instant_is_the_last_one() -> None:
    assert fired(cron("0 0 * * * *"), NOON + 5 * DAY) == [NOON + 5 * DAY]
    assert fired(timer("01:00:00"), NOON + 5 * DAY) == [NOON + 5 * DAY]


def test_missed_occurrences_are_skipped_where_the_author_wants_it() -> None:
    (only,) = steps(cron("0 0 * * * *", missed="skip"), NOON + 5 * DAY + MINUTE)
    assert (only.starts, only.nominal) == (False, NOON + 5 * DAY)
    assert only.then == Cursor(next_at=NOON + 5 * DAY + HOUR, last_at=NOON + 5 * DAY)


def test_an_occurrence_in_time_is_fired_even_if_those_before_it_are_skipped() -> None:
    assert fired(cron("0 0 * * * *", missed="skip"), NOON + 5 * DAY + SECOND) == [NOON + 5 * DAY]


def test_all_missed_occurrences_are_the_latest_up_to_a_limit() -> None:
    latest = [NOON + 5 * DAY - n * HOUR for n in (2, 1, 0)]
    assert fired(cron("0 0 * * * *", missed="all", missedLimit=3), NOON + 5 * DAY + MINUTE) == latest
    assert fired(timer("01:00:00", missed="all", missedLimit=3), NOON + 5 * DAY + MINUTE) == latest


def test_fewer_missed_occurrences_than_the_limit_are_all_fired() -> None:
    assert fired(timer("01:00:00", missed="all"), NOON + 3 * HOUR + MINUTE) == [
        NOON + n * HOUR for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("settings", [{}, {"missed": "skip"}, {"missed": "all", "missedLimit": 100}])
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_three_months_of_missed_seconds_are_planned_in_no_time(zone: str | None, settings: Any) -> None:
    schedule = cron("* * * * * *", timeZone=zone, **settings)
    now = NOON + 90 * DAY
    step(schedule, now)
    best = 1.0
    for _ in range(5):
        began = perf_counter()
        assert step(schedule, now) is not None
        best = min(best, perf_counter() - began)
    assert best < 0.010


EXPRESSIONS = ["*/7 * * * * *", "0 */5 * * * *", "0,1,2,59 0 * * * *", "0 0 9 * * MON-FRI", "0 30 2 * * *"]


@for_all(st.sampled_from(EXPRESSIONS), st.integers(31, 40_000), st.integers(1, 30))
def test_what_is_caught_up_with_is_the_tail_of_all_that_was_missed(
    expression: str, seconds: int, limit: int
) -> None:
    began = datetime(2026, 10, 24, 20, tzinfo=UTC)
    schedule = cron(expression, began, timeZone="Europe/Vienna", missed="all", missedLimit=limit)
    now = began + seconds * SECOND
    due: list[datetime] = []
    found = schedule.cursor.next_at
    while found is not None and found <= now:
        due.append(found)
        found = following(schedule, found)
    was_missed = bool(due) and now - due[0] > GRACE
    assert fired(schedule, now) == (due[-limit:] if was_missed else due)


# --- what overlaps --------------------------------------------------------------------------------


def test_occurrences_may_overlap_unless_said_otherwise() -> None:
    assert guard(timer("01:00:00")) is None
    assert [s.if_refused for s in steps(timer("01:00:00"), NOON + HOUR)] == [None]


def test_a_guarded_schedule_has_one_key_whatever_its_version() -> None:
    schedule = timer("01:00:00", overlap="skip")
    other = msgspec.structs.replace(schedule, version_id="d-2")
    found = guard(schedule)
    assert found is not None
    assert not found.looks
    assert found == guard(other)
    long = guard(msgspec.structs.replace(schedule, activity_id="a" * 200))
    assert long is not None
    assert len(long.key) <= 200


def test_an_occurrence_that_would_overlap_is_skipped() -> None:
    first = step(timer("01:00:00", overlap="skip"), NOON + HOUR)
    assert first is not None
    assert (first.starts, first.if_refused) == (True, None)
    assert first.then.waiting == ()


def test_an_occurrence_that_would_overlap_waits_in_the_queue() -> None:
    schedule = timer("01:00:00", overlap="queue")
    first = step(schedule, NOON + HOUR)
    assert first is not None
    assert first.then.waiting == ()
    assert first.if_refused == msgspec.structs.replace(first.then, waiting=(NOON + HOUR,))


def test_nobody_overtakes_an_occurrence_that_waits_and_the_queue_has_an_end() -> None:
    schedule = at(timer("01:00:00", overlap="queue", waitingLimit=2), waiting=(NOON,))
    first = step(schedule, NOON + HOUR)
    assert first is not None
    assert (first.starts, first.then.waiting) == (False, (NOON, NOON + HOUR))
    second = step(at(schedule, waiting=first.then.waiting, next_at=NOON + 2 * HOUR), NOON + 2 * HOUR)
    assert second is not None
    assert (second.starts, second.then.waiting) == (False, (NOON, NOON + HOUR))


def test_while_the_previous_one_is_being_cancelled_only_the_newest_waits() -> None:
    schedule = at(timer("01:00:00", overlap="cancelPrevious"), waiting=(NOON,))
    first = step(schedule, NOON + HOUR)
    assert first is not None
    assert (first.starts, first.then.waiting) == (False, (NOON + HOUR,))


def test_what_waits_is_tried_again_in_its_order_and_stays_when_refused() -> None:
    schedule = at(timer("01:00:00", overlap="queue"), waiting=(NOON, NOON + HOUR))
    first = waiting_step(schedule)
    assert first is not None
    assert (first.nominal, first.starts, first.then.waiting) == (NOON, True, (NOON + HOUR,))
    assert first.if_refused == schedule.cursor
    assert waiting_step(timer("01:00:00")) is None


# --- publishing again -----------------------------------------------------------------------------


def test_an_unchanged_schedule_goes_on_where_it_was() -> None:
    before = at(timer("01:00:00"), last_at=NOON, waiting=(NOON,))
    again = renewed(timer("01:00:00", NOON + 20 * MINUTE), before, NOON + 20 * MINUTE)
    assert (again.cursor, again.anchor) == (before.cursor, before.anchor)


def test_what_was_due_when_it_was_published_again_is_still_due() -> None:
    before = cron("0 0 * * * *")
    now = NOON + HOUR + MINUTE
    assert renewed(cron("0 0 * * * *", now), before, now).cursor.next_at == NOON + HOUR


def test_other_policies_alone_do_not_move_a_schedule() -> None:
    before = cron("0 0 * * * *")
    again = renewed(cron("0 0 * * * *", NOON + MINUTE, missed="skip"), before, NOON + MINUTE)
    assert (again.cursor, again.policies != before.policies) == (before.cursor, True)


def test_a_changed_schedule_begins_after_now_and_after_what_it_fired_last() -> None:
    before = at(cron("0 0 * * * *"), last_at=NOON + 2 * HOUR)
    again = renewed(cron("0 */30 * * * *", NOON + HOUR), before, NOON + HOUR)
    assert again.cursor == Cursor(next_at=NOON + 2 * HOUR + 30 * MINUTE, last_at=NOON + 2 * HOUR)


def test_another_zone_is_a_change() -> None:
    before = cron("0 0 9 * * *")
    again = renewed(cron("0 0 9 * * *", timeZone="Europe/Vienna"), before, NOON)
    assert again.cursor.next_at == datetime(2026, 3, 2, 8, tzinfo=UTC)


def test_a_changed_timer_counts_from_the_change() -> None:
    again = renewed(timer("00:20:00", NOON + 5 * MINUTE), timer("00:10:00"), NOON + 5 * MINUTE)
    assert again.cursor.next_at == NOON + 25 * MINUTE


def test_a_retracted_schedule_is_never_due_and_remembers_what_it_fired() -> None:
    gone = retracted(at(cron("0 0 * * * *"), last_at=NOON, waiting=(NOON,)))
    assert gone.cursor == Cursor(next_at=None, last_at=NOON)
    assert step(gone, NOON + 99 * DAY) is None


def test_publishing_again_after_retracting_fires_nothing_twice() -> None:
    gone = retracted(at(cron("0 0 * * * *"), last_at=NOON + HOUR))
    again = renewed(cron("0 0 * * * *", NOON + HOUR), gone, NOON + HOUR)
    assert again.cursor.next_at == NOON + 2 * HOUR
    once = retracted(at(start_at(NOON), next_at=None, last_at=NOON))
    assert renewed(start_at(NOON, NOON + HOUR), once, NOON + HOUR).cursor.next_at is None


def test_start_at_that_was_moved_fires_again() -> None:
    before = at(start_at(NOON), next_at=None, last_at=NOON)
    again = renewed(start_at(NOON + DAY, NOON + HOUR), before, NOON + HOUR)
    assert again.cursor.next_at == NOON + DAY


# --- what an instance gets ------------------------------------------------------------------------


def test_an_instance_is_given_its_schedule_as_elsa_gives_it() -> None:
    assert given(cron("0 0 * * * *")) == {"CronExpression": "0 0 * * * *"}
    assert given(start_at(NOON)) == {"ExecuteAt": NOON.isoformat()}
    assert given(timer("01:00:00")) == {"StartAt": (NOON + HOUR).isoformat(), "Interval": "01:00:00"}


def test_an_occurrence_has_one_instance_id_however_often_it_is_tried() -> None:
    schedule = cron("0 0 * * * *")
    elsewhere = msgspec.structs.replace(schedule, version_id="d-2")
    assert instance_id_of(schedule, NOON) == instance_id_of(elsewhere, NOON)
    assert instance_id_of(schedule, NOON) != instance_id_of(schedule, NOON + HOUR)
    assert len(instance_id_of(schedule, NOON)) <= 64


# --- what an author may write ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"timeZone": "Europe/Viena"}, "Did you mean 'Europe/Vienna'"),
        ({"timeZone": "../etc/passwd"}, "unknown"),
        ({"timeZone": "Europe"}, "unknown"),
        ({"timeZone": 7}, "unknown"),
        ({"missed": "sometimes"}, "skip, last, all"),
        ({"overlap": True}, "allow, skip, queue, cancelPrevious"),
        ({"missedLimit": 0}, "from 1 to 1000"),
        ({"missedLimit": "3"}, "from 1 to 1000"),
        ({"waitingLimit": 1001}, "from 1 to 1000"),
        ({"catchUp": "all"}, "no setting 'catchUp'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_with_what_it_may_be(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        cron("0 0 * * * *", **settings)
    assert says in str(refused.value)


def test_settings_are_read_in_any_case() -> None:
    assert cron("0 0 9 * * *", TIMEZONE="Europe/Vienna", Overlap="CancelPrevious").zone == "Europe/Vienna"


def test_a_timer_without_an_interval_and_a_broken_cron_expression_are_refused() -> None:
    with pytest.raises(ScheduleInvalid):
        timer("00:00:00")
    with pytest.raises(ScheduleInvalid):
        timer("-00:10:00")
    with pytest.raises(CronInvalid):
        cron("every now and then")


def test_a_schedule_that_is_due_every_microsecond_is_planned_step_by_step() -> None:
    schedule = timer("00:00:00.0000010", missed="all", missedLimit=2)
    assert len(list(islice(steps(schedule, NOON + SECOND), 3))) == 3
    assert len(fired(schedule, NOON + DAY)) == 2
