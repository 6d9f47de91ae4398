"""The store in memory keeps every promise but durability."""

from datetime import timedelta

import pytest

from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from holdfast.testing.conformance import PassTime, StoreConformance


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def store(self, clock: ManualClock) -> MemoryStore:
        return MemoryStore(clock)

    @pytest.fixture
    def pass_time(self, clock: ManualClock) -> PassTime:
        async def advance(span: timedelta) -> None:
            clock.advance(span)

        return advance
