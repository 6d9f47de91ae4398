"""Who waits under a key, and what came before anybody did."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from holdfast.bookmark import Trigger
from holdfast.commit import Envelope, KeptStimulus, Place


class Waiting(msgspec.Struct, frozen=True):
    """A place in an instance that waits under a key."""

    instance_id: str
    shard: int
    bookmark_id: str
    correlation_id: str | None


class Waits(Protocol):
    async def find(
        self, tenant: str, key: str, *, instance_id: str | None = None, correlation_id: str | None = None
    ) -> tuple[list[Trigger], list[Waiting]]:
        """Triggers and open bookmarks with that key, correlation ids as they are now.

        Given an instance or a correlation id, only bookmarks of it: thousands may wait under one key.
        """
        ...

    async def keep(self, stimulus: KeptStimulus) -> None:
        """Keep a stimulus until it is paired or expires."""
        ...

    async def kept(self, tenant: str, keys: Sequence[str]) -> list[KeptStimulus]:
        """Stimuli kept under these keys, oldest first."""
        ...

    async def pair(self, tenant: str, stimulus_id: str, messages: Sequence[Envelope]) -> list[Place] | None:
        """Exchange a kept stimulus for messages. None when it is not there any more, and nothing is sent."""
        ...

    async def meetings(self, since: datetime | None, limit: int) -> list[KeptStimulus]:
        """Kept stimuli, of those sent since then, under whose key some open instance waits now."""
        ...

    async def expire_stimuli(self, limit: int) -> int:
        """Delete what has expired; what was addressed to an instance becomes a dead letter. How many."""
        ...
