"""A version compiled for the engine: every activity once, with everything looked up.

A graph is immutable and shared by all bursts of its version. Nodes know their class, their inputs as
constants or evaluators, their nested activities and their variables, so that a burst resolves no
name and reads no JSON. `compiler` makes graphs.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.authoring import Activity, ActivityType
from holdfast.codec import Type
from holdfast.definitions.document import Definition, Variable
from holdfast.definitions.logging import Unlogged
from holdfast.errors import NotFound
from holdfast.expression import Scope

Evaluator = Callable[[Scope], Any]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and after how long, a faulted activity is executed again."""

    attempts: int = 3
    """In all, the first one included."""
    delay: float = 1.0
    factor: float = 2.0
    longest: float = 300.0

    def wait_before(self, attempt: int) -> float:
        """Seconds to wait before that attempt (2, 3, ...)."""
        try:
            return min(self.longest, self.delay * self.factor ** (attempt - 2))
        except OverflowError:
            return self.longest


class Binding(msgspec.Struct, frozen=True, eq=False):
    """An output of one activity, and where its value goes besides the output register."""

    name: str
    """PascalCase, as `getOutputFrom` and the journal name it."""
    type: Type
    target: str | None
    """A variable id or workflow output name; None when the author did not capture it."""


class DynamicInput(msgspec.Struct, frozen=True, eq=False):
    """An input that must be evaluated."""

    attribute: str
    name: str
    evaluate: Evaluator


class Node:
    """One activity of a compiled version. Plain slots: a burst reads these a million times."""

    __slots__ = (
        "auto_complete",
        "binding",
        "can_start",
        "checks",
        "commit_strategy",
        "constants",
        "declares_variables",
        "definition",
        "dynamic",
        "fixed",
        "id",
        "implementation",
        "index",
        "is_background",
        "is_terminal",
        "json",
        "merge_mode",
        "must_choose",
        "name",
        "on_demand",
        "outputs",
        "parent",
        "path",
        "receives",
        "ref",
        "retry",
        "type",
        "type_name",
        "unkept_inputs",
        "unlogged",
        "variable_ids",
        "variables",
    )

    def __init__(self, type_: ActivityType, activity_id: str, path: str, parent: "Node | None") -> None:
        self.type = type_
        self.type_name = type_.name
        self.implementation: type[Activity] = type_.implementation
        self.id = activity_id
        self.path = path
        self.parent = parent
        self.index = 0
        self.ref = activity_id
        """How states name this node: its id, or its path where the id is not unique."""
        self.name: str | None = None
        self.json: Mapping[str, Any] = {}
        self.definition: Definition | None = None
        """For workflow nodes and workflow-activities: the definition they stand for."""
        self.fixed: dict[str, Any] = {}
        """Attributes that are the same for each execution: ports, properties, what `prepare` made."""
        self.constants: dict[str, Any] = {}
        """Inputs that need no evaluation."""
        self.dynamic: tuple[DynamicInput, ...] = ()
        self.on_demand: dict[str, Evaluator] = {}
        self.outputs: dict[str, Binding] = {}
        self.binding: Binding | None = None
        self.variables: dict[str, Variable] = {}
        self.variable_ids: dict[str, str] = {}
        self.is_terminal = type_.descriptor.is_terminal
        self.declares_variables = False
        self.receives = False
        self.checks = False
        self.auto_complete = True
        self.must_choose = False
        """Its outcomes have names and `Done` is none of them, so it cannot complete by itself."""
        self.can_start = False
        self.is_background = False
        self.merge_mode: str | None = None
        self.commit_strategy: str | None = None
        self.retry: RetryPolicy | None = None
        self.unlogged: Unlogged | None = None
        """What the journal leaves out; None when it keeps everything."""
        self.unkept_inputs: frozenset[str] = frozenset()
        """Inputs that are never stored, being secret."""

    def __repr__(self) -> str:
        return f"<{self.type_name} {self.id}>"


class Graph:
    """All nodes of a compiled version, the invisible workflow node first."""

    __slots__ = ("_accessors", "_by_id", "_by_ref", "definition", "mode", "nodes", "root")

    def __init__(self, definition: Definition, nodes: list[Node]) -> None:
        self.definition = definition
        self.nodes = nodes
        self.root = nodes[0]
        by_id: dict[str, list[Node]] = {}
        taken: dict[str, Node] = {}
        for index, node in enumerate(nodes):
            node.index = index
            by_id.setdefault(node.id, []).append(node)
        for node in nodes:
            ref = node.id if len(by_id[node.id]) == 1 else node.path
            while ref in taken:  # two activities with one id in one container: the first keeps the plain name
                ref += "#"
            node.ref = ref
            taken[ref] = node
        self._by_ref = taken
        self._by_id = by_id
        self._accessors: dict[str, tuple[str, str]] | None = None
        self.mode: str = str(definition.custom_properties.get("Flowchart:ExecutionMode", ""))

    def node(self, ref: str) -> Node:
        """The node a state names. Raises NotFound when this version has none."""
        found = self._by_ref.get(ref)
        if found is None:
            raise NodeNotFound(ref, self.definition)
        return found

    def find(self, activity: str) -> Node | None:
        """By activity id, else by node id, else by name.

        How hosts number the invisible workflow nodes in a node id differs, so those do not count.
        """
        named = self._by_id.get(activity)
        if named:
            return named[0]
        wanted = _visible(activity)
        found = next((n for n in self.nodes if ":" in activity and _visible(n.path) == wanted), None)
        return found or next((n for n in self.nodes if n.name == activity), None)

    def output_accessor(self, accessor: str) -> tuple[str, str] | None:
        """`getResultFromReadLine1` to the activity's id and the output's name."""
        if self._accessors is None:
            modern = self.definition.is_modern
            self._accessors = {
                f"get{output.name}From{_pascal(node.name or '') if modern else node.id}": (
                    node.id,
                    output.name,
                )
                for node in reversed(self.nodes)
                for output in node.outputs.values()
            }
        return self._accessors.get(accessor)


class NodeNotFound(NotFound):
    code = "activity.not_found"

    def __init__(self, ref: str, definition: Definition) -> None:
        super().__init__(
            f"Definition {definition.definition_id} version {definition.version} has no activity {ref!r}."
        )


def _visible(path: str) -> list[str]:
    """The segments of a node id that are activities somebody placed."""
    return [segment for segment in path.split(":") if not re.fullmatch(r"Workflow\d+", segment)]


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]
