"""How an author says what a member of an activity is.

    class Approve(Activity):
        who: Input[str]
        note: Input[Annotated[str, Field("Shown to the approver", hint="multiline")]] = ""
        decision: Output[str]
        rejected: Port

To a type checker `Input[str]` is a `str`: by the time an activity executes, its inputs are values.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import msgspec

if TYPE_CHECKING:
    from holdfast.authoring.context import Child

T = TypeVar("T")


class Role(Enum):
    """What a member of an activity class is for."""

    INPUT = auto()
    OUTPUT = auto()
    PROPERTY = auto()
    PORT = auto()
    PORTS = auto()


Input: TypeAlias = Annotated[T, Role.INPUT]
"""Evaluated from its expression each time the activity executes."""

Output: TypeAlias = Annotated[T, Role.OUTPUT]
"""Set with `context.set_output`; bound to a variable by whoever places the activity."""

Property: TypeAlias = Annotated[T, Role.PROPERTY]
"""Plain JSON in the definition, never an expression."""

Port: TypeAlias = Annotated["Child | None", Role.PORT]
"""One nested activity, or none."""

Ports: TypeAlias = Annotated["Sequence[Child]", Role.PORTS]
"""A list of nested activities."""


class Field(msgspec.Struct, frozen=True):
    """What the designer should know about an input or output beyond its name and type."""

    description: str = ""
    display_name: str | None = None
    category: str | None = None
    hint: str | None = None
    """The editor to show, such as `multiline` or `dropdown`."""
    options: tuple[Any, ...] = ()
    """What a drop-down, check list or radio list offers."""
    syntax: str = "Literal"
    """The expression type a designer begins with."""
    on_demand: bool = False
    """Not evaluated before execution but whenever the activity asks, with `context.evaluate`."""
    sensitive: bool = False
    """Never stored: not in the state, not in the journal."""
    type_name: str | None = None
    """The type alias in descriptors, where the annotation cannot say it."""
