"""A bench for machines: a real node on a store in memory, and a clock that only the test moves.

    async with MachineBench(orders) as bench:
        run = await bench.trigger("order-17", Order("ada@example.org", 4200))
        await bench.advance(days=2)
        assert bench.statuses(run) == [Status.PLACED, Status.BILLED, Status.EXPIRED]

Each request returns when everything it caused has been committed, so a test neither sleeps nor polls.
"""

from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Generic

import msgspec

from holdfast.assembly import load_plugins
from holdfast.clock import Ids, SystemClock, TimeOrderedIds
from holdfast.commit import Commit
from holdfast.engine import Limits
from holdfast.errors import NotFound
from holdfast.instance import Record
from holdfast.machines.machine import Machine
from holdfast.machines.run import ObjectT, Run, StatusT
from holdfast.runtime.coded import Coded, programs_of
from holdfast.runtime.node import Node
from holdfast.runtime.program import Snapshot
from holdfast.runtime.run_callbacks import Answer
from holdfast.runtime.runs import Runs
from holdfast.runtime.shards import Shards
from holdfast.store import DEFAULT, Committed, Store
from holdfast.testing.clock import ManualClock, NumberedIds
from holdfast.testing.durable_clock import FollowingClock, TimelessStore
from holdfast.testing.durable_node import RunningNode
from holdfast.testing.durable_rest import Rest

TENANT = ""
AHEAD = datetime(2900, 1, 1, tzinfo=UTC)
"""Where the clock begins on a store that has a time of its own: so late that nothing expires by that."""

_records = msgspec.json.Decoder(list[Record])


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a run's journal."""

    at: datetime
    event: str
    function: str
    """The function that was called; empty for what happens to the run as a whole."""
    message: str | None
    payload: dict[str, Any]


class MachineBench(Generic[ObjectT, StatusT]):
    """One machine at work. Use it with `async with`. A store that is given is not closed."""

    def __init__(
        self,
        machine: Machine[ObjectT, StatusT],
        store: Store | None = None,
        *,
        clock: ManualClock | None = None,
    ) -> None:
        self.machine = machine
        self.clock = clock or (ManualClock() if store is None else ManualClock(AHEAD))
        self.store: Store = TimelessStore(self.clock) if store is None else store
        self._ids: Ids = NumberedIds("run-") if store is None else TimeOrderedIds(SystemClock())
        self._seen: dict[str, tuple[Run[ObjectT, StatusT], list[Record]]] = {}
        self._last = ""

    async def __aenter__(self) -> "MachineBench[ObjectT, StatusT]":
        groups = await self.store.shard_groups()
        shards = Shards(groups[DEFAULT].count)
        shards.learn(groups, await self.store.placements())
        self._following = FollowingClock(self.clock)
        self._running = RunningNode(
            self.store,
            load_plugins(()),
            self._following,
            self._ids,
            shards=shards,
            limits=Limits(),
            flowchart_mode="CounterBased",
            observer=self,
        )
        for program in programs_of(self.machine):
            self._running.library.add(program)
        self._program = Coded(self.machine)
        self.runs: Runs[ObjectT, StatusT] = Runs(
            self._program, self.node, self._running.reception, self._ids, TENANT
        )
        """Everything else that can be asked of runs. What it causes has happened after `settle`."""
        self._rest = Rest(self.node, self.store)
        async with AsyncExitStack() as leaving:
            await leaving.enter_async_context(self._running)
            self._leaving = leaving.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leaving.__aexit__(kind, error, trace)

    @property
    def node(self) -> Node:
        """The node at work."""
        return self._running.node

    def committed(
        self, commit: Commit, committed: Committed, before: Snapshot | None, after: Snapshot | None
    ) -> None:
        """The runtime tells of each commit; what is stored is read when it has come to rest."""

    # --- what a test does -------------------------------------------------------------------------

    async def trigger(
        self,
        foreign_id: str,
        object: ObjectT | None = None,  # noqa: A002  as the machine calls it
        *,
        at: StatusT | None = None,
        key: str | None = None,
    ) -> str:
        """Begin a run; its id, when it has done all it can do now."""
        self._last = await self.runs.trigger(foreign_id, object, at=at, key=key)
        await self.settle()
        return self._last

    async def callback(
        self, foreign_id: str, status: StatusT, payload: Any = None, *, name: str = "", key: str | None = None
    ) -> Answer:
        answer = await self.runs.callback(foreign_id, status, payload, name=name, key=key)
        await self.settle()
        return answer

    async def pause(self, run_id: str, reason: str = "") -> None:
        await self.runs.pause(run_id, reason)
        await self.settle()

    async def resume(self, run_id: str) -> None:
        await self.runs.resume(run_id)
        await self.settle()

    async def cancel(self, run_id: str, reason: str = "") -> None:
        await self.runs.cancel(run_id, reason)
        await self.settle()

    async def delete(self, run_id: str, reason: str = "") -> None:
        await self.runs.delete(run_id, reason)
        await self.settle()

    async def advance(self, **span: float) -> None:
        """Let time pass, such as `days=2`, stopping at each instant at which something is due."""
        until = self.clock.now() + timedelta(**span)
        while (due := await self._rest.next_due()) is not None and due <= until:
            self.clock.move_to(due)
            await self.settle()
        self.clock.move_to(until)
        await self.settle()

    async def settle(self) -> None:
        """Returns when everything that can happen now has happened."""
        if self._following.notice():
            self.node.hear("")  # as after a lost wake-up: look at everything again
            self.node.clockwork.look()
            await self.node.housekeeping.clean(thoroughly=True)
        await self._rest.reached(self.clock.now())
        await self._see()

    # --- what a test asks -------------------------------------------------------------------------

    def run(self, run_id: str = "") -> Run[ObjectT, StatusT]:
        """A run as it was when everything had happened; the one that was triggered last."""
        return self._of(run_id)[0]

    def statuses(self, run_id: str = "") -> list[StatusT]:
        """Every status it came to, in order, those it came to again as well."""
        run, records = self._of(run_id)
        if not records:
            return []
        found = [records[0].payload["status"]] if records[0].payload else [run.status.value]
        found += [record.payload["to"] for record in records if record.payload and "to" in record.payload]
        return [self.machine.status(value) for value in found]

    def history(self, run_id: str = "") -> list[Happening]:
        """Its journal."""
        _, records = self._of(run_id)
        return [
            Happening(
                at=record.at,
                event=record.event,
                function=self._program.activity(record.node)[0] if record.node else "",
                message=record.message,
                payload=record.payload or {},
            )
            for record in records
        ]

    @property
    def all(self) -> list[Run[ObjectT, StatusT]]:
        """All runs, the oldest first."""
        return [run for run, _ in self._seen.values()]

    def _of(self, run_id: str) -> tuple[Run[ObjectT, StatusT], list[Record]]:
        found = self._seen.get(run_id or self._last)
        if found is None:
            raise NotFound(f"There is no run {run_id!r} on this bench.")
        return found

    async def _see(self) -> None:
        self._seen.clear()
        for run in await self.runs.list(limit=10_000, descending=False):
            segments = await self.store.journal_of(TENANT, run.id, limit=1_000_000)
            records = [record for segment in segments for record in _records.decode(segment.body)]
            self._seen[run.id] = (run, records)
