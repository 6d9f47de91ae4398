"""The conformance suite on a real nats."""

import pytest

from holdfast.testing.conformance.streams import StreamConformance


class TestServer(StreamConformance):
    @pytest.fixture
    def url(self, nats_url: str) -> str:
        return f"{nats_url}?patience=2"
