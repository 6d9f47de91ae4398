"""Requests from outside."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from holdfast.commit import Birth, Envelope, KeptStimulus, Place
from holdfast.errors import Conflict


class Activation(msgspec.Struct, frozen=True, kw_only=True):
    """A start that is guarded: one instance per key, and none open that forbids it."""

    key: str
    looks: bool = True
    """Whether open instances forbid it, too. Without, the key alone decides."""
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
    activations: tuple[Activation, ...] = ()


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


class Posting(msgspec.Struct, frozen=True, kw_only=True):
    """A stimulus after the first look: whom it hit, or itself, to be kept because it hit nobody."""

    tenant: str
    starts: tuple[Admission, ...] = ()
    """Instances it starts, without keys of their own; one that is refused does not hinder the others."""
    messages: tuple[Envelope, ...] = ()
    keep: KeptStimulus | None = None
    key: str | None = None
    """The sender's idempotency key."""
    request: bytes = b""
    expires: datetime | None = None
    answer: bytes = b""
    """What whoever repeats the request under the same key is told."""


class Posted(msgspec.Struct, frozen=True):
    """It is written. Places of the messages and verdicts about the starts, in their order."""

    places: tuple[Place, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


class Intake(Protocol):
    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        """Durable when it returns, with an answer for each; one that is refused does not hinder others."""
        ...

    async def post(self, posting: Posting) -> Posted | Repeated | KeyReused:
        """Write all of a stimulus in one transaction."""
        ...

    async def activate(
        self, tenant: str, instance_id: str, activations: Sequence[Activation]
    ) -> Refused | None:
        """Take the keys for an instance that was born before it could ask, as a child is.

        None when it has them all, also from an earlier call; else it has none. Instances that were born
        in the same way and have not begun do not count as open: they are about to ask as well. One that
        is not open any more is refused because of itself: whoever asks for it now comes too late, and
        nobody would give its keys back.
        """
        ...

    async def answer(self, tenant: str, key: str) -> bytes | None:
        """What was answered under a key; None while nothing was."""
        ...

    async def forget_keys(self, limit: int) -> int:
        """Delete idempotency keys whose life is over; how many."""
        ...
