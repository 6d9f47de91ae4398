"""The operators of Python expressions, each paid for before it works.

Left out are `<<` and `>>` (a few characters make a number of any size) and `%` on texts (so does a
width in it; f-strings do the same within limits). Numbers are kept to a size that can be written.
"""

import ast
import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from holdfast.expression import ExpressionFailed
from holdfast.expressions.python_budget import Budget
from holdfast.expressions.size import DECIMAL_EXPONENT, NUMBER_BITS, weigh

Operator = Callable[[Budget, Any, Any], Any]

# Of one size whatever their value, but for ints, which `times` and `power` keep small.
_SMALL = frozenset({type(None), bool, int, float, Decimal, datetime, timedelta, UUID})


def plus(budget: Budget, left: Any, right: Any) -> Any:
    if type(left) not in _SMALL:
        budget.read(left)
        budget.read(right)
    return left + right


def times(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _refuse_bits(left.bit_length() + right.bit_length())
        return left * right
    for sequence, count in ((left, right), (right, left)):
        if isinstance(count, int) and isinstance(sequence, (str, bytes, list, tuple)):
            budget.spend(weigh(sequence, budget.characters) * max(count, 0))
    return left * right


def power(_: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _refuse_bits(left.bit_length() * abs(right))
    if isinstance(right, Decimal) or isinstance(left, Decimal):
        _refuse_bits(0 if abs(right) <= DECIMAL_EXPONENT else NUMBER_BITS + 1)
    result = left**right
    if isinstance(result, complex):
        raise ExpressionFailed("The root of a negative number is not a number that expressions know.")
    return result


def modulo(_: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, (str, bytes)):
        raise ExpressionFailed('% on a text is not available: use an f-string, such as f"{variables.Name}".')
    return left % right


def _refuse_bits(bits: int) -> None:
    if bits > NUMBER_BITS:
        raise ExpressionFailed(f"A number gets too large: at most {NUMBER_BITS * 3 // 10:,} digits.")


def _reading(apply: Callable[[Any, Any], Any]) -> Operator:
    """For operators that walk through both sides, or build what both together have."""

    def run(budget: Budget, left: Any, right: Any) -> Any:
        if type(left) not in _SMALL:
            budget.read(left)
            budget.read(right)
        return apply(left, right)

    return run


def _unpaid(apply: Callable[[Any, Any], Any]) -> Operator:
    def run(_: Budget, left: Any, right: Any) -> Any:
        return apply(left, right)

    return run


def contains(budget: Budget, item: Any, container: Any) -> bool:
    if isinstance(container, (str, bytes, list, tuple)):
        budget.read(container)
    else:
        budget.read(item)  # hashing a tuple goes through all that is in it
    return item in container


def misses(budget: Budget, item: Any, container: Any) -> bool:
    return not contains(budget, item, container)


OPERATORS: dict[type[ast.operator] | type[ast.cmpop], Operator] = {
    ast.Add: plus,
    ast.Sub: _reading(lambda left, right: left - right),
    ast.Mult: times,
    ast.Div: _unpaid(lambda left, right: left / right),
    ast.FloorDiv: _unpaid(lambda left, right: left // right),
    ast.Mod: modulo,
    ast.Pow: power,
    ast.BitOr: _reading(lambda left, right: left | right),
    ast.BitXor: _reading(lambda left, right: left ^ right),
    ast.BitAnd: _reading(lambda left, right: left & right),
    ast.Eq: _reading(lambda left, right: left == right),
    ast.NotEq: _reading(lambda left, right: left != right),
    ast.Lt: _reading(lambda left, right: left < right),
    ast.LtE: _reading(lambda left, right: left <= right),
    ast.Gt: _reading(lambda left, right: left > right),
    ast.GtE: _reading(lambda left, right: left >= right),
    ast.In: contains,
    ast.NotIn: misses,
    ast.Is: _unpaid(lambda left, right: left is right),
    ast.IsNot: _unpaid(lambda left, right: left is not right),
}

UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
