"""One message in, one burst, one outcome out: the way a run is driven."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.codec import encode_bare
from holdfast.errors import Invalid
from holdfast.machines.burst import Burst, Checkpoint, Outcome
from holdfast.machines.draft import WAITS
from holdfast.machines.machine import Machine
from holdfast.machines.run import RunState
from holdfast.machines.state import FORMAT, KeptRun
from holdfast.message import Cancel, Continue, Message, Resume, Retry, Start, Steer

PAUSE, RESUME, DELETE = "pause", "resume", "delete"
"""What a person may ask of a run, beside cancelling it."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Whose run it is."""

    id: str
    tenant: str
    definition_id: str
    version_id: str
    version: int


async def drive(
    machine: Machine[Any, Any],
    message: Message,
    *,
    clock: Clock,
    identity: Identity,
    state: KeptRun | None,
    checkpoint: Checkpoint,
    on_begin: Callable[[Burst], None],
) -> Outcome:
    """Handle one message, from the run as it was last kept; None for a start."""
    if isinstance(message, Start):
        burst = Burst(machine, clock, _new(machine, message, clock, identity))
        burst.begin()
    elif state is None:
        raise Invalid(f"{type(message).__name__} is for a run that has begun.")
    else:
        burst = Burst(machine, clock, state)
        if not await _apply(burst, message, state):
            return Outcome(state=state, applied=False)
    on_begin(burst)
    await burst.work(checkpoint)
    return burst.outcome()


async def _apply(burst: Burst, message: Message, state: KeptRun) -> bool:
    """Whether it found something to do."""
    match message:
        case Resume():
            for bookmark in state.bookmarks:
                if bookmark.id == message.bookmark_id or (
                    bookmark.name == WAITS and bookmark.key == message.key
                ):
                    burst.hit(bookmark, text_of(message.input, "payload"))
                    return True
            return False
        case Continue():
            return state.is_halfway
        case Cancel():
            return burst.cancel(message.reason or "")
        case Retry():
            return burst.resume()
        case Steer(order="pause"):
            return burst.pause(message.reason or "")
        case Steer(order="resume"):
            return burst.resume()
        case Steer(order="delete"):
            return await burst.delete(message.reason or "")
        case _:
            return False


def _new(machine: Machine[Any, Any], message: Start, clock: Clock, identity: Identity) -> KeptRun:
    now, built = clock.now(), machine.built
    at = message.input.get("at", built.start.value)
    given = text_of(message.input, "object")
    raw = machine.objects.write(machine.objects.fresh()) if given is None else given.encode()
    machine.objects.read(raw)  # raises now what every step would raise
    return KeptRun(
        format=FORMAT,
        id=identity.id,
        tenant=identity.tenant,
        definition_id=identity.definition_id,
        version_id=identity.version_id,
        version=identity.version,
        run_state=RunState.INITIATED,
        at=built.statuses(at).value,
        entered=0,
        entered_at=now,
        object=msgspec.Raw(raw),
        created_at=now,
        updated_at=now,
        parent_id=message.parent_id,
        correlation_id=message.correlation_id,
        properties=dict(message.properties),
    )


def text_of(given: Mapping[str, Any], name: str) -> str | None:
    """A member that is JSON: as text, as we send it, or as a value, as people write it."""
    value = given.get(name)
    if value is None or isinstance(value, str):
        return value
    return encode_bare(value).decode()
