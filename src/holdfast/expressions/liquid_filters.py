"""The filters of our Liquid: python-liquid's own where they fit, ours where Fluid differs.

Ours are those that calculate, compare, write JSON or dates, and those whose cost python-liquid
does not bound. Whichever it is, a filter only runs behind `bounded`: python-liquid's limits see
assigns, loops and output, but not what happens inside one filter.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from decimal import Decimal
from functools import wraps
from typing import Any

from liquid import Environment, RenderContext
from liquid.exceptions import FilterArgumentError, LiquidError, ResourceLimitError

from holdfast.expressions import liquid_numbers
from holdfast.expressions.liquid_dates import format_moment, to_moment, zone
from holdfast.expressions.liquid_text import (
    CHARACTERS,
    ITEMS,
    is_list,
    is_missing,
    is_object,
    json_text,
    refuse_if_too_big,
    text,
)
from holdfast.expressions.size import is_writable


def install_filters(environment: Environment, refuse_if_late: Callable[[RenderContext], None]) -> None:
    """Give the environment our filters too, and put limits around all of them."""
    for name, function in {**environment.filters, **_OURS}.items():
        environment.add_filter(name, bounded(name, function, refuse_if_late))


def bounded(
    name: str, function: Callable[..., Any], refuse_if_late: Callable[[RenderContext], None]
) -> Callable[..., Any]:
    """The filter, within the limits of time, text length, list length and size of numbers."""
    wants_environment = getattr(function, "with_environment", False)

    @wraps(function)
    def run(left: Any, *arguments: Any, context: RenderContext, **named: Any) -> Any:
        refuse_if_late(context)
        if name in _TAKE_TEXT:
            left, arguments = text(left), tuple(map(text, arguments))
        for value in (left, *arguments):
            _refuse_if_too_long(value)
        if name in _REPLACE and len(arguments) == 2:
            # Asked before: the result itself would be what fills the memory.
            old, new = arguments
            _refuse_length(len(left) + left.count(old) * len(new))
        if wants_environment:
            named["environment"] = context.env
        if name in _ASK_THE_TIME:
            named["now"] = context.globals["now"]  # whatever the template itself may call "now"
        result = function(left, *arguments, **named)
        _refuse_if_too_long(result)
        return result

    @wraps(function)
    def explain(*arguments: Any, **named: Any) -> Any:
        try:
            return run(*arguments, **named)
        except LiquidError as error:
            error.args = (_reason(name, error.message),)
            raise
        except (TypeError, ValueError, ArithmeticError) as error:
            raise FilterArgumentError(_reason(name, error), token=None) from error

    # `wraps` copied the marks python-liquid looks for. Ours asks for the context, and for that alone.
    explain.__dict__.pop("with_environment", None)
    explain.__dict__["with_context"] = True
    return explain


def _reason(name: str, reason: object) -> str:
    """The reason, for the filter's name in templates rather than the function's name in Python."""
    return f"{name}: {re.sub(r'^[^ ]*[(][)] ', '', str(reason))}"


def _refuse_if_too_long(value: object) -> None:
    if isinstance(value, str):
        _refuse_length(len(value))
    elif is_list(value):
        if len(value) > ITEMS:
            raise ResourceLimitError(f"a list has more than {ITEMS:,} items", token=None)
    elif isinstance(value, (int, Decimal)) and not is_writable(value):
        raise ResourceLimitError("the number is too large or too small", token=None)


def _refuse_length(length: int) -> None:
    if length > CHARACTERS:
        raise ResourceLimitError(f"a text has more than {CHARACTERS:,} characters", token=None)


# Lists


def _items(value: object) -> list[Any]:
    """What a filter for lists goes through; anything else is a list of that one thing."""
    if is_list(value):
        return list(value)
    return [] if is_missing(value) else [value]


def _member(item: object, name: object) -> Any:
    """The item's member; the item itself when no name is given."""
    if is_missing(name):
        return item
    return item.get(text(name)) if is_object(item) else None


def _comparable(value: object) -> Hashable:
    """Equal for values that Liquid takes to be equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return liquid_numbers.exact(value)
    if is_list(value) or is_object(value):
        return ("json", json_text(value))
    return value if isinstance(value, Hashable) else None


def _comparables(values: list[Any]) -> list[Hashable]:
    if any(is_list(value) or is_object(value) for value in values):
        refuse_if_too_big(values)  # one large object, in the list a thousand times, is written as often
    return [_comparable(value) for value in values]


def join(values: object, separator: object = " ") -> str:
    refuse_if_too_big(values)
    items, between = [text(item) for item in _items(values)], text(separator)
    _refuse_length(sum(map(len, items)) + len(between) * len(items))
    return between.join(items)


def map_(values: object, name: object) -> list[Any]:
    return [_member(item, name) for item in _items(values)]


def concat(values: object, others: object) -> list[Any]:
    if not is_list(others):
        raise FilterArgumentError("what is added must be a list", token=None)
    return [*_items(values), *others]


def reverse(values: object) -> list[Any]:
    return _items(values)[::-1]


def compact(values: object, name: object = None) -> list[Any]:
    return [item for item in _items(values) if not is_missing(_member(item, name))]


def uniq(values: object, name: object = None) -> list[Any]:
    items = _items(values)
    first: dict[Hashable, Any] = {}
    for key, item in zip(_comparables([_member(item, name) for item in items]), items, strict=True):
        first.setdefault(key, item)
    return list(first.values())


def sort(values: object, name: object = None) -> list[Any]:
    """Ascending. What is missing comes last; a mixture is sorted by its text."""
    return _sorted(values, name, lambda value: value)


def sort_natural(values: object, name: object = None) -> list[Any]:
    """Ascending by text, whatever the case."""
    return _sorted(values, name, lambda value: text(value).casefold())


def _sorted(values: object, name: object, key: Callable[[Any], Any]) -> list[Any]:
    keyed = [(_member(item, name), item) for item in _items(values)]
    refuse_if_too_big([value for value, _ in keyed])
    present = [(key(value), item) for value, item in keyed if not is_missing(value)]
    try:
        present.sort(key=lambda pair: pair[0])
    except TypeError:
        present.sort(key=lambda pair: text(pair[0]))
    return [item for _, item in present] + [item for value, item in keyed if is_missing(value)]


def _matching(values: object, name: object, wanted: object) -> list[tuple[int, Any]]:
    """Where the member is the wanted value, or, when none is asked for, neither missing nor false."""
    items = list(enumerate(_items(values)))
    members = [_member(item, name) for _, item in items]
    if is_missing(wanted):
        fits = [not is_missing(member) and member is not False for member in members]
    else:
        sought = _comparable(wanted)
        fits = [key == sought for key in _comparables(members)]
    return [found for found, fit in zip(items, fits, strict=True) if fit]


def where(values: object, name: object, wanted: object = None) -> list[Any]:
    return [item for _, item in _matching(values, name, wanted)]


def reject(values: object, name: object, wanted: object = None) -> list[Any]:
    rejected = {at for at, _ in _matching(values, name, wanted)}
    return [item for at, item in enumerate(_items(values)) if at not in rejected]


def find(values: object, name: object, wanted: object = None) -> Any:
    return next((item for _, item in _matching(values, name, wanted)), None)


def find_index(values: object, name: object, wanted: object = None) -> int | None:
    return next((at for at, _ in _matching(values, name, wanted)), None)


def has(values: object, name: object, wanted: object = None) -> bool:
    return bool(_matching(values, name, wanted))


def sum_(values: object, name: object = None) -> int | Decimal:
    return liquid_numbers.total([_member(item, name) for item in _items(values)])


def keys(value: object) -> list[str]:
    if not is_object(value):
        raise FilterArgumentError("only an object has keys", token=None)
    return list(value)


# Text, dates and the rest


def strip_html(value: str) -> str:
    """Without anything from `<` to `>`, closed or not. python-liquid's takes time squared for `<<<<`."""
    before, *others = value.split("<")
    return (before + "".join(part.partition(">")[2] for part in others)).replace(">", "")


def handleize(value: str) -> str:
    """From PascalCase or camelCase to kebab-case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z0-9])(?=[A-Z][a-z])", "-", value).lower()


def raw(value: str) -> str:
    return value


def base64(value: object) -> str | None:
    """Text and bytes as they are, objects and lists as their JSON, nothing as nothing."""
    if is_missing(value):
        return None
    if isinstance(value, bytes):
        return b64encode(value).decode()
    written = json_text(value) if is_list(value) or is_object(value) else text(value)
    return b64encode(written.encode()).decode()


def json(value: object, indented: object = None) -> str:
    return json_text(value, indented=indented is True)


def date(value: object, form: object = None, *, now: datetime) -> str | None:
    moment = to_moment(value, now)
    if moment is None or is_missing(form):
        return None
    if len(text(form)) > 1000:
        raise ResourceLimitError("the format has more than 1,000 characters", token=None)
    return format_moment(moment, text(form))


def time_zone(value: object, name: object = None, *, now: datetime) -> datetime | None:
    """The same instant in another zone, by its IANA name; in an unknown one it stays as it is."""
    moment = to_moment(value, now)
    if moment is None or is_missing(name):
        return None
    return moment.astimezone(zone(text(name)) or moment.tzinfo or UTC)


def _hash(algorithm: str) -> Callable[[str], str]:
    def run(value: str) -> str:
        return hashlib.new(algorithm, value.encode(), usedforsecurity=False).hexdigest()

    return run


_ASK_THE_TIME = frozenset({"date", "time_zone"})
_REPLACE = frozenset({"replace", "replace_first", "replace_last"})
_TAKE_TEXT = frozenset(
    (
        *("append", "base64_decode", "base64_encode", "base64_url_safe_decode"),
        *("base64_url_safe_encode", "capitalize", "downcase", "escape", "escape_once", "escapejs"),
        *("handle", "handleize", "lstrip", "md5", "newline_to_br", "prepend", "raw", "remove"),
        *("remove_first", "remove_last", "replace", "replace_first", "replace_last", "rstrip"),
        *("safe", "sha1", "sha256", "split", "squish", "strip", "strip_html", "strip_newlines"),
        *("truncate", "truncatewords", "upcase", "url_decode", "url_encode"),
    )
)
_OURS: dict[str, Callable[..., Any]] = {
    "abs": liquid_numbers.abs_,
    "at_least": liquid_numbers.at_least,
    "at_most": liquid_numbers.at_most,
    "base64": base64,
    "ceil": liquid_numbers.ceil,
    "compact": compact,
    "concat": concat,
    "date": date,
    "divided_by": liquid_numbers.divided_by,
    "find": find,
    "find_index": find_index,
    "floor": liquid_numbers.floor,
    "handle": handleize,
    "handleize": handleize,
    "has": has,
    "join": join,
    "json": json,
    "keys": keys,
    "map": map_,
    "md5": _hash("md5"),
    "minus": liquid_numbers.minus,
    "modulo": liquid_numbers.modulo,
    "plus": liquid_numbers.plus,
    "raw": raw,
    "reject": reject,
    "reverse": reverse,
    "round": liquid_numbers.round_,
    "sha1": _hash("sha1"),
    "sha256": _hash("sha256"),
    "sort": sort,
    "sort_natural": sort_natural,
    "strip_html": strip_html,
    "sum": sum_,
    "time_zone": time_zone,
    "times": liquid_numbers.times,
    "uniq": uniq,
    "where": where,
}
