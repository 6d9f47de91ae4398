"""Cron expressions as Cronos reads them, because that is what Elsa's cron texts mean.

Five fields, or six with seconds in front: `second minute hour day-of-month month day-of-week`. Both
day fields must match. Ranges may wrap (`FRI-MON`), and the day fields know `L`, `L-3`, `15W`, `LW`,
`MON#2` and `FRIL`. An expression says nothing about zones: whoever asks brings one.

When clocks go forward, an occurrence in the hour that does not exist moves to its end. When they go
back, an expression for fixed times runs once, the first time; one that repeats within the day (it
has a `*`, a range or a step in its seconds, minutes or hours) runs through the hour twice.
"""

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import NamedTuple

from holdfast.errors import Invalid

_MACROS = {
    "@every_second": "* * * * * *",
    "@every_minute": "* * * * *",
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_PART = re.compile(r"(?P<low>\w+)(?:-(?P<high>\w+))?(?:/(?P<step>\w+))?")
_STAR = re.compile(r"[*?](?:/(?P<step>\w+))?")
_LAST_DAY = re.compile(r"L(?:-(?P<before>[0-9]{1,2}))?(?P<weekday>W)?")
_NEAREST_WEEKDAY = re.compile(r"(?P<day>[0-9]{1,2})W")
_NTH_WEEKDAY = re.compile(r"(?P<weekday>[0-9]|[A-Z]{3})(?:L|#(?P<nth>\w+))")

_SECOND = timedelta(seconds=1)
_YEARS_UNTIL_THE_CALENDAR_REPEATS = 400


class CronInvalid(Invalid):
    """The text is no cron expression. The message names the field and what it may hold."""

    code = "cron.invalid"


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: Mapping[str, int] = MappingProxyType({})
    hint: str = ""

    def refuse(self, text: str) -> CronInvalid:
        """The error for a text that this field cannot hold."""
        names = f" or {next(iter(self.names))} to {list(self.names)[-1]}" if self.names else ""
        return CronInvalid(
            f"{self.name} cannot be {text!r}. Use * or numbers from {self.first} to {self.last}{names}, "
            f"as lists (1,2), ranges (1-3) and steps (*/2, at most {self.last}){self.hint}."
        )

    def number(self, text: str, whole: str) -> int:
        """The number that a value stands for."""
        value = self.names.get(text, -1)
        if re.fullmatch("[0-9]{1,2}", text):
            value = int(text)
        if not self.first <= value <= self.last:
            raise self.refuse(whole)
        return value

    def step(self, text: str | None, whole: str) -> int:
        """How far apart the values of a range are; 1 when nothing is said."""
        if text is None:
            return 1
        if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= self.last:
            raise self.refuse(whole)
        return int(text)


_SECONDS = _Field("seconds", 0, 59)
_MINUTES = _Field("minutes", 0, 59)
_HOURS = _Field("hours", 0, 23)
_DAYS = _Field("day of month", 1, 31, hint=", or one of L, L-3, LW, 15W")
_MONTH = _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)})
_WEEKDAY = _Field(
    "day of week", 0, 7, {name: number for number, name in enumerate(_WEEKDAYS)}, ", or one of FRIL, MON#2"
)

_Month = tuple[int, int]  # the weekday (Monday is 0) of its first day, and how many days it has
_DayRule = Callable[[int, _Month], bool]


class Cron:
    """When something recurs. Raises CronInvalid when the expression cannot be read."""

    __slots__ = (
        "_days_of",
        "_hours",
        "_is_day",
        "_is_weekday",
        "_minutes",
        "_months",
        "_repeats",
        "_seconds",
        "expression",
    )

    def __init__(self, expression: str) -> None:
        self.expression = expression
        seconds, minutes, hours, day, months, weekday = _split(expression)
        self._seconds = sorted(_values(seconds, _SECONDS))
        self._minutes = sorted(_values(minutes, _MINUTES))
        self._hours = sorted(_values(hours, _HOURS))
        self._months = _values(months, _MONTH)
        self._is_day = _day_rule(day)
        self._is_weekday = _weekday_rule(weekday)
        self._repeats = any(mark in field for field in (seconds, minutes, hours) for mark in "*?-/")
        self._days_of: dict[_Month, list[int]] = {}  # there are only 28 different months

    def __repr__(self) -> str:
        return f"Cron({self.expression!r})"

    def next(self, after: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The first occurrence after that instant, in UTC; None when there is none."""
        try:
            return self._next_in_zone(after, zone)
        except OverflowError:  # past the year 9999
            return None

    def previous(self, before: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The last occurrence before that instant, in UTC; None when there is none."""
        # Found by asking `next`, from ever further back and then ever closer: it knows all the rules
        # about zones, and thirty questions cost less than trusting a second set of rules.
        before = before.astimezone(UTC)
        found = self._some_occurrence_before(before, zone)
        if found is None:
            return None
        late = before.replace(microsecond=0)
        while found < late:
            middle = found + (late - found) // _SECOND // 2 * _SECOND
            candidate = self.next(middle, zone)
            if candidate is not None and candidate < before:
                found = candidate
            else:
                late = middle
        return found

    def _some_occurrence_before(self, before: datetime, zone: tzinfo) -> datetime | None:
        back = timedelta(minutes=1)
        while back.days < 365 * _YEARS_UNTIL_THE_CALENDAR_REPEATS:
            try:
                found = self.next(before - back, zone)
            except OverflowError:  # before the year 1
                return None
            if found is not None and found < before:
                return found
            back *= 8
        return None

    def occurrences(self, after: datetime, until: datetime, zone: tzinfo = UTC) -> Iterator[datetime]:
        """All occurrences after one instant, up to and including another, in UTC."""
        found = self.next(after, zone)
        while found is not None and found <= until:
            yield found
            found = self.next(found, zone)

    def _next_in_zone(self, after: datetime, zone: tzinfo) -> datetime | None:
        after = after.astimezone(UTC).replace(microsecond=0)
        start = _wall_clock(after, zone) + _SECOND
        early, late = _instants(_wall_clock(after, zone), zone)
        if early < late:  # somewhere in an hour that the clock goes through twice
            change = _change_of_offset(early, late, zone)
            if after < change:
                found = self._next_local(start)
                if found is not None and _instants(found, zone)[0] < change:
                    return _instants(found, zone)[0]
                start = _wall_clock(change, zone)
            if self._repeats:
                found = self._next_local(start)
                if found is not None and _is_repeated(found, zone):
                    return _instants(found, zone)[1]
            start = max(start, _wall_clock(change - _SECOND, zone) + _SECOND)
        found = self._next_local(start)
        if found is None:
            return None
        early, late = _instants(found, zone)
        return _change_of_offset(late, early, zone) if late < early else early

    def _next_local(self, start: datetime) -> datetime | None:
        """The first wall-clock time that matches, at `start` or later."""
        year, month, first_day = start.year, start.month, start.day
        earliest = (start.hour, start.minute, start.second)
        last_year = min(start.year + _YEARS_UNTIL_THE_CALENDAR_REPEATS, datetime.max.year)
        while year <= last_year:
            if month in self._months:
                for day in self._days(year, month):
                    if day < first_day:
                        continue
                    clock = self._next_clock(earliest if day == first_day else (0, 0, 0))
                    if clock is not None:
                        return datetime(year, month, day, *clock)
            year, month = (year + 1, 1) if month == 12 else (year, month + 1)
            first_day, earliest = 1, (0, 0, 0)
        return None

    def _days(self, year: int, month: int) -> list[int]:
        shape = monthrange(year, month)
        days = self._days_of.get(shape)
        if days is None:
            days = [
                day
                for day in range(1, shape[1] + 1)
                if self._is_day(day, shape) and self._is_weekday(day, shape)
            ]
            self._days_of[shape] = days
        return days

    def _next_clock(self, earliest: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """The first time of day that matches, at `earliest` or later."""
        hour, minute, second = earliest
        hours, minutes, seconds = self._hours, self._minutes, self._seconds
        if hour in hours:
            if minute in minutes and (at := bisect_left(seconds, second)) < len(seconds):
                return hour, minute, seconds[at]
            if (at := bisect_left(minutes, minute + 1)) < len(minutes):
                return hour, minutes[at], seconds[0]
        if (at := bisect_left(hours, hour + 1)) < len(hours):
            return hours[at], minutes[0], seconds[0]
        return None


def _split(expression: str) -> list[str]:
    fields = _MACROS.get(expression.strip().lower(), expression).upper().split()
    if len(fields) == 5:
        fields.insert(0, "0")
    if len(fields) != 6:
        raise CronInvalid(
            f"{expression!r} has {len(fields)} fields. Write five (minute hour day month weekday), six with "
            f"seconds in front, or one of {', '.join(_MACROS)}."
        )
    return fields


def _values(text: str, field: _Field) -> frozenset[int]:
    """The numbers a field stands for."""
    if star := _STAR.fullmatch(text):
        return frozenset(range(field.first, field.last + 1, field.step(star["step"], text)))
    values: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise field.refuse(text)
        low = field.number(match["low"], text)
        step = field.step(match["step"], text)
        if match["high"] is not None:
            high = field.number(match["high"], text)
        else:
            high = low if match["step"] is None else field.last
        values.update(_range(low, high, field)[::step])
    return frozenset(values)


def _range(low: int, high: int, field: _Field) -> list[int]:
    if low <= high:
        return list(range(low, high + 1))
    last = 6 if field is _WEEKDAY else field.last  # Sunday is 0 and 7, and comes round once
    return [*range(low, last + 1), *range(field.first, high + 1)]


def _day_rule(text: str) -> _DayRule:
    if match := _LAST_DAY.fullmatch(text):
        before = int(match["before"] or 0)
        if before > 30:
            raise _DAYS.refuse(text)
        if match["weekday"]:
            return lambda day, month: month[1] > before and day == _nearest_weekday(month[1] - before, month)
        return lambda day, month: day == month[1] - before
    if match := _NEAREST_WEEKDAY.fullmatch(text):
        wanted = _DAYS.number(match["day"], text)
        return lambda day, month: wanted <= month[1] and day == _nearest_weekday(wanted, month)
    days = _values(text, _DAYS)
    return lambda day, _: day in days


def _weekday_rule(text: str) -> _DayRule:
    if match := _NTH_WEEKDAY.fullmatch(text):
        weekday = _WEEKDAY.number(match["weekday"], text) % 7
        if match["nth"] is None:
            return lambda day, month: _weekday(day, month) == weekday and day + 7 > month[1]
        if match["nth"] not in ("1", "2", "3", "4", "5"):
            raise _WEEKDAY.refuse(text)
        nth = int(match["nth"])
        return lambda day, month: _weekday(day, month) == weekday and (day + 6) // 7 == nth
    weekdays = {number % 7 for number in _values(text, _WEEKDAY)}
    return lambda day, month: _weekday(day, month) in weekdays


def _weekday(day: int, month: _Month) -> int:
    """0 for Sunday to 6 for Saturday."""
    return (month[0] + day) % 7


def _nearest_weekday(day: int, month: _Month) -> int:
    """The day itself, or the Friday before or Monday after it, within the month."""
    weekday = _weekday(day, month)
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < month[1] else day - 2
    return day


def _wall_clock(at: datetime, zone: tzinfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


def _instants(local: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """The instants a wall-clock time may mean: early and late when repeated, the reverse when skipped."""
    first, second = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
    return first.astimezone(UTC), second.astimezone(UTC)


def _is_repeated(local: datetime, zone: tzinfo) -> bool:
    early, late = _instants(local, zone)
    return early < late


def _change_of_offset(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """The first instant after `low` at which the zone's clock has been moved; `high` has it moved."""
    offset = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return high
