"""The port for expression languages: text in a definition that becomes a value when it runs.

A `Language` compiles source text once; the `Expression` it returns is evaluated many times, each
time in the `Scope` of the activity that asks. A scope is all an expression can see: no host object
is reachable from it. The languages themselves are in `expressions/`; the engine provides scopes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from holdfast.errors import HoldfastError, Invalid


class ExpressionInvalid(Invalid):
    """The text is not an expression of its language. Raised when compiling."""

    code = "expression.invalid"


class ExpressionFailed(HoldfastError):
    """Evaluating raised, ran too long, or asked for too much memory. Becomes an incident."""

    code = "expression.failed"


class Scope(Protocol):
    """What one expression may see and change, while one activity evaluates it.

    Names are looked up from the activity outwards, nearest first. Values are plain Python: None,
    bool, int, float, Decimal, str, bytes, datetime, timedelta, UUID, list and dict with str keys.
    """

    @property
    def definition_id(self) -> str: ...
    @property
    def version_id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def instance_id(self) -> str: ...
    @property
    def correlation_id(self) -> str | None: ...
    @correlation_id.setter
    def correlation_id(self, value: str | None) -> None: ...
    @property
    def instance_name(self) -> str | None: ...
    @instance_name.setter
    def instance_name(self, value: str | None) -> None: ...

    def variable_names(self) -> Iterable[str]:
        """Names of all variables in scope, nearest first, each once."""
        ...

    def get_variable(self, name: str) -> Any:
        """The nearest variable with that name; None when there is none."""
        ...

    def get_variable_by_id(self, variable_id: str) -> Any:
        """The value in the nearest scope that has that id. Raises Invalid when none has."""
        ...

    def set_variable(self, name: str, value: Any) -> None:
        """Write the nearest variable with that name, converted to its type; an unknown name is created."""
        ...

    def inputs(self) -> Mapping[str, Any]:
        """The workflow's input, with the inputs of the enclosing workflow-activity before it."""
        ...

    def input_names(self) -> Iterable[str]:
        """Names of declared workflow inputs, for accessors such as `getCustomer()`."""
        ...

    def get_input(self, name: str) -> Any:
        """One input by name, in any case; None when there is none."""
        ...

    def get_output(self, activity: str, output: str | None = None) -> Any:
        """What an activity (id or name) put out under that output name, `Result` by default."""
        ...

    def output_accessor(self, accessor: str) -> tuple[str, str] | None:
        """Resolve a generated name such as `getResultFromReadLine1` to (activity id, output)."""
        ...

    @property
    def last_result(self) -> Any: ...

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments of this evaluation, such as the item in a per-item expression."""
        ...

    def set_outcomes(self, outcomes: list[str]) -> None:
        """What `setOutcome` and friends say. Only script activities listen; elsewhere it raises Invalid."""
        ...

    def new_guid(self) -> str:
        """A GUID in the 8-4-4-4-12 form. The same again when the same burst is done again."""
        ...

    def utc_now_ms(self) -> float:
        """The burst's present instant, in milliseconds since 1970."""
        ...

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Functions the host registered, by the name scripts call them."""
        ...

    @property
    def configuration(self) -> Mapping[str, Any]:
        """Host configuration that expressions may read; empty unless the host shares some."""
        ...


class Expression(Protocol):
    """Source text, compiled. Evaluating never leaves anything behind for the next evaluation."""

    def __call__(self, scope: Scope) -> Any:
        """The value, as plain Python. Raises ExpressionFailed."""
        ...


class Language(Protocol):
    """One expression language."""

    @property
    def name(self) -> str:
        """The expression type in definitions: `JavaScript`, `Liquid`, ..."""
        ...

    @property
    def display_name(self) -> str: ...

    @property
    def editor(self) -> str:
        """The editor mode that highlights it: `javascript`, `liquid`, `python`, `json`, ..."""
        ...

    def compile(self, source: str) -> Expression:
        """Check and prepare the text. Raises ExpressionInvalid with line and reason."""
        ...
