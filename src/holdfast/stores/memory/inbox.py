"""Messages and timers: reading them, counting what went wrong."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

import msgspec

from holdfast.commit import Delivery, Place
from holdfast.stores.memory.tables import Subject


class MemoryInbox(Subject):
    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        found: list[Delivery] = []
        for position in after:
            line = self._tables.inbox.by("line", (position.shard, position.lane))
            behind = (delivery for place, delivery in line.items() if place.seq > position.seq)
            found += islice(behind, limit)  # in order of seq: that is how they came
        return found

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        timers = [
            (timer.due, timer)
            for shard in shards
            for timer in self._tables.timers.by("shard", shard).values()
            if timer.due is not None and timer.due <= until
        ]
        return [timer for _, timer in sorted(timers, key=lambda entry: entry[0])[:limit]]

    async def postpone(self, delivery: Delivery, retry_at: datetime, error: str) -> None:
        present = self._present(delivery)
        if present is not None:
            attempts = present.attempts + 1
            self._replace(msgspec.structs.replace(present, attempts=attempts, retry_at=retry_at, error=error))

    async def count_deaths(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        counted: list[Delivery] = []
        for delivery in deliveries:
            present = self._present(delivery)
            if present is not None:
                counted.append(msgspec.structs.replace(present, deaths=present.deaths + 1))
                self._replace(counted[-1])
        return counted

    def _present(self, delivery: Delivery) -> Delivery | None:
        if delivery.place is not None:
            return self._tables.inbox.get(delivery.place)
        return self._tables.timers.get(_timer_key(delivery))

    def _replace(self, delivery: Delivery) -> None:
        if delivery.place is not None:
            self._tables.inbox[delivery.place] = delivery
        else:
            self._tables.timers[_timer_key(delivery)] = delivery


def _timer_key(delivery: Delivery) -> tuple[str, str, str]:
    return delivery.envelope.tenant, delivery.envelope.instance_id, delivery.timer or ""
