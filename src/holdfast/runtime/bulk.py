"""One request to all instances that match a filter, however many those are.

They are found page by page without their states, and each page's messages are one transaction, in a lane
of their own so that they delay nobody. What is created after the request began is not meant.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from holdfast.commit import Lane
from holdfast.errors import Unavailable
from holdfast.instance import Status
from holdfast.message import (
    Alter,
    Alteration,
    Cancel,
    Delete,
    Message,
    Order,
    Pause,
    RetryIncidents,
    SkipIncidents,
    Unpause,
)
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.courier import Courier
from holdfast.runtime.letters import sealed
from holdfast.runtime.reception import digest
from holdfast.runtime.world import World
from holdfast.store import Admission, Admitted, InstanceFilter, KeyReused, Records, Summary, Verdict

PAGE = 500
"""Instances in one transaction."""
TRIES = 5
"""How often a page is sent again when nobody knows whether it was written."""


class BulkReport(msgspec.Struct, frozen=True):
    matched: int = 0
    """Instances that were found."""
    sent: int = 0
    """Those that were sent the message; repeated under one key, those that were sent it then."""


Progress = Callable[[BulkReport], None]
"""Told after each page."""


async def pages_of(
    store: Records, wanted: InstanceFilter, now: datetime, size: int = PAGE
) -> AsyncIterator[list[Summary]]:
    """All that match and exist by now, in the order of their creation, whatever becomes of them meanwhile.

    The next page begins at the instant of the last instance, so that those which matched no more after
    they were handled make nobody else be left out.
    """
    until = now + timedelta(microseconds=1)
    if wanted.created_until is not None:
        until = min(until, wanted.created_until)
    wanted = msgspec.structs.replace(wanted, created_until=until)
    there: set[str] = set()
    """Seen already, of those created at the instant at which the next page begins."""
    while True:
        limit = size + len(there)
        page = await store.instances(wanted, descending=False, limit=limit)
        found = [one for one in page.items if one.instance_id not in there]
        if found:
            yield found
            last = found[-1].columns.created_at
            if last != wanted.created_from:
                there.clear()
            there |= {one.instance_id for one in found if one.columns.created_at == last}
            wanted = msgspec.structs.replace(wanted, created_from=last)
        if len(page.items) < limit:
            return


class Bulk:
    """What `Holdfast` does to one instance, done to many. Each returns how many those were."""

    def __init__(self, world: World, courier: Courier) -> None:
        self._world = world
        self._courier = courier

    async def cancel(
        self,
        wanted: InstanceFilter,
        reason: str | None = None,
        *,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        """End them, and their open children."""
        return await self.tell(_open(wanted), Cancel(reason=reason), key=key, on_progress=on_progress)

    async def terminate(
        self,
        wanted: InstanceFilter,
        reason: str | None = None,
        *,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        """End them, and do not wait for what they are doing right now."""
        message = Cancel(reason=reason, at_once=True)
        return await self.tell(_open(wanted), message, key=key, on_progress=on_progress)

    async def pause(
        self,
        wanted: InstanceFilter,
        reason: str | None = None,
        *,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        return await self.tell(_open(wanted), Pause(reason=reason), key=key, on_progress=on_progress)

    async def unpause(
        self, wanted: InstanceFilter, *, key: str | None = None, on_progress: Progress | None = None
    ) -> BulkReport:
        wanted = msgspec.structs.replace(wanted, is_paused=True)
        return await self.tell(wanted, Unpause(), key=key, on_progress=on_progress)

    async def delete(
        self, wanted: InstanceFilter, *, key: str | None = None, on_progress: Progress | None = None
    ) -> BulkReport:
        """Forget them with all that belongs to them, also those that are open."""
        return await self.tell(wanted, Delete(), key=key, on_progress=on_progress)

    async def retry(
        self,
        wanted: InstanceFilter,
        activity_ids: Sequence[str] = (),
        *,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        """Execute what has faulted again: everything, or these activities."""
        again = RetryIncidents(activity_ids=tuple(activity_ids))
        return await self.alter(_with_incidents(wanted), again, key=key, on_progress=on_progress)

    async def skip(
        self,
        wanted: InstanceFilter,
        activity_ids: Sequence[str] = (),
        *,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        """Take what has faulted as completed: everything, or these activities."""
        over = SkipIncidents(activity_ids=tuple(activity_ids))
        return await self.alter(_with_incidents(wanted), over, key=key, on_progress=on_progress)

    async def alter(
        self,
        wanted: InstanceFilter,
        *alterations: Alteration,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        """Change each of them in these ways, all or none. What became of it is in their journals."""
        message = Alter(alterations=alterations)
        return await self.tell(wanted, message, key=key, on_progress=on_progress)

    async def tell(
        self,
        wanted: InstanceFilter,
        message: Message | Order,
        *,
        key: str | None = None,
        on_progress: Progress | None = None,
    ) -> BulkReport:
        """Send a message to each of them.

        Under an idempotency `key` no instance gets it twice, however often the request is repeated.
        Raises KeyReused when the key was used for another message.
        """
        report = BulkReport()
        now = self._world.environment.clock.now()
        async for page in pages_of(self._world.store, wanted, now):
            admissions = [self._admission(one, message, key) for one in page]
            verdicts = await self._admit(admissions)
            for admission, verdict in zip(admissions, verdicts, strict=True):
                if isinstance(verdict, KeyReused):
                    raise verdict
                if isinstance(verdict, Admitted):
                    self._courier.deliver([admission.message], [verdict.place])
            report = BulkReport(report.matched + len(page), report.sent + len(verdicts))
            if on_progress is not None:
                on_progress(report)
        return report

    def _admission(self, found: Summary, message: Message | Order, key: str | None) -> Admission:
        envelope = sealed(
            message,
            tenant=found.tenant,
            instance_id=found.instance_id,
            shard=found.shard,
            lane=Lane.BULK,
        )
        self._world.sizes.check(message, envelope.payload)
        if key is None:
            return Admission(message=envelope)
        request = digest(found.instance_id, message, None)
        return Admission(message=envelope, key=f"{key}:{found.instance_id}", request=request)

    async def _admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        # Sent again when nobody knows: what operators ask for does no harm when it is asked twice.
        backoff = Backoff()
        for _ in range(TRIES - 1):
            try:
                return await self._world.store.admit(admissions)
            except Unavailable:
                await backoff.wait()
        await asyncio.sleep(0)
        return await self._world.store.admit(admissions)


def _open(wanted: InstanceFilter) -> InstanceFilter:
    return msgspec.structs.replace(wanted, status=Status.RUNNING)


def _with_incidents(wanted: InstanceFilter) -> InstanceFilter:
    return msgspec.structs.replace(wanted, has_incidents=True)
