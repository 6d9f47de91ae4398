"""Messages that wait to be handled."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from holdfast.commit import Delivery, Place


class Inbox(Protocol):
    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        """For each shard and lane named, up to `limit` messages behind that position, in order."""
        ...

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        """Timers of these shards that are due by then, the nearest first."""
        ...

    async def postpone(self, delivery: Delivery, retry_at: datetime, error: str) -> None:
        """Its turn could not be taken: one attempt more, not before `retry_at`. Gone is gone."""
        ...

    async def count_deaths(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """The process died with these in hand: those still there, each with one death more."""
        ...
