"""A topic for each test, and connections that are closed after it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import count

import pytest

from holdfast.stream import Stream
from holdfast.streams import open_stream
from holdfast.testing.conformance.streams import Another, TakeAndDie, killed_member

_numbers = count()


@pytest.fixture
def topic(private_name: str) -> str:
    return f"{private_name}-{next(_numbers)}"


@pytest.fixture
async def another(url: str) -> AsyncIterator[Another]:
    async with AsyncExitStack() as opened:

        async def open_another() -> Stream:
            stream = await open_stream(url)
            opened.push_async_callback(stream.close)
            return stream

        yield open_another


@pytest.fixture
async def stream(another: Another) -> Stream:
    return await another()


@pytest.fixture
def take_and_die(url: str) -> TakeAndDie:
    async def run(topic: str, group: str) -> str:
        return await killed_member(url, topic, group)

    return run
