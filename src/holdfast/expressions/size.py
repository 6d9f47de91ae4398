"""How big a value is, counted the way the trouble it can cause grows.

A list that holds one long list a thousand times is small in memory and huge for whoever walks,
compares or writes it. So everything is counted as often as it is reached, and counting stops at
the caller's limit: asking is never dearer than what the caller was willing to spend.
"""

from decimal import Decimal
from typing import Any

ITEM = 8  # what one item, number or reference counts, in characters

# Numbers stay this small: about 2,400 digits. Python itself refuses to print more than 4,300.
NUMBER_BITS = 8192
DECIMAL_EXPONENT = 1000


def kind_of(value: object) -> type[object]:
    """The type. Of an Any, type checkers would know less."""
    return type(value)


def weigh(value: Any, limit: int) -> int:
    """The size in characters, with `ITEM` for each item; anything above `limit` when it is more."""
    total = 0
    waiting: list[Any] = [value]
    while waiting and total <= limit:
        part = waiting.pop()
        kind = kind_of(part)
        if issubclass(kind, (str, bytes)):
            total += len(part)
        elif issubclass(kind, dict):
            # Counted before they are put in line: ten million items would fill the line itself.
            total += ITEM + 2 * ITEM * len(part)
            if total <= limit:
                waiting.extend(part)
                waiting.extend(part.values())
        elif issubclass(kind, (list, tuple, set, frozenset)):
            total += ITEM + ITEM * len(part)
            if total <= limit:
                waiting.extend(part)
        elif issubclass(kind, int):
            total += part.bit_length() // 8
    return total


def is_writable(number: int | Decimal) -> bool:
    """Whether the number can be written out in full, or made an int, without filling the memory."""
    if isinstance(number, int):
        return number.bit_length() <= NUMBER_BITS
    return not number.is_finite() or (
        abs(number.adjusted()) <= DECIMAL_EXPONENT and len(number.as_tuple().digits) <= DECIMAL_EXPONENT
    )
