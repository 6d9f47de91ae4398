"""How messages lie in an inbox: a kind, and the rest as JSON."""

from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from holdfast.codec import decode_payload, encode_payload
from holdfast.commit import CONTINUE, Commit, Delivery, Envelope, InHand, Lane, Place, Then
from holdfast.errors import Invalid
from holdfast.message import Alter, Cancel, Message, Order, Steer
from holdfast.telemetry import trace_now

_TYPES: dict[str, Any] = {
    str(kind.__struct_config__.tag): kind for kind in (*get_args(Message), *get_args(Order))
}
_USUAL: dict[type, dict[str, Any]] = {
    kind: {
        field.name: field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        for field in msgspec.structs.fields(kind)
        if not field.required
    }
    for kind in _TYPES.values()
}
"""What the fields of a message are unless somebody says otherwise."""
_URGENT = (Cancel, Steer, *get_args(Order))
_PASSING = frozenset(str(kind.__struct_config__.tag) for kind in (Cancel, *get_args(Order), Alter))


WAKES = "@"
"""The reply of a message whose sender wants no answer, only to be woken when its turn has settled."""


class MessageUnreadable(Invalid):
    """A message in an inbox is none of ours, or of a version we do not know."""

    code = "message.unreadable"


def sealed(
    message: Message | Order,
    *,
    tenant: str,
    instance_id: str,
    shard: int,
    lane: Lane | None = None,
    reply: str | None = None,
    trace: str | None = None,
) -> Envelope:
    """A message, ready to be sent, in the trace of whoever sends it.

    A cancel or an order stands in the control lane unless told otherwise.
    """
    usual = Lane.CONTROL if isinstance(message, _URGENT) else Lane.ORDINARY
    return Envelope(
        tenant=tenant,
        instance_id=instance_id,
        shard=shard,
        kind=str(message.__struct_config__.tag),
        payload=_payload(message),
        lane=usual if lane is None else lane,
        reply=reply,
        trace=trace or trace_now(),
    )


def _payload(message: Message | Order) -> bytes | None:
    """What it says beyond the usual; None when that is nothing."""
    usual = _USUAL[type(message)]
    said = {
        name: value
        for name, value in msgspec.structs.asdict(message).items()
        if name not in usual or value != usual[name]
    }
    return encode_payload(said) if said else None


def is_urgent(envelope: Envelope) -> bool:
    """Whether it passes where others wait: what operators say, in whichever lane it stands."""
    return envelope.lane is Lane.CONTROL or envelope.kind in _PASSING


def opened(envelope: Envelope) -> Message | Order:
    """The message in an envelope. Raises MessageUnreadable."""
    kind = _TYPES.get(envelope.kind)
    if kind is None:
        raise MessageUnreadable(
            f"A message of the kind {envelope.kind!r} is unknown to this version of Holdfast."
        )
    try:
        fields: Any = {} if envelope.payload is None else decode_payload(envelope.payload)
        return msgspec.convert(fields, kind)
    except (msgspec.ValidationError, Invalid) as problem:
        raise MessageUnreadable(
            f"A message of the kind {envelope.kind!r} cannot be read: {problem}"
        ) from problem


def in_hand(deliveries: Sequence[Delivery]) -> tuple[InHand, ...]:
    """Messages that a commit settles."""
    return tuple(InHand(Then.CONSUME, d.place, d.timer, d.envelope.kind) for d in deliveries)


def continued(commit: Commit, place: Place, shard: int) -> Delivery:
    """The message that carries on from a checkpoint."""
    envelope = Envelope(tenant=commit.tenant, instance_id=commit.instance_id, shard=shard, kind=CONTINUE)
    return Delivery(envelope=envelope, place=place)
