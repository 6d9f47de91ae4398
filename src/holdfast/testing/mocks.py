"""Activities replaced for a test."""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from holdfast.authoring import Activity, ActivityContext, ActivityType, ActivityTypes
from holdfast.errors import NotFound


def mocked(types: ActivityTypes, type_name: str, mock: Callable[..., Any]) -> ActivityType:
    """The same type, but its execution calls `mock` with the inputs by name.

    What it returns is the output `Result`, where the type has one; `Outcomes("Approved", result=...)`
    also chooses outcomes; what it raises faults the activity.
    """
    known = types.find(type_name)
    if known is None:
        raise NotFound(f"There is no activity type {type_name!r} to mock. Known: {', '.join(types.names())}.")
    inputs = [i.attribute for i in known.descriptor.inputs]
    has_result = any(o.name == "Result" for o in known.descriptor.outputs)

    class Mock(Activity):
        def execute(self, context: ActivityContext) -> Any:
            returned = mock(**{name: getattr(self, name, None) for name in inputs})
            if isawaitable(returned):
                return self._keep_awaited(context, returned)
            self._keep(context, returned)
            return None

        async def _keep_awaited(self, context: ActivityContext, returned: Any) -> None:
            self._keep(context, await returned)

        def _keep(self, context: ActivityContext, returned: Any) -> None:
            result = returned.result if isinstance(returned, Outcomes) else returned
            if has_result and result is not None:
                context.set_output("Result", result)
            if isinstance(returned, Outcomes):
                context.complete(*returned)

    return ActivityType(known.descriptor, Mock)


class Outcomes(tuple[str, ...]):
    """Return it from a mock to complete with these outcomes, and perhaps a result."""

    result: Any

    def __new__(cls, *names: str, result: Any = None) -> "Outcomes":
        made = super().__new__(cls, names)
        made.result = result
        return made
