"""Places in a document by their paths, such as `$.root.activities[2].text`.

A path is written with the names that descriptors use. The document may spell them in another case and
put wrappers around its lists, so finding the place is also how a path gets the document's own spelling.
"""

import re
from typing import Any, NamedTuple

from holdfast.codec import is_list, is_object

_INDEX = re.compile(r"\[(0|[1-9][0-9]{0,8})\]")
_END = re.compile(r"\.|\[|\Z")
_WRAPPERS = ("$values", "items", "values")


class Step(NamedTuple):
    """From an object or list to something in it."""

    inside: Any
    key: str | int | None
    """None for what is not there."""
    position: int
    """Among its siblings. What is not there stands before them."""
    consumed: int = 0
    """How much of the path it stands for; wrappers are not named in paths."""
    missing: str = ""
    """The rest of the path, when it is not there."""


class Locator:
    """Finds the places of one document. Make a new one when the document has changed."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._members: dict[int, dict[str, tuple[int, str]]] = {}

    def locate(self, path: str) -> list[Step]:
        """The steps from the document to the place a path names."""
        steps: list[Step] = []
        here, rest = self._document, path[1:]
        while rest:
            step = self._step(here, rest)
            steps.append(step)
            if step.key is None:
                break
            here, rest = step.inside[step.key], rest[step.consumed :]
        return steps

    def _step(self, here: Any, rest: str) -> Step:
        index = _INDEX.match(rest)
        if index and is_list(here) and int(index[1]) < len(here):
            return Step(here, int(index[1]), int(index[1]), index.end())
        if is_object(here):
            if index is None:
                return self._member(here, rest)
            wrapper = next((name for name in _WRAPPERS if name in here), None)
            if wrapper is not None:
                return Step(here, wrapper, 0)
        return Step(here, None, -1, missing=rest)

    def _member(self, here: dict[str, Any], rest: str) -> Step:
        members = self._members.get(id(here))
        if members is None:
            named = {name: (position, name) for position, name in enumerate(here)}
            members = self._members[id(here)] = {name.lower(): at for name, at in named.items()} | named
        # A name may hold dots itself, so the longest that fits is meant.
        for end in reversed([match.start() for match in _END.finditer(rest, 1)]):
            name = rest[1:end].lower()
            # Inputs with a name like `_id` may be there without the underscore.
            found = members.get(rest[1:end]) or members.get(name) or members.get(name.removeprefix("_"))
            if found is not None:
                return Step(here, found[1], found[0], end)
        return Step(here, None, -1, missing=rest)


def spelled(steps: list[Step]) -> str:
    """The path of a place, in the words of its document."""
    path = "$"
    for step in steps:
        if step.key is None:
            path += step.missing
        else:
            path += f"[{step.key}]" if isinstance(step.key, int) else f".{step.key}"
    return path
