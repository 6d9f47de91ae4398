"""What a script may know, by key, and what becomes of what it changed.

Facts go with the call when the script's text shows that it will want them (`facts_wanted`), or are
answered when it asks (`Requests`). Changes come back all at once, after the script (`apply`). The
names that provide variables and outputs to the script are in `javascript_names`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.expression import ExpressionFailed, Scope
from holdfast.expressions.javascript_values import Raw, receive, refusal, send

REQUESTS = 1_000  # that one evaluation may make; each runs the script again

_PLAIN: dict[str, Callable[[Scope], Any]] = {
    "now": lambda scope: scope.utc_now_ms(),
    "seed": lambda scope: scope.new_guid(),
    "guids": lambda scope: [scope.new_guid()],
    "names": lambda scope: list(scope.variable_names()),
    "arguments": lambda scope: dict(scope.arguments),
    "last": lambda scope: scope.last_result,
    "definition": lambda scope: scope.definition_id,
    "versionId": lambda scope: scope.version_id,
    "version": lambda scope: scope.version,
    "instance": lambda scope: scope.instance_id,
    "correlation": lambda scope: scope.correlation_id,
    "name": lambda scope: scope.instance_name,
}
WANTED = {
    "Date": "now",
    "DateTime": "now",
    "DateTimeOffset": "now",
    "random": "seed",
    "Random": "seed",
    "NewGuid": "guids",
    "newGuid": "guids",
    "newGuidString": "guids",
    "newShortGuid": "guids",
    "getGuidString": "guids",
    "getShortGuid": "guids",
    "args": "arguments",
    "getLastResult": "last",
    "getWorkflowDefinitionId": "definition",
    "getWorkflowDefinitionVersionId": "versionId",
    "getWorkflowDefinitionVersion": "version",
    "getWorkflowInstanceId": "instance",
    "getCorrelationId": "correlation",
    "getWorkflowInstanceName": "name",
}


def facts_wanted(words: Iterable[str]) -> list[str]:
    """The keys of facts that a script with these words in it will want."""
    return sorted({WANTED[word] for word in words if word in WANTED})


def answer(scope: Scope, key: str) -> Any:
    """The fact with that key."""
    plain = _PLAIN.get(key)
    if plain is not None:
        return plain(scope)
    kind, _, name = key.partition(":")
    match kind:
        case "variable":
            return scope.get_variable(name)
        case "input":
            return scope.get_input(name)
        case "output":
            activity, _, output = name.partition("\0")
            return scope.get_output(activity, output or None)
        case _:
            return _configured(scope, name)


class Requests:
    """Answers what a script asks while it runs, by adding to the facts of its next run."""

    def __init__(self, scope: Scope, sent: list[Raw]) -> None:
        self._scope = scope
        self._sent = sent
        self._count = 0

    def answer(self, key: str, *details: Any) -> None:
        self._count += 1
        if self._count > REQUESTS:
            raise ExpressionFailed(
                f"The script asked for more than {REQUESTS:,} values, one after the other."
            )
        if key.startswith("call:"):
            self._tell(key, self._called(*details))
        elif key == "guids" and details:
            self._tell(key, send(self._more_guids(*details)))
        elif key.startswith("variable:"):
            # A name made at run time is often one of many, so all of them go along.
            for name in self._scope.variable_names():
                self._tell(f"variable:{name}", send(self._scope.get_variable(name)))
            self._tell(key, send(answer(self._scope, key)))
        else:
            self._tell(key, send(answer(self._scope, key)))

    def _tell(self, key: str, raw: Raw) -> None:
        self._sent.append(key)
        self._sent.append(raw)

    def _called(self, name: str, arguments: list[Any], tagged: bool) -> Raw:
        """Call a host function. What it raises, the script may catch."""
        given = receive(arguments) if tagged else arguments
        try:
            return send(self._scope.functions[name](*given))
        except Exception as error:  # the host's own code: anything may happen there
            return refusal(str(error) or type(error).__name__)

    def _more_guids(self, known: list[str]) -> list[str]:
        """Twice as many: who asks in a loop would otherwise run again for each."""
        return known + [self._scope.new_guid() for _ in range(len(known))]


def apply(scope: Scope, changes: Iterable[tuple[str, str, Any]]) -> None:
    """Make in the scope the changes that a script made. Raises ExpressionFailed."""
    try:
        for change, name, value in changes:
            match change:
                case "variable":
                    scope.set_variable(name, value)
                case "correlation":
                    scope.correlation_id = value
                case "name":
                    scope.instance_name = value
                case _:
                    scope.set_outcomes(value)
    except HoldfastError as error:
        raise ExpressionFailed(str(error)) from error


def _configured(scope: Scope, key: str) -> Any:
    """A setting by its whole key, or by the way to it: `Smtp:Host`."""
    settings = scope.configuration
    if key in settings:
        return settings[key]
    found: Any = settings
    for part in key.split(":"):
        if not hasattr(found, "get"):
            return None
        found = found.get(part)
    return found
