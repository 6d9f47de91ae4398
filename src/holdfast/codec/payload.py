"""Elsa's payload JSON: free values, with type information where JSON alone would lose it.

    {"_type": "Decimal", "_island": "1.10"}           a value with its own JSON text
    {"_type": "Int32[]", "_items": [1, 2]}            a collection of a type
    {"$id": "6", "$values": [...]}, {"$ref": "6"}     one object, met in several places
    {"\\$id": "mine"}                                  a user's key, escaped so that it is not ours

Reading gives plain Python values: `$ref` gives the very object that carries the `$id`, wherever that
is, so that a document may even contain itself. Writing knows no identity: what is shared is written
twice, and what contains itself is refused. How single values are written is `plain`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from holdfast.codec.conversion import ConversionFailed
from holdfast.codec.json import JsonInvalid, decode
from holdfast.codec.plain import MAX_DEPTH, is_plain, make_plain, needs_escape
from holdfast.codec.types import DECIMAL, find_type

MAX_UNFOLDED = 1_000_000
"""How many values a document may hold once every reference is followed."""

_MARKS = frozenset({"_type", "$id", "$ref"})  # the others mean something only beside one of these
_STARTS_OF_MARKS = (b'"$', b'"_', b'"\\')  # in JSON text, the last one also for marks spelled with \u

_encoder = msgspec.json.Encoder()


def write_payload(value: Any) -> Any:
    """The plain form of a value, from which `read_payload` makes an equal one. Copies only if it must."""
    return value if is_plain(value, as_payload=True) else make_plain(value, as_payload=True)


def encode_payload(value: Any) -> bytes:
    """`write_payload` and `encode`, with one look at the value instead of two."""
    try:
        if is_plain(value, as_payload=True):
            return _encoder.encode(value)
    except ValueError:  # half a character, or too many digits: making it plain tells where
        pass
    return _encoder.encode(make_plain(value, as_payload=True))


def decode_payload(text: bytes | str) -> Any:
    """`decode` and `read_payload` in one, and quicker where the text carries no marks."""
    value = decode(text)
    raw = text.encode() if isinstance(text, str) else text
    return read_payload(value) if any(start in raw for start in _STARTS_OF_MARKS) else value


def read_payload(json_value: Any, *, known_types: Iterable[str] = ()) -> Any:
    """The values that decoded payload JSON stands for. Raises JsonInvalid.

    Objects of `known_types`, and of types we know, become dicts without their `_type`; a type nobody
    knows stays visible in its dict. A `$ref` to nothing is data like any other. JSON that carries no
    marks at all is given back as it is.
    """
    marks: set[str] = set()
    _find_marks(json_value, marks, MAX_DEPTH)
    if not marks:
        return json_value
    reading = _Reading(frozenset(name.lower() for name in known_types))
    if "$id" in marks:
        reading.find_identities(json_value)
    value = reading.value(json_value)
    if reading.has_references:
        _check_unfolded(value)
    return value


def _find_marks(node: Any, found: set[str], depth: int) -> None:
    """Collect the keys that mean something to this format; for all that are escaped, one backslash."""
    if type(node) is dict:
        for key in cast("dict[str, Any]", node):
            if key < "`":  # all marks are, and most people's keys are not
                if key in _MARKS:
                    found.add(key)
                elif key[:1] == "\\":
                    found.add("\\")
    elif type(node) is not list:
        return
    if not depth:
        raise JsonInvalid(f"The payload is nested deeper than {MAX_DEPTH} levels. Flatten it.")
    for child in _parts(node):
        if type(child) is dict or type(child) is list:
            _find_marks(child, found, depth - 1)


def _parts(node: Any) -> Iterable[Any]:
    """What a dict or list holds; nothing for other values."""
    if type(node) is dict:
        return cast("dict[str, Any]", node).values()
    return cast("list[Any]", node) if type(node) is list else ()


class _Reading:
    """One document being read.

    The empty list or dict of every object with an identity is made before anything is filled in.
    That way a reference needs no search, may point forwards, and may close a circle.
    """

    def __init__(self, known_types: frozenset[str]) -> None:
        self.has_references = False
        self._known_types = known_types
        self._identified: dict[str, tuple[dict[str, Any], Any]] = {}  # the JSON of each, and what it becomes

    def find_identities(self, node: Any) -> None:
        if type(node) is dict:
            members = cast("dict[str, Any]", node)
            identity = members.get("$id")
            if type(identity) is str and identity not in self._identified:
                self._identified[identity] = members, self._empty(members)
        for child in _parts(node):
            if type(child) is dict or type(child) is list:
                self.find_identities(child)

    def _empty(self, members: dict[str, Any]) -> Any:
        if _is_island(members):
            return _read_island(members["_type"], members["_island"])
        return {} if _items(members) is None else []

    def value(self, node: Any) -> Any:
        if type(node) is dict:
            members = cast("dict[str, Any]", node)
            return dict(self._members(members)) if _MARKS.isdisjoint(members) else self._marked(members)
        if type(node) is list:
            return [self.value(child) for child in cast("list[Any]", node)]
        return node

    def _marked(self, members: dict[str, Any]) -> Any:
        reference = members.get("$ref")
        if type(reference) is str and len(members) == 1 and reference in self._identified:
            self.has_references = True
            return self._identified[reference][1]
        known = self._prepared(members)
        if _is_island(members):
            return _read_island(members["_type"], members["_island"]) if known is None else known
        items = _items(members)
        if items is not None:
            return self._collection(members, items, known)
        filled: dict[str, Any] = {} if known is None else known
        filled.update(self._members(members))
        return filled

    def _prepared(self, members: dict[str, Any]) -> Any:
        """What was made for this object beforehand. Of two with the same `$id` the first has it."""
        identity = members.get("$id")
        owner, made = self._identified[identity] if type(identity) is str else (None, None)
        return made if owner is members else None

    def _collection(self, members: dict[str, Any], items: list[Any], known: list[Any] | None) -> Any:
        values = [self.value(child) for child in items]
        alias = members.get("_type")
        kind = find_type(alias) if type(alias) is str else None
        if kind is not None and kind.element is not None and not kind.element.is_object:
            values = [kind.element.convert(value) for value in values]
        if known is not None:
            # Others may hold this list already, so it stays a list even where the type says set.
            known.extend(values)
            return known
        if type(alias) is str and alias.startswith(("HashSet<", "ISet<")):
            try:
                return set(values)
            except TypeError:  # a set of objects
                return values
        return values

    def _members(self, members: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for key, child in members.items():
            value = self.value(child) if type(child) is dict or type(child) is list else child
            if key >= "`":
                yield key, value
            elif key[:1] == "\\" and needs_escape(key[1:]):
                yield key[1:], value
            elif not self._is_ours(key, child):
                yield key, value

    def _is_ours(self, key: str, child: Any) -> bool:
        if type(child) is not str:
            return False
        return key == "$id" or (key == "_type" and self._is_known(child))

    def _is_known(self, alias: str) -> bool:
        if find_type(alias) is not None or alias.lower() in self._known_types:
            return True
        _, opened, argument = alias.partition("<")
        return bool(opened) and argument.rstrip(">").lower() in self._known_types


def _is_island(members: dict[str, Any]) -> bool:
    return type(members.get("_island")) is str and type(members.get("_type")) is str


def _items(members: dict[str, Any]) -> list[Any] | None:
    items = members.get("$values") if "$id" in members else None
    if items is None and "_type" in members:
        items = members.get("_items")
    return cast("list[Any]", items) if type(items) is list else None


def _read_island(alias: str, text: str) -> Any:
    kind = find_type(alias)
    # A decimal is taken from its digits: as a JSON number it would pass through a float.
    value = text if kind is DECIMAL and not text.lstrip().startswith('"') else decode(text)
    if kind is None:
        return value
    try:
        return kind.convert_strictly(value)
    except ConversionFailed as error:
        raise JsonInvalid(f"The island of type {alias} cannot be read. {error}") from None


def _check_unfolded(value: Any) -> None:
    """Refuse small documents that stand for enormous ones, before anybody tries to write them."""
    left = MAX_UNFOLDED
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for node in level:
            below.extend(_parts(node))
            if len(below) > left:
                raise JsonInvalid(
                    f"The references of this payload unfold to more than {MAX_UNFOLDED} values."
                )
        left -= len(below)
        level = below
