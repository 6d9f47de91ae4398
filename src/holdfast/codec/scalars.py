"""From whatever a workflow produced to one number, text, instant or the like.

Each function takes any value and gives the value wanted, None for blank text, or raises one of
`UNFIT`. The rules are .NET's invariant ones, because that is what people's definitions were
written against: whole numbers round half to even, `True` is text for true, 1E+16 has that spelling.
Which type names use which function is `types`.
"""

import re
from base64 import b64decode, b64encode
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from enum import Enum
from math import isfinite
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.codec.json import encode_bare
from holdfast.codec.timespan import format_timespan, parse_timespan
from holdfast.errors import Invalid

UNFIT = (ValueError, TypeError, ArithmeticError, msgspec.MsgspecError, Invalid)
"""What a value that does not fit raises, here and in the libraries that take it apart."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,18})?")
_AMERICAN = re.compile(
    r"(\d\d)/(\d\d)/(\d{4})(?: (\d\d:\d\d:\d\d))?"
)  # how .NET prints dates: 06/15/2026 10:00:00
_FIXED_DIGITS = 15  # a number of this many digits before its point is written with an exponent


def whole_number(value: Any) -> int | None:
    """An integer; other numbers are rounded, text must be one already."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        written = value.strip()
        if written and not _WHOLE.fullmatch(written):
            raise ValueError("it is not a whole number")
        return int(written) if written else None
    if isinstance(value, float):
        return round(value)
    if isinstance(value, Decimal):
        if value.is_finite() and value.adjusted() < 100:  # 1E+999999 would fill memory with zeros
            return int(value.to_integral_value(ROUND_HALF_EVEN))
        raise ValueError("it is too large")
    raise TypeError("it is not a number")


def floating(value: Any) -> float | None:
    """A finite float."""
    if isinstance(value, str):
        text = value.strip()
        if text and not _NUMBER.fullmatch(text):
            raise ValueError("it is not a number")
        number = float(text) if text else None
    elif isinstance(value, (int, float, Decimal)):
        number = float(value)
    else:
        raise TypeError("it is not a number")
    if number is not None and not isfinite(number):
        raise ValueError("it is too large")
    return number


def decimal(value: Any) -> Decimal | None:
    """A decimal, exact: of a float, the digits it is written with."""
    if isinstance(value, str):
        text = value.strip()
        if text and not _NUMBER.fullmatch(text):
            raise ValueError("it is not a number")
        number = Decimal(text) if text else None
    elif isinstance(value, int):
        number = Decimal(int(value))
    elif isinstance(value, float):
        number = Decimal(repr(value))
    elif isinstance(value, Decimal):
        number = value
    else:
        raise TypeError("it is not a number")
    if number is not None and not number.is_finite():
        raise ValueError("it is no finite number")
    return number


def boolean(value: Any) -> bool | None:
    """True and False, in any case; a number is true unless it is zero."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("true", "false"):
            return text == "true"
        if text:
            raise ValueError("it is neither True nor False")
        return None
    if isinstance(value, (int, float, Decimal)):
        return bool(value)
    raise TypeError("it is neither True nor False")


def text(value: Any) -> str:
    """Invariant text; lists and objects as JSON."""
    if isinstance(value, Enum):
        return text(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, Decimal):
        return f"{value:f}" if abs(value.adjusted()) < 100 else str(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_timespan(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(cast("bytes", value)).decode()
    return encode_bare(value).decode()


def _float_text(value: float) -> str:
    if not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    point = len(digits) + cast("int", exponent)  # how many digits stand before the decimal point
    if not any(digits):
        return "-0" if sign else "0"
    minus = "-" if sign else ""
    written = "".join(map(str, digits))
    if not -4 < point <= _FIXED_DIGITS:
        fraction = f".{written[1:]}" if len(written) > 1 else ""
        return f"{minus}{written[0]}{fraction}E{point - 1:+03}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{written}"
    if point >= len(written):
        return f"{minus}{written}{'0' * (point - len(written))}"
    return f"{minus}{written[:point]}.{written[point:]}"


def instant(value: Any) -> datetime | None:
    """Aware UTC. Text without an offset means UTC, a date means its midnight."""
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time.min, UTC)
    if not isinstance(value, str):
        raise TypeError("it is not a date")
    written = value.strip()
    if not written:
        return None
    if match := _AMERICAN.fullmatch(written):
        written = f"{match[3]}-{match[1]}-{match[2]}T{match[4] or '00:00:00'}"
    else:
        written = re.sub(r" (?=[+-]\d\d:?\d\d$)", "", written)
    return _utc(datetime.fromisoformat(written))


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def day(value: Any) -> date | None:
    """The date of an instant, or the date itself."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    moment = instant(value)
    return None if moment is None else moment.date()


def clock(value: Any) -> time | None:
    """A time of day."""
    if isinstance(value, datetime):
        return value.time()
    if isinstance(value, time):
        return value
    if not isinstance(value, str):
        raise TypeError("it is not a time of day")
    return time.fromisoformat(value.strip()) if value.strip() else None


def span(value: Any) -> timedelta | None:
    """A duration, from .NET or ISO 8601 text."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise TypeError("it is not a duration")
    return parse_timespan(value) if value.strip() else None


def guid(value: Any) -> UUID | None:
    """A UUID."""
    if isinstance(value, UUID):
        return value
    if not isinstance(value, str):
        raise TypeError("it is not a GUID")
    return UUID(value.strip().strip("()")) if value.strip() else None


def octets(value: Any) -> bytes | None:
    """Bytes, from base64 or from a list of small numbers."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", value))
    if isinstance(value, str):
        return b64decode(value.strip(), validate=True)
    if isinstance(value, list):
        return bytes(cast("list[int]", value))
    raise TypeError("it is neither bytes nor base64")
