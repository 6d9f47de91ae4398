"""What a plugin registers with.

A plugin is an installed package whose entry point in the group `holdfast.plugins` names a function
`def register(plugins: Plugins) -> None`. What comes with Holdfast registers in the same way; loading
them is `assembly`'s work.
"""

from collections.abc import Callable
from typing import Any

from holdfast.authoring import ActivityTypes
from holdfast.definitions.evaluators import Expressions
from holdfast.engine.environment import ActivityMiddleware, BurstMiddleware
from holdfast.expression import Language


class Plugins:
    """Everything a host was given to work with."""

    def __init__(self) -> None:
        self.activities = ActivityTypes()
        self.expressions = Expressions()
        self.services: dict[type[Any], Any] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        self.around_activity: list[ActivityMiddleware] = []
        self.around_burst: list[BurstMiddleware] = []

    def add_activities(self, *activities: Any) -> None:
        """Functions or classes decorated with `@activity`."""
        for made in activities:
            self.activities.add(made)

    def add_language(self, language: Language) -> None:
        """An expression language. One with the same name is replaced."""
        self.expressions.add(language)

    def add_service(self, port: type[Any], service: Any) -> None:
        """What `context.use(port)` shall find."""
        self.services[port] = service

    def add_function(self, name: str, function: Callable[..., Any]) -> None:
        """A function that expressions may call by that name."""
        self.functions[name] = function

    def add_activity_middleware(self, middleware: ActivityMiddleware) -> None:
        """Called around each execution of an activity, the first one registered outermost."""
        self.around_activity.append(middleware)

    def add_burst_middleware(self, middleware: BurstMiddleware) -> None:
        """Called around each burst, the first one registered outermost."""
        self.around_burst.append(middleware)
