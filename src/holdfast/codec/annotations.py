"""The type that a Python annotation describes, for what authors write as code.

An author says `items: list[Order]`, a definition says `Order[]`: the same Type, found from the other
side. Classes with fields (msgspec structs, dataclasses, pydantic models) are built from their members.
"""

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, cast, get_args, get_origin, is_typeddict
from uuid import UUID

import msgspec

from holdfast.codec import scalars
from holdfast.codec import types as known
from holdfast.codec.conversion import Type, dictionary, nullable, parsed, scalar, sequence, structured

# Python's integers have no bounds, so neither has the type an author means by `int`.
_INTEGER = scalar("Int64", int, scalars.whole_number, 0)

_SIMPLE: dict[Any, Type] = {
    Any: known.OBJECT,
    object: known.OBJECT,
    None: known.OBJECT,
    types.NoneType: known.OBJECT,
    str: known.STRING,
    bool: known.BOOLEAN,
    int: _INTEGER,
    float: known.DOUBLE,
    Decimal: known.DECIMAL,
    bytes: known.BYTE_ARRAY,
    datetime: known.DATE_TIME_OFFSET,
    date: known.DATE_ONLY,
    time: known.TIME_ONLY,
    timedelta: known.TIME_SPAN,
    UUID: known.GUID,
    dict: known.OBJECT_DICTIONARY,
}
_COLLECTIONS: tuple[type[Any], ...] = (tuple, set, frozenset)

_cache: dict[Any, Type] = {}


def type_of(annotation: Any) -> Type:
    """The type of what a Python annotation describes. Raises TypeError for annotations left as text."""
    try:
        found = _cache.get(annotation)
    except TypeError:  # Annotated and Literal may hold what cannot be hashed
        return _find(annotation)
    if found is None:
        found = _cache[annotation] = _find(annotation)
    return found


def _find(annotation: Any) -> Type:
    if isinstance(annotation, str):
        raise TypeError(
            f"The annotation {annotation!r} is still text. Resolve it first (typing.get_type_hints)."
        )
    if isinstance(annotation, NewType):
        return type_of(annotation.__supertype__)
    if isinstance(annotation, TypeVar):
        return known.OBJECT
    if type(annotation).__name__ == "TypeAliasType":  # `type X = ...`, from Python 3.12
        return type_of(annotation.__value__)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _constrained(annotation, type_of(arguments[0]))
    if origin is Literal:
        return _literal(arguments)
    if origin is Union or origin is types.UnionType:
        return _union(annotation, arguments)
    if origin is None:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation]
        origin = annotation
    return _of_class(annotation, origin, arguments)


def _of_class(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Type:
    if not isinstance(origin, type):
        return known.OBJECT
    origin = cast("type[Any]", origin)
    if issubclass(origin, Enum):
        return _enum(origin)
    if _has_fields(origin):
        return _modelled(origin.__name__, annotation, origin)
    if issubclass(origin, Mapping):
        values = type_of(arguments[1]) if len(arguments) == 2 else known.OBJECT
        return dictionary("StringDictionary" if values is known.STRING else "ObjectDictionary", values)
    if issubclass(origin, str):
        return known.STRING
    if issubclass(origin, (bytes, bytearray, memoryview)):
        return known.BYTE_ARRAY
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return _modelled("Object[]", annotation, None)
    if hasattr(origin, "__iter__"):
        element = type_of(arguments[0]) if arguments else known.OBJECT
        python: type[Any] = next((kind for kind in _COLLECTIONS if issubclass(origin, kind)), list)
        name = f"HashSet<{element.name}>" if python in (set, frozenset) else f"{element.name}[]"
        return sequence(name, element, python)
    return _instance(origin)


def _has_fields(kind: Any) -> bool:
    return (
        issubclass(kind, msgspec.Struct)
        or is_dataclass(kind)
        or is_typeddict(kind)
        or hasattr(kind, "model_validate")
        or hasattr(kind, "_fields")  # a NamedTuple
    )


def _modelled(name: str, annotation: Any, instance: type | None) -> Type:
    """A class with fields, built from an object with these members."""
    # A TypedDict is no class at run time: every value has to be looked at.
    kind = None if instance is None or is_typeddict(instance) else instance
    validate = getattr(instance, "model_validate", None)

    def build(value: Any) -> Any:
        if kind is not None and isinstance(value, kind):
            return value
        if validate is not None:
            return validate(value)
        return msgspec.convert(value, annotation, strict=False)

    return structured(name, build, build)


def _constrained(annotation: Any, inner: Type) -> Type:
    """Annotated: only what msgspec can check narrows the type (`Annotated[int, Meta(ge=1)]`)."""
    if not any(isinstance(note, msgspec.Meta) for note in get_args(annotation)[1:]):
        return inner

    def parse(value: Any) -> Any:
        return msgspec.convert(inner.convert_strictly(value), annotation)

    return parsed(inner.name, parse, inner.default, is_text=inner.is_text)


def _literal(values: tuple[Any, ...]) -> Type:
    by_text = {scalars.text(value): value for value in values if value is not None}

    def parse(value: Any) -> Any:
        written = scalars.text(value)
        if written in by_text:
            return by_text[written]
        if not written.strip():
            return None
        raise ValueError(f"use one of {', '.join(by_text)}")

    kinds: set[Any] = {type(value) for value in by_text.values()}
    name = type_of(kinds.pop()).name if len(kinds) == 1 else "Object"
    return parsed(name, parse, is_text=name == "String")


def _enum(kind: type[Enum]) -> Type:
    def parse(value: Any) -> Any:
        if isinstance(value, str):
            if value in kind.__members__:
                return kind[value]
            if not value.strip():
                return None
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"use one of {', '.join(kind.__members__)}") from None

    return scalar(kind.__name__, kind, parse)


def _union(annotation: Any, members: tuple[Any, ...]) -> Type:
    present = [member for member in members if member not in (None, types.NoneType)]
    if len(present) == 1:
        return nullable(type_of(present[0]))

    def build(value: Any) -> Any:
        return msgspec.convert(value, annotation)

    return parsed("Object", build)


def _instance(kind: type) -> Type:
    """A class we know nothing about: its instances, and nothing else."""

    def parse(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise TypeError(f"it is not an instance of {kind.__qualname__}")

    return parsed(kind.__name__, parse)
