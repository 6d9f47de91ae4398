"""A local host for tests: a clock that only they move, ids that repeat, a console that remembers.

Everything else is `holdfast.local`, so a test sees what the command line and its users see.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from holdfast.assembly import load_plugins
from holdfast.authoring import Console
from holdfast.clock import Ids
from holdfast.engine import Limits
from holdfast.engine.environment import ActivityMiddleware, BurstMiddleware
from holdfast.local import LocalHost, NotPublished
from holdfast.plugin import Plugins
from holdfast.testing.clock import ManualClock, NumberedIds
from holdfast.testing.lines import Lines
from holdfast.testing.mocks import mocked

__all__ = ["Host", "NotPublished"]


class Host(LocalHost):
    """Definitions and instances, and everything that passes between them, in one process."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] = (),
        register: Iterable[Callable[[Plugins], None]] = (),
        mocks: Mapping[str, Any] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        services: Mapping[type[Any], Any] | None = None,
        around_activity: Iterable[ActivityMiddleware] = (),
        around_burst: Iterable[BurstMiddleware] = (),
        clock: ManualClock | None = None,
        ids: Ids | None = None,
        limits: Limits | None = None,
        flowchart_mode: str = "CounterBased",
    ) -> None:
        plugins = load_plugins(activities)
        for plugin in register:
            plugin(plugins)
        for type_name, mock in (mocks or {}).items():
            plugins.activities.replace(mocked(plugins.activities, type_name, mock))
        self.clock = clock or ManualClock()
        self.console = Lines()
        plugins.services = {Console: self.console, **plugins.services, **(services or {})}
        plugins.functions |= functions or {}
        plugins.around_activity += around_activity
        plugins.around_burst += around_burst
        super().__init__(
            plugins, clock=self.clock, ids=ids or NumberedIds(), limits=limits, flowchart_mode=flowchart_mode
        )

    async def advance(self, span: timedelta) -> None:
        """Let time pass, stopping at each instant at which something is due."""
        until = self.clock.now() + span
        while (due := self.next_due()) is not None and due <= until:
            self.clock.move_to(due)
            await self.do_due()
        self.clock.move_to(until)
