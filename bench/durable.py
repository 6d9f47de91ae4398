"""`python -m bench.durable URL [SLOTS]`: a node in a process of its own, and what is asked of it.

It is the public front door that is measured: `dispatch` by many callers, `dispatch_many`, `run`, `resume`,
`publish_event`. Work is over when every instance has executed its last activity and no message is left.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from bench import workflows
from bench.child import Answer, by_many, one_by_one, serve
from bench.workflows import Deaf, Json
from holdfast.application import Holdfast
from holdfast.assembly import calm_collector, load_plugins
from holdfast.authoring import Activity, ActivityContext, Console, activity
from holdfast.runtime.node import SLOTS

ONE_COMMIT, EACH_COMMITTED, WAITING, DELAYED, READING = "once", "each", "waiting", "delayed", "reading"

SLOTS_OF_A_READER = 32
LOOK = 0.005
"""Seconds between two looks whether all is done."""
PATIENCE = 120.0
TOGETHER = 500
"""Instances in one call of `dispatch_many`."""

executed = 0
"""Last activities that this process has executed."""
lateness: list[float] = []
"""Milliseconds."""


@activity(type="Bench.Last")
class Last(Activity):
    """Counts that another instance has come to its end."""

    def execute(self, context: ActivityContext) -> None:
        global executed  # noqa: PLW0603  the process is the bench
        executed += 1


@activity(type="Bench.Sleep")
class Sleep(Activity):
    """Waits for a timer, as long as the input says."""

    def execute(self, context: ActivityContext) -> None:
        due = context.now + timedelta(seconds=context.input["seconds"])
        context.properties["due"] = due.isoformat()
        context.wait(private=True, due=due)


@activity(type="Bench.Late")
class Late(Activity):
    """Notes how late the timer before it was, on the clock of the store."""

    def execute(self, context: ActivityContext) -> None:
        due = datetime.fromisoformat(context.properties["due"])
        lateness.append((context.now - due).total_seconds() * 1e3)


@activity(type="Bench.Read")
class Read(Activity):
    """Awaits something outside for 20 ms, as a call over the network would."""

    async def execute(self, context: ActivityContext) -> None:
        await asyncio.sleep(0.02)


def definitions() -> list[Json]:
    """Three activities each, not counting the Sequence around them; waiting instances have two."""
    last = {"id": "last", "type": "Bench.Last"}
    three = workflows.sequence(workflows.write_line(1), workflows.write_line(2), last)
    reads = [{"id": f"read{number}", "type": "Bench.Read"} for number in (1, 2, 3)]
    event = {"id": "go", "type": "Elsa.Event", "eventName": workflows.literal("go", "String")}
    after_each = {"commitStrategyName": "ActivityExecuted"}
    return [
        _named(ONE_COMMIT, three),
        _named(EACH_COMMITTED, three, options=after_each),
        _named(WAITING, workflows.sequence(workflows.write_line(1), event, last)),
        _named(
            DELAYED,
            workflows.sequence(
                {"id": "sleep", "type": "Bench.Sleep"}, {"id": "late", "type": "Bench.Late"}, last
            ),
        ),
        _named(READING, workflows.sequence(*reads)),
    ]


def _named(name: str, root: Json, **members: Any) -> Json:
    return {"id": f"{name}-1", "definitionId": name, "name": name, "version": 1, "root": root, **members}


def opened(url: str, slots: int = SLOTS, *, works: bool = True) -> Holdfast:
    """A node with everything that is measured; what it writes to the console is dropped."""
    plugins = load_plugins([Last, Sleep, Late, Read], installed=False)
    plugins.add_service(Console, Deaf())
    return Holdfast(url, definitions=definitions(), plugins=plugins, slots=slots, works=works, migrate=True)


class Asked:
    """What a node can be asked for. Each returns when all of it is done and durable."""

    def __init__(self, holdfast: Holdfast) -> None:
        self._holdfast = holdfast
        self._waiting: list[str] = []

    async def dispatch(self, name: str, count: int, callers: int) -> Answer:
        before = executed
        await by_many(callers, count, lambda: self._holdfast.dispatch(name))
        return await self._done(before + count)

    async def dispatch_many(self, name: str, count: int) -> Answer:
        before = executed
        await self._start(name, [{} for _ in range(count)])
        return await self._done(before + count)

    async def one_by_one(self, name: str, count: int) -> Answer:
        return await one_by_one(count, lambda: self._holdfast.run(name))

    async def suspend(self, count: int) -> Answer:
        """So many instances that wait for an event."""
        self._waiting = await self._start(WAITING, [{} for _ in range(count)])
        return await self._done(executed)

    async def resume(self, callers: int) -> Answer:
        """Each of those that wait, by a call of its own."""
        before, count = executed, len(self._waiting)
        one = await self._holdfast.instance(self._waiting[0])
        suffix = one.bookmarks[0].id.removeprefix(one.id)
        left = iter(self._waiting)
        await by_many(callers, count, lambda: self._resume(next(left), suffix))
        return await self._done(before + count)

    async def _resume(self, instance_id: str, suffix: str) -> None:
        await self._holdfast.resume(instance_id, f"{instance_id}{suffix}")

    async def publish(self) -> Answer:
        """All of those that wait, by one event."""
        before, count = executed, len(self._waiting)
        await self._holdfast.publish_event("go")
        return await self._done(before + count)

    async def delay(self, count: int, first: float, spread: float) -> Answer:
        """So many timers, the first due after so many seconds, the others evenly behind it."""
        before = executed
        lateness.clear()
        begun = time.perf_counter()
        for number in range(0, count, TOGETHER):
            passed = time.perf_counter() - begun
            due = [
                first + spread * (number + n) / count - passed for n in range(min(TOGETHER, count - number))
            ]
            await self._start(DELAYED, [{"seconds": max(0.0, seconds)} for seconds in due])
        set_after = time.perf_counter() - begun
        await self._done(before + count)
        return {"milliseconds": sorted(lateness), "set_after": set_after}

    async def _start(self, name: str, inputs: Sequence[Json]) -> list[str]:
        started: list[str] = []
        for number in range(0, len(inputs), TOGETHER):
            for outcome in await self._holdfast.dispatch_many(name, inputs[number : number + TOGETHER]):
                assert isinstance(outcome, str), outcome
                started.append(outcome)
        return started

    async def _done(self, wanted: int) -> Answer:
        """When so many last activities have been executed, and the last messages are consumed."""
        async with asyncio.timeout(PATIENCE):
            while executed < wanted:
                await asyncio.sleep(LOOK)
            while await self._holdfast.store.depth():
                await asyncio.sleep(LOOK)
        return {}


async def main(url: str, slots: str = str(SLOTS)) -> None:
    async with opened(url, int(slots)) as holdfast:
        calm_collector()  # as `holdfast worker` does
        asked = Asked(holdfast)
        await serve(
            dispatch=asked.dispatch,
            dispatch_many=asked.dispatch_many,
            one_by_one=asked.one_by_one,
            suspend=asked.suspend,
            resume=asked.resume,
            publish=asked.publish,
            delay=asked.delay,
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
