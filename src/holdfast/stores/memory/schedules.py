"""When definitions start by themselves."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from holdfast.store import Firing, Refused, Schedule, Verdict
from holdfast.stores.memory.intake import MemoryIntake

WAITING = "waiting"


class MemorySchedules(MemoryIntake):
    """A firing admits its start as the intake does."""

    async def due_schedules(self, shards: Sequence[int], until: datetime, limit: int) -> list[Schedule]:
        due = [
            (schedule.cursor.next_at, schedule.id, schedule)
            for schedule in self._of_shards(shards)
            if schedule.cursor.next_at is not None and schedule.cursor.next_at <= until
        ]
        return [schedule for _, _, schedule in sorted(due, key=lambda entry: entry[:2])[:limit]]

    async def waiting_schedules(self, shards: Sequence[int], limit: int) -> list[Schedule]:
        waiting = [schedule for schedule in self._of_shards(shards) if schedule.cursor.waiting]
        return sorted(waiting, key=_name)[:limit]

    def _of_shards(self, shards: Sequence[int]) -> list[Schedule]:
        schedules = self._tables.schedules
        return [schedule for shard in set(shards) for schedule in schedules.by("shard", shard).values()]

    async def schedules(self, tenant: str, definition_id: str | None = None) -> list[Schedule]:
        table = self._tables.schedules
        if definition_id is None:
            found = table.by("tenant", tenant).values()
        else:
            found = table.by("definition", (tenant, definition_id)).values()
        return sorted(found, key=_name)

    async def fire(self, firing: Firing) -> Verdict | None:
        tables, read = self._tables, firing.schedule
        present = tables.schedules.get(_name(read))
        if present is None or (present.version_id, present.cursor) != (read.version_id, read.cursor):
            return None
        fired = (_name(read), firing.nominal)
        if tables.firings.get(fired, WAITING) != WAITING:
            return None
        cursor, verdict = firing.then, Refused("")
        if firing.start is not None:
            (verdict,) = await self.admit([firing.start])
            if isinstance(verdict, Refused) and firing.if_refused is not None:
                cursor = firing.if_refused
        tables.firings[fired] = WAITING if firing.nominal in cursor.waiting else "over"
        tables.schedules[_name(read)] = msgspec.structs.replace(present, cursor=cursor)
        return verdict

    async def forget_firings(self, before: datetime, limit: int) -> int:
        old = [fired for fired in self._tables.firings if fired[1] < before][:limit]
        for fired in old:
            del self._tables.firings[fired]
        return len(old)


def _name(schedule: Schedule) -> tuple[str, str, str]:
    return schedule.tenant, schedule.definition_id, schedule.activity_id
