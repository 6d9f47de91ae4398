"""Dates in Liquid: what counts as one, and the strftime directives that Fluid knows.

Written out rather than handed to the platform's strftime, which differs between systems, follows
the locale, and pads to any width a template asks for. "now" is the scope's instant, not the
machine's: a burst that is done again after a crash writes the same.
"""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

from holdfast.expressions.liquid_text import in_utc

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_FORMATS = (
    *("%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y-%m", "%Y"),
    *("%m/%d/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p"),
    *("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%b %d %Y"),
    *("%A, %d %B %Y", "%a %b %d %Y", "%a %b %d %Y %H:%M:%S"),
)


def to_moment(value: object, now: datetime) -> datetime | None:
    """The instant a value means: a datetime, seconds since 1970, text in a usual form, or "now"."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float, Decimal)):
        return datetime.fromtimestamp(int(value), UTC) if abs(value) < 1e11 else None
    return _parse(value.strip(), now) if isinstance(value, str) and len(value) < 80 else None


def _parse(text: str, now: datetime) -> datetime | None:
    if text in ("now", "today"):
        return now
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except (ValueError, TypeError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def zone(name: str) -> tzinfo | None:
    """The zone with that IANA name; None when there is none."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError):
        return None


def format_moment(moment: datetime, form: str) -> str:
    """The moment in the form that directives such as `%Y-%m-%d` describe. Unknown ones stay as they are."""
    written: list[str] = []
    rest = iter(form)
    for character in rest:
        if character != "%":
            written.append(character)
            continue
        flags = ""
        for directive in rest:
            if directive in "-_^:" and len(flags) < 4:
                flags += directive
                continue
            written.append(_directive(moment, directive, flags))
            break
        else:
            written.append("%" + flags)
    return "".join(written)


def _directive(moment: datetime, directive: str, flags: str) -> str:
    if directive in _NUMBERS:
        width, padding, read = _NUMBERS[directive]
        padding = " " if "_" in flags else padding
        return str(read(moment)).rjust(0 if "-" in flags else width, padding)
    if directive in _COMPOSED:
        written = format_moment(moment, _COMPOSED[directive])
    elif directive in _WORDS:
        written = _WORDS[directive](moment)
    elif directive in "zZ":
        written = _offset(moment, colon=directive == "Z" or ":" in flags)
    else:
        return "%" + flags + directive
    return written.upper() if "^" in flags else written


def _offset(moment: datetime, *, colon: bool) -> str:
    offset = moment.utcoffset()
    minutes = int(offset.total_seconds()) // 60 if offset else 0
    sign, minutes = "-" if minutes < 0 else "+", abs(minutes)
    return f"{sign}{minutes // 60:02}{':' if colon else ''}{minutes % 60:02}"


def _week(moment: datetime, *, first: int) -> int:
    """The week of the year, the first of January being in week 1, weeks beginning on weekday `first`."""
    january = moment.replace(month=1, day=1)
    return (moment.timetuple().tm_yday - 1 + (january.weekday() - first) % 7) // 7 + 1


_NUMBERS: dict[str, tuple[int, str, Callable[[datetime], int]]] = {
    "C": (2, "0", lambda m: m.year // 100),
    "d": (2, "0", lambda m: m.day),
    "e": (2, " ", lambda m: m.day),
    "G": (4, "0", lambda m: m.isocalendar().year),
    "H": (2, "0", lambda m: m.hour),
    "I": (2, "0", lambda m: m.hour % 12 or 12),
    "j": (3, "0", lambda m: m.timetuple().tm_yday),
    "k": (2, " ", lambda m: m.hour),
    "l": (2, " ", lambda m: m.hour % 12 or 12),
    "L": (3, "0", lambda m: m.microsecond // 1000),
    "m": (2, "0", lambda m: m.month),
    "M": (2, "0", lambda m: m.minute),
    "N": (9, "0", lambda m: m.microsecond * 1000),
    "s": (0, "0", lambda m: int(in_utc(m).timestamp())),
    "S": (2, "0", lambda m: m.second),
    "u": (1, "0", lambda m: m.isoweekday()),
    "U": (2, "0", lambda m: _week(m, first=6)),
    "V": (2, "0", lambda m: m.isocalendar().week),
    "w": (1, "0", lambda m: m.isoweekday() % 7),
    "W": (2, "0", lambda m: _week(m, first=0)),
    "y": (2, "0", lambda m: m.year % 100),
    "Y": (4, "0", lambda m: m.year),
}
_WORDS: dict[str, Callable[[datetime], str]] = {
    "a": lambda m: _DAYS[m.weekday()][:3],
    "A": lambda m: _DAYS[m.weekday()],
    "b": lambda m: _MONTHS[m.month - 1][:3],
    "B": lambda m: _MONTHS[m.month - 1],
    "h": lambda m: _MONTHS[m.month - 1][:3],
    "n": lambda _: "\n",
    "p": lambda m: "AM" if m.hour < 12 else "PM",
    "P": lambda m: "am" if m.hour < 12 else "pm",
    "t": lambda _: "\t",
    "%": lambda _: "%",
}
_COMPOSED = {
    "c": "%A, %d %B %Y %H:%M:%S",  # Fluid writes .NET's long form here, in the invariant culture
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "v": "%e-%b-%Y",
    "x": "%m/%d/%Y",
    "X": "%H:%M",
    "+": "%a %b %e %H:%M:%S %Z %Y",
}
