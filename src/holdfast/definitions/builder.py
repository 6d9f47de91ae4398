"""Workflows written in Python, as the documents everything else works with.

    order = Workflow("order", name="Order")
    amount = order.variable("Amount", int, default=0)
    order.root = sequence(
        amount.set(12),
        if_(js("getAmount() > 10"), then=place(WriteLine, "big"), else_=place(WriteLine, "small")),
        place(charge, card="4111", amount=amount),
    )
    definition = order.build()

`place` puts any activity into a workflow; `sequence`, `flowchart`, `if_` and their like in
`builder_blocks` give it its shape; `js`, `liquid`, `python` and the handles that a workflow returns
are values computed later. What makes no sense raises `BuilderInvalid` on the line that says it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, overload

from holdfast.codec import NotEncodable, decode, encode
from holdfast.definitions.builder_blocks import (
    case,
    choice,
    decision,
    flowchart,
    for_,
    for_each,
    fork,
    if_,
    parallel,
    saga,
    sequence,
    switch,
    try_,
    while_,
)
from holdfast.definitions.builder_document import write_root
from holdfast.definitions.builder_place import place
from holdfast.definitions.builder_tree import About, Body, BuilderInvalid, Path, Placed
from holdfast.definitions.builder_values import (
    KEPT,
    Computed,
    InputHandle,
    OutputHandle,
    Value,
    VariableHandle,
    alias_of,
    js,
    liquid,
    plain,
    python,
    variable,
)
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.reader import Json

__all__ = [
    "About",
    "Body",
    "BuilderInvalid",
    "Computed",
    "InputHandle",
    "OutputHandle",
    "Path",
    "Placed",
    "Value",
    "VariableHandle",
    "Workflow",
    "case",
    "choice",
    "decision",
    "flowchart",
    "for_",
    "for_each",
    "fork",
    "if_",
    "js",
    "liquid",
    "parallel",
    "place",
    "plain",
    "python",
    "saga",
    "sequence",
    "switch",
    "try_",
    "variable",
    "while_",
]

T = TypeVar("T")

Activation = Literal["AllowAlways", "Singleton", "Correlation", "CorrelatedSingleton"]
Incidents = Literal["Fault", "ContinueWithIncidents"]
FlowchartMode = Literal["CounterBased", "TokenBased"]

# From version 3 on, scripts reach an activity's output by its name: `getResultFromCharge1()`.
TOOL_VERSION = "3.6.0.0"


class Workflow:
    """A workflow being written. `build` gives the definition, any number of times."""

    def __init__(
        self,
        definition_id: str,
        *,
        name: str | None = None,
        description: str = "",
        version: int = 1,
        published: bool = True,
        outcomes: Iterable[str] = (),
        usable_as_activity: bool = False,
        auto_update_consumers: bool = False,
        activity_category: str | None = None,
        activation: Activation | None = None,
        incidents: Incidents | None = None,
        commit_strategy: str | None = None,
        flowchart_mode: FlowchartMode | None = None,
        custom: Mapping[str, Any] | None = None,
    ) -> None:
        self.definition_id = definition_id
        self.root: Placed | None = None
        self._variables: dict[str, VariableHandle[Any]] = {}
        self._inputs: dict[str, InputHandle[Any]] = {}
        self._outputs: dict[str, OutputHandle[Any]] = {}
        mode = {"Flowchart:ExecutionMode": flowchart_mode} if flowchart_mode is not None else {}
        self._envelope: Json = {
            "id": f"{definition_id}-{version}",
            "definitionId": definition_id,
            "name": definition_id if name is None else name,
            "description": description,
            "version": version,
            "toolVersion": TOOL_VERSION,
            "isLatest": True,
            "isPublished": published,
            "outcomes": list(outcomes),
            "customProperties": {**mode, **(custom or {})},
            "options": {
                "usableAsActivity": usable_as_activity,
                "autoUpdateConsumingWorkflows": auto_update_consumers,
                "activityCategory": activity_category,
                "activationStrategyType": _activation_type(activation),
                "incidentStrategyType": _incident_type(incidents),
                "commitStrategyName": commit_strategy,
            },
        }

    @overload
    def variable(
        self, name: str, kind: type[T], default: T | None = None, *, kept: bool = True, id: str | None = None
    ) -> VariableHandle[T]: ...
    @overload
    def variable(
        self,
        name: str,
        kind: object = object,
        default: Any = None,
        *,
        kept: bool = True,
        id: str | None = None,
    ) -> VariableHandle[Any]: ...
    def variable(
        self,
        name: str,
        kind: Any = object,
        default: Any = None,
        *,
        kept: bool = True,
        id: str | None = None,  # noqa: A002  every declared thing has one
    ) -> VariableHandle[Any]:
        """Declare a variable. It survives waits, unless it is not `kept`."""
        handle = VariableHandle[Any](name, kind, default, kept=kept, id=id)
        _declare(self._variables, name, handle, "variable")
        return handle

    @overload
    def input(
        self, name: str, kind: type[T], *, description: str = "", category: str | None = None
    ) -> InputHandle[T]: ...
    @overload
    def input(
        self, name: str, kind: object = object, *, description: str = "", category: str | None = None
    ) -> InputHandle[Any]: ...
    def input(
        self, name: str, kind: Any = object, *, description: str = "", category: str | None = None
    ) -> InputHandle[Any]:
        """Declare an input. It survives waits."""
        handle = InputHandle[Any](_parameter(name, kind, description, category) | {"storageDriverType": KEPT})
        _declare(self._inputs, name, handle, "input")
        return handle

    @overload
    def output(
        self, name: str, kind: type[T], *, description: str = "", category: str | None = None
    ) -> OutputHandle[T]: ...
    @overload
    def output(
        self, name: str, kind: object = object, *, description: str = "", category: str | None = None
    ) -> OutputHandle[Any]: ...
    def output(
        self, name: str, kind: Any = object, *, description: str = "", category: str | None = None
    ) -> OutputHandle[Any]:
        """Declare an output."""
        handle = OutputHandle[Any](_parameter(name, kind, description, category))
        _declare(self._outputs, name, handle, "output")
        return handle

    def build(self) -> Definition:
        """The definition. Raises BuilderInvalid."""
        if not isinstance(self.root, Placed):  # pyright: ignore[reportUnnecessaryIsInstance]  may be a Path
            raise BuilderInvalid(
                f"Workflow {self.definition_id!r} has no root activity. Give it one: "
                f"`workflow.root = sequence(...)`, or a flowchart() around paths."
            )
        handles = (*self._variables.values(), *self._inputs.values(), *self._outputs.values())
        document = self._envelope | {
            "variables": [v.declaration(in_workflow=True) for v in self._variables.values()],
            "inputs": [handle.declaration for handle in self._inputs.values()],
            "outputs": [handle.declaration for handle in self._outputs.values()],
            "root": write_root(self.root, [handle.declared for handle in handles]),
        }
        try:
            return load_definition(decode(encode(document)))
        except NotEncodable as problem:
            raise BuilderInvalid(f"Workflow {self.definition_id!r} cannot be written: {problem}") from None


def _declare(declared: dict[str, Any], name: str, handle: Any, what: str) -> None:
    if name.lower() in (known.lower() for known in declared):
        raise BuilderInvalid(f"The {what} {name!r} is declared already.")
    declared[name] = handle


def _parameter(name: str, kind: object, description: str, category: str | None) -> Json:
    return {
        "name": name,
        "type": alias_of(kind),
        "displayName": name,
        "description": description,
        "category": category,
    }


def _activation_type(strategy: Activation | None) -> str | None:
    if strategy is None:
        return None
    return f"Elsa.Workflows.Runtime.ActivationValidators.{strategy}Strategy, Elsa.Workflows.Runtime"


def _incident_type(strategy: Incidents | None) -> str | None:
    return (
        None
        if strategy is None
        else f"Elsa.Workflows.IncidentStrategies.{strategy}Strategy, Elsa.Workflows.Core"
    )
