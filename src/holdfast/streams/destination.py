"""Brings the outbox to a topic: what `runtime.relay` asks of a destination, done by a stream.

    streams = {"events": StreamDestination(await open_stream("nats://localhost"), "events")}
    async with Holdfast(store, streams=streams) as holdfast: ...

Rows of one instance have one key, so they stay in order. A row that is relayed again, by another node or
after a doubt, has the same id.
"""

from collections.abc import Sequence

import msgspec

from holdfast.store import OutboxRow
from holdfast.stream import Message, Stream

CLOUD_EVENT = "application/cloudevents+json; charset=UTF-8"


class StreamDestination:
    """A topic of a stream. Whoever opened the stream closes it, after Holdfast has ended."""

    def __init__(self, stream: Stream, topic: str) -> None:
        self.stream = stream
        self.topic = topic

    async def publish(self, rows: Sequence[OutboxRow]) -> None:
        """They are in the topic when it returns."""
        await self.stream.publish(self.topic, [_message(row) for row in rows])


class _Event(msgspec.Struct):
    """What identifies a CloudEvent."""

    id: str
    source: str
    specversion: str
    subject: str = ""


def _message(row: OutboxRow) -> Message:
    try:
        event = msgspec.json.decode(row.body, type=_Event)
    except msgspec.DecodeError:
        place = f"{row.stream}/{row.shard}/{row.seq}"
        return Message(id=place, key=f"{row.tenant}/{row.instance_id or ''}", body=row.body)
    return Message(
        id=f"{event.source}/{event.id}",
        key=f"{row.tenant}/{row.instance_id or event.subject}",
        body=row.body,
        headers={"content-type": CLOUD_EVENT},
    )
