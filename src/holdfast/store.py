"""The port of durable state: what the runtime asks of a store, and what every store promises.

Small protocols by subject, and one that is all of them. Every adapter in `stores/` passes
`holdfast.testing.conformance.StoreConformance`, where each promise below is a test. Whatever cannot be
done now because the database is away raises `Unavailable`; nothing was written then, or the caller
finds out by asking again under the same names.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from holdfast.bookmark import Trigger
from holdfast.commit import Birth, Columns, Commit, Delivery, Envelope, KeptStimulus, Place
from holdfast.errors import Conflict


class StaleTurn(Conflict):
    """Another turn was first, or a message in hand is gone. Load the instance and decide anew."""

    code = "turn.stale"

    def __init__(self, instance_id: str, reason: str) -> None:
        super().__init__(f"The turn of instance {instance_id} came too late: {reason}. Load it again.")


class NodeExpired(Conflict):
    """A node did not renew in time. It abandons its turns and joins again under a new id."""

    code = "node.expired"


class Renewal(msgspec.Struct, frozen=True):
    """What a node learns when it renews: the store's time, and the leases it has, with their epochs."""

    now: datetime
    leases: Mapping[str, int]


class Taken(msgspec.Struct, frozen=True):
    """A lease a node has got."""

    name: str
    epoch: int
    is_clean: bool
    """Its last owner gave it back. Else that owner died, and what it was doing must be taken carefully."""


class LiveNode(msgspec.Struct, frozen=True):
    id: str
    place: str
    expires: datetime


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as last committed."""

    tenant: str
    instance_id: str
    shard: int
    revision: int
    turn: str
    columns: Columns
    state: bytes | None


class Committed(msgspec.Struct, frozen=True):
    """It is written. `places` are those of its messages, in their order."""

    revision: int
    places: tuple[Place, ...] = ()
    continued: Place | None = None
    """Where the message that its first checkpoint rewrote lies now: a timer's moves to the inbox."""


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """A start that an activation strategy guards: one instance per key, and none that forbids it."""

    key: str
    definition_id: str | None = None
    """Refused while an instance of this definition is open; None means of any."""
    correlation_id: str | None = None
    """Only instances with this correlation id count; with None all do."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A request from outside: a message, perhaps for an instance that is born with it."""

    message: Envelope
    birth: Birth | None = None
    key: str | None = None
    """The caller's idempotency key."""
    request: bytes = b""
    """A digest of what was asked, to tell a repetition from another request under the same key."""
    expires: datetime | None = None
    activation: Activation | None = None


class Admitted(msgspec.Struct, frozen=True):
    place: Place


class Repeated(msgspec.Struct, frozen=True):
    """The key was used before for the same request. `answer` is None while the first is under way."""

    instance_id: str
    answer: bytes | None


class InstanceExists(Conflict):
    code = "instance.exists"

    def __init__(self, instance_id: str) -> None:
        super().__init__(f"An instance {instance_id!r} exists already. Choose another id, or let us choose.")


class Refused(msgspec.Struct, frozen=True):
    """An activation strategy forbids it, because of this instance."""

    instance_id: str


class KeyReused(Conflict):
    code = "key.reused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The idempotency key {key!r} was used for another request before. Use a new key for a new "
            f"request, and the same one only to repeat the same."
        )


Verdict = Admitted | Repeated | Refused | KeyReused | InstanceExists
"""What becomes of a request. Asked again under the same key, the answer is the same."""


class Waiting(msgspec.Struct, frozen=True):
    """A place in an instance that waits under a key."""

    instance_id: str
    shard: int
    bookmark_id: str
    correlation_id: str | None


class Nodes(Protocol):
    """Who is alive, and who should work what. Time is the store's: a node's own clock decides nothing."""

    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        """A new node, alive for `ttl` from now on. An id is never used twice."""
        ...

    async def renew(self, node_id: str, ttl: timedelta) -> Renewal:
        """Alive for `ttl` more. Raises NodeExpired once its time has run out: it cannot come back."""
        ...

    async def take(self, node_id: str, names: Sequence[str]) -> list[Taken]:
        """Those of the named leases that are free or belong to the dead. Each has one owner at a time."""
        ...

    async def release(self, node_id: str, names: Sequence[str]) -> None:
        """Give leases back; others may take them at once. What it does not own is left alone."""
        ...

    async def leave(self, node_id: str) -> None:
        """Not alive any more, and nothing released: whoever takes over does so carefully."""
        ...

    async def nodes(self) -> list[LiveNode]:
        """The living."""
        ...


class Inbox(Protocol):
    """Messages that wait to be handled."""

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


class Turns(Protocol):
    """Instances, as turns find and leave them."""

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        """The instances (tenant and id) that exist, as last committed."""
        ...

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        """Write each of them wholly or not at all, in one transaction. A stale one fails alone.

        Stale is a commit whose instance has another revision than it expects, has ended without the
        commit reopening it, or of whose messages in hand one is gone. Of two commits for one instance
        in one call the second is stale.
        """
        ...


class Intake(Protocol):
    """Requests from outside."""

    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        """Durable when it returns, with an answer for each; one that is refused does not hinder others."""
        ...

    async def answer(self, tenant: str, key: str) -> bytes | None:
        """What was answered under a key; None while nothing was."""
        ...


class Waits(Protocol):
    """Who waits under a key, and what came before anybody did."""

    async def find(self, tenant: str, key: str) -> tuple[list[Trigger], list[Waiting]]:
        """Triggers and open bookmarks with that key, correlation ids as they are now."""
        ...

    async def keep(self, stimulus: KeptStimulus) -> None:
        """Keep a stimulus until it is paired or expires."""
        ...

    async def kept(self, tenant: str, key: str) -> list[KeptStimulus]:
        """Stimuli kept under that key, oldest first."""
        ...

    async def pair(self, tenant: str, stimulus_id: str, messages: Sequence[Envelope]) -> list[Place] | None:
        """Exchange a kept stimulus for messages. None when it is not there any more, and nothing is sent."""
        ...

    async def replace_triggers(self, tenant: str, definition_id: str, triggers: Sequence[Trigger]) -> None:
        """These are the triggers of the definition from now on."""
        ...


class Store(Nodes, Inbox, Turns, Intake, Waits, Protocol):
    """Everything the runtime asks of durable state."""
