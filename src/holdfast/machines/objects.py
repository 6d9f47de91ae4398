"""How objects and payloads of machines become JSON and back: dataclasses, msgspec Structs, pydantic models.

pydantic is never imported here; a model knows itself how to read and write.
"""

import dataclasses
from typing import Any, Generic, TypeVar, cast

import msgspec

from holdfast.errors import Invalid

T = TypeVar("T")


class ObjectInvalid(Invalid):
    """A value is not what the machine's types say."""

    code = "machine.object_invalid"


def is_object_type(kind: Any) -> bool:
    """Whether it can be the object of a machine."""
    if not isinstance(kind, type):
        return False
    return dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_model(kind)


def is_model(kind: Any) -> bool:
    """Whether it is a pydantic model."""
    return hasattr(kind, "model_validate_json") and hasattr(kind, "model_dump_json")


class Objects(Generic[T]):
    """Values of one type. Raises TypeError when the type has no JSON."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._is_model = is_model(kind)
        self._decoder: msgspec.json.Decoder[Any] | None = None
        if not self._is_model:
            msgspec.json.schema(kind)  # finds out now what would else be found when a run is read
            self._decoder = msgspec.json.Decoder(kind)

    def write(self, value: T) -> bytes:
        """Raises ObjectInvalid."""
        if isinstance(self.kind, type) and not isinstance(value, self.kind):
            kind = cast("type[Any]", self.kind)
            raise ObjectInvalid(f"{value!r} is no {kind.__name__}. Give one, as the machine declares it.")
        try:
            if self._is_model:
                return cast("str", cast("Any", value).model_dump_json()).encode()
            return msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError) as problem:
            raise ObjectInvalid(f"{type(value).__name__} has no JSON: {problem}") from problem

    def read(self, text: bytes) -> T:
        """Raises ObjectInvalid."""
        try:
            if self._decoder is None:
                return cast("T", self.kind.model_validate_json(text))
            return cast("T", self._decoder.decode(text))
        except ValueError as problem:  # pydantic's and msgspec's are such
            raise ObjectInvalid(f"This is no {self.name}: {problem}") from problem

    def fresh(self) -> T:
        """One that says nothing. Raises ObjectInvalid."""
        try:
            return cast("T", self.kind())
        except (TypeError, ValueError) as problem:
            raise ObjectInvalid(
                f"A {self.name} cannot be made of nothing: {problem}. Give the object to begin with."
            ) from problem

    @property
    def name(self) -> str:
        return getattr(self.kind, "__name__", None) or str(self.kind)
