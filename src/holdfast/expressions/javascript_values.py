"""Values on their way into a JavaScript realm and back; `javascript_values.js` is the other side.

    Python                                  JavaScript
    int up to 2**53, float, Decimal         number (a Decimal as the nearest number there is)
    int beyond 2**53                        BigInt: exact, and it refuses to mix with numbers
    datetime (a naive one is taken as UTC)  DateTime, a Date that keeps its microseconds
    timedelta                               TimeSpan
    bytes                                   Uint8Array
    UUID                                    string

Back they come the same way: whole numbers up to 2**53 as int, other numbers as float, instants as
aware datetimes in UTC. What JSON cannot carry travels as an object with the one key `TAG`.
"""

import json
import math
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from holdfast.expression import ExpressionFailed

# Nobody who writes data or scripts can know it, so nothing of theirs is ever taken for a tag.
TAG = secrets.token_hex(8)

MOST_EXACT = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)
_LONG_NUMBER = re.compile(r"\d{16}")

Raw = str | float | bool | None


def send(value: Any) -> Raw:
    """The value as an argument for the realm. Raises ExpressionFailed when there is no such thing."""
    kind = cast("type[object]", value.__class__)
    if kind is str:
        return "s" + (value if value.isascii() else _well_formed(value))
    if kind is int:
        # The binding cuts ints to 32 bits; as floats they are whole up to 2**53.
        if -0x80000000 <= value <= 0x7FFFFFFF:
            return value
        if -MOST_EXACT <= value <= MOST_EXACT:
            return float(value)
    elif value is None or kind is bool or kind is float:
        return value
    elif kind is Decimal:
        return float(value)
    elif kind is UUID:
        return f"s{value}"
    return _written(value)


def receive(value: Any) -> Any:
    """What came out as JSON, with its tags made values again. Changes lists and dicts in place."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        for index, item in enumerate(items):
            if isinstance(item, (list, dict)):
                items[index] = receive(item)
    elif isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        tag = members.get(TAG)
        if tag is not None:
            return _revived(*tag)
        for key, item in members.items():
            if isinstance(item, (list, dict)):
                members[key] = receive(item)
    return cast("Any", value)


def refusal(message: str) -> Raw:
    """An answer that the realm throws instead of giving it to the script."""
    return "t" + json.dumps({TAG: ["error", message]})


def number(value: float) -> int | float:
    """A number as the binding hands it over."""
    if value.is_integer():
        return int(value) if abs(value) <= MOST_EXACT else value
    if math.isfinite(value):
        return value
    name = "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    raise ExpressionFailed(f"The result is {name}, which is not a number to keep.")


def _written(value: Any) -> str:
    try:
        try:
            text = _encode(value)
        except ValueError:
            text = ""  # NaN or infinity somewhere inside
        if not text or _LONG_NUMBER.search(text):
            text = _encode(_tagged(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ExpressionFailed(f"JavaScript cannot be given this value: {error}.") from error
    return ("t" if TAG in text else "j") + (text if text.isascii() else _well_formed(text))


def _well_formed(text: str) -> str:
    """Without halves of surrogate pairs: they are not UTF-8, which is how text enters the realm."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _tag(value: Any) -> Any:
    """What json itself cannot write."""
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        milliseconds, rest = divmod(since, _MILLISECOND)
        return {TAG: ["date", milliseconds, rest // _MICROSECOND]}
    if isinstance(value, timedelta):
        return {TAG: ["span", value // _MICROSECOND]}
    if isinstance(value, (bytes, bytearray)):
        return {TAG: ["bytes", b64encode(value).decode()]}
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, (set, frozenset)):
        return list(cast("set[Any]", value))
    raise TypeError(f"it holds a {type(value).__name__}")


# Compact, and escaped no more than JSON.stringify does: so the realm sees at once that a value is
# still as it came.
_encode = json.JSONEncoder(
    separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False, default=_tag
).encode


def _tagged(value: Any) -> Any:
    """A copy in which those numbers are tagged that json would write as they are."""
    if isinstance(value, int):
        return value if abs(value) <= MOST_EXACT else {TAG: ["int", str(value)]}
    if isinstance(value, (float, Decimal)):
        converted = float(value)
        # JavaScript says Infinity and NaN where Python says inf and nan.
        if math.isnan(converted):
            return {TAG: ["float", "NaN"]}
        return converted if math.isfinite(converted) else {TAG: ["float", f"{converted}inity".title()]}
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {key: _tagged(item) for key, item in members.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_tagged(item) for item in cast("list[Any]", value)]
    return value


def _revived(kind: str, first: Any, second: int = 0) -> Any:
    match kind:
        case "date":
            try:
                return _EPOCH + timedelta(milliseconds=first, microseconds=second)
            except OverflowError:
                raise ExpressionFailed("A date lies outside the years 1 to 9999.") from None
        case "span":
            try:
                return timedelta(microseconds=first)
            except OverflowError:
                raise ExpressionFailed("A time span is longer than can be kept.") from None
        case "bytes":
            return b64decode(first)
        case "int":
            return int(first)
        case _:
            return float(first)
