"""A type of the values in a workflow, and the ways to make one.

A Type is a name and two functions chosen once, when the type is made: `convert`, which falls back
to the type's default, and `convert_strictly`, which raises. A value that is right already costs one
look at its class. The rules for single values are `scalars`; which names exist is `types`, and what
a Python annotation stands for is `annotations`.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from reprlib import Repr
from typing import Any, cast

import msgspec

from holdfast.codec import scalars
from holdfast.codec.json import decode, encode_bare
from holdfast.codec.plain import members_of
from holdfast.codec.scalars import UNFIT
from holdfast.errors import Invalid

Converter = Callable[[Any], Any]

_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


class ConversionFailed(Invalid):
    """A value that does not fit the type it is meant for."""

    code = "value.conversion"

    def __init__(self, value: Any, target: str, reason: object) -> None:
        try:
            shown = _short.repr(value)
        except ValueError:  # an integer too long to be written
            shown = "a very long number"
        why = str(reason).rstrip(".")
        super().__init__(f"{shown} ({type(value).__name__}) cannot become {target}: {why}.")


class JsonBroken(ConversionFailed):
    """Text that was meant as JSON for the type, and is not. Nobody should overlook that."""


class Type(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What values of one kind look like. Types with the same name are equal."""

    name: str
    """The canonical alias: `Int32`, `List<String>`, `Object[]`."""

    convert: Converter
    """The value as this type; what does not fit gives the default. Broken JSON raises ConversionFailed."""

    convert_strictly: Converter
    """As `convert`, but what does not fit raises ConversionFailed."""

    default: Any = None
    """What takes the place of no value. Never something that can be changed."""

    is_object: bool = False
    """Takes every value unchanged, JSON text too."""

    is_text: bool = False

    is_structured: bool = False
    """Text that begins with { or [ is read as JSON."""

    element: "Type | None" = None
    """What a list, set or array is made of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Type {self.name}>"


def anything(name: str) -> Type:
    """The type of every value."""
    return Type(name=name, convert=_unchanged, convert_strictly=_unchanged, is_object=True)


def scalar(name: str, python: type, parse: Converter, default: Any = None, *, is_text: bool = False) -> Type:
    """Values of one Python class, taken unseen; others are parsed. Parsing gives None for blank text."""
    leniently, strictly = _leniently(parse, default), _strictly(name, parse, default)

    def convert(value: Any) -> Any:
        return value if type(value) is python else leniently(value)

    def convert_strictly(value: Any) -> Any:
        return value if type(value) is python else strictly(value)

    return Type(
        name=name, convert=convert, convert_strictly=convert_strictly, default=default, is_text=is_text
    )


def integer(name: str, low: int, high: int) -> Type:
    """Whole numbers of a range."""

    def parse(value: Any) -> int | None:
        number = scalars.whole_number(value)
        if number is not None and not low <= number <= high:
            raise ValueError(f"it is not between {low} and {high}")
        return number

    leniently, strictly = _leniently(parse, 0), _strictly(name, parse, 0)

    def convert(value: Any) -> Any:
        return value if type(value) is int and low <= value <= high else leniently(value)

    def convert_strictly(value: Any) -> Any:
        return value if type(value) is int and low <= value <= high else strictly(value)

    return Type(name=name, convert=convert, convert_strictly=convert_strictly, default=0)


def parsed(name: str, parse: Converter, default: Any = None, *, is_text: bool = False) -> Type:
    """Values that are always looked at, such as one of a few names."""
    return Type(
        name=name,
        convert=_leniently(parse, default),
        convert_strictly=_strictly(name, parse, default),
        default=default,
        is_text=is_text,
    )


def enumeration(name: str, *members: str) -> Type:
    """One of a few names, given by exact name or by number."""

    def parse(value: Any) -> str | None:
        if isinstance(value, str) and value in members:
            return str(value)
        try:
            number = scalars.whole_number(value)
        except UNFIT:
            number = -1
        if number is None:
            return None
        if not 0 <= number < len(members):
            raise ValueError(f"use one of {', '.join(members)}")
        return members[number]

    return parsed(name, parse, members[0])


def nullable(inner: Type) -> Type:
    """The same, where no value stays no value."""
    if inner.default is None:
        return inner

    def convert_strictly(value: Any) -> Any:
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return inner.convert_strictly(value)

    def convert(value: Any) -> Any:
        try:
            return convert_strictly(value)
        except ConversionFailed:
            return None

    return Type(
        name=inner.name + "?", convert=convert, convert_strictly=convert_strictly, is_text=inner.is_text
    )


def structured(
    name: str,
    lenient: Converter,
    strict: Converter,
    *,
    takes: type | None = None,
    element: Type | None = None,
) -> Type:
    """Values with parts; those of the class it `takes` are taken unseen.

    JSON text is read first; JSON that is broken or of another shape is an error.
    """

    def read(text: str, shape: Converter) -> Any:
        try:
            return shape(decode(text))
        except UNFIT as error:
            raise JsonBroken(text, name, error) from None

    def convert(value: Any) -> Any:
        if type(value) is takes:
            return value
        if isinstance(value, str) and text_is_json(value):
            return read(value, lenient)
        return leniently(value)

    def convert_strictly(value: Any) -> Any:
        if type(value) is takes:
            return value
        if isinstance(value, str) and text_is_json(value):
            return read(value, strict)
        return strictly(value)

    leniently = _leniently(_unless_blank(lenient), None)
    strictly = _strictly(name, _unless_blank(strict), None)
    return Type(
        name=name, convert=convert, convert_strictly=convert_strictly, is_structured=True, element=element
    )


def document(name: str) -> Type:
    """Free-form values: JSON text is read, everything else is taken as it is."""
    return structured(name, _unchanged, _unchanged)


def sequence(name: str, element: Type, python: type = list, build: Converter | None = None) -> Type:
    """A list, set or array, converted element by element; `build` makes it from a list."""
    make = build or python

    def parts(value: Any) -> Iterable[Any]:
        if isinstance(value, str):
            if element.is_text or element.is_object:
                return (value,)
            raise TypeError("text is not taken apart into elements")
        if isinstance(value, (bytes, bytearray, memoryview, Mapping)) or not isinstance(value, Iterable):
            raise TypeError("it is not a list")
        return cast("Iterable[Any]", value)

    def each(convert: Converter) -> Converter:
        def convert_parts(value: Any) -> Any:
            before = list(parts(value))
            after = [convert(part) for part in before]
            if type(value) is python and build is None and all(map(is_, before, after)):
                return value
            return make(after)

        return convert_parts

    takes = python if element.is_object and build is None else None
    return structured(
        name, each(element.convert), each(element.convert_strictly), takes=takes, element=element
    )


def distinct(values: list[Any]) -> list[Any]:
    """Each value once, in the order they came: what a set is inside a definition.

    A Python set would forget the order, and a workflow done again after a crash would differ.
    """
    seen: dict[bytes, Any] = {}
    for value in values:
        seen.setdefault(encode_bare(value), value)
    return list(seen.values())


def dictionary(name: str, values: Type) -> Type:
    """An object with text keys, its values converted one by one."""

    def members(value: Any) -> Mapping[Any, Any]:
        if isinstance(value, Mapping):
            return cast("Mapping[Any, Any]", value)
        found = members_of(value)
        if found is None:
            raise TypeError("it is not an object")
        return found

    def each(convert: Converter) -> Converter:
        def convert_members(value: Any) -> Any:
            before = members(value)
            after = {scalars.text(key): convert(part) for key, part in before.items()}
            unchanged = all(map(is_, before, after)) and all(map(is_, before.values(), after.values()))
            return before if unchanged and isinstance(before, dict) else after

        return convert_members

    takes = dict if values.is_object else None
    return structured(name, each(values.convert), each(values.convert_strictly), takes=takes)


def text_is_json(text: str) -> bool:
    """Whether text is meant as a JSON object or array."""
    return text.lstrip()[:1] in ("{", "[")


def _unchanged(value: Any) -> Any:
    return value


def _unless_blank(convert: Converter) -> Converter:
    def convert_text(value: Any) -> Any:
        if isinstance(value, str) and not value.strip():
            return None
        return convert(value)

    return convert_text


def _leniently(parse: Converter, default: Any) -> Converter:
    def convert(value: Any) -> Any:
        if value is None:
            return default
        try:
            found = parse(value)
        except JsonBroken:
            raise
        except UNFIT:
            return default
        return default if found is None else found

    return convert


def _strictly(name: str, parse: Converter, default: Any) -> Converter:
    def convert(value: Any) -> Any:
        if value is None:
            return default
        try:
            found = parse(value)
        except UNFIT as error:
            raise ConversionFailed(value, name, error) from None
        return default if found is None else found

    return convert
