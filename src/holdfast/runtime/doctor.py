"""Looks for what should never be, and for what will soon hurt: each finding says what to do.

Nothing is changed, and nothing here knows which database it is. What is found first is looked at twice:
work goes on meanwhile, and what was in between two commits a moment ago is none the worse for it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from holdfast.clock import Clock
from holdfast.definitions.document import load_definition
from holdfast.engine import Environment
from holdfast.errors import HoldfastError, NotFound
from holdfast.instance import SubStatus
from holdfast.plugin import Plugins
from holdfast.runtime.entrances import find_entrances
from holdfast.runtime.library import Library
from holdfast.runtime.program import Snapshot
from holdfast.runtime.shards import Shards, lease_name
from holdfast.store import Schedule, Store, Summary

MOST = 100
"""How many of a kind are named."""
LATE = timedelta(minutes=1)
"""Work that is due for longer than this is late."""
OLD_SNAPSHOT = timedelta(minutes=10)
DEAD_ROWS = 200_000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it should be."""

    code: str
    """Stable, for programs: `waits.without_cause`, `orphan.timer`."""
    what: str
    advice: str
    about: tuple[str, ...] = ()
    """Ids of what it is about; a hundred at most."""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    findings: tuple[Finding, ...]
    waiting: int
    """Messages in all inboxes."""
    lag: timedelta
    """How long the oldest of them has waited."""
    nodes: int
    """Living nodes that work shards."""


class Doctor:
    """Examines a store. Definitions are compared for the tenants it is told of."""

    def __init__(self, store: Store, library: Library, plugins: Plugins, clock: Clock) -> None:
        self._store = store
        self._library = library
        self._clock = clock
        self._environment = Environment(
            clock=clock,
            services=plugins.services,
            functions=plugins.functions,
            expressions=plugins.expressions.languages,
        )

    async def examine(self, tenants: Iterable[str] = ("",)) -> Examination:
        depth = await self._store.depth()
        now = self._clock.now()
        oldest = min((sent for _, _, sent in depth if sent is not None), default=now)
        living = {node.id for node in await self._store.nodes()}
        leases = await self._store.leases()
        workers = {node for name, (node, _) in leases.items() if node in living and name.startswith("shard-")}
        findings = [
            *await self._twice(self._without_cause),
            *await self._orphans(),
            *await self._unowned(depth, workers),
            *await self._late(depth, now),
            *await self._dead_letters(),
            *await self._vitals(),
        ]
        for tenant in tenants:
            findings += await self._twice(lambda tenant=tenant: self._schedules(tenant))
        return Examination(
            findings=tuple(findings),
            waiting=sum(count for _, count, _ in depth),
            lag=max(timedelta(0), now - oldest),
            nodes=len(workers),
        )

    async def _twice(self, look: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
        first = await look()
        if not first:
            return []
        then = {finding.code: set(finding.about) for finding in await look()}
        return [
            msgspec.structs.replace(finding, about=about)
            for finding in first
            if (about := tuple(one for one in finding.about if one in then.get(finding.code, ())))
        ]

    # --- waits ------------------------------------------------------------------------------------

    async def _without_cause(self) -> list[Finding]:
        """Open instances to which no row gives a cause to wait: does their state?"""
        found: dict[str, list[str]] = {}
        for summary, state in await self._store.stuck(MOST):
            code = await self._diagnosis(summary, state)
            if code is not None:
                found.setdefault(code, []).append(summary.instance_id)
        return [_wait_finding(code, ids) for code, ids in sorted(found.items())]

    async def _diagnosis(self, summary: Summary, encoded: bytes | None) -> str | None:
        if encoded is None:
            return "waits.start_lost"
        try:
            program = await self._library.find(summary.tenant, summary.columns.version_id)
            state = program.decode(encoded)
        except NotFound:
            return "waits.definition_gone"
        except HoldfastError:
            return "waits.state_unreadable"
        return _cause_in(state, summary.columns.sub_status)

    # --- rows -------------------------------------------------------------------------------------

    async def _orphans(self) -> list[Finding]:
        by_kind: dict[str, list[str]] = {}
        for orphan in await self._store.orphans(MOST):
            is_child = orphan.kind == "child"
            name = orphan.name if is_child else f"{orphan.instance_id}/{orphan.name}"
            by_kind.setdefault(orphan.kind, []).append(name)
        return [
            Finding(
                code=f"orphan.{kind}",
                what=f"{_some(len(names), _ORPHANS[kind][0])} {_ORPHANS[kind][1]}",
                advice=_ORPHANS[kind][2],
                about=tuple(names),
            )
            for kind, names in by_kind.items()
        ]

    async def _unowned(
        self, depth: Sequence[tuple[int, int, datetime | None]], workers: set[str]
    ) -> list[Finding]:
        leases = await self._store.leases()
        owners = {name: node for name, (node, _) in leases.items()}
        lost = [(s, count) for s, count, _ in depth if owners.get(lease_name(s)) not in workers]
        if not lost:
            return []
        waiting = sum(count for _, count in lost)
        return [
            Finding(
                code="shards.unowned",
                what=f"{_some(waiting, 'message')} in {_some(len(lost), 'shard')} that no living node works",
                advice="Start a worker: `holdfast worker`. For a group of shards, one with `--group NAME`.",
                about=tuple(lease_name(shard) for shard, _ in lost[:MOST]),
            )
        ]

    async def _late(self, depth: Sequence[tuple[int, int, datetime | None]], now: datetime) -> list[Finding]:
        found: list[Finding] = []
        behind = [(shard, count) for shard, count, sent in depth if sent is not None and now - sent > LATE]
        if behind:
            found.append(
                Finding(
                    code="inbox.late",
                    what=f"Messages in {_some(len(behind), 'shard')} have waited for more than a minute",
                    advice="Add workers, or look for instances that back off or are paused: "
                    "`holdfast instances --status Running`.",
                    about=tuple(lease_name(shard) for shard, _ in behind[:MOST]),
                )
            )
        shards = Shards(1)
        groups = await self._store.shard_groups()
        shards.learn(groups, await self._store.placements())
        numbers = shards.numbers(groups)
        timers = await self._store.due(numbers, now - LATE, MOST)
        if timers:
            found.append(
                Finding(
                    code="timers.late",
                    what=f"{_some(len(timers), 'timer')} should have fired more than a minute ago",
                    advice="Start or add workers: `holdfast worker`. `holdfast nodes` shows who is there.",
                    about=tuple(timer.envelope.instance_id for timer in timers),
                )
            )
        schedules = await self._store.due_schedules(numbers, now - LATE, MOST)
        if schedules:
            found.append(
                Finding(
                    code="schedules.late",
                    what=f"{_some(len(schedules), 'schedule')} should have fired more than a minute ago",
                    advice="Start or add workers: `holdfast worker`. Their policy decides what is caught up.",
                    about=tuple(schedule.id for schedule in schedules),
                )
            )
        return found

    async def _dead_letters(self) -> list[Finding]:
        page = await self._store.dead_letters(None, limit=MOST)
        if not page.total:
            return []
        return [
            Finding(
                code="deadletters.waiting",
                what=f"{_some(page.total, 'message')} could not be handled",
                advice="See why with `holdfast deadletters`, mend the cause, then replay or discard them.",
                about=tuple(letter.id for letter in page.items),
            )
        ]

    async def _vitals(self) -> list[Finding]:
        vitals = await self._store.vitals()
        found: list[Finding] = []
        if vitals.oldest_snapshot is not None and vitals.oldest_snapshot > OLD_SNAPSHOT:
            minutes = int(vitals.oldest_snapshot.total_seconds() // 60)
            found.append(
                Finding(
                    code="database.old_snapshot",
                    what=f"A transaction has been open for {minutes} minutes, and nothing can be cleaned up",
                    advice="Find it in pg_stat_activity (oldest xact_start) and end it, or let it end.",
                )
            )
        if vitals.dead_rows is not None and vitals.dead_rows > DEAD_ROWS:
            found.append(
                Finding(
                    code="database.dead_rows",
                    what=f"The table inbox has {vitals.dead_rows:,} dead rows, which make reading it slow",
                    advice="Let autovacuum reach it: end old transactions. Or run VACUUM inbox.",
                )
            )
        return found

    # --- schedules --------------------------------------------------------------------------------

    async def _schedules(self, tenant: str) -> list[Finding]:
        """Schedules that are not what the published versions say."""
        stored: dict[str, list[Schedule]] = {}
        for schedule in await self._store.schedules(tenant):
            stored.setdefault(schedule.definition_id, []).append(schedule)
        differing: list[str] = []
        published: set[str] = set()
        after = ""
        while headers := await self._store.headers(tenant, published=True, after=after):
            for header in headers:
                published.add(header.definition_id)
                own = stored.get(header.definition_id, [])
                if not await self._agrees(tenant, header.version_id, own):
                    differing.append(header.definition_id)
            after = headers[-1].definition_id
        for definition_id, own in stored.items():
            if definition_id not in published and any(s.cursor.next_at is not None for s in own):
                differing.append(definition_id)
        if not differing:
            return []
        return [
            Finding(
                code="schedules.differ",
                what=f"The schedules of {_some(len(differing), 'definition')} are not what is published",
                advice="Publish again, or in Python: `await holdfast.definitions.refresh(tenant, id)`.",
                about=tuple(differing[:MOST]),
            )
        ]

    async def _agrees(self, tenant: str, version_id: str, own: Sequence[Schedule]) -> bool:
        stored = await self._store.version(tenant, version_id)
        if stored is None:
            return True  # retracted a moment ago
        graph = self._library.compile(load_definition(stored.document), await self._library.types(tenant))
        meant = find_entrances(graph, self._environment, tenant=tenant, shard_of=lambda _: 0)
        return Counter(map(_essence, meant.schedules)) == Counter(
            _essence(schedule)
            for schedule in own
            if schedule.cursor.next_at is not None or _is_over(schedule)
        )


def _is_over(schedule: Schedule) -> bool:
    """One that had a single time and has had it; else one without a next time was retracted."""
    return schedule.cursor.last_at is not None and b"executeAt" in schedule.spec


def _essence(schedule: Schedule) -> tuple[str, str, bytes, str | None, bytes]:
    return (
        schedule.activity_id,
        schedule.version_id,
        schedule.spec,
        schedule.zone,
        schedule.policies,
    )


def _cause_in(state: Snapshot, sub_status: SubStatus) -> str | None:
    """Why an instance without a row that could wake it is not as it should be; None when it is."""
    if state.is_halfway:
        return "waits.halfway"
    if state.bookmarks:
        return "waits.rows_lost"
    if state.incidents:
        return None  # it waits for a person
    return "waits.join" if sub_status is SubStatus.SUSPENDED else "waits.without_cause"


_WAITS = {
    "waits.start_lost": (
        "never began, and no message will start them",
        "Start them again under new ids, then delete these: `holdfast instances delete ID`.",
    ),
    "waits.halfway": (
        "stopped at a checkpoint, and no message will carry them on",
        "Report it, please: this should not be. Cancel them and start again.",
    ),
    "waits.rows_lost": (
        "wait for something, but the rows that could wake them are gone",
        "Resume them by their bookmarks (`holdfast instances show ID`), or cancel them.",
    ),
    "waits.join": (
        "wait at a join that nothing can reach any more",
        "Their flowchart joins a branch that was not taken. Cancel them, and correct the definition.",
    ),
    "waits.without_cause": (
        "are open, and nothing will ever wake them",
        "Report it, please: this should not be. Cancel them and start again.",
    ),
    "waits.definition_gone": (
        "belong to a version that is not there any more",
        "Publish that version again, or delete them: `holdfast instances delete ID`.",
    ),
    "waits.state_unreadable": (
        "have a state that this version of Holdfast cannot read",
        "Run the version of Holdfast that wrote it.",
    ),
}

_ORPHANS = {
    kind: (kind, "without an instance", "Rows were deleted by hand, or it is our mistake: report it, please.")
    for kind in ("bookmark", "timer", "attempt", "activation")
} | {
    "child": (
        "open instance",
        "whose parent is gone",
        "They go on alone. Cancel those that nobody needs: `holdfast instances cancel ID`.",
    )
}


def _wait_finding(code: str, ids: Sequence[str]) -> Finding:
    what, advice = _WAITS[code]
    return Finding(code=code, what=f"Instances that {what}: {len(ids)}", advice=advice, about=tuple(ids))


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
