"""Functions, methods and attributes that Python expressions may use. What is not listed is not there.

Each function is called with the budget first and pays for what it reads and builds. They are looked
up by name and by the exact type of a value, never with `getattr`: there is no way from a value to
its class, its module, or a method nobody listed.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any
from uuid import UUID

from holdfast.expression import ExpressionFailed
from holdfast.expressions.python_budget import Budget
from holdfast.expressions.python_operators import plus
from holdfast.expressions.python_values import is_collection, is_dict, iterate, text, writable
from holdfast.expressions.size import kind_of

Function = Callable[..., Any]

_DIGITS = 2400  # in a text that is to become a number
_PLACES = 100


def len_(_: Budget, value: Any) -> int:
    if not is_collection(value):
        raise ExpressionFailed(f"len() does not apply to the type {type(value).__name__}.")
    return len(value)


def str_(budget: Budget, value: Any = "") -> str:
    return text(value, budget)


def int_(_: Budget, value: Any = 0, base: Any = None) -> int:
    if isinstance(value, str):
        _refuse_long(value)
        return int(value) if base is None else int(value, base)
    return int(writable(value) if isinstance(value, Decimal) else value)


def float_(_: Budget, value: Any = 0.0) -> float:
    if isinstance(value, str):
        _refuse_long(value)
    return float(value)


def decimal(_: Budget, value: Any = 0) -> Decimal:
    if isinstance(value, str):
        _refuse_long(value)
    # From a float by its text: Decimal(0.1) in Python proper has 55 digits, which nobody ever meant.
    return writable(Decimal(repr(value) if isinstance(value, float) else value))


def _refuse_long(digits: str) -> None:
    if len(digits) > _DIGITS:
        raise ExpressionFailed(f"A text of more than {_DIGITS:,} characters cannot become a number.")


def bool_(_: Budget, value: Any = False) -> bool:
    return bool(value)


def round_(_: Budget, value: Any, digits: Any = None) -> Any:
    if digits is not None and abs(digits) > _PLACES:
        raise ExpressionFailed(f"round() goes to at most {_PLACES} places.")
    return round(writable(value) if isinstance(value, Decimal) else value, digits)


def abs_(_: Budget, value: Any) -> Any:
    return abs(value)


def min_(budget: Budget, *values: Any) -> Any:
    return min(_compared(budget, values))


def max_(budget: Budget, *values: Any) -> Any:
    return max(_compared(budget, values))


def _compared(budget: Budget, values: tuple[Any, ...]) -> Any:
    items = iterate(values[0] if len(values) == 1 else values, budget)
    budget.read(items)
    return items


def sum_(budget: Budget, values: Any, start: Any = 0) -> Any:
    """Of numbers and durations; of lists it would take time squared."""
    items = iterate(values, budget)
    budget.spend_items(2 * len(items))  # adding up is slower than looking
    total = start
    for value in items:
        if is_collection(total) or is_collection(value):
            raise ExpressionFailed("sum() adds numbers; for texts use join().")
        total = plus(budget, total, value)
    return total


def sorted_(budget: Budget, values: Any, *, reverse: Any = False) -> list[Any]:
    items = iterate(values, budget)
    for _ in range(len(items).bit_length() // 4 + 1):  # sorting looks at each item several times
        budget.read(items)
    return sorted(items, reverse=bool(reverse))


def any_(budget: Budget, values: Any) -> bool:
    return any(iterate(values, budget))


def all_(budget: Budget, values: Any) -> bool:
    return all(iterate(values, budget))


def range_(budget: Budget, *bounds: Any) -> list[int]:
    numbers = range(*bounds)
    budget.spend_items(len(numbers))
    return list(numbers)


def list_(budget: Budget, values: Any = ()) -> list[Any]:
    return list(iterate(values, budget))


def tuple_(budget: Budget, values: Any = ()) -> tuple[Any, ...]:
    return tuple(iterate(values, budget))


def set_(budget: Budget, values: Any = ()) -> set[Any]:
    budget.read(values)
    return set(iterate(values, budget))


def dict_(budget: Budget, pairs: Any = (), /, **members: Any) -> dict[Any, Any]:
    budget.read(pairs)
    return dict(pairs if is_dict(pairs) else list(iterate(pairs, budget)), **members)


def enumerate_(budget: Budget, values: Any, start: Any = 0) -> list[tuple[int, Any]]:
    items = iterate(values, budget)
    budget.spend_items(2 * len(items))
    return list(enumerate(items, start))


def zip_(budget: Budget, *lists: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(iterate(values, budget) for values in lists), strict=False))


def reversed_(budget: Budget, values: Any) -> list[Any]:
    return list(iterate(values, budget))[::-1]


def join(budget: Budget, separator: str, values: Any) -> str:
    items = iterate(values, budget)
    budget.read(items)
    budget.spend(len(separator) * len(items))
    return separator.join(items)


def replace(budget: Budget, value: str, old: str, new: str) -> str:
    budget.spend(len(value) + value.count(old) * len(new))
    return value.replace(old, new)


def timedelta_(_: Budget, days: Any = 0, **parts: Any) -> timedelta:
    return timedelta(days=days, **parts)


def datetime_(_: Budget, *parts: Any, **named: Any) -> datetime:
    """In UTC: there is no other zone in an instance, and mixing instants with and without one fails."""
    if len(parts) > 7 or "tzinfo" in named:
        raise ExpressionFailed(
            "datetime() takes year, month, day, hour, minute, second and microsecond, in UTC."
        )
    return datetime(*parts, **named, tzinfo=UTC)


FUNCTIONS: dict[str, Function] = {
    "Decimal": decimal,
    "abs": abs_,
    "all": all_,
    "any": any_,
    "bool": bool_,
    "datetime": datetime_,
    "dict": dict_,
    "enumerate": enumerate_,
    "float": float_,
    "int": int_,
    "join": join,
    "len": len_,
    "list": list_,
    "max": max_,
    "min": min_,
    "range": range_,
    "replace": replace,
    "reversed": reversed_,
    "round": round_,
    "set": set_,
    "sorted": sorted_,
    "str": str_,
    "sum": sum_,
    "timedelta": timedelta_,
    "tuple": tuple_,
    "zip": zip_,
}


def _text_method(name: str) -> Function:
    """A method of texts that goes through the text, and builds at most a few times as much."""
    share = 4 if "split" in name else 2

    def run(budget: Budget, value: str, *arguments: Any, **named: Any) -> Any:
        budget.spend(share * len(value))
        for argument in arguments:
            if isinstance(argument, str):
                budget.spend(len(value) * (len(argument) // 64))  # stripping tries each of its characters
        return getattr(str, name)(value, *arguments, **named)

    return run


def _list_method(name: str) -> Function:
    def run(budget: Budget, value: Any, *arguments: Any) -> Any:
        budget.read(value)
        return getattr(kind_of(value), name)(value, *arguments)

    return run


def _get(budget: Budget, value: dict[Any, Any], key: Any, default: Any = None) -> Any:
    budget.read(key)
    return value.get(key, default)


def _keys(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    budget.spend_items(len(value))
    return list(value)


def _values(budget: Budget, value: dict[Any, Any]) -> list[Any]:
    budget.spend_items(len(value))
    return list(value.values())


def _items(budget: Budget, value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    budget.spend_items(3 * len(value))
    return list(value.items())


def _decode(budget: Budget, value: bytes) -> str:
    """From UTF-8; other encodings can be slow, and importing them is not ours to allow."""
    budget.spend(len(value))
    return value.decode()


def _is_integer(_: Budget, value: float) -> bool:
    return value.is_integer()


def _total_seconds(_: Budget, value: timedelta) -> float:
    return value.total_seconds()


def _isoformat(_: Budget, value: datetime) -> str:
    return value.isoformat()


def _weekday(_: Budget, value: datetime) -> int:
    return value.weekday()


def _isoweekday(_: Budget, value: datetime) -> int:
    return value.isoweekday()


def _strftime(_: Budget, value: datetime, form: str) -> str:
    return formatted(value, form)


_TEXT_METHODS = (
    *("capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal"),
    *("isdigit", "islower", "isnumeric", "isspace", "isupper", "lower", "lstrip", "partition"),
    *("removeprefix", "removesuffix", "rpartition", "rsplit", "rstrip", "split", "splitlines"),
    *("startswith", "strip", "swapcase", "title", "upper"),
)

METHODS: dict[type, dict[str, Function]] = {
    str: {**{name: _text_method(name) for name in _TEXT_METHODS}, "join": join, "replace": replace},
    bytes: {"decode": _decode},
    float: {"is_integer": _is_integer},
    dict: {"get": _get, "items": _items, "keys": _keys, "values": _values},
    list: {"count": _list_method("count"), "index": _list_method("index")},
    tuple: {"count": _list_method("count"), "index": _list_method("index")},
    datetime: {
        "isoformat": _isoformat,
        "isoweekday": _isoweekday,
        "strftime": _strftime,
        "weekday": _weekday,
    },
    timedelta: {"total_seconds": _total_seconds},
}

ATTRIBUTES: dict[type, dict[str, Callable[[Any], Any]]] = {
    datetime: {
        name: attrgetter(name) for name in ("year", "month", "day", "hour", "minute", "second", "microsecond")
    },
    timedelta: {name: attrgetter(name) for name in ("days", "seconds", "microseconds")},
}

_FORMATTED = (str, int, float, Decimal, datetime)


def formatted(value: Any, form: str) -> str:
    """As the form after the colon in an f-string says. Widths and precisions go up to 100."""
    if len(form) > 100 or any(int(digits) > 100 for digits in re.findall(r"\d+", form)):
        raise ExpressionFailed("A format asks for more than 100 characters of width or precision.")
    if not isinstance(value, _FORMATTED) and not (isinstance(value, UUID) and not form):
        raise ExpressionFailed(f"The type {type(value).__name__} cannot be formatted with '{form}'.")
    if isinstance(value, (int, Decimal)):
        writable(value)
    return format(value, form)
