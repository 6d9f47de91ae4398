"""The conformance suite on a real redis."""

import pytest

from holdfast.testing.conformance.streams import StreamConformance


class TestServer(StreamConformance):
    @pytest.fixture
    def url(self, redis_url: str) -> str:
        return f"{redis_url}?patience=2"
