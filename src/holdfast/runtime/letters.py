"""How messages lie in an inbox: a kind, and the rest as JSON."""

from typing import Any, get_args
from zlib import crc32

import msgspec

from holdfast.codec import decode_payload, encode_payload
from holdfast.commit import Envelope, Lane
from holdfast.errors import Invalid
from holdfast.message import Cancel, Message

_TYPES: dict[str, Any] = {str(kind.__struct_config__.tag): kind for kind in get_args(Message)}


class MessageUnreadable(Invalid):
    """A message in an inbox is none of ours, or of a version we do not know."""

    code = "message.unreadable"


def sealed(
    message: Message,
    *,
    tenant: str,
    instance_id: str,
    shard: int,
    lane: Lane | None = None,
    reply: str | None = None,
) -> Envelope:
    """A message, ready to be sent. A cancel stands in the control lane unless told otherwise."""
    ordinary = Lane.CONTROL if isinstance(message, Cancel) else Lane.ORDINARY
    return Envelope(
        tenant=tenant,
        instance_id=instance_id,
        shard=shard,
        kind=str(message.__struct_config__.tag),
        payload=encode_payload(msgspec.structs.asdict(message)),
        lane=ordinary if lane is None else lane,
        reply=reply,
    )


def opened(envelope: Envelope) -> Message:
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


def shard_of(instance_id: str, shards: int) -> int:
    """The slice of all instances an id belongs to. It is written at an instance's birth and never changes."""
    return crc32(instance_id.encode()) % shards
