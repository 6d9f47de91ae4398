"""Part of the subject `runtime`: tables full of others, and several worker processes on one database."""

import asyncio
import time
from contextlib import AsyncExitStack

from bench import databases
from bench.child import Child
from bench.contest import CALLERS, Contender, Size, Steps, contending
from bench.databases import Server
from bench.durable import EACH_COMMITTED, ONE_COMMIT, READING, SLOTS_OF_A_READER, opened
from bench.measure import Section, Timing
from holdfast.application import Holdfast

ROUNDS = 3
LOOK = 0.01


async def full_tables(size: Size, server: Server, steps: Steps) -> Section:
    """The same work on empty tables and on full ones, round by round."""
    section = Section(f"Beside {size.finished:,} and {size.idle:,} waiting")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        found = {
            name: await enter(contending("bench.durable", await enter(server.database()), server))
            for name in ("empty", "full")
        }
        for contender in found.values():
            for kind in (ONE_COMMIT, EACH_COMMITTED):
                await contender.child.ask("dispatch", name=kind, count=size.workflows // 2, callers=CALLERS)
            await contender.child.ask("suspend", count=1)
        await databases.fill(found["full"].url, size.finished, size.idle)
        steps()
        for _ in range(min(size.rounds, ROUNDS)):
            await server.checkpoint()
            for contender in found.values():
                for kind in (ONE_COMMIT, EACH_COMMITTED):
                    await _dispatch(contender, kind, size)
            steps()
    for kind, letter in ((ONE_COMMIT, "a"), (EACH_COMMITTED, "b")):
        empty, full = found["empty"].processor(kind), found["full"].processor(kind)
        section.duration(f"full_{letter}_processor", f"Processor time ({letter})", full, "ms")
        section.ratio(f"full_to_empty_{letter}", f"Full to empty ({letter})", full, empty, at_most=1.3)
    return section


async def _dispatch(contender: Contender, kind: str, size: Size) -> None:
    count = size.workflows
    await contender.measure(kind, count, "dispatch", name=kind, count=count, callers=CALLERS)


async def workers(size: Size, server: Server, steps: Steps) -> Section:
    """Each activity awaits 20 ms; this process only dispatches."""
    section = Section("Workers, activities of 20 ms")
    timings: dict[int, Timing] = {}
    async with server.database() as url, opened(url, works=False) as holdfast:
        for number in size.workers:
            async with AsyncExitStack() as stack:
                for _ in range(number):
                    await stack.enter_async_context(Child("bench.durable", url, str(SLOTS_OF_A_READER)))
                await _shared(holdfast, number)
                taken = [await _read(holdfast, size.reads * number) for _ in range(ROUNDS)]
            timings[number] = Timing(min(taken), sorted(taken)[len(taken) // 2])
            steps()
    for number, timing in timings.items():
        label = "1 process" if number == 1 else f"{number} processes"
        section.rate(f"workers_{number}_per_second", label, timing, "workflows")
    for number, aim in ((2, 1.8), (4, 3.0)):
        if number in timings:
            section.ratio(
                f"workers_{number}_to_1", f"{number} to 1", timings[1], timings[number], at_least=aim
            )
    return section


async def _shared(holdfast: Holdfast, number: int) -> None:
    """When each has about the same number of shards."""
    while True:
        owners = [node for node, _ in (await holdfast.store.leases()).values()]
        counts = sorted(owners.count(node) for node in set(owners))
        if len(counts) == number and counts[-1] - counts[0] <= 2:
            return
        await asyncio.sleep(0.1)


async def _read(holdfast: Holdfast, count: int) -> float:
    """Seconds for one workflow."""
    begun = time.perf_counter()
    for first in range(0, count, 500):
        inputs = [{} for _ in range(min(500, count - first))]
        await holdfast.dispatch_many(READING, inputs)
    while await holdfast.store.depth():
        await asyncio.sleep(LOOK)
    return (time.perf_counter() - begun) / count
