"""What a host lends to its bursts: time, services, functions, middleware and limits."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from holdfast.authoring import ActivityContext
from holdfast.clock import Clock
from holdfast.expression import Language

ActivityMiddleware = Callable[[ActivityContext, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Called around each execution of an activity; it must await what it is given, once."""

BurstMiddleware = Callable[[Any, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Called around each burst, with the burst's read-only view."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    executions: int = 1_000_000
    """Activities one burst may execute before it is taken for a loop that never waits."""
    breath: int = 500
    """After so many the burst lets others run on the event loop."""


class Environment(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    clock: Clock
    services: Mapping[type[Any], Any] = {}
    """What `context.use` finds, by its Protocol."""
    functions: Mapping[str, Callable[..., Any]] = {}
    """What scripts may call by name."""
    configuration: Mapping[str, Any] = {}
    expressions: Mapping[str, Language] = {}
    """Expression languages, for scripts that are only known when they run."""
    limits: Limits = Limits()
    around_activity: tuple[ActivityMiddleware, ...] = ()
    around_burst: tuple[BurstMiddleware, ...] = ()
    has_background: bool = False
    """Whether the host carries out `DoInBackground`. Without, such activities execute in the burst."""
    incident_strategy: str = "FaultStrategy"
    """For definitions that do not name one."""
    flowchart_mode: str = "CounterBased"
