"""What an activity type looks like to everybody who does not run it.

One descriptor feeds the engine, validation, the API and the Studio. It is read from the author's
signature, annotations and docstring by `authoring.activity`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from holdfast.codec import Type, is_object

Kind = Literal["Action", "Trigger", "Task", "Job"]

MEMBERS = frozenset({"id", "nodeid", "name", "version", "customproperties", "metadata"})
"""What every activity's JSON says about the activity itself, in lower case."""


def member_name(name: str) -> str:
    """The member of an activity's JSON for an input, output or port: camelCase.

    One that would be mistaken for a member of the activity itself begins with an underscore.
    """
    camel = name[:1].lower() + name[1:]
    return f"_{camel}" if camel.lower() in MEMBERS else camel


def find_member(members: Mapping[str, Any], json_name: str) -> Any:
    """A member by its name, among members in lower case.

    Authors forget the underscore: an object where the activity's own id or name would be text is meant
    as the input.
    """
    found = members.get(json_name.lower())
    if found is None and json_name.startswith("_"):
        meant = members.get(json_name[1:].lower())
        return meant if is_object(meant) else None
    return found


class InputDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    attribute: str
    """The member of the class, or parameter of the function."""
    name: str
    """PascalCase, as records and messages show it."""
    json_name: str
    """camelCase, as definitions have it."""
    type: Type
    default: Any = None
    required: bool = False
    display_name: str
    description: str = ""
    category: str | None = None
    hint: str
    options: tuple[Any, ...] = ()
    syntax: str = "Literal"
    on_demand: bool = False
    sensitive: bool = False
    wrapped: bool = True
    """An expression in the definition; False for plain JSON."""

    def default_value(self) -> Any:
        """The default, fresh: a list that one execution changed must not reach the next."""
        default = self.default
        if isinstance(default, list | dict | set):
            return default.copy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return default


class OutputDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    json_name: str
    type: Type
    display_name: str
    description: str = ""


class PortDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """Either an outcome (`Flow`), or a place for nested activities (`Embedded`)."""

    name: str
    json_name: str
    attribute: str
    display_name: str
    type: Literal["Flow", "Embedded"] = "Flow"
    many: bool = False


class ActivityDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    type_name: str
    version: int = 1
    category: str
    display_name: str
    description: str = ""
    kind: Kind = "Action"
    inputs: tuple[InputDescriptor, ...] = ()
    outputs: tuple[OutputDescriptor, ...] = ()
    outcomes: tuple[str, ...] = ("Done",)
    ports: tuple[PortDescriptor, ...] = ()
    """Embedded ones; the flow ports are the outcomes."""
    is_container: bool = False
    is_start: bool = False
    is_terminal: bool = False
    is_browsable: bool = True
    dynamic_outcomes: Callable[[Any], list[str]] | None = None
    """From an activity's JSON to its outcomes, where they depend on what the author of it wrote."""


class ActivityType(msgspec.Struct, frozen=True, eq=False):
    """A descriptor and the class behind it, with what the engine wants to know once, not each time."""

    descriptor: ActivityDescriptor
    implementation: type[Any]
    definition: Any = None
    """For a workflow usable as activity: the definition it stands for."""

    @property
    def name(self) -> str:
        return self.descriptor.type_name
