"""An activity where it stands in a document, and the variables that can be seen from there.

This is what `validate` knows of an activity, as `graph` is what the engine knows of it: close to the
JSON, and there even when the activity cannot be compiled.
"""

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.authoring import Activity, ActivityDescriptor, ActivityType

STAND_IN = ActivityType(
    ActivityDescriptor(type_name="Elsa.NotFoundActivity", category="", display_name=""), Activity
)
"""The type of activities whose type is not known."""


class Names:
    """The variables in scope at one place, by id, nearest first."""

    __slots__ = ("_by_name", "is_open", "variables")

    def __init__(self, variables: ChainMap[str, str], *, is_open: bool = False) -> None:
        self.variables = variables
        """From id to name."""
        self.is_open = is_open
        """Something around this place may bring variables that we cannot know of."""
        self._by_name: dict[str, str] | None = None

    def within(self, declared: Mapping[str, str], *, is_open: bool = False) -> "Names":
        """The same from inside an activity that declares these."""
        if not declared and (self.is_open or not is_open):
            return self
        return Names(self.variables.new_child(dict(declared)), is_open=self.is_open or is_open)

    def __contains__(self, variable_id: str) -> bool:
        return variable_id in self.variables

    def named(self, name: str) -> str | None:
        """The id of the variable with that name, in any case."""
        if self._by_name is None:
            self._by_name = {known.lower(): variable_id for variable_id, known in self.variables.items()}
        return self._by_name.get(name.lower())


class Placed(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One activity of a document. To `Activity.prepare` it passes for a `Child`."""

    id: str
    name: str | None
    type: ActivityType
    """`STAND_IN` when it is not known."""
    type_name: str
    """As written."""
    at: str
    members: Mapping[str, Any]
    """Its JSON, member names in lower case."""
    names: Names
    """What its own inputs see."""
    can_start: bool = False

    @property
    def is_known(self) -> bool:
        return self.type is not STAND_IN

    @property
    def is_terminal(self) -> bool:
        return self.type.descriptor.is_terminal
