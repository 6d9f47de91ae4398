"""Schedules of machines: rows beside those of definitions, which start a run for a foreign id when due."""

from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.codec import decode, encode, format_timespan, parse_timespan
from holdfast.cron import Cron
from holdfast.errors import Conflict, NotFound
from holdfast.runtime.coded import Coded
from holdfast.runtime.reception import LONGEST_ID
from holdfast.runtime.schedules import Missed, Policies, ScheduleInvalid, check_zone, planned, renewed
from holdfast.store import Definitions, EditionChanged, Publication, Schedule

TRIES = 20


class ScheduleNotFound(NotFound):
    code = "schedule.not_found"


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of a machine, as people ask about it."""

    foreign_id: str
    cron: str | None
    every: timedelta | None
    zone: str | None
    condition: str | None
    next_at: datetime | None
    last_at: datetime | None


class RunSchedules:
    def __init__(
        self, program: Coded, store: Definitions, clock: Clock, tenant: str, shard_of: Callable[[str], int]
    ) -> None:
        self._program = program
        self._store = store
        self._clock = clock
        self._tenant = tenant
        self._shard_of = shard_of

    async def put(
        self,
        foreign_id: str,
        *,
        cron: str | None,
        every: timedelta | None,
        zone: str | None,
        given: str | None,
        condition: str | None,
        missed: str,
    ) -> None:
        """Replaces the one that is there. Unless it says something new, it goes on where it was."""
        if (cron is None) == (every is None):
            raise ScheduleInvalid("A schedule needs one of `cron=` and `every=`.")
        if zone is not None:
            check_zone(zone)
        if cron is not None:
            Cron(cron)
        start: dict[str, Any] = {
            "correlationId": foreign_id,
            "input": {} if given is None else {"object": given},
        }
        if condition is not None:
            start["condition"] = condition
        if every is not None:
            spec = {"name": "Elsa.Timer", "payload": {"interval": format_timespan(every)}, "start": start}
        else:
            spec = {"name": "Elsa.Cron", "payload": {"cronExpression": cron}, "start": start}
        now = self._clock.now()
        name = _name(foreign_id)
        found = planned(
            tenant=self._tenant,
            definition_id=self._program.definition_id,
            activity_id=name,
            shard=self._shard_of(name),
            version_id=self._program.version_id,
            spec=encode(spec),
            zone=zone,
            policies=Policies(missed=Missed(missed)),
            anchor=None if every is None else now,
            now=now,
        )
        await self._change(lambda present: {**present, name: renewed(found, present.get(name), now)})

    async def remove(self, foreign_id: str) -> None:
        """Raises ScheduleNotFound."""
        name = _name(foreign_id)

        def without(present: dict[str, Schedule]) -> dict[str, Schedule]:
            if name not in present:
                raise ScheduleNotFound(
                    f"The machine {self._program.definition_id!r} has no schedule for {foreign_id!r}."
                )
            return {key: schedule for key, schedule in present.items() if key != name}

        await self._change(without)

    async def all(self) -> list[Scheduled]:
        edition = await self._store.edition(self._tenant, self._program.definition_id)
        return [_scheduled(schedule) for schedule in edition.schedules]

    async def _change(self, change: Callable[[dict[str, Schedule]], dict[str, Schedule]]) -> None:
        for _ in range(TRIES):
            edition = await self._store.edition(self._tenant, self._program.definition_id)
            present = {schedule.activity_id: schedule for schedule in edition.schedules}
            wanted = change(present)
            publication = Publication(
                tenant=self._tenant,
                definition_id=self._program.definition_id,
                mark=edition.mark,
                schedules=tuple(wanted.values()),
            )
            try:
                await self._store.publish([publication])
            except EditionChanged:  # one of them fired, or somebody else schedules
                continue
            return
        raise Conflict(f"The schedules of {self._program.definition_id!r} change all the time. Try again.")


def _name(foreign_id: str) -> str:
    if foreign_id.isascii() and 0 < len(foreign_id) <= LONGEST_ID:
        return foreign_id
    return sha256(foreign_id.encode()).hexdigest()


def _scheduled(schedule: Schedule) -> Scheduled:
    spec = decode(schedule.spec)
    payload, start = spec["payload"], spec["start"]
    interval = payload.get("interval")
    return Scheduled(
        foreign_id=start["correlationId"],
        cron=payload.get("cronExpression"),
        every=None if interval is None else parse_timespan(interval),
        zone=schedule.zone,
        condition=start.get("condition"),
        next_at=schedule.cursor.next_at,
        last_at=schedule.cursor.last_at,
    )
