"""Deletes instances some time after they have finished, so that the database does not grow for ever.

How long is said by the definition, in its custom property `holdfast.retention`: a time span such as
`30.00:00:00`, or `never`. Without it the default of the host holds. What cannot be read keeps everything.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from holdfast.clock import Clock
from holdfast.codec import TimeSpanInvalid, parse_timespan
from holdfast.definitions.document import load_definition
from holdfast.errors import Invalid
from holdfast.runtime.archive import Archive
from holdfast.store import Burial, InstanceFilter, Store, Summary

PROPERTY = "holdfast.retention"
NEVER = "never"
AGE = timedelta(days=30)
"""How long finished instances are kept unless somebody says otherwise."""
BATCH = 500


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is. Counted since the node began."""

    erased: int = 0
    archived: int = 0
    behind: int = 0
    """Of the definition being worked on, how many were due and still there."""
    last_at: datetime | None = None
    """When it last had nothing left to do."""
    problem: str | None = None
    """Why something is kept that should perhaps go."""


class Retention:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        age: timedelta | None = AGE,
        archive: Archive | None = None,
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """`age` is the default; None keeps everything of which no definition says otherwise."""
        self._store = store
        self._clock = clock
        self._age = age
        self._archive = archive
        self._may_go_on = may_go_on
        self.progress = Progress()

    async def clean(self) -> int:
        """Delete all that is due; how many. Raises OSError when they cannot be archived."""
        now = self._clock.now()
        erased = 0
        self._note(problem=None)
        for tenant, definition_id in await self._store.retired(now):
            age = await self.age_of(tenant, definition_id)
            if age is not None:
                erased += await self._clean(tenant, definition_id, now - age)
        self._note(last_at=now, behind=0)
        return erased

    async def age_of(self, tenant: str, definition_id: str) -> timedelta | None:
        """How long instances of a definition are kept after they have finished; None is for ever."""
        stored = await self._store.published(tenant, definition_id)
        if stored is None:
            versions = (await self._store.edition(tenant, definition_id)).versions
            stored = max(versions, key=lambda one: one.header.version, default=None)
        if stored is None:
            return self._age
        try:
            said = load_definition(stored.document).custom_properties.get(PROPERTY)
            if said is None:
                return self._age
            return None if str(said).strip().lower() == NEVER else parse_timespan(str(said))
        except (Invalid, TimeSpanInvalid) as problem:
            self._note(
                problem=f"{PROPERTY} of {definition_id!r} is not understood, so nothing goes: {problem}"
            )
            return None

    async def _clean(self, tenant: str, definition_id: str, before: datetime) -> int:
        wanted = InstanceFilter(tenant=tenant, definition_ids=(definition_id,), finished_until=before)
        erased = 0
        while self._may_go_on():
            page = await self._store.instances(wanted, descending=False, limit=BATCH)
            self._note(behind=page.total)
            if not page.items:
                break
            if self._archive is not None:
                burials = [await self._burial(one) for one in await self._loaded(page.items)]
                await asyncio.to_thread(self._archive.write, burials, self._clock.now())
                self._note(archived=self.progress.archived + len(burials))
            gone = await self._store.erase([(one.tenant, one.instance_id) for one in page.items], before)
            erased += gone
            self._note(erased=self.progress.erased + gone)
            if not gone:
                break  # they were all opened again a moment ago
            await asyncio.sleep(0)
        return erased

    async def _loaded(self, found: Sequence[Summary]) -> list[tuple[Summary, bytes | None]]:
        keys = [(one.tenant, one.instance_id) for one in found]
        states = {(one.tenant, one.instance_id): one.state for one in await self._store.load(keys)}
        return [(one, states[key]) for one, key in zip(found, keys, strict=True) if key in states]

    async def _burial(self, found: tuple[Summary, bytes | None]) -> Burial:
        summary, state = found
        journal = await self._store.journal_of(summary.tenant, summary.instance_id, limit=1_000_000)
        return Burial(summary=summary, state=state, journal=tuple(journal))

    def _note(self, **changes: object) -> None:
        self.progress = msgspec.structs.replace(self.progress, **changes)

    def note_problem(self, problem: str) -> None:
        self._note(problem=problem)
