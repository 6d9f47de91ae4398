"""When a node has come to rest: nothing is under way, and the store holds nothing that is due.

The store is asked rather than the node, so that a message the node has overlooked keeps it from resting,
and a test says so instead of passing.
"""

import asyncio
from datetime import UTC, datetime

from holdfast.commit import Delivery, Lane, Place
from holdfast.errors import Unavailable
from holdfast.runtime.node import Node
from holdfast.store import Store

PATIENCE = 10.0
"""Seconds, by the machine's clock, in which everything that is due must have happened."""
CALM = 3
"""How many looks in a row must find nothing."""
HESITANT = 0.5
"""Seconds for whoever may be about to begin something, as far as the store can say, and perhaps is not."""
BUSY = 1000
"""Looks without a pause."""

END_OF_TIME = datetime(9000, 1, 1, tzinfo=UTC)

_PAGE = 500


class Unsettled(Unavailable):
    """The runtime did not come to rest in time."""

    code = "testing.unsettled"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The runtime did not come to rest in {PATIENCE:g} seconds: {reason}.")


class Rest:
    def __init__(self, node: Node, store: Store) -> None:
        self._node = node
        self._store = store

    async def reached(self, now: datetime) -> None:
        """Returns when nothing more happens by itself before the clock moves. Raises Unsettled."""
        calm, looks = 0, 0
        loop = asyncio.get_running_loop()
        began = calm_since = loop.time()
        while True:
            # Asked first: what is matched after that is a message by the time the inbox is looked at.
            is_hesitant = await self._is_hesitant()
            reason = await self._reason(now)
            if reason is not None:
                calm, calm_since = 0, loop.time()
                if calm_since > began + PATIENCE:
                    raise Unsettled(reason)
            else:
                calm += 1
                if calm >= CALM and (not is_hesitant or loop.time() > calm_since + HESITANT):
                    return
            looks += 1
            # Most is done within a few rounds of the loop; what really takes time is not waited for busily.
            await asyncio.sleep(0 if looks < BUSY else 0.002)

    async def next_due(self) -> datetime | None:
        """When something happens by itself next; None when nothing will."""
        shards = self._node.reader.shards
        timers = await self._store.due(shards, END_OF_TIME, 1)
        schedules = await self._store.due_schedules(shards, END_OF_TIME, 1)
        dues = [timer.retry_at or timer.due for timer in timers]
        dues += [schedule.cursor.next_at for schedule in schedules]
        dues += [delivery.retry_at for delivery in await self._inbox()]
        return min((due for due in dues if due is not None), default=None)

    async def _reason(self, now: datetime) -> str | None:
        """Why it is not at rest."""
        node, store, shards = self._node, self._store, self._node.reader.shards
        if node.lines.busy:
            return f"{node.lines.busy} turns are under way"
        if node.background.busy or await store.idle_attempts(shards, 1):
            return "work in the background is under way"
        for delivery in [*await self._inbox(), *await store.due(shards, now, _PAGE)]:
            if (delivery.retry_at is None or delivery.retry_at <= now) and not await self._is_paused(
                delivery
            ):
                envelope = delivery.envelope
                return f"a {envelope.kind!r} for instance {envelope.instance_id} was not handled"
        schedules = await store.due_schedules(shards, now, 1)
        return f"the schedule {schedules[0].id} was not fired" if schedules else None

    async def _is_hesitant(self) -> bool:
        """Whether there are stimuli or occurrences that may have found room a moment ago."""
        waiting = await self._store.waiting_schedules(self._node.reader.shards, 1)
        return bool(waiting or await self._store.meetings(None, 1))

    async def _inbox(self) -> list[Delivery]:
        depth = await self._store.depth()
        places = [Place(shard, lane, 0) for shard, _, _ in depth for lane in Lane]
        return await self._store.read(places, _PAGE) if places else []

    async def _is_paused(self, delivery: Delivery) -> bool:
        found = await self._store.load([(delivery.envelope.tenant, delivery.envelope.instance_id)])
        return bool(found) and found[0].columns.is_paused
