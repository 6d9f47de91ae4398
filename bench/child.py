"""Contenders in processes of their own, asked line by line.

Each one measured pays for its own threads, garbage and idle loops only, and what it costs is its process
time. `Child` is the asking side; `serve` the answering one: a request is a JSON object whose `do` names a
function, the answer whatever JSON that returns.
"""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
LONGEST_LINE = 64 * 1024 * 1024

Answer = dict[str, Any]
Doing = Callable[..., Awaitable[Answer]]


class ChildDied(Exception):
    """A contender ended before it answered; what it said last is in the message."""


class Child:
    """Use it with `async with`: it is ready inside, and gone after."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._command = (sys.executable, "-m", module, *arguments)
        self._process: Process | None = None

    async def __aenter__(self) -> "Child":
        self._process = await asyncio.create_subprocess_exec(
            *self._command, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=LONGEST_LINE
        )
        await self._answer()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                async with asyncio.timeout(20):
                    await process.communicate()
            except TimeoutError:
                process.kill()
                await process.wait()

    async def ask(self, do: str, /, **more: Any) -> Answer:
        """What it answers, and beside that its `seconds` and `processor` seconds."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
        return await self._answer()

    async def _answer(self) -> Answer:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        while line := await process.stdout.readline():
            if line.startswith(b"{"):  # contenders log to standard output as well
                return json.loads(line)
        said = (await process.stderr.read()).decode(errors="replace")
        raise ChildDied(f"{' '.join(self._command[1:])} ended without an answer:\n{said[-2000:]}")


async def serve(**doings: Doing) -> None:
    """Answer requests until standard input ends."""
    loop = asyncio.get_running_loop()
    _say({})
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        request: dict[str, Any] = json.loads(line)
        doing = doings[request.pop("do")]
        seconds, processor = time.perf_counter(), time.process_time()
        answer = await doing(**request)
        _say(
            {
                "seconds": time.perf_counter() - seconds,
                "processor": time.process_time() - processor,
                **answer,
            }
        )


def _say(answer: Answer) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def by_many(callers: int, count: int, call: Callable[[], Awaitable[Any]]) -> None:
    """Call so often, so many at a time."""
    left = iter(range(count))

    async def caller() -> None:
        for _ in left:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(callers, count)):
            group.create_task(caller())


async def one_by_one(count: int, call: Callable[[], Awaitable[Any]]) -> Answer:
    """How long each call took, in milliseconds, in order."""
    taken: list[float] = []
    for _ in range(count):
        begun = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - begun) * 1e3)
    return {"milliseconds": sorted(taken)}
