"""Timer, Cron and StartAt triggers of a local host, and when each fires next."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.bookmark import Trigger
from holdfast.codec import parse_timespan
from holdfast.cron import Cron


class Schedules:
    def __init__(self) -> None:
        self._next: list[tuple[datetime, Trigger]] = []

    def replace(self, definition_id: str, triggers: list[Trigger], now: datetime) -> None:
        """Forget a definition's schedules and take these."""
        self._next = [(at, t) for at, t in self._next if t.definition_id != definition_id]
        for trigger in triggers:
            at = _first(trigger, now)
            if at is not None:
                self._next.append((at, trigger))

    def next(self) -> datetime | None:
        return min((at for at, _ in self._next), default=None)

    def fire(self, now: datetime) -> tuple[Trigger, Mapping[str, Any]]:
        """The earliest schedule that is due, and the input its instance is started with."""
        at, trigger = entry = min(self._next, key=lambda e: e[0])
        self._next.remove(entry)
        payload: Mapping[str, Any] = trigger.payload
        following: datetime | None = None
        if trigger.name == "Elsa.Timer":
            following = at + parse_timespan(payload["interval"])
        elif trigger.name == "Elsa.Cron":
            following = Cron(payload["cronExpression"]).next(max(at, now))
        if following is not None:
            self._next.append((following, trigger))
        return trigger, {name[:1].upper() + name[1:]: value for name, value in payload.items()}


def _first(trigger: Trigger, now: datetime) -> datetime | None:
    payload: Mapping[str, Any] = trigger.payload
    if trigger.name == "Elsa.Timer":
        return now + parse_timespan(payload["interval"])
    if trigger.name == "Elsa.Cron":
        return Cron(payload["cronExpression"]).next(now)
    if trigger.name == "Elsa.StartAt":
        return max(now, datetime.fromisoformat(payload["executeAt"]))
    return None
