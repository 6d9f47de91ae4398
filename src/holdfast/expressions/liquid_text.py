"""How Liquid writes values: invariant text, as Fluid, the Liquid of Elsa, does.

`true`, `3`, `0.3`, an instant as `2026-01-31 08:00:00Z`, an object as compact JSON. The filters
that use this are in `liquid_filters`, what counts as a number in `liquid_numbers`.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard
from uuid import UUID

import msgspec
from liquid.exceptions import ResourceLimitError
from liquid.undefined import Undefined

from holdfast.codec.json import encode_bare
from holdfast.codec.timespan import format_timespan
from holdfast.expressions.liquid_numbers import exact
from holdfast.expressions.size import is_writable, weigh

CHARACTERS = 1_000_000  # in one text
ITEMS = 20_000  # in one list


class Members(Mapping[str, Any]):
    """Names that a template may put after a dot. Each value is looked up when it is asked for."""

    def __init__(self, names: Callable[[], Iterable[str]], get: Callable[[str], Any]) -> None:
        self._names = names
        self._get = get

    def __getitem__(self, name: object) -> Any:
        if not isinstance(name, str):
            raise KeyError(name)
        value = self._get(name)
        if value is None and name not in self._names():
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names()))

    def __len__(self) -> int:
        return len(list(self._names()))


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, (list, tuple, range))


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    # Not any Mapping: going through python-liquid's `forloop` would use the loop up.
    return isinstance(value, (dict, Members))


def is_missing(value: object) -> bool:
    return value is None or isinstance(value, Undefined)


def text(value: object) -> str:
    """The value as it stands in the output."""
    if isinstance(value, str):
        return value
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (float, Decimal)):
        return _number_text(value)
    if isinstance(value, datetime):
        return f"{in_utc(value):%Y-%m-%d %H:%M:%S}Z"
    if isinstance(value, range):
        return f"{value.start}..{value.stop - 1}"
    if is_list(value):
        refuse_if_too_big(value)
        return "".join(map(text, value))
    if is_object(value):
        return json_text(value)
    if isinstance(value, timedelta):
        return format_timespan(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    # What is left belongs to the Liquid engine itself, such as `forloop`: nothing to show.
    return ""


def _number_text(value: float | Decimal) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    number = exact(value) if isinstance(value, float) else value
    return f"{number:f}" if isinstance(number, Decimal) and is_writable(number) else str(number)


def in_utc(moment: datetime) -> datetime:
    """The same instant in UTC; without an offset it is taken to be UTC already."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def json_text(value: object, *, indented: bool = False) -> str:
    """Compact JSON; characters beyond ASCII as they are."""
    refuse_if_too_big(value)
    encoded = encode_bare(_for_json(value))
    return (msgspec.json.format(encoded, indent=2) if indented else encoded).decode()


def _for_json(value: object) -> Any:
    """Numbers as text has them, and nothing left that only Liquid knows."""
    if isinstance(value, float):
        return exact(value)
    if is_object(value):
        return {text(name): _for_json(member) for name, member in value.items()}
    if is_list(value):
        return [_for_json(item) for item in value]
    return None if is_missing(value) else value


def refuse_if_too_big(value: object) -> None:
    """For what is about to be walked through as a whole."""
    if isinstance(value, Members):
        value = dict(value)
    if weigh(value, CHARACTERS) > CHARACTERS:
        raise ResourceLimitError(f"a value has more than {CHARACTERS:,} characters", token=None)
