"""Timer, Cron and StartAt triggers of a local host, and when each fires next."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from holdfast.bookmark import Trigger
from holdfast.definitions.graph import Graph
from holdfast.runtime import schedules
from holdfast.store import Schedule


class Schedules:
    def __init__(self) -> None:
        self._known: list[tuple[Schedule, Trigger]] = []

    def replace(self, graph: Graph, triggers: list[Trigger], now: datetime) -> None:
        """Forget a definition's schedules and take these."""
        self.forget(graph.definition.definition_id)
        for trigger in triggers:
            settings = schedules.settings_of(graph, trigger)
            found = schedules.schedule_of(trigger, settings, tenant="", shard=0, now=now)
            if found is not None:
                self._known.append((found, trigger))

    def forget(self, definition_id: str) -> None:
        self._known = [(s, t) for s, t in self._known if t.definition_id != definition_id]

    def next(self) -> datetime | None:
        return min((s.cursor.next_at for s, _ in self._known if s.cursor.next_at is not None), default=None)

    def fire(self, now: datetime) -> tuple[Trigger, Mapping[str, Any]] | None:
        """The earliest schedule that is due, and its instance's input; None when its occurrence is let go."""
        due = [entry for entry in self._known if entry[0].cursor.next_at is not None]
        schedule, trigger = entry = min(due, key=lambda entry: entry[0].cursor.next_at or now)
        step = schedules.step(schedule, now)
        if step is None:
            return None
        after = msgspec.structs.replace(schedule, cursor=step.then)
        self._known[self._known.index(entry)] = (after, trigger)
        return (trigger, schedules.given(schedule)) if step.starts else None
