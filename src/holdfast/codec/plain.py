"""Values made plain: nothing left but what JSON itself can say.

Plain are None, bool, int, finite float, str, list, and dict with text keys, at most `MAX_DEPTH` deep.
Other values we accept become plain here: a decimal or an instant turns into an *island*, an object
that carries its type and its own JSON text; structs and dataclasses turn into dicts. Most values are
plain already, so `is_plain` looks first and then nothing is copied. Text and bytes are `json`;
reading islands back is `payload`.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

import msgspec

from holdfast.codec.timespan import format_timespan
from holdfast.errors import Invalid

MAX_DEPTH = 64
MAX_DIGITS = 4300
"""Digits of an integer: where Python itself stops turning text into numbers."""

_FIRST_TOO_LONG = 10**MAX_DIGITS
_RESERVED = frozenset({"_type", "_items", "_island"})

_class_of: Callable[[Any], object] = type  # spelled so, the type checker asks no questions about Any
_order_of = msgspec.json.Encoder().encode


class NotEncodable(Invalid):
    """A value that JSON cannot carry. `path` says where it is: `$.order.lines[2].price`."""

    code = "value.not_encodable"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"The value at {path} cannot be written as JSON: {reason}.")
        self.path = path


def is_plain(value: Any, as_payload: bool = False, depth: int = MAX_DEPTH) -> bool:
    """Whether JSON can carry the value as it is. When in doubt it says no, and `make_plain` decides.

    As payload, a key that would be mistaken for one of ours makes the value not plain. What it does
    not look for are texts and integers that have no JSON form: the encoder finds those by itself.
    """
    # This runs over everything that is ever stored. The scalars are tested in the loop, most frequent
    # first, because a call for each of them would double the time.
    kind = _class_of(value)
    if kind is dict:
        for key in value:
            # Keys that begin with a small letter sort behind all the marks we reserve.
            if type(key) is not str or (as_payload and key < "`" and needs_escape(key)):
                return False
        children = value.values()
    elif kind is list:
        children = value
    elif kind is float:
        return value - value == 0  # NaN for both NaN and Infinity
    else:
        return kind is str or kind is int or kind is bool or value is None
    if not depth:
        return False
    for child in children:
        kind = _class_of(child)
        if kind is str or kind is int or kind is bool or child is None:
            continue
        if kind is float and child - child == 0:
            continue
        if not is_plain(child, as_payload, depth - 1):
            return False
    return True


def needs_escape(key: str) -> bool:
    """Whether a user's key would be mistaken for a mark of the payload format."""
    return key[:1] in ("$", "\\") or key in _RESERVED


def make_plain(value: Any, *, as_payload: bool = False) -> Any:
    """The plain form of a value, with islands; as payload, with the user's keys escaped too."""
    return _Walk(_write_island, _write_typed_set, leaf_depth=1, escapes=as_payload).plain(
        value, "$", MAX_DEPTH
    )


def make_bare(value: Any) -> Any:
    """The plain form without any type information: an instant is text, a set is a list.

    Decimals stay as they are, for an encoder that writes them as numbers.
    """
    return _Walk(_write_bare, list, leaf_depth=0, escapes=False).plain(value, "$", MAX_DEPTH)


class _Walk:
    """One way of making a value plain, part by part, knowing at each where it is."""

    __slots__ = ("_escapes", "_leaf_depth", "_write_leaf", "_write_set")

    def __init__(
        self,
        write_leaf: Callable[[Any], Any],
        write_set: Callable[[list[Any]], Any],
        *,
        leaf_depth: int,
        escapes: bool,
    ) -> None:
        self._write_leaf = write_leaf
        self._write_set = write_set
        self._leaf_depth = leaf_depth
        self._escapes = escapes

    def plain(self, value: Any, path: str, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self.plain(value.value, path, depth)
        if isinstance(value, str):
            return _checked_text(value, path)
        if isinstance(value, int):
            return _checked_integer(value, path)
        if isinstance(value, float):
            return _checked_float(value, path)
        try:
            leaf = self._write_leaf(value)
        except OverflowError:
            raise NotEncodable(path, f"{value!r} is not within the years 1 to 9999 in UTC") from None
        if leaf is not None:
            _check_depth(path, depth - self._leaf_depth)
            _check_decimal(value, path)
            return leaf
        _check_depth(path, depth - 1)
        return self._plain_parts(value, path, depth - 1)

    def _plain_parts(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._dict(cast("Mapping[Any, Any]", value).items(), path, depth)
        if isinstance(value, (list, tuple)):
            return self._list(cast("list[Any]", value), path, depth)
        if isinstance(value, (set, frozenset)):
            _check_depth(path, depth - self._leaf_depth)
            parts = self._list(cast("set[Any]", value), path, depth - self._leaf_depth)
            return self._write_set(sorted(parts, key=_order_of))
        if isinstance(value, msgspec.Struct) and value.__struct_config__.array_like:
            tag = value.__struct_config__.tag
            members = msgspec.structs.astuple(value)
            return self._list(members if tag is None else (tag, *members), path, depth)
        named = members_of(value)
        if named is not None:
            return self._dict(named.items(), path, depth)
        kind = type(value).__name__
        raise NotEncodable(path, f"a {kind} has no JSON form; make it text, numbers, lists or dicts")

    def _dict(self, items: Iterable[tuple[Any, Any]], path: str, depth: int) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for key, child in items:
            if isinstance(key, str):
                name = _checked_text(key, path)
            elif isinstance(key, int) and not isinstance(key, bool):
                name = str(_checked_integer(key, path))
            else:
                raise NotEncodable(path, f"its key {key!r} is neither text nor a whole number")
            escaped = "\\" + name if self._escapes and needs_escape(name) else name
            written[escaped] = self.plain(child, f"{path}.{name}", depth)
        return written

    def _list(self, items: Iterable[Any], path: str, depth: int) -> list[Any]:
        return [self.plain(child, f"{path}[{index}]", depth) for index, child in enumerate(items)]


def members_of(value: Any) -> dict[str, Any] | None:
    """What a struct, dataclass or pydantic model consists of, by the names it is written with."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        members = {name: getattr(value, field) for name, field in names}
        config = value.__struct_config__
        return members if config.tag_field is None else {config.tag_field: config.tag, **members}
    if isinstance(value, type):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    dump: Callable[[], dict[str, Any]] | None = getattr(value, "model_dump", None)
    return None if dump is None else dump()


def _check_depth(path: str, left: int) -> None:
    if left < 0:
        raise NotEncodable(path, f"it is nested deeper than {MAX_DEPTH} levels, or contains itself")


def _checked_text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            character = f"U+{ord(value[error.start]):04X}"
            raise NotEncodable(
                path, f"the text holds half a character ({character}) at {error.start}"
            ) from None
    return str(value)


def _checked_integer(value: int, path: str) -> int:
    if not -_FIRST_TOO_LONG < value < _FIRST_TOO_LONG:
        raise NotEncodable(path, f"the integer has more than {MAX_DIGITS} digits")
    return int(value)


def _checked_float(value: float, path: str) -> float:
    if value - value != 0:
        raise NotEncodable(path, f"{float(value)} is no number JSON knows; use None or text")
    return float(value)


def _check_decimal(value: Any, path: str) -> None:
    if isinstance(value, Decimal) and not value.is_finite():
        raise NotEncodable(path, f"{value} is no number JSON knows; use None or text")


def _write_island(value: Any) -> dict[str, str] | None:
    """The typed form of a value for which JSON has no notation; None for values without one."""
    if isinstance(value, Decimal):
        return {"_type": "Decimal", "_island": str(value)}
    for kind, alias in _ISLANDS:
        if isinstance(value, kind):
            return {"_type": alias, "_island": f'"{_write_bare(value)}"'}
    return None


# A datetime is a date, so it comes first.
_ISLANDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (datetime, "DateTimeOffset"),
    (date, "DateOnly"),
    (time, "TimeOnly"),
    (timedelta, "TimeSpan"),
    (UUID, "Guid"),
    ((bytes, bytearray, memoryview), "ByteArray"),
)


def _write_typed_set(items: list[Any]) -> dict[str, Any]:
    return {"_type": "HashSet<Object>", "_items": items}


def _write_bare(value: Any) -> Any:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, datetime):
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return aware.isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return format_timespan(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(cast("bytes", value)).decode()
    return None
