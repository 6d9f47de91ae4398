"""A scope for tests of expression languages: everything an expression sees is a field here."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import Invalid


@dataclass
class FakeScope:
    """Implements `holdfast.expression.Scope`. What expressions change can be read from the fields."""

    variables: dict[str, Any] = field(default_factory=dict[str, Any])
    given: dict[str, Any] = field(default_factory=dict[str, Any])  # the workflow's input
    declared: list[str] = field(default_factory=list[str])  # names of declared inputs
    outputs: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    accessors: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    last_result: Any = None
    definition_id: str = "orders"
    version_id: str = "orders-v3"
    version: int = 3
    instance_id: str = "i1"
    correlation_id: str | None = "c1"
    instance_name: str | None = "Order 1"
    is_script: bool = True  # whether the activity listens to outcomes
    outcomes: list[str] | None = None
    now_ms: float = 1_767_225_600_000.0  # 2026-01-01T00:00:00Z
    guids: int = 0

    def variable_names(self) -> Iterable[str]:
        return list(self.variables)

    def get_variable(self, name: str) -> Any:
        return self.variables.get(name)

    def set_variable(self, name: str, value: Any) -> None:
        self.variables[name] = value

    def inputs(self) -> Mapping[str, Any]:
        return self.given

    def input_names(self) -> Iterable[str]:
        return self.declared or list(self.given)

    def get_input(self, name: str) -> Any:
        return next((value for key, value in self.given.items() if key.lower() == name.lower()), None)

    def get_output(self, activity: str, output: str | None = None) -> Any:
        return self.outputs.get((activity, output or "Result"))

    def output_accessor(self, accessor: str) -> tuple[str, str] | None:
        return self.accessors.get(accessor)

    def set_outcomes(self, outcomes: list[str]) -> None:
        if not self.is_script:
            raise Invalid("Outcomes can be set by script activities only.")
        self.outcomes = outcomes

    def new_guid(self) -> str:
        self.guids += 1
        return f"00000000-0000-0000-0000-{self.guids:012d}"

    def utc_now_ms(self) -> float:
        return self.now_ms
