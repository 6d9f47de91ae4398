"""Fires schedules: a start for each occurrence, once, whoever is alive to do it.

The cursor of the schedule is compared and set in the transaction that notes the firing and admits the
start, so on one node or fifty, before and after a publication, an occurrence fires once.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

import msgspec

from holdfast.errors import NotFound, Unavailable
from holdfast.message import Cancel
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.changes import newborn
from holdfast.runtime.coded import Coded
from holdfast.runtime.courier import Courier
from holdfast.runtime.gate import Gate
from holdfast.runtime.letters import sealed
from holdfast.runtime.schedules import (
    Overlap,
    Step,
    condition_of,
    guard,
    instance_id_of,
    policies_of,
    start_of,
    step,
    waiting_step,
)
from holdfast.runtime.world import World
from holdfast.store import Admission, Admitted, Cursor, Firing, Refused, Schedule

_log = logging.getLogger("holdfast")

AHEAD = timedelta(seconds=1.5)
MOST = 500


class Clockwork:
    """The schedules of the shards this node owns."""

    def __init__(
        self, world: World, courier: Courier, gate: Gate, *, shards: Callable[[], list[int]]
    ) -> None:
        self._world = world
        self._courier = courier
        self._gate = gate
        self._shards = shards
        self._some_wait = False
        self._news = asyncio.Event()

    def look(self) -> None:
        """A schedule may have been published."""
        self._news.set()

    def key_freed(self) -> None:
        """An instance has ended; an occurrence may have waited for that."""
        if self._some_wait:
            self._news.set()

    async def run(self) -> None:
        """Until cancelled: look ahead a little, and fire what is due when it is due."""
        backoff = Backoff()
        clock = self._world.environment.clock
        while True:
            self._news.clear()
            try:
                shards = self._shards()
                soon = await self._world.store.due_schedules(shards, clock.now() + AHEAD, MOST)
                waiting = await self._world.store.waiting_schedules(shards, MOST)
                self._some_wait = bool(waiting)
                for schedule in waiting:
                    if (again := waiting_step(schedule)) is not None:
                        await self._fire(schedule, again)
                backoff.reset()
                for schedule in soon:
                    await self._fire_due(schedule)
            except Unavailable:
                await backoff.wait()
                continue
            if len(soon) < MOST:
                try:
                    async with asyncio.timeout(1.0):
                        await self._news.wait()
                except TimeoutError:
                    pass

    async def _fire_due(self, schedule: Schedule) -> None:
        """All that is due of it now, one occurrence after the other, as long as nobody else is at it."""
        clock = self._world.environment.clock
        if self._gate.is_closed(schedule.tenant, schedule.definition_id):
            return  # what is missed meanwhile follows the policy
        if schedule.cursor.next_at is not None:
            await clock.sleep_until(schedule.cursor.next_at)
        while (due := step(schedule, clock.now())) is not None:
            after = await self._fire(schedule, due)
            if after is None:
                return
            schedule = msgspec.structs.replace(schedule, cursor=after)

    async def _fire(self, schedule: Schedule, due: Step) -> Cursor | None:
        """How the schedule stands after it; None when somebody else was first."""
        try:
            start = await self._start(schedule, due) if due.starts else None
        except Unavailable:
            raise
        except Exception:  # an author's condition: the occurrence stays due, and is asked about again
            _log.exception("Whether the schedule %s fires could not be decided.", schedule.id)
            return None
        verdict = await self._world.store.fire(
            Firing(
                schedule=schedule,
                nominal=due.nominal,
                start=start,
                then=due.then,
                if_refused=due.if_refused,
            )
        )
        if verdict is None:
            return None
        if isinstance(verdict, Admitted) and start is not None:
            self._courier.deliver([start.message], [verdict.place])
        if not isinstance(verdict, Refused):
            return due.then
        if verdict.instance_id and policies_of(schedule).overlap is Overlap.CANCEL_PREVIOUS:
            await self._cancel(schedule.tenant, verdict.instance_id)
        return due.if_refused or due.then

    async def _start(self, schedule: Schedule, due: Step) -> Admission | None:
        """The occurrence's instance; its id derives from the schedule and the time."""
        tenant = schedule.tenant
        try:
            program = await self._world.programs.find(tenant, schedule.version_id)
        except NotFound:
            return None
        instance_id = instance_id_of(schedule, due.nominal)
        shard = self._world.shards.of(tenant, schedule.definition_id, instance_id)
        condition = condition_of(schedule)
        decides = program.admits if condition is not None and isinstance(program, Coded) else None
        if decides is not None and not await decides(condition or "", due.nominal):
            return None
        message = start_of(schedule)
        overlap = guard(schedule)
        return Admission(
            message=sealed(message, tenant=tenant, instance_id=instance_id, shard=shard),
            birth=newborn(
                program,
                instance_id=instance_id,
                shard=shard,
                now=self._world.environment.clock.now(),
                correlation_id=message.correlation_id,
            ),
            activations=(*program.guards(message.correlation_id), *(() if overlap is None else (overlap,))),
        )

    async def _cancel(self, tenant: str, instance_id: str) -> None:
        """Make room for an occurrence that waits."""
        shards = await self._world.store.shards(tenant, [instance_id])
        if instance_id in shards:
            reason = "Its schedule's next occurrence came."
            envelope = sealed(
                Cancel(reason=reason), tenant=tenant, instance_id=instance_id, shard=shards[instance_id]
            )
            (verdict,) = await self._world.store.admit([Admission(message=envelope)])
            if isinstance(verdict, Admitted):
                self._courier.deliver([envelope], [verdict.place])
