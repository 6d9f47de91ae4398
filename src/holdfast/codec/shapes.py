"""What a decoded JSON value is, said so that a type checker understands it."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeGuard, cast
from uuid import UUID

import msgspec


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """A JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """A JSON list."""
    return isinstance(value, list)


def lower_keys(value: dict[str, Any]) -> dict[str, Any]:
    """The same object with its member names in lower case: definitions spell them in any case."""
    return {key.lower(): member for key, member in value.items()}


_VALUES = (type(None), bool, int, float, str, bytes, Decimal, datetime, timedelta, UUID)


def without_structs(value: Any) -> Any:
    """The same value with structs and dataclasses as objects: what expressions see, also after a wait.

    Only the value itself and its immediate members are looked at; most values cost one test.
    """
    kind = cast("type[Any]", type(value))
    if kind in _VALUES:
        return value
    members: Any = value if kind is list else value.values() if kind is dict else None
    if members is not None and all(type(m) in _VALUES or type(m) in (list, dict) for m in members):
        return value
    try:
        return msgspec.to_builtins(value, builtin_types=(bytes, Decimal, datetime, timedelta, UUID))
    except TypeError:
        return value  # something of the host's own; whoever needs it as JSON will say what is wrong
