"""The names a Python expression starts with: `variables`, `input`, `output` and the others.

Each is a view of the scope that answers for a listed few members and methods. A view is not a
value: it cannot be returned, stored or written, so the scope behind it stays out of reach.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from holdfast.expression import ExpressionFailed, Scope
from holdfast.expressions.python_budget import Budget
from holdfast.expressions.python_values import iterate, plain, some_names


def _name(name: Any) -> str:
    if type(name) is not str:
        raise ExpressionFailed(f"A name must be a text, not of the type {type(name).__name__}.")
    return name


class View:
    """What stands for a part of the scope. Only what `member`, `item` and `methods` say can be seen."""

    __slots__ = ("_budget", "_scope")

    name: ClassVar[str]
    methods: ClassVar[Mapping[str, Callable[..., Any]]] = {}

    def __init__(self, scope: Scope, budget: Budget) -> None:
        self._scope = scope
        self._budget = budget

    def member(self, name: str) -> Any:
        """What `view.name` is."""
        raise ExpressionFailed(f"{self.name} has no member '{name}', only: {some_names(self.methods)}.")

    def item(self, name: Any) -> Any:
        """What `view["name"]` is."""
        return self.member(_name(name))

    def __contains__(self, name: object) -> bool:
        return False

    def __repr__(self) -> str:
        return self.name


class Variables(View):
    __slots__ = ()
    name = "variables"

    def member(self, name: str) -> Any:
        value = self._scope.get_variable(name)
        if value is None and name not in self._scope.variable_names():
            known = some_names(self._scope.variable_names())
            raise ExpressionFailed(f"There is no variable '{name}'. Variables here: {known}.")
        return value

    def get(self, name: Any, default: Any = None) -> Any:
        value = self._scope.get_variable(_name(name))
        return default if value is None else value

    def set(self, name: Any, value: Any) -> None:
        self._scope.set_variable(_name(name), plain(value, self._budget))

    def __contains__(self, name: object) -> bool:
        return name in list(self._scope.variable_names())

    methods: ClassVar = {"Get": get, "get": get, "Set": set, "set": set}


class Input(View):
    __slots__ = ()
    name = "input"

    def member(self, name: str) -> Any:
        value = self._scope.get_input(name)
        if value is None and name not in self:
            known = some_names(self._names())
            raise ExpressionFailed(f"There is no input '{name}'. Inputs here: {known}.")
        return value

    def get(self, name: Any, default: Any = None) -> Any:
        value = self._scope.get_input(_name(name))
        return default if value is None else value

    def _names(self) -> set[str]:
        return {*self._scope.inputs(), *self._scope.input_names()}

    def __contains__(self, name: object) -> bool:
        return _name(name).lower() in {known.lower() for known in self._names()}

    methods: ClassVar = {"Get": get, "get": get}


class Output(View):
    __slots__ = ()
    name = "output"

    def member(self, name: str) -> Any:
        if name in ("LastResult", "last_result"):
            return self._scope.last_result
        raise ExpressionFailed(f"output has no member '{name}', only: LastResult, Get(activity, output).")

    def get(self, activity: Any, output: Any = None) -> Any:
        return self._scope.get_output(_name(activity), None if output is None else _name(output))

    methods: ClassVar = {"Get": get, "get": get}


class Outcome(View):
    __slots__ = ()
    name = "outcome"

    def set(self, *outcomes: Any) -> None:
        names = iterate(outcomes[0], self._budget) if _is_one_list(outcomes) else outcomes
        self._scope.set_outcomes([_name(name) for name in names])

    methods: ClassVar = {"Set": set, "set": set}


def _is_one_list(outcomes: tuple[Any, ...]) -> bool:
    return len(outcomes) == 1 and isinstance(outcomes[0], (list, tuple, set))


class ExecutionContext(View):
    __slots__ = ()
    name = "execution_context"

    def member(self, name: str) -> Any:
        # `WorkflowInstanceId` as Elsa has it, `workflow_instance_id` as Python people write it.
        read = _EXECUTION_CONTEXT.get(name.lower().replace("_", ""))
        if read is None:
            known = "workflow_instance_id, correlation_id, name, workflow_definition_id, version"
            raise ExpressionFailed(f"execution_context has no member '{name}', only: {known}.")
        return read(self._scope)


_EXECUTION_CONTEXT: dict[str, Callable[[Scope], Any]] = {
    "id": lambda scope: scope.instance_id,
    "workflowinstanceid": lambda scope: scope.instance_id,
    "correlationid": lambda scope: scope.correlation_id,
    "name": lambda scope: scope.instance_name,
    "workflowinstancename": lambda scope: scope.instance_name,
    "definitionid": lambda scope: scope.definition_id,
    "workflowdefinitionid": lambda scope: scope.definition_id,
    "definitionversionid": lambda scope: scope.version_id,
    "workflowdefinitionversionid": lambda scope: scope.version_id,
    "version": lambda scope: scope.version,
    "definitionversion": lambda scope: scope.version,
    "workflowdefinitionversion": lambda scope: scope.version,
}


class Moments(View):
    """`datetime` before a dot. The present is the scope's, so a burst done again sees the same one."""

    __slots__ = ()
    name = "datetime"

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._scope.utc_now_ms() / 1000, UTC)

    def fromisoformat(self, text: str) -> datetime:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    methods: ClassVar = {"fromisoformat": fromisoformat, "now": now, "utcnow": now}


def _args(scope: Scope, _: Budget) -> dict[str, Any]:
    return dict(scope.arguments)


ROOTS: dict[str, Callable[[Scope, Budget], Any]] = {
    "args": _args,
    "datetime": Moments,
    "execution_context": ExecutionContext,
    "input": Input,
    "outcome": Outcome,
    "output": Output,
    "variables": Variables,
}
