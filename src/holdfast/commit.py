"""All that one turn writes, as one value. If it is not in here, the turn did not do it.

A `Commit` is written wholly or not at all, together with others of its group. It proves two things
while it is written: the instance is still at the revision the turn began from, and every message the
turn has in hand is still there. `store` is who writes it; the rules are in the docs, on the kernel's
page.
"""

from datetime import datetime
from enum import IntEnum, StrEnum

import msgspec

from holdfast.instance import SubStatus

CONTINUE = "continue"
"""The kind of a message that was applied up to a checkpoint: whoever finds it carries on from the state."""


class Lane(IntEnum):
    """One of three lines in an inbox. A cancel never stands behind a million starts."""

    CONTROL = 0
    ORDINARY = 1
    BULK = 2


class Place(msgspec.Struct, frozen=True, order=True):
    """Where a message lies in an inbox. A place is never used twice."""

    shard: int
    lane: int
    seq: int


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way to one instance."""

    tenant: str
    instance_id: str
    shard: int
    kind: str
    payload: bytes | None = None
    lane: Lane = Lane.ORDINARY
    reply: str | None = None
    """The idempotency key whose answer this message's commit writes."""
    trace: str | None = None


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """A message with a due time. It is handled from where it is, and its turn deletes it there."""

    id: str
    due: datetime
    kind: str
    payload: bytes | None = None
    trace: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message as the reader finds it: in an inbox at its place, or among the timers under its id."""

    envelope: Envelope
    place: Place | None = None
    timer: str | None = None
    due: datetime | None = None
    attempts: int = 0
    deaths: int = 0
    retry_at: datetime | None = None
    error: str | None = None
    sent_at: datetime | None = None


class Then(StrEnum):
    """What becomes of a message in hand."""

    CONSUME = "consume"
    """The turn settled it."""
    CONTINUE = "continue"
    """The first checkpoint rewrites it: redelivery carries on from the state instead of applying it again."""
    KEEP = "keep"
    """It must still be there, and stays."""


class InHand(msgspec.Struct, frozen=True):
    """A message the turn is about, by its place or as a timer of the instance.

    With neither the turn was begun without a message, by `run`; its first checkpoint makes one.
    """

    then: Then
    place: Place | None = None
    timer: str | None = None
    kind: str | None = None
    """What it was when it was read. One that has become a `continue` meanwhile is another message: whoever
    consumed it as what it was before would take the continue away from the state that needs it."""


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """What lists, filters and matching know of an instance without reading its state."""

    definition_id: str
    version_id: str
    version: int
    sub_status: SubStatus
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None = None
    correlation_id: str | None = None
    name: str | None = None
    parent_id: str | None = None
    incident_count: int = 0
    is_paused: bool = False


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The instance the turn was taken for, as it is now."""

    shard: int
    expects: int
    """The revision the turn began from. Any other means that somebody else took a turn first."""
    columns: Columns
    state: bytes | None
    """None for one that never began."""
    reopens: bool = False
    """An operator leaves a terminal state. Nothing else may."""


class Wait(msgspec.Struct, frozen=True):
    """A bookmark that the outside can hit, under its key."""

    id: str
    key: str


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the journal: many records, and a summary that answers most questions about them."""

    sequence: int
    """Of its first record."""
    records: int
    version: int
    summary: bytes
    body: bytes


class Task(msgspec.Struct, frozen=True):
    """Work to be done outside the turn, and what it is, as JSON."""

    execution: int
    payload: bytes


class Birth(msgspec.Struct, frozen=True, kw_only=True):
    """An instance that exists from now on; without a state while its start message waits.

    With a state its first burst was taken together with whoever bears it, and what it waits for and
    tells is here.
    """

    instance_id: str
    shard: int
    columns: Columns
    state: bytes | None = None
    timers: tuple[Timer, ...] = ()
    waits: tuple[Wait, ...] = ()
    tasks: tuple[Task, ...] = ()
    journal: tuple[Segment, ...] = ()


class Outgoing(msgspec.Struct, frozen=True):
    """What to publish, and on which stream."""

    stream: str
    body: bytes


class KeptStimulus(msgspec.Struct, frozen=True, kw_only=True):
    """A stimulus that hit nobody, kept until somebody waits for it or it expires."""

    id: str
    tenant: str
    key: str
    payload: bytes
    expires: datetime
    instance_id: str | None = None
    correlation_id: str | None = None
    only: bool = False
    """Meant for one receiver: if that one ends without taking it, it is everybody's again."""
    tries: int = 0
    sent_at: datetime | None = None


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A message nobody could handle, with why."""

    id: str
    envelope: Envelope
    error: str
    attempts: int
    deaths: int
    at: datetime
    sent_at: datetime | None = None


class Answer(msgspec.Struct, frozen=True):
    """What everybody who asks under an idempotency key is told from now on."""

    key: str
    body: bytes


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn changes."""

    turn: str
    """Names the turn, so that after a lost connection we can ask whether it was written."""
    tenant: str
    instance_id: str
    """The instance the turn was taken for."""
    change: Change | None = None
    """How it is now; None when its messages came too late to change anything, or when it is being born."""
    births: tuple[Birth, ...] = ()
    in_hand: tuple[InHand, ...] = ()
    messages: tuple[Envelope, ...] = ()
    timers: tuple[Timer, ...] = ()
    timers_gone: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    waits_gone: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    """Work that leaves the turn; a row among the attempts."""
    tasks_gone: tuple[int, ...] = ()
    """Executions whose work nobody wants any more."""
    journal: tuple[Segment, ...] = ()
    outbox: tuple[Outgoing, ...] = ()
    put_back: tuple[KeptStimulus, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()
    answers: tuple[Answer, ...] = ()
    frees_activations: bool = False
    """The instance has ended: another one may take its place."""
    deletes: bool = False
    """The instance goes, with all that belongs to it. Its change says from which revision."""
