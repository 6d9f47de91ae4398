"""The stream in memory keeps every promise but one: it ends with its process."""

import pytest

from holdfast.stream import Stream
from holdfast.streams.memory import MemoryStream
from holdfast.testing.conformance.streams import Another, StreamConformance, TakeAndDie, one_of


class TestMemory(StreamConformance):
    @pytest.fixture
    def stream(self) -> Stream:
        return MemoryStream()

    @pytest.fixture
    def another(self, stream: Stream) -> Another:
        async def same() -> Stream:
            return stream

        return same

    @pytest.fixture
    def take_and_die(self, stream: Stream) -> TakeAndDie:
        """Nobody dies alone in one process: here a member breaks off."""

        async def run(topic: str, group: str) -> str:
            async with stream.subscribe(topic, group) as subscription:
                return (await one_of(subscription)).message.id

        return run
