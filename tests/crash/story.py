"""Workflows, workers that die, a database that stops: what is counted at the end, and how.

Orders are sent and paid for by a node that does no work itself. Whatever it was answered counts: an
order it holds an id for must be finished, once, with each of its steps done under one key.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypeVar

from holdfast import Holdfast, Unavailable
from holdfast.assembly import load_plugins
from holdfast.instance import Status, SubStatus
from holdfast.runtime.doctor import Doctor
from holdfast.store import InstanceFilter
from tests.crash.crew import Crew
from tests.crash.ledger import Ledger
from tests.crash.order import ACTIVITIES, STEPS, order_workflow
from tests.crash.server import Server

WAVE = 0.25
"""Seconds between two waves of orders."""
MOST_OPEN = 500
"""Orders under way; on a slow machine they are sent more slowly."""
STALLED = 60.0
"""Seconds without an order finishing after which the rest is taken for lost."""
EARLY = 0.3
"""The share of orders that are paid for at once, before anybody waits for it."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    orders: int = 2_000
    workers: int = 3
    kills: int = 30
    kills_in_commit: int = 5
    seconds: float = 75.0
    """Over which orders and kills are spread."""
    seed: int = 0


@dataclass(kw_only=True)
class Result:
    finished: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    kills: int = 0
    kills_in_commit: int = 0
    repeats: int = 0
    refusals: int = 0
    findings: list[str] = field(default_factory=list[str])
    """What the doctor has to say at the end."""
    exits: list[int] = field(default_factory=list[int])
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return not self.lost and not self.doubled and not self.findings

    def __str__(self) -> str:
        return f"{self.finished} finished, {len(self.lost)} lost, {len(self.doubled)} doubled"


Say = Callable[[str], None]
T = TypeVar("T")


async def play(plan: Plan, folder: Path, say: Say) -> Result:
    """Run it in that folder."""
    begun = time.monotonic()
    server = Server(folder)
    server.start()
    random = Random(plan.seed)
    ledger_path = folder / "ledger.db"
    ledger = Ledger(ledger_path)
    say(f"PostgreSQL runs; {plan.workers} workers start")
    try:
        plugins = load_plugins(ACTIVITIES, installed=False)
        async with Holdfast(
            server.url, plugins=plugins, definitions=[order_workflow()], works=False, migrate=True
        ) as holdfast:
            crew = Crew(folder, server.url, ledger_path, size=plan.workers, random=random)
            try:
                await crew.joined()
                story = Story(plan, holdfast, crew, server, ledger, random, say)
                result = await story.tell()
            except BaseException:
                crew.kill_all()
                raise
            result.exits = await asyncio.to_thread(crew.end)
    finally:
        ledger.close()
        await asyncio.to_thread(server.stop)
    result.seconds = time.monotonic() - begun
    return result


class Story:
    def __init__(
        self,
        plan: Plan,
        holdfast: Holdfast,
        crew: Crew,
        server: Server,
        ledger: Ledger,
        random: Random,
        say: Say,
    ) -> None:
        self._plan = plan
        self._holdfast = holdfast
        self._crew = crew
        self._server = server
        self._ledger = ledger
        self._random = random
        self._say = say
        self._begun = time.monotonic()
        self._sent: dict[str, str] = {}
        """Orders that were acknowledged, with the id they have."""
        self._paid = 0

    async def tell(self) -> Result:
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._report())
            stopping = tasks.create_task(self._stop_the_database())
            killing = tasks.create_task(self._kill())
            ordering = tasks.create_task(self._order())
            await asyncio.wait([stopping, killing, ordering])
            self._say("no more kills; the rest finishes")
            await self._crew.joined()
            await self._all_over()
            telling.cancel()
        return await self._result()

    # --- what is done to it -----------------------------------------------------------------------

    async def _order(self) -> None:
        waves = max(1, int(self._plan.seconds / WAVE))
        async with asyncio.TaskGroup() as tasks:
            done = 0
            for wave in range(1, waves + 1):
                until = self._plan.orders * wave // waves
                while until > self._released() or done - len(self._ledger.done(STEPS)) > MOST_OPEN:
                    await asyncio.sleep(WAVE)
                for number in range(done, until):
                    tasks.create_task(self._one(f"order-{number}"))
                done = until
                await asyncio.sleep(max(0.0, self._begun + WAVE * wave - time.monotonic()))

    def _released(self) -> int:
        """How many may be sent by now: as many for each kill, so that the last kill finds some under way."""
        plan = self._plan
        return plan.orders * (self._crew.kills + 3) // (plan.kills + 2)

    async def _one(self, order: str) -> None:
        """Send an order and its payment, each under a key, as often as it takes."""
        delay = self._random.uniform(1, 5)
        is_early = self._random.random() < EARLY
        after = self._random.uniform(0, 6)
        if is_early:
            await self._pay(order)
        self._sent[order] = await self._insist(
            lambda: self._holdfast.dispatch(
                "order",
                input={"Order": order, "Delay": f"00:00:{delay:09.6f}"},
                correlation_id=order,
                key=f"send {order}",
            )
        )
        if not is_early:
            await asyncio.sleep(after)
            await self._pay(order)

    async def _pay(self, order: str) -> None:
        await self._insist(
            lambda: self._holdfast.publish_event("paid", correlation_id=order, key=f"pay {order}")
        )
        self._paid += 1

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(self._random.uniform(0.1, 0.5))

    async def _kill(self) -> None:
        """Until it was often enough, or nothing is left that could get lost."""
        plan, crew = self._plan, self._crew
        pause = plan.seconds / (plan.kills + 1) / 2  # besides, each time one has to join
        while not self._has_killed_enough() and len(self._ledger.done(STEPS)) < plan.orders:
            await asyncio.sleep(self._random.uniform(0.5, 1.5) * pause)
            await crew.joined()  # so that each of them has lived
            aims = crew.kills % 2 == 0 or crew.kills_in_commit < plan.kills_in_commit
            await crew.kill_one(in_commit=aims)

    def _has_killed_enough(self) -> bool:
        plan, crew = self._plan, self._crew
        return crew.kills >= plan.kills and crew.kills_in_commit >= plan.kills_in_commit

    async def _stop_the_database(self) -> None:
        await asyncio.sleep(self._plan.seconds * 0.5)
        await asyncio.to_thread(self._server.stop)
        self._say("PostgreSQL was stopped in immediate mode")
        await asyncio.sleep(self._random.uniform(0.5, 1.5))
        await asyncio.to_thread(self._server.start)
        self._say("PostgreSQL runs again")

    # --- how it goes ------------------------------------------------------------------------------

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(5)
            done = len(self._ledger.done(STEPS))
            self._say(
                f"{len(self._sent)} sent, {done} done, {self._crew.kills} kills "
                f"({self._crew.kills_in_commit} during a commit), {self._ledger.repeats()} repeats"
            )

    async def _all_over(self) -> None:
        """Until no order is open, or nothing moves any more."""
        left, since = -1, time.monotonic()
        while left and time.monotonic() - since < STALLED:
            await asyncio.sleep(0.5)
            try:
                now = (await self._holdfast.instances(_orders(status=Status.RUNNING), limit=1)).total
            except Unavailable:
                continue
            if now != left:
                left, since = now, time.monotonic()

    async def _result(self) -> Result:
        found: dict[str, list[SubStatus]] = {}
        skip = 0
        while page := (await self._holdfast.instances(_orders(), skip=skip, limit=500)).items:
            for one in page:
                found.setdefault(one.columns.correlation_id or "", []).append(one.columns.sub_status)
            skip += len(page)
        done = self._ledger.done(STEPS)
        finished = {
            order
            for order in self._sent
            if order in done and found.get(order, [SubStatus.PENDING])[0] is SubStatus.FINISHED
        }
        doubled = {order for order, _ in self._ledger.doubled()}
        doubled |= {order for order, lives in found.items() if len(lives) > 1}
        holdfast = self._holdfast
        doctor = Doctor(holdfast.store, holdfast.library, holdfast.plugins, holdfast.clock)
        return Result(
            finished=len(finished),
            lost=sorted(self._sent.keys() - finished),
            doubled=sorted(doubled),
            kills=self._crew.kills,
            kills_in_commit=self._crew.kills_in_commit,
            repeats=self._ledger.repeats(),
            refusals=self._ledger.refusals(),
            findings=[finding.what for finding in (await doctor.examine()).findings],
        )


def _orders(status: Status | None = None) -> InstanceFilter:
    return InstanceFilter(tenant="", definition_ids=("order",), status=status)
