"""Activities that are executed outside their turn."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.commit import Envelope, Place


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Background work of one execution. Its number says which attempt may bring the outcome."""

    tenant: str
    instance_id: str
    execution: int
    shard: int
    number: int
    payload: bytes


class Attempts(Protocol):
    async def idle_attempts(self, shards: Sequence[int], limit: int) -> list[Attempt]:
        """Work of these shards that nobody does: never begun, or by a node that is dead."""
        ...

    async def claim(self, node_id: str, attempt: Attempt) -> Attempt | None:
        """Begin it, under a new number. None when somebody else did, or when it is not there any more.

        A node that has begun it, and did not hear so, is told so again.
        """
        ...

    async def conclude(self, attempt: Attempt, message: Envelope) -> Place | None:
        """Exchange the work for its outcome. None when the attempt is stale: then nothing is sent."""
        ...
