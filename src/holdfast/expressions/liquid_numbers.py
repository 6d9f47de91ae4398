"""Numbers in Liquid, and the filters that calculate with them.

Fluid, the Liquid of Elsa, calculates in decimals: a tenth plus two tenths is three tenths. So do
we; whole numbers stay ints. How a number is written is in `liquid_text`.
"""

import math
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow

from liquid.exceptions import FilterArgumentError, ResourceLimitError

from holdfast.expressions.size import is_writable

# The precision of .NET's decimal. A context of our own: the thread's may be set to anything.
_ARITHMETIC = Context(prec=29, traps=[DivisionByZero, InvalidOperation, Overflow])


def exact(value: float) -> int | float | Decimal:
    """The number that the float's shortest text says: 3.0 is 3, and 0.1 is a tenth."""
    if not math.isfinite(value):
        return value
    return int(value) if value.is_integer() and abs(value) < 1e16 else Decimal(repr(value))


def number(value: object) -> int | Decimal:
    """What a filter calculates with. Whatever is no number counts as 0, as nothing does."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        value = exact(value)
    elif isinstance(value, str):
        value = _parse(value.strip())
    if isinstance(value, int):
        return value
    if not isinstance(value, Decimal) or not value.is_finite():
        return 0
    if not is_writable(value):
        raise ResourceLimitError(f"the number {value:.3E} is too large or too small", token=None)
    return value


def _parse(text: str) -> int | Decimal:
    if len(text) > 1000:
        return 0
    try:
        parsed = Decimal(text)
    except InvalidOperation:
        return 0
    return int(text) if text.lstrip("+-").isdecimal() else parsed


def plus(left: object, right: object) -> int | Decimal:
    a, b = number(left), number(right)
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return _ARITHMETIC.add(a, b)


def minus(left: object, right: object) -> int | Decimal:
    a, b = number(left), number(right)
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return _ARITHMETIC.subtract(a, b)


def times(left: object, right: object) -> int | Decimal:
    a, b = number(left), number(right)
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return _ARITHMETIC.multiply(a, b)


def divided_by(left: object, right: object) -> int | Decimal:
    """Rounded down when both are whole numbers, else to fifteen places."""
    a, b = number(left), number(right)
    if b == 0:
        raise FilterArgumentError("cannot divide by zero", token=None)
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return _round(_ARITHMETIC.divide(a, b), 15)


def modulo(left: object, right: object) -> int | Decimal:
    """The remainder, with the sign of the dividend."""
    a, b = number(left), number(right)
    if b == 0:
        raise FilterArgumentError("cannot divide by zero", token=None)
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return _ARITHMETIC.remainder(a, b)


def round_(value: object, places: object = 0) -> int | Decimal:
    return _round(number(value), max(-28, min(28, int(number(places)))))


def _round(value: int | Decimal, places: int) -> int | Decimal:
    """Half to even. Rounding only ever takes digits away: 12.5 to two places is 12.5."""
    if isinstance(value, int):
        return round(value, places) if places < 0 else value
    scale = value.as_tuple().exponent
    if places > 0 and isinstance(scale, int) and -scale <= places:
        return value
    rounded = value.quantize(Decimal(1).scaleb(-places), context=_ARITHMETIC)
    return rounded if places > 0 else int(rounded)


def abs_(value: object) -> int | Decimal:
    return abs(number(value))


def ceil(value: object) -> int:
    return math.ceil(number(value))


def floor(value: object) -> int:
    return math.floor(number(value))


def at_least(value: object, least: object) -> int | Decimal:
    return max(number(value), number(least))


def at_most(value: object, most: object) -> int | Decimal:
    return min(number(value), number(most))


def total(values: list[object]) -> int | Decimal:
    result: int | Decimal = 0
    for value in values:
        result = plus(result, value)
    return result
