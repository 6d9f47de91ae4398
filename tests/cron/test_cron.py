"""Cron expressions as Cronos reads them: fields, special days, zones whose clocks change."""

from calendar import monthrange
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.cron import Cron, CronInvalid

NEW_YORK = ZoneInfo("America/New_York")
MINUTE = timedelta(minutes=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(expression: str, after: str, count: int = 1, zone: ZoneInfo | None = None) -> list[str]:
    """The next occurrences, in the zone's wall-clock time with its offset."""
    cron, at = Cron(expression), datetime.fromisoformat(after)
    found: list[str] = []
    for _ in range(count):
        occurrence = cron.next(at, zone or UTC)
        assert occurrence is not None
        assert occurrence.tzinfo is UTC
        at = occurrence
        found.append(occurrence.astimezone(zone or UTC).isoformat(" ").removesuffix("+00:00"))
    return found


class TestFields:
    @pytest.mark.parametrize(
        ("expression", "wanted"),
        [
            ("* * * * * *", ["2026-01-01 00:00:01", "2026-01-01 00:00:02"]),
            ("* * * * *", ["2026-01-01 00:01:00", "2026-01-01 00:02:00"]),
            ("0 0 * * *", ["2026-01-02 00:00:00", "2026-01-03 00:00:00"]),
            ("*/20 * * * * *", ["2026-01-01 00:00:20", "2026-01-01 00:00:40"]),
            ("50/4 * * * *", ["2026-01-01 00:50:00", "2026-01-01 00:54:00"]),
            ("0 22-1 * * *", ["2026-01-01 01:00:00", "2026-01-01 22:00:00"]),
            ("0 22-3/2 * * *", ["2026-01-01 02:00:00", "2026-01-01 22:00:00"]),
            ("0 0 1 FEB,apr *", ["2026-02-01 00:00:00", "2026-04-01 00:00:00"]),
            ("0 0 ? * MON", ["2026-01-05 00:00:00", "2026-01-12 00:00:00"]),
            ("0 0 * * 7", ["2026-01-04 00:00:00", "2026-01-11 00:00:00"]),
            ("0 0 * * 6/1", ["2026-01-03 00:00:00", "2026-01-04 00:00:00", "2026-01-10 00:00:00"]),
            ("0 0 * * FRI-MON", ["2026-01-02 00:00:00", "2026-01-03 00:00:00", "2026-01-04 00:00:00"]),
            ("0 0 13 * 5", ["2026-02-13 00:00:00", "2026-03-13 00:00:00"]),
            ("@hourly", ["2026-01-01 01:00:00"]),
            (" @Weekly ", ["2026-01-04 00:00:00"]),
            ("@yearly", ["2027-01-01 00:00:00"]),
        ],
    )
    def test_an_expression_recurs_as_cronos_says(self, expression: str, wanted: list[str]) -> None:
        assert following(expression, "2026-01-01T00:00:00+00:00", len(wanted)) == wanted

    @pytest.mark.parametrize(
        ("expression", "wanted"),
        [
            ("0 0 L * *", ["2026-01-31", "2026-02-28"]),
            ("0 0 L-2 * *", ["2026-01-29", "2026-02-26"]),
            ("0 0 LW * *", ["2026-01-30", "2026-02-27"]),
            ("0 0 L-1W * *", ["2026-01-30", "2026-02-27"]),
            ("0 0 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16"]),
            ("0 0 1W * *", ["2026-02-02", "2026-03-02"]),
            ("0 0 31W * *", ["2026-01-30", "2026-03-31"]),
            ("0 0 * * MON#2", ["2026-01-12", "2026-02-09"]),
            ("0 0 * * 5#5", ["2026-01-30", "2026-05-29"]),
            ("0 0 * * FRIL", ["2026-01-30", "2026-02-27"]),
            ("0 0 * * 0L", ["2026-01-25", "2026-02-22"]),
            ("0 0 29 2 *", ["2028-02-29", "2032-02-29"]),
            ("0 0 29 2 1", ["2044-02-29"]),
            ("0 0 L-30 * *", ["2026-03-01", "2026-05-01"]),
        ],
    )
    def test_special_days_are_found(self, expression: str, wanted: list[str]) -> None:
        found = following(expression, "2026-01-01T12:00:00+00:00", len(wanted))
        assert [day[:10] for day in found] == wanted

    def test_an_occurrence_is_strictly_after(self) -> None:
        daily = Cron("0 0 * * *")
        assert daily.next(utc("2026-01-02")) == utc("2026-01-03")
        assert daily.next(utc("2026-01-01T23:59:59.999999")) == utc("2026-01-02")
        assert daily.next(utc("2026-01-02T00:00:00.000001")) == utc("2026-01-03")

    @pytest.mark.parametrize(
        "expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 1W * SUN", "0 0 1 1 MON#2"]
    )
    def test_what_never_happens_gives_none(self, expression: str) -> None:
        assert Cron(expression).next(utc("2026-01-01")) is None
        assert Cron(expression).previous(utc("2026-01-01")) is None

    def test_the_calendar_ends_with_the_year_9999(self) -> None:
        assert Cron("* * * * *").next(utc("9999-12-31T23:59:30")) is None
        assert Cron("* * * * *").next(utc("9999-12-31T23:59:30"), ZoneInfo("Asia/Tokyo")) is None
        assert Cron("0 0 1 1 *").previous(utc("0001-01-01T00:00:00")) is None

    def test_occurrences_are_those_of_a_window(self) -> None:
        found = Cron("0 */6 * * *").occurrences(utc("2026-01-01T06:00:00"), utc("2026-01-01T18:00:00"))
        assert list(found) == [utc("2026-01-01T12:00:00"), utc("2026-01-01T18:00:00")]


class TestErrors:
    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            ("", "'' has 0 fields"),
            ("* * * *", "has 4 fields"),
            ("* * * * * * *", "has 7 fields"),
            ("@fortnightly", "has 1 fields"),
            ("60 * * * *", "minutes cannot be '60'. Use .* numbers from 0 to 59"),
            ("60 * * * * *", "seconds cannot be '60'"),
            ("* 24 * * *", "hours cannot be '24'"),
            ("* * 0 * *", "day of month cannot be '0'"),
            ("* * 32 * *", "day of month cannot be '32'"),
            ("* * L-31 * *", "day of month cannot be 'L-31'"),
            ("* * 0W * *", "day of month cannot be '0W'"),
            ("* * L,1 * *", "day of month cannot be 'L,1'"),
            ("* * * 13 *", "month cannot be '13'.* or JAN to DEC"),
            ("* * * FOO *", "month cannot be 'FOO'"),
            ("* * * * 8", "day of week cannot be '8'.* or SUN to SAT"),
            ("* * * * MON#6", "day of week cannot be 'MON#6'"),
            ("* * * * 5#0", "day of week cannot be '5#0'"),
            ("*/0 * * * *", "minutes cannot be"),
            ("*/60 * * * *", "minutes cannot be"),
            ("1,,2 * * * *", "minutes cannot be"),
            ("*,1 * * * *", "minutes cannot be"),
            ("1- * * * *", "minutes cannot be"),
            ("-1 * * * *", "minutes cannot be"),
            ("٣ * * * *", "minutes cannot be"),
            ("1/x * * * *", "minutes cannot be"),
        ],
    )
    def test_an_error_names_the_field_and_what_it_may_hold(self, expression: str, message: str) -> None:
        with pytest.raises(CronInvalid, match=message) as caught:
            Cron(expression)
        assert caught.value.code == "cron.invalid"

    @given(st.text(alphabet="*?/-,#LW0123456789 MONJAN@", max_size=30) | st.text(max_size=20))
    def test_any_text_is_an_expression_or_refused(self, text: str) -> None:
        with suppress(CronInvalid):
            Cron(text)


class TestClockChanges:
    """New York goes forward on 8 March 2026 at 2:00 and back on 1 November 2026 at 2:00."""

    def test_a_fixed_time_that_is_skipped_moves_to_the_end_of_the_gap(self) -> None:
        assert following("30 2 * * *", "2026-03-07T12:00:00-05:00", 2, NEW_YORK) == [
            "2026-03-08 03:00:00-04:00",
            "2026-03-09 02:30:00-04:00",
        ]

    def test_a_repeating_expression_steps_over_the_gap(self) -> None:
        assert following("*/30 * * * *", "2026-03-08T01:00:00-05:00", 3, NEW_YORK) == [
            "2026-03-08 01:30:00-05:00",
            "2026-03-08 03:00:00-04:00",
            "2026-03-08 03:30:00-04:00",
        ]

    def test_a_fixed_time_that_is_repeated_happens_once(self) -> None:
        assert following("30 1 * * *", "2026-10-31T12:00:00-04:00", 2, NEW_YORK) == [
            "2026-11-01 01:30:00-04:00",
            "2026-11-02 01:30:00-05:00",
        ]

    def test_asked_in_the_second_pass_a_fixed_time_waits_for_the_next_day(self) -> None:
        assert following("30 1 * * *", "2026-11-01T01:10:00-05:00", 1, NEW_YORK) == [
            "2026-11-02 01:30:00-05:00"
        ]

    def test_a_repeating_expression_runs_through_the_hour_twice(self) -> None:
        assert following("*/30 * * * *", "2026-11-01T00:45:00-04:00", 5, NEW_YORK) == [
            "2026-11-01 01:00:00-04:00",
            "2026-11-01 01:30:00-04:00",
            "2026-11-01 01:00:00-05:00",
            "2026-11-01 01:30:00-05:00",
            "2026-11-01 02:00:00-05:00",
        ]

    def test_the_end_of_the_repeated_hour_is_not_in_it(self) -> None:
        assert following("0 2 * * *", "2026-11-01T01:30:00-04:00", 1, NEW_YORK) == [
            "2026-11-01 02:00:00-05:00"
        ]


class Field(NamedTuple):
    text: str
    values: frozenset[int]


def fields(first: int, last: int, end: int | None = None) -> st.SearchStrategy[Field]:
    """A field of a cron expression, with the numbers it stands for, counted out one by one.

    A step without a range runs to `end`: in a week that is the seventh day, Sunday again.
    """
    number = st.integers(first, last)
    step = st.integers(1, last)

    def ranged(low: int, high: int, by: int | None) -> Field:
        numbers = [low]
        while numbers[-1] != high:
            numbers.append(first if numbers[-1] == last else numbers[-1] + 1)
        suffix = f"/{by}" if by else ""
        return Field(f"{low}-{high}{suffix}", frozenset(numbers[:: by or 1]))

    single = st.builds(lambda n: Field(str(n), frozenset({n})), number)
    part = single | st.builds(ranged, number, number, st.none() | step)
    part |= st.builds(
        lambda low, by: Field(f"{low}/{by}", frozenset(range(low, (end or last) + 1, by))), number, step
    )
    lists = st.lists(part, min_size=1, max_size=3).map(
        lambda parts: Field(",".join(p.text for p in parts), frozenset().union(*(p.values for p in parts)))
    )
    star = st.builds(lambda by: Field(f"*/{by}", frozenset(range(first, last + 1, by))), step)
    return st.just(Field("*", frozenset(range(first, last + 1)))) | star | lists


DayRule = tuple[str, Callable[[date], bool]]


def length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def nearest_weekday(day: date, wanted: int) -> bool:
    """Whether this is the working day nearest to the wanted day of its month."""
    candidates = [day.replace(day=n) for n in range(1, length(day) + 1)]
    working = [c for c in candidates if c.weekday() < 5]
    return 1 <= wanted <= length(day) and day == min(
        working, key=lambda c: (abs(c.day - wanted), c.day < wanted)
    )


month_days: st.SearchStrategy[DayRule] = st.one_of(
    fields(1, 31).map(lambda field: (field.text, lambda day: day.day in field.values)),
    st.integers(0, 30).map(lambda n: (f"L-{n}", lambda day: day.day == length(day) - n)),
    st.integers(1, 31).map(lambda n: (f"{n}W", lambda day: nearest_weekday(day, n))),
    st.integers(0, 27).map(lambda n: (f"L-{n}W", lambda day: nearest_weekday(day, length(day) - n))),
)
week_days: st.SearchStrategy[DayRule] = st.one_of(
    st.just(("*", lambda day: True)),
    fields(0, 6, end=7).map(
        lambda field: (
            field.text,
            lambda day: not field.values.isdisjoint({day.isoweekday(), day.isoweekday() % 7}),
        )
    ),
    st.integers(0, 6).map(
        lambda n: (f"{n}L", lambda day: day.isoweekday() % 7 == n and day.day + 7 > length(day))
    ),
    st.tuples(st.integers(0, 6), st.integers(1, 5)).map(
        lambda pair: (
            f"{pair[0]}#{pair[1]}",
            lambda day: day.isoweekday() % 7 == pair[0] and (day.day - 1) // 7 == pair[1] - 1,
        )
    ),
)
starts = st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))


class TestAgainstCounting:
    @settings(max_examples=150)
    @given(fields(0, 59), fields(0, 59), fields(0, 23), starts)
    def test_the_next_time_of_day_is_the_first_that_matches(
        self, second: Field, minute: Field, hour: Field, after: datetime
    ) -> None:
        found = Cron(f"{second.text} {minute.text} {hour.text} * * *").next(after)
        tomorrow = after.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        times = (
            day + timedelta(hours=h, minutes=m, seconds=s)
            for day in (tomorrow - timedelta(days=1), tomorrow)
            for h in sorted(hour.values)
            for m in sorted(minute.values)
            for s in sorted(second.values)
        )
        assert found == next(time for time in times if time > after)

    @settings(max_examples=150)
    @given(month_days, fields(1, 12), week_days, starts)
    def test_the_next_day_is_the_first_that_matches(
        self, month_day: DayRule, month: Field, week_day: DayRule, after: datetime
    ) -> None:
        cron = Cron(f"0 0 12 {month_day[0]} {month.text} {week_day[0]}")
        found = cron.next(after)
        window = 800
        first = after.date() if after.hour < 12 else after.date() + timedelta(days=1)
        matching = (
            day
            for day in (first + timedelta(days=n) for n in range(window))
            if day.month in month.values and month_day[1](day) and week_day[1](day)
        )
        expected = next(matching, None)
        if expected is None:
            assert found is None or found.date() >= first + timedelta(days=window)
        else:
            assert found == datetime(expected.year, expected.month, expected.day, 12, tzinfo=UTC)

    @settings(max_examples=150)
    @given(month_days, fields(1, 12), week_days, fields(0, 59), starts)
    def test_the_previous_occurrence_is_the_one_whose_next_is_not_before(
        self, month_day: DayRule, month: Field, week_day: DayRule, second: Field, before: datetime
    ) -> None:
        cron = Cron(f"{second.text} 7 */5 {month_day[0]} {month.text} {week_day[0]}")
        found = cron.previous(before)
        assume(found is not None)
        assert found is not None
        assert found < before
        assert cron.next(found - timedelta(microseconds=1)) == found
        after = cron.next(found)
        assert after is None or after >= before

    @settings(max_examples=60, deadline=None)
    @given(
        st.sampled_from([
            ("America/New_York", "2026-03-08T07:00"),
            ("America/New_York", "2026-11-01T06:00"),
            ("Europe/Berlin", "2026-03-29T01:00"),
            ("Europe/Berlin", "2026-10-25T01:00"),
            ("Australia/Lord_Howe", "2026-10-03T15:30"),
            ("Australia/Lord_Howe", "2026-04-04T15:00"),
            ("America/Sao_Paulo", "2018-11-04T03:00"),
            ("Pacific/Apia", "2011-12-30T10:00"),
            ("Asia/Kolkata", "2026-01-01T00:00"),
        ]),
        fields(0, 59),
        fields(0, 23) | st.sampled_from([Field("2", frozenset({2})), Field("1", frozenset({1}))]),
    )  # fmt: skip
    def test_around_a_change_of_clocks_each_minute_is_accounted_for(
        self, place: tuple[str, str], minute: Field, hour: Field
    ) -> None:
        zone, change = ZoneInfo(place[0]), utc(place[1])
        repeats = any(mark in minute.text + hour.text for mark in "*-/")
        start, end = change - timedelta(hours=5), change + timedelta(hours=5)

        def wall(at: datetime) -> datetime:
            return at.astimezone(zone).replace(tzinfo=None)

        def matches(local: datetime) -> bool:
            return local.minute in minute.values and local.hour in hour.values

        expected: list[datetime] = []
        at = start + MINUTE
        while at <= end:
            skipped = range(1, int((wall(at) - wall(at - MINUTE)) / MINUTE))
            gap_matches = any(matches(wall(at - MINUTE) + n * MINUTE) for n in skipped)
            second_pass = at.astimezone(zone).fold == 1
            if gap_matches or (matches(wall(at)) and (repeats or not second_pass)):
                expected.append(at)
            at += MINUTE
        cron = Cron(f"{minute.text} {hour.text} * * *")
        assert list(cron.occurrences(start, end, zone)) == expected
        for earlier, later in list(pairwise(expected))[:: len(expected) // 8 + 1]:
            assert cron.previous(later, zone) == earlier
