"""Values inside a Python expression: how they are gone through, written, and handed out.

What leaves an expression (its result, a variable it sets, an argument of a host function) is plain
and a copy, so nobody outside holds a list that somebody else may change. Sets have no order that a
second run would repeat, so wherever one is gone through it is sorted first.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard
from uuid import UUID

from holdfast.expression import ExpressionFailed
from holdfast.expressions.python_budget import Budget
from holdfast.expressions.size import is_writable, kind_of

DEPTH = 64  # of lists in lists in results: whoever reads them next may do so recursively

_UNCHANGED = frozenset({type(None), bool, float, Decimal, datetime, timedelta, UUID})


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether items can be picked from it by number."""
    return isinstance(value, (str, bytes, list, tuple))


def is_collection(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (str, bytes, list, tuple, set, dict))


def plain(value: Any, budget: Budget) -> Any:
    """The value as it may leave: a copy, tuples and sets as lists, nothing but plain values."""
    if type(value) not in _UNCHANGED:
        budget.read(value)
    return _copy(value, DEPTH)


def _copy(value: Any, depth: int) -> Any:
    kind = kind_of(value)
    if kind in _UNCHANGED or kind is str or kind is bytes:
        return value
    if kind is int:
        return writable(value)
    if depth < 0:
        raise ExpressionFailed(f"A value has lists or dicts nested more than {DEPTH} deep.")
    if issubclass(kind, dict):
        return {text_key(key): _copy(member, depth - 1) for key, member in value.items()}
    if issubclass(kind, (list, tuple, set)):
        items = _in_order(value) if issubclass(kind, set) else value
        return [_copy(item, depth - 1) for item in items]
    raise ExpressionFailed(f"{_called(value)} is not a value that an expression can give or pass on.")


def text_key(key: Any) -> str:
    if type(key) is not str:
        raise ExpressionFailed(f"The keys of a dict must be texts, and {key!r:.50} is not: use str(...).")
    return key


def writable(number: Any) -> Any:
    """The int or Decimal, if it is of a size to be written out."""
    if not is_writable(number):
        raise ExpressionFailed("A number is too large or too small to be written out.")
    return number


def iterate(value: Any, budget: Budget) -> Sequence[Any]:
    """The items, to go through one by one."""
    kind = kind_of(value)
    if kind is list or kind is tuple:
        budget.spend_items(len(value))
        return value
    if issubclass(kind, (str, bytes, dict, list, tuple)):
        budget.spend_items(len(value))
        return list(value)
    if issubclass(kind, set):
        budget.read(value)
        return _in_order(value)
    raise ExpressionFailed(f"{_called(value)} has no items to go through.")


def _in_order(values: set[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def text(value: Any, budget: Budget) -> str:
    """As Python's `str` has it."""
    kind = kind_of(value)
    if kind is str:
        return value
    if kind is Decimal or kind is datetime or kind is timedelta or kind is UUID:
        return str(value)
    budget.read(value)
    written = represent(value)
    budget.spend(len(written))
    return written


def represent(value: Any) -> str:
    """As Python's `repr` has it, for plain values only and with sets in order."""
    kind = kind_of(value)
    if kind is int:
        return repr(writable(value))
    if kind in _UNCHANGED or kind is str or kind is bytes:
        return repr(value)
    if kind is list:
        return f"[{', '.join(map(represent, value))}]"
    if kind is tuple:
        return f"({', '.join(map(represent, value))}{',' if len(value) == 1 else ''})"
    if kind is set:
        return f"{{{', '.join(map(represent, _in_order(value)))}}}" if value else "set()"
    if kind is dict:
        return f"{{{', '.join(f'{represent(k)}: {represent(v)}' for k, v in value.items())}}}"
    raise ExpressionFailed(f"{_called(value)} cannot be written as text.")


def _called(value: Any) -> str:
    # The type and not the value: a repr may be long, or say more about the host than authors should see.
    return f"A value of the type {type(value).__name__}"


def some_names(names: Any) -> str:
    """A few of the names, for an error that says what there is."""
    known = sorted(map(str, names))
    return ", ".join(known[:10]) + (" and others" if len(known) > 10 else "") if known else "none"
