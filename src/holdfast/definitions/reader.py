"""Reading JSON that people and other tools wrote: names in any case, and errors that say where.

A `Reader` looks at one object. What is missing is None or empty; what has the wrong shape is refused
with its path. What the members mean is `document`'s concern.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.codec import encode, is_list, is_object
from holdfast.errors import Invalid

Json = dict[str, Any]


class DefinitionInvalid(Invalid):
    """The document cannot be read as a definition. Names the member and what it should be."""

    code = "definition.invalid"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def member(json: Mapping[str, Any], name: str) -> Any:
    """A member by name, in any case; None when it is missing."""
    if name in json:
        return json[name]
    lowered = name.lower()
    for key in json:
        if len(key) == len(name) and key.lower() == lowered:
            return json[key]
    return None


class Reader:
    """Reads members of one JSON object; what has the wrong shape is refused with its path."""

    __slots__ = ("json", "path")

    def __init__(self, json: Json, path: str) -> None:
        self.json = json
        self.path = path

    def get(self, name: str) -> Any:
        return member(self.json, name)

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return encode(value).decode()
        raise self.wrong(name, "text", value)

    def whole(self, name: str, default: int) -> int:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) < 20:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(name, "a whole number", value)
        return value

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if isinstance(value, str):
            value = {"true": True, "false": False, "": False}.get(value.strip().lower(), value)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return bool(value)

    def object(self, name: str) -> "Reader":
        value = self.get(name)
        if value is None:
            value = {}
        if not is_object(value):
            raise self.wrong(name, "an object", value)
        return Reader(value, f"{self.path}.{name}")

    def items(self, name: str) -> list[Any]:
        value = unwrap(self.get(name))
        if value is None:
            return []
        if not is_list(value):
            raise self.wrong(name, "a list", value)
        return value

    def objects(self, name: str) -> list["Reader"]:
        readers: list[Reader] = []
        for index, item in enumerate(self.items(name)):
            if not is_object(item):
                raise self.wrong(f"{name}[{index}]", "an object", item)
            readers.append(Reader(item, f"{self.path}.{name}[{index}]"))
        return readers

    def texts(self, name: str) -> list[str]:
        items = self.items(name)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise self.wrong(f"{name}[{index}]", "text", item)
        return items

    def wrong(self, name: str, expected: str, found: Any) -> DefinitionInvalid:
        return DefinitionInvalid(f"{self.path}.{name}", f"expected {expected}, found {kind_of(found)}")


def unwrap(value: Any) -> Any:
    """A list out of the wrappers some hosts put around it: `$values`, `items`, `values`."""
    if is_object(value):
        if "$values" in value:
            return value["$values"]
        if "_type" in value and len(value) == 2:
            return value.get("items", value.get("values", value))
    return value


def kind_of(value: Any) -> str:
    """What a value is, in an author's words."""
    if is_object(value):
        return "an object"
    if is_list(value):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    return "true or false" if isinstance(value, bool) else "a number"
