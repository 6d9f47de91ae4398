"""Durations as .NET writes them: `[-][d.]hh:mm:ss[.fffffff]`.

Elsa's definitions and payloads write every duration this way; ISO 8601 (`PT5S`) is understood as
well. .NET counts seven decimals, Python six, so the seventh is dropped.
"""

import re
from datetime import timedelta

import msgspec

from holdfast.errors import Invalid

_DAYS = re.compile(r"-?[0-9]+")
_CLOCK = re.compile(
    r"(?P<minus>-)?"
    r"(?:(?P<days>[0-9]+)[.:](?=[0-9]+:[0-9]+:))?"
    r"(?P<hours>[0-9]{1,2}):(?P<minutes>[0-9]{1,2})"
    r"(?::(?P<seconds>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,7}))?)?"
)
_WEEKS = re.compile(r"([+-]?)[Pp]([0-9]+)[Ww]")
_ISO_START = re.compile(r"[+-]?[Pp]")


class TimeSpanInvalid(Invalid):
    """The text is no duration."""

    code = "timespan.invalid"

    def __init__(self, text: str, reason: str) -> None:
        shown = text if len(text) <= 40 else text[:37] + "..."
        super().__init__(f"{shown!r} is not a duration: {reason}.")


def parse_timespan(text: str) -> timedelta:
    """Read `hh:mm`, `hh:mm:ss`, `d.hh:mm:ss.fffffff`, a whole number of days, or ISO 8601."""
    stripped = text.strip()
    try:
        if _DAYS.fullmatch(stripped):
            return timedelta(days=int(stripped))
        if _ISO_START.match(stripped):
            return _parse_iso(text, stripped)
        return _parse_clock(text, stripped)
    except (OverflowError, ValueError):  # ValueError: more digits than Python turns into a number
        raise TimeSpanInvalid(text, "it is longer than 999999999 days") from None


def _parse_iso(text: str, stripped: str) -> timedelta:
    if weeks := _WEEKS.fullmatch(stripped):
        return timedelta(weeks=int(weeks[1] + weeks[2]))
    try:
        return msgspec.convert(stripped, timedelta)
    except msgspec.ValidationError as error:
        if "Only units" in str(error):
            reason = "years and months have no fixed length; write them as days (P30D)"
        else:
            reason = "write it like PT5S, P1DT12H or 1.12:00:00"
        raise TimeSpanInvalid(text, reason) from None


def _parse_clock(text: str, stripped: str) -> timedelta:
    match = _CLOCK.fullmatch(stripped)
    if match is None:
        raise TimeSpanInvalid(text, "write it like 00:00:05, 1.12:00:00 or PT5S")
    hours, minutes, seconds = int(match["hours"]), int(match["minutes"]), int(match["seconds"] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise TimeSpanInvalid(
            text, "hours go to 23, minutes and seconds to 59; put days in front, as in 1.12:00:00"
        )
    span = timedelta(
        days=int(match["days"] or 0),
        hours=hours,
        minutes=minutes,
        seconds=seconds,
        microseconds=int((match["fraction"] or "").ljust(7, "0")) // 10,
    )
    return -span if match["minus"] else span


def format_timespan(span: timedelta) -> str:
    """The constant .NET form: `03:00:00`, `-1.00:00:00.5000000`."""
    minus = "-" if span < timedelta(0) else ""
    span = abs(span)
    days = f"{span.days}." if span.days else ""
    hours, minutes, seconds = span.seconds // 3600, span.seconds // 60 % 60, span.seconds % 60
    fraction = f".{span.microseconds:06}0" if span.microseconds else ""
    return f"{minus}{days}{hours:02}:{minutes:02}:{seconds:02}{fraction}"
