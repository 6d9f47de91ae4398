"""Calls into a broker's client: its errors in our words, and cancellations that count."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from holdfast.errors import Unavailable


@contextmanager
def asking(broker: str, *errors: type[Exception]) -> Generator[None]:
    """These errors, and those of the network, are `Unavailable`."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    except (*errors, OSError, TimeoutError) as problem:
        said = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        raise Unavailable(f"{broker} does not do it now. {said}") from problem
    # Python 3.11's `wait_for`, which clients use, forgets a cancellation that comes with its result.
    if task and task.cancelling() > before:
        raise asyncio.CancelledError


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Cancelled when the block ends. A task group would wrap what the block raises, and cancel the block."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        while not task.done():  # again, for the same reason as above
            task.cancel()
            await asyncio.wait([task], timeout=0.1)
    if not task.cancelled():
        task.result()
