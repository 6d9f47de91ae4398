"""The conformance suite on the broker that librdkafka brings along: real TCP, real groups, one process."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from holdfast.testing.conformance.streams import StreamConformance


@pytest.fixture(scope="session")
def kafka_url() -> Iterator[str]:
    """It lives as long as the producer that brought it."""
    broker = Producer({"bootstrap.servers": "ignored:1", "test.mock.num.brokers": 1, "log_level": 0})
    hosts = ",".join(f"{one.host}:{one.port}" for one in broker.list_topics(timeout=10).brokers.values())
    yield f"kafka://{hosts}?patience=6"
    del broker


class TestKafka(StreamConformance):
    @pytest.fixture
    def url(self, kafka_url: str) -> str:
        return kafka_url
