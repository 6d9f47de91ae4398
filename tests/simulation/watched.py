"""A store that looks on: what must be true at every moment is checked at every write."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.commit import Commit, Delivery, Envelope, Place
from holdfast.store import (
    Activation,
    Admission,
    Admitted,
    Attempt,
    Committed,
    Firing,
    KeyReused,
    Posted,
    Posting,
    Refused,
    Repeated,
    StaleTurn,
    Verdict,
)
from holdfast.testing.simulation import Simulation
from holdfast.testing.simulation_line import SimulatedStore
from tests.simulation.workflows import GUARDED, TENANTS


class Violation(AssertionError):
    """Something that must never happen has happened."""


def claim(holds: bool, *words: object) -> None:
    if not holds:
        raise Violation(" ".join(map(str, words)))


class WatchedStore(SimulatedStore):
    def __init__(self, simulation: Simulation) -> None:
        super().__init__(simulation)
        self.violations: list[Violation] = []
        """What was seen. A node would take the error for one of its turn's, so the story raises it."""
        self.revisions: set[tuple[str, str, int]] = set()
        self.firings: dict[tuple[str, datetime], str] = {}

    def _see(self, holds: bool, *words: object) -> None:
        if not holds:
            self.violations.append(Violation(" ".join(map(str, words))))

    # --- turns ------------------------------------------------------------------------------------

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        tables = self.tables
        keys = [(commit.tenant, commit.instance_id) for commit in commits]
        before = [tables.instances.get(key) for key in keys]
        dues = [
            [tables.timers.get((*key, one.timer)) for one in commit.in_hand if one.timer is not None]
            for key, commit in zip(keys, commits, strict=True)
        ]
        outcomes = await super().commit(commits)
        now = tables.now()
        for key, commit, was, due, outcome in zip(keys, commits, before, dues, outcomes, strict=True):
            self._simulation.note("stale" if isinstance(outcome, StaleTurn) else "wrote", *key, commit.turn)
            if isinstance(outcome, StaleTurn):
                continue
            for timer in due:
                if timer is not None and timer.due is not None:
                    self._see(timer.due <= now, key, "was woken", timer.due - now, "too early")
            self._see(all(m.tenant == commit.tenant for m in commit.messages), key, "wrote to another tenant")
            change = commit.change
            if change is None:
                continue
            name = (*key, change.expects + 1)
            self._see(name not in self.revisions, "revision written twice:", name)
            self.revisions.add(name)
            ended = was is not None and was.columns.finished_at is not None
            self._see(not ended or change.reopens or commit.deletes, key, "had ended and was changed")
        self._check_guards()
        return outcomes

    # --- intake -----------------------------------------------------------------------------------

    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        verdicts = await super().admit(admissions)
        self._check_guards()
        return verdicts

    async def post(self, posting: Posting) -> Posted | Repeated | KeyReused:
        outcome = await super().post(posting)
        self._check_guards()
        return outcome

    async def activate(
        self, tenant: str, instance_id: str, activations: Sequence[Activation]
    ) -> Refused | None:
        refused = await super().activate(tenant, instance_id, activations)
        self._check_guards()
        return refused

    async def postpone(self, delivery: Delivery, retry_at: datetime, error: str) -> None:
        """Only a turn that raised is counted. A store that is away, or another's turn, is not."""
        name = (delivery.envelope.tenant, delivery.envelope.instance_id)
        self._see(name[1] == "poisoned", name, "was counted as failed:", error)
        await super().postpone(delivery, retry_at, error)

    async def fire(self, firing: Firing) -> Verdict | None:
        read = firing.schedule
        was = self.tables.schedules.get((read.tenant, read.definition_id, read.activity_id))
        verdict = await super().fire(firing)
        is_current = was is not None and (was.version_id, was.cursor) == (read.version_id, read.cursor)
        self._see(verdict is None or is_current, read.id, "fired as it was before")
        if isinstance(verdict, Admitted) and firing.start is not None:
            name = (firing.schedule.id, firing.nominal)
            self._see(firing.nominal <= self.tables.now(), name, "fired too early")
            self._see(name not in self.firings, name, "fired twice")
            self.firings[name] = firing.start.message.instance_id
        self._check_guards()
        return verdict

    async def conclude(self, attempt: Attempt, message: Envelope) -> Place | None:
        work = self.tables.attempts.get((attempt.tenant, attempt.instance_id, attempt.execution))
        place = await super().conclude(attempt, message)
        is_last = work is not None and work.attempt.number == attempt.number
        self._see(place is None or is_last, "a stale attempt brought its outcome", attempt.instance_id)
        return place

    def _check_guards(self) -> None:
        """At most one instance that may act, for each activation key. One that has not asked may not."""
        for tenant in TENANTS:
            for definition_id, is_correlated in GUARDED.items():
                rows = self.tables.instances.by("open_definition", (tenant, definition_id))
                if len(rows) < 2:
                    continue
                about: dict[Any, int] = {}
                for row in rows.values():
                    if row.revision > 0 or row.turn == "":
                        subject = row.columns.correlation_id if is_correlated else None
                        about[subject] = about.get(subject, 0) + 1
                crowd = [subject for subject, count in about.items() if count > 1]
                self._see(not crowd, "several instances of", definition_id, "for", crowd, "in", tenant)
