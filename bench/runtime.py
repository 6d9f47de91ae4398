"""The durable runtime: workflows per second and what each costs, next to DBOS and to the bare rows.

Each contender is a process of its own with a database of its own (`contest`, `databases`). Rounds go
through all of them, so that a bad moment hits everybody. What waits is `waiting`, full tables and
several workers are `crowds`; both are figures of this subject.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from bench import crowds, databases, waiting
from bench.contenders.dbos import PACKAGE as DBOS
from bench.contest import CALLERS, Contender, Size, Steps, contending, percentile, size_for
from bench.databases import Server
from bench.durable import EACH_COMMITTED, ONE_COMMIT, Asked, opened
from bench.measure import Figure, Section, Stopwatch

CONTENDERS = (DBOS, "asyncpg", "sqlalchemy")
NOTE = (
    "(a) one commit per burst, (b) a commit after each activity; many: by dispatch_many; bare: the same rows "
    "without us. Per second by the clock; processor time of the contender and of the database's processes "
    "for it. The best round. Log and syncs are the whole server's."
)

KINDS = {ONE_COMMIT: "(a)", EACH_COMMITTED: "(b)"}
PLACES = {"postgres": "PostgreSQL", "sqlite": "SQLite"}
FLOORS = {"postgres": "floor", "sqlite": "floor_sqlite"}
LETTERS = {ONE_COMMIT: "a", EACH_COMMITTED: "b"}
MANY = "many"
"""Dispatched by `dispatch_many`."""


async def figures(stopwatch: Stopwatch) -> list[Figure]:
    size = size_for(stopwatch.effort)
    steps = Steps(stopwatch, 10 * size.rounds + 20)
    sections: list[Section] = []
    with databases.services_of_this_run():
        address = await asyncio.to_thread(databases.find_postgres)
        if address is None:
            sections += await _side_by_side(size, None, steps)
        else:
            async with databases.server(address) as server:
                sections += await _side_by_side(size, server, steps)
                sections.append(await crowds.full_tables(size, server, steps))
                sections.append(await crowds.workers(size, server, steps))
    return [figure for section in sections for figure in section.figures]


def profiled() -> Callable[[], Awaitable[Any]]:
    """What `--profile` looks into: many short workflows on SQLite, dispatched one by one."""

    async def call() -> None:
        with databases.sqlite_file() as url:
            async with opened(url) as holdfast:
                await Asked(holdfast).dispatch(ONE_COMMIT, 3_000, CALLERS)

    return call


async def _side_by_side(size: Size, server: Server | None, steps: Steps) -> list[Section]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        found: dict[str, Contender] = {}
        if server is not None:
            for name, module in (
                ("postgres", "bench.durable"),
                ("floor", "bench.contenders.floor"),
                ("dbos", "bench.contenders.dbos"),
            ):
                found[name] = await enter(contending(module, await enter(server.database()), server))
        for name, module in (("sqlite", "bench.durable"), ("floor_sqlite", "bench.contenders.floor")):
            found[name] = await enter(contending(module, stack.enter_context(databases.sqlite_file())))
        places = {place: label for place, label in PLACES.items() if place in found}
        rows = await _warm_up(found, size)
        for _ in range(size.rounds):
            if server is not None:
                await server.checkpoint()
            for place in places:
                await _round(found[place], found[FLOORS[place]], rows, size, steps)
            if "dbos" in found:
                await _dbos_round(found["dbos"], size)
            steps()
        sections = [_rates(found, places), _costs(found, places), _ratios(found, places)]
        sections.append(await _one_by_one(found, places, size, steps))
        for place, label in places.items():
            sections.append(await waiting.figures_of(label, place, found[place], size, steps))
    if server is not None:
        sections.append(await waiting.rows_and_log(size, server, steps))
    return sections


async def _warm_up(found: dict[str, Contender], size: Size) -> dict[str, dict[str, int]]:
    """How large the rows of a workflow are, by kind."""
    for place in PLACES:
        if place in found:
            for kind in KINDS:
                await found[place].child.ask(
                    "dispatch", name=kind, count=size.workflows // 2, callers=CALLERS
                )
    if "postgres" not in found:
        return {
            kind: databases.usual_sizes(commits) for kind, commits in ((ONE_COMMIT, 1), (EACH_COMMITTED, 4))
        }
    for do in ("dispatch", "dispatch_in_threads"):
        await found["dbos"].child.ask(do, count=size.by_dbos // 4 + 1, callers=4)
    return {kind: await databases.sizes(found["postgres"].url, kind) for kind in KINDS}


async def _round(
    contender: Contender, floor: Contender, rows: dict[str, dict[str, int]], size: Size, steps: Steps
) -> None:
    count = size.workflows
    for kind in KINDS:
        await contender.measure(kind, count, "dispatch", name=kind, count=count, callers=CALLERS)
        await contender.measure(f"{kind}_{MANY}", count, "dispatch_many", name=kind, count=count)
        await floor.measure(kind, count, "dispatch", count=count, **rows[kind])
        steps()


async def _dbos_round(dbos: Contender, size: Size) -> None:
    count = size.by_dbos
    await dbos.measure("coroutines", count, "dispatch", count=count, callers=64)
    await dbos.measure("threads", count, "dispatch_in_threads", count=count, callers=16)


def _quicker(dbos: Contender) -> str:
    return min(("coroutines", "threads"), key=lambda way: dbos.wall(way).best)


def _cheaper(dbos: Contender) -> str:
    return min(("coroutines", "threads"), key=lambda way: dbos.processor(way).best)


# --- what is shown --------------------------------------------------------------------------------


def _rates(found: dict[str, Contender], places: dict[str, str]) -> Section:
    section = Section("Workflows of three per second")
    for place, label in places.items():
        for kind, text in KINDS.items():
            name = f"{place}_{LETTERS[kind]}"
            section.rate(f"{name}_per_second", f"{label} {text}", found[place].wall(kind), "workflows")
            timing = found[place].wall(f"{kind}_{MANY}")
            section.rate(f"{name}_many_per_second", f"{label} {text}, many", timing, "workflows")
            timing = found[FLOORS[place]].wall(kind)
            section.rate(f"{name}_floor_per_second", f"{label} {text}, bare", timing, "workflows")
    if "dbos" in found:
        dbos = found["dbos"]
        section.rate("dbos_per_second", f"DBOS, {_quicker(dbos)}", dbos.wall(_quicker(dbos)), "workflows")
    return section


def _costs(found: dict[str, Contender], places: dict[str, str]) -> Section:
    section = Section("Processor time of one")
    aims = {ONE_COMMIT: 0.3, EACH_COMMITTED: 0.6}
    for place, label in places.items():
        for kind, text in KINDS.items():
            name, contender = f"{place}_{LETTERS[kind]}", found[place]
            for suffix, more in (("", ""), (f"_{MANY}", ", many")):
                section.duration(
                    f"{name}{suffix}_processor",
                    f"{label} {text}{more}",
                    contender.processor(f"{kind}{suffix}"),
                    "ms",
                    at_most=aims[kind],
                )
            if place == "postgres":
                server = contender.parts(kind).server * 1e3
                section.amount(f"{name}_server_processor", f"{label} {text}, server", server, "ms")
            timing = found[FLOORS[place]].processor(kind)
            section.duration(f"{name}_floor_processor", f"{label} {text}, bare", timing, "ms")
    if "dbos" in found:
        dbos = found["dbos"]
        label = f"DBOS, {_cheaper(dbos)}"
        section.duration("dbos_processor", label, dbos.processor(_cheaper(dbos)), "ms")
    return section


def _ratios(found: dict[str, Contender], places: dict[str, str]) -> Section:
    section = Section("Side by side")
    dbos = found.get("dbos")
    for place, label in places.items():
        for kind, text in KINDS.items():
            ours, letter = found[place], LETTERS[kind]
            best = min((kind, f"{kind}_{MANY}"), key=lambda name, ours=ours: ours.wall(name).best)
            if dbos is not None and place == "postgres":
                for suffix, more in (("", ""), (f"_{MANY}", ", many")):
                    section.ratio(
                        f"faster_than_dbos_{letter}{suffix}",
                        f"Faster than DBOS {text}{more}",
                        dbos.wall(_quicker(dbos)),
                        ours.wall(f"{kind}{suffix}"),
                        at_least={"a": 100, "b": 50}[letter],
                    )
                section.ratio(
                    f"cheaper_than_dbos_{letter}",
                    f"Cheaper than DBOS {text}",
                    dbos.processor(_cheaper(dbos)),
                    ours.processor(kind),
                )
            section.ratio(
                f"share_of_floor_{place}_{letter}",
                f"Share of bare, {label} {text}",
                found[FLOORS[place]].wall(kind),
                ours.wall(best),
                at_least=1 / 3,
            )
    return section


async def _one_by_one(
    found: dict[str, Contender], places: dict[str, str], size: Size, steps: Steps
) -> Section:
    section = Section("From start to result, one at a time")
    who = {**places, **({"dbos": "DBOS"} if "dbos" in found else {})}
    for place, label in who.items():
        more = {} if place == "dbos" else {"name": ONE_COMMIT}
        answer = await found[place].child.ask("one_by_one", count=size.one_by_one, **more)
        aim = {"at_most": 5.0} if place == "postgres" else {}
        taken = answer["milliseconds"]
        section.amount(f"{place}_p50", f"{label}, median", percentile(taken, 0.5), "ms", **aim)
        section.amount(f"{place}_p99", f"{label}, 99 of 100", percentile(taken, 0.99), "ms")
        steps()
    return section
