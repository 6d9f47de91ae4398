"""When something recurs: after every interval, by a cron expression, or once.

All three answer the same questions, and none by stepping through what lies between: three months of
missed seconds cost as much as one. What a schedule makes of the answers is in `schedules`.
"""

from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

from holdfast.cron import Cron

_INSTANT = timedelta(microseconds=1)


class Recurrence(Protocol):
    def first(self, after: datetime, last: datetime | None = None) -> datetime | None:
        """Where a schedule begins that is published at `after` and fired `last` before, if ever."""
        ...

    def following(self, after: datetime) -> datetime | None: ...

    def latest(self, until: datetime) -> datetime | None:
        """The last occurrence at or before that instant."""
        ...

    def first_of_latest(self, count: int, start: datetime, until: datetime) -> datetime:
        """Of the last so many occurrences between two instants the first one. `start` is one."""
        ...


class Every:
    """An interval, counted from where it began, so that being late never shifts what comes after."""

    def __init__(self, anchor: datetime, interval: timedelta) -> None:
        self._anchor = anchor
        self._interval = interval

    def first(self, after: datetime, last: datetime | None = None) -> datetime | None:
        return self.following(after)

    def following(self, after: datetime) -> datetime | None:
        count = max(1, (after - self._anchor) // self._interval + 1)
        try:
            return self._anchor + count * self._interval
        except OverflowError:  # past the year 9999
            return None

    def latest(self, until: datetime) -> datetime | None:
        count = (until - self._anchor) // self._interval
        return None if count < 1 else self._anchor + count * self._interval

    def first_of_latest(self, count: int, start: datetime, until: datetime) -> datetime:
        back = (until - start) // self._interval
        return start + max(0, back - count + 1) * self._interval


class ByCron:
    def __init__(self, cron: Cron, zone: str | None) -> None:
        self._cron = cron
        self._zone = UTC if zone is None else ZoneInfo(zone)

    def first(self, after: datetime, last: datetime | None = None) -> datetime | None:
        return self.following(after)

    def following(self, after: datetime) -> datetime | None:
        return self._cron.next(after, self._zone)

    def latest(self, until: datetime) -> datetime | None:
        return self._cron.previous(until + _INSTANT, self._zone)

    def first_of_latest(self, count: int, start: datetime, until: datetime) -> datetime:
        occurrences = self._cron.occurrences
        if sum(1 for _ in islice(occurrences(start, until, self._zone), count)) < count:
            return start
        # More than that were missed. The distance between the last two says how far to look back for
        # that many, give or take; where they lie further apart, look twice as far.
        last = self.latest(until) or start
        before = self._cron.previous(last, self._zone) or start
        window = (last - before) * count
        while True:
            found = deque(occurrences(max(start, last - window), until, self._zone), maxlen=count)
            if len(found) == count:
                return found[0]
            window *= 2


class Once:
    def __init__(self, at: datetime) -> None:
        self._at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    def first(self, after: datetime, last: datetime | None = None) -> datetime | None:
        """Also when it is over already: once it is caught up with."""
        return self._at if last is None or self._at > last else None

    def following(self, after: datetime) -> datetime | None:
        return self._at if self._at > after else None

    def latest(self, until: datetime) -> datetime | None:
        return self._at if self._at <= until else None

    def first_of_latest(self, count: int, start: datetime, until: datetime) -> datetime:
        return start
