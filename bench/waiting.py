"""Part of the subject `runtime`: instances that wait, timers, and what a workflow leaves on the disk."""

from bench import databases
from bench.contest import CALLERS, Contender, Size, Steps, contending, percentile
from bench.databases import Server
from bench.durable import EACH_COMMITTED, ONE_COMMIT
from bench.measure import Section

SESSIONS = 3


async def figures_of(label: str, place: str, contender: Contender, size: Size, steps: Steps) -> Section:
    section = Section(f"What waits, {label}")
    count = size.waiting
    before = await databases.size(contender.url)
    await contender.measure("suspend", count, "suspend", count=count)
    grown = await databases.size(contender.url) - before
    steps()
    await contender.measure("resume", count, "resume", callers=CALLERS)
    steps()
    await contender.child.ask("suspend", count=count)
    await contender.measure("publish", count, "publish")
    steps()
    for name, what in (
        ("suspend", "Start until they wait"),
        ("resume", "Resume each by a call"),
        ("publish", "Resume all by one event"),
    ):
        section.rate(f"{place}_{name}_per_second", f"{what}, {count:,}", contender.wall(name), "instances")
        section.duration(f"{place}_{name}_processor", f"{what}, each", contender.processor(name), "ms")
    section.amount(f"{place}_bytes_waiting", "One that waits, with indexes", grown / count, "bytes")
    delayed = await contender.child.ask("delay", count=size.timers, first=size.first, spread=size.spread)
    late = delayed["milliseconds"]
    for share, text in ((0.5, "median"), (0.99, "99 of 100"), (1.0, "worst")):
        name = f"{place}_late_{text.split()[0]}"
        section.amount(name, f"{size.timers:,} timers late, {text}", percentile(late, share), "ms")
    steps()
    return section


async def rows_and_log(size: Size, server: Server, steps: Steps) -> Section:
    """Counted when all connections are closed: PostgreSQL's processes tell what they did as they end."""
    section = Section("What one leaves, PostgreSQL")
    count = size.workflows
    for kind, letter, text in (
        (ONE_COMMIT, "a", "(a)"),
        (EACH_COMMITTED, "b", "(b)"),
    ):
        log: list[float] = []
        syncs: list[float] = []
        async with server.database() as url:
            await _session(url, kind, count)
            idle = await _rows(url, kind, 0)
            rows = await _rows(url, kind, count)
            for _ in range(SESSIONS):
                await server.checkpoint()
                async with contending("bench.durable", url) as contender:
                    bytes_before, syncs_before = await server.written()
                    await contender.child.ask("dispatch", name=kind, count=count, callers=CALLERS)
                    bytes_after, _ = await server.written()
                _, syncs_after = await server.written()
                log.append((bytes_after - bytes_before) / count)
                syncs.append((syncs_after - syncs_before) / count)
        section.amount(f"rows_{letter}", f"Rows written {text}", (rows - idle) / count, "rows")
        section.amount(f"log_{letter}", f"Log {text}", min(log), "bytes")
        section.amount(f"syncs_{letter}", f"Syncs of the log {text}", min(syncs), "syncs")
        steps()
    return section


async def _rows(url: str, kind: str, count: int) -> int:
    before = await databases.rows_written(url)
    await _session(url, kind, count)
    return await databases.rows_written(url) - before


async def _session(url: str, kind: str, count: int) -> None:
    async with contending("bench.durable", url) as contender:
        if count:
            await contender.child.ask("dispatch", name=kind, count=count, callers=CALLERS)
