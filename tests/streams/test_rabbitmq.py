"""The conformance suite on a real RabbitMQ."""

from collections.abc import AsyncIterator

import aio_pika
import pytest

from holdfast.testing.conformance.streams import StreamConformance


class TestRabbitMQ(StreamConformance):
    @pytest.fixture
    def url(self, rabbitmq_url: str) -> str:
        return f"{rabbitmq_url}?patience=4&lanes=4"

    @pytest.fixture(autouse=True)
    async def clean(self, url: str, rabbitmq_url: str, topic: str) -> AsyncIterator[None]:
        yield
        async with await aio_pika.connect(rabbitmq_url) as connection, connection.channel() as channel:
            for name in (topic, f"{topic}.0"):
                await channel.queue_delete(f"holdfast.{name}")
                for lane in range(4):
                    await channel.queue_delete(f"holdfast.{name}/{lane}")
                    for group in ("g", "one", "two"):
                        await channel.queue_delete(f"holdfast.{name}/{lane}@{group}")
