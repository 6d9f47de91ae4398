"""Comparing values the way a corpus means it: as JSON.

`1` and `1.0` are one number and `true` is none, the order of members does not matter, and what JSON
cannot say (a decimal, an instant, a set) counts as the JSON it is written as.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast

from holdfast.codec import NotEncodable, decode, encode_bare, encode_text

Expected = TypeVar("Expected")
Actual = TypeVar("Actual")

ABSENT: Final = object()
"""Stands for a value that is not there, which null is not."""

SHOWN = 240
"""How much of a value a line of the report has room for."""


def as_json(value: Any) -> Any:
    """The value as somebody sees it who gets it as JSON."""
    if value is ABSENT:
        return ABSENT
    try:
        return decode(encode_bare(value))
    except NotEncodable:
        return repr(value)


def is_equal(actual: Any, expected: Any) -> bool:
    """Whether two JSON values are the same."""
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, int | float) and isinstance(expected, int | float):
        return actual == expected
    if isinstance(actual, dict) and isinstance(expected, dict):
        ours, theirs = cast("dict[str, Any]", actual), cast("dict[str, Any]", expected)
        return ours.keys() == theirs.keys() and all(is_equal(ours[k], theirs[k]) for k in ours)
    if isinstance(actual, list) and isinstance(expected, list):
        left, right = cast("list[Any]", actual), cast("list[Any]", expected)
        return len(left) == len(right) and all(map(is_equal, left, right))
    return actual is expected or (
        isinstance(actual, str) and isinstance(expected, str) and actual == expected
    )


def covers(actual: Any, expected: Any, *, in_any_case: bool = False) -> bool:
    """Whether every member of the expected value is there. Lists must have the same length."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        ours, theirs = cast("dict[str, Any]", actual), cast("dict[str, Any]", expected)
        if in_any_case:
            ours = {name.casefold(): value for name, value in ours.items()}
            theirs = {name.casefold(): value for name, value in theirs.items()}
        return all(k in ours and covers(ours[k], v, in_any_case=in_any_case) for k, v in theirs.items())
    if isinstance(actual, list) and isinstance(expected, list):
        left, right = cast("list[Any]", actual), cast("list[Any]", expected)
        return len(left) == len(right) and all(
            covers(a, e, in_any_case=in_any_case) for a, e in zip(left, right, strict=True)
        )
    return is_equal(actual, expected)


def can_pair(
    expected: Sequence[Expected], actual: Sequence[Actual], fits: Callable[[Actual, Expected], bool]
) -> bool:
    """Whether each expected entry has an actual one of its own, and none is left over.

    An entry that says little fits many, so that the first that fits may be the wrong one: whoever
    has been paired gives way to a later one when there is another for it.
    """
    partner: dict[int, int] = {}

    def find(index: int, tried: set[int]) -> bool:
        for candidate, value in enumerate(actual):
            if candidate in tried or not fits(value, expected[index]):
                continue
            tried.add(candidate)
            if candidate not in partner or find(partner[candidate], tried):
                partner[candidate] = index
                return True
        return False

    return len(expected) == len(actual) and all(find(index, set()) for index in range(len(expected)))


def at_path(document: Any, path: str) -> Any:
    """The value at a path such as `root.activities[0].text`; ABSENT where there is none."""
    found: Any = document
    for name in path.removeprefix("$").removeprefix(".").replace("[", ".[").split("."):
        if name.startswith("[") and name.endswith("]"):
            items = cast("list[Any]", found) if isinstance(found, list) else []
            index = int(name[1:-1]) if name[1:-1].isdecimal() else len(items)
            found = items[index] if index < len(items) else ABSENT
        elif name:
            found = cast("dict[str, Any]", found).get(name, ABSENT) if isinstance(found, dict) else ABSENT
    return found


def shown(value: Any, room: int | None = SHOWN) -> str:
    """A value on one line, cut in the middle when it is long."""
    text = "nothing" if value is ABSENT else _text(value)
    if room is None or len(text) <= room:
        return text
    half = room // 2
    return f"{text[:half]} ... {text[-half:]}"


def _text(value: Any) -> str:
    try:
        return encode_text(value)
    except NotEncodable:
        return " ".join(repr(value).split())
