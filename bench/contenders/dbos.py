"""`python -m bench.contenders.dbos URL`: DBOS, durable workflows in Python on PostgreSQL; three steps each.

It is given the advantages we know of: functions that only return, workflows started directly and not
over a queue, connections enough, no telemetry, no console. Both of its ways are here, coroutines and
threads, and the better one of the day is compared. It writes each step when it is done and has no way to
write three at once, so it is the same contender for one commit and for several.
"""

import asyncio
import logging
import sys
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, DBOSConfig

from bench.child import Answer, by_many, one_by_one, serve

PACKAGE = "dbos"
CONNECTIONS = 20


@DBOS.step()
async def step(text: str) -> str:
    return text


@DBOS.workflow()
async def three_steps() -> str:
    await step("x")
    await step("x")
    return await step("x")


@DBOS.step()
def blocking_step(text: str) -> str:
    return text


@DBOS.workflow()
def three_blocking_steps() -> str:
    blocking_step("x")
    blocking_step("x")
    return blocking_step("x")


async def _once() -> str:
    handle = await DBOS.start_workflow_async(three_steps)
    return await handle.get_result()


async def dispatch(count: int, callers: int) -> Answer:
    await by_many(callers, count, _once)
    return {}


async def dispatch_in_threads(count: int, callers: int) -> Answer:
    def work() -> None:
        with ThreadPoolExecutor(callers) as threads:
            for done in [threads.submit(three_blocking_steps) for _ in range(count)]:
                done.result()

    await asyncio.to_thread(work)
    return {}


async def wait_one_by_one(count: int) -> Answer:
    return await one_by_one(count, three_steps)


async def main(url: str) -> None:
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url,
        "sys_db_pool_size": CONNECTIONS,
        "enable_otlp": False,
        "console_log_level": "ERROR",
        "log_level": "ERROR",
    }
    logging.getLogger("dbos").setLevel(logging.ERROR)
    DBOS(config=config)
    DBOS.launch()
    try:
        await serve(dispatch=dispatch, dispatch_in_threads=dispatch_in_threads, one_by_one=wait_one_by_one)
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
