"""One message in, one burst, one outcome out: the way everybody drives the engine.

The driver gives a graph, the state as it was last kept (none for a start) and a message. What comes
back is all that happened, as values; nothing was written anywhere.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.definitions.graph import Graph
from holdfast.engine.adoption import adopt_state, background_of
from holdfast.engine.alterations import (
    Altered,
    Attempted,
    attempt,
    cancel_activity,
    cancel_instance,
    retry,
    skip,
)
from holdfast.engine.burst import Burst
from holdfast.engine.environment import Environment
from holdfast.engine.frame import Frame
from holdfast.engine.state import freeze, thaw
from holdfast.errors import Invalid
from holdfast.instance import Record, State, Status
from holdfast.message import (
    Alter,
    Cancel,
    CancelActivity,
    Continue,
    Effect,
    Message,
    Resume,
    Retry,
    Skip,
    Start,
    Steer,
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one burst came to."""

    state: State
    records: tuple[Record, ...] = ()
    effects: tuple[Effect, ...] = ()
    applied: bool = True
    """False when the message found nothing to do: no such bookmark, or the instance had ended."""
    altered: tuple[Altered, ...] = ()
    """What became of each alteration, where the message brought some."""


Checkpoint = Callable[[Outcome], Awaitable[None]]


async def run_burst(
    graph: Graph,
    message: Message,
    *,
    environment: Environment,
    state: State | None = None,
    instance_id: str | None = None,
    tenant: str = "",
    checkpoint: Checkpoint | None = None,
    on_begin: Callable[[Burst], None] | None = None,
) -> Outcome:
    """Handle one message. `checkpoint` is awaited in the middle, where a commit strategy asks for it.

    `on_begin` is given the burst, so that somebody can ask it to stop before its next activity.
    """
    told: tuple[Altered, ...] = ()
    if isinstance(message, Start):
        if instance_id is None:
            raise Invalid("A start needs the id of the instance that begins.")
        if message.state is not None:
            state = adopt_state(message.state, graph, instance_id, tenant)
            if not state.is_halfway:
                return _adopted(state, environment)
            burst = thaw(state, graph, environment)
            burst.effects += background_of(state)
        else:
            burst = _started(graph, message, environment, instance_id, tenant)
    else:
        if state is None:
            raise Invalid(
                f"{type(message).__name__} is for an instance that exists; its state was not given."
            )
        if state.status is Status.FINISHED and not isinstance(message, Retry | Skip | Alter):
            return Outcome(state=state, applied=False)
        if isinstance(message, Alter):
            attempted = await attempt(state, message, graph, environment)
            told = attempted.told
            if attempted.burst is None:
                return _unaltered(state, attempted)
            burst = attempted.burst
        else:
            burst = thaw(state, graph, environment)
            if not _apply(burst, message):
                return Outcome(state=state, applied=False)
    if checkpoint is not None:
        burst.checkpoint = _checkpointing(checkpoint)
    if on_begin is not None:
        on_begin(burst)
    await _drained(burst)
    return _settled(burst, told, None if state is None else state.finished_at)


def _started(graph: Graph, message: Start, environment: Environment, instance_id: str, tenant: str) -> Burst:
    burst = Burst(graph, environment, instance_id)
    burst.tenant = tenant
    burst.created_at = environment.clock.now()
    burst.parent_id = message.parent_id
    burst.correlation_id = message.correlation_id
    burst.name = message.name
    burst.trigger = message.trigger
    burst.input = dict(message.input)
    burst.properties = dict(message.properties)
    kept = {p.name.lower() for p in graph.definition.inputs if p.is_kept}
    burst.kept_input = {k: v for k, v in burst.input.items() if k.lower() in kept}
    root = Frame(graph.root, None)
    ids = graph.root.variable_ids
    values = {ids[name]: value for name, value in message.variables.items() if name in ids}
    root.memory = {i: graph.root.variables[i].type.convert(value) for i, value in values.items()}
    burst.root = root
    burst.queue.append(root)
    return burst


def _apply(burst: Burst, message: Message) -> bool:
    """Bring the message to where it belongs. False when it belongs nowhere any more."""
    match message:
        case Resume():
            bookmark = _find_bookmark(burst, message)
            if bookmark is None:
                return False
            burst.input = {**burst.kept_input, **message.input}
            return burst.hit(bookmark)
        case Continue():
            return bool(burst.queue) or not burst.frames
        case Cancel():
            cancel_instance(burst, message)
        case CancelActivity():
            return cancel_activity(burst, message) > 0
        case Retry():
            return retry(burst, message)
        case Skip():
            return skip(burst, message)
        case Start() | Alter() | Steer():
            return False
    return True


def _find_bookmark(burst: Burst, message: Resume) -> Bookmark | None:
    if message.bookmark_id is not None:
        return burst.bookmarks.get(message.bookmark_id)
    return next((b for b in burst.bookmarks.values() if b.key == message.key), None)


def _checkpointing(checkpoint: Checkpoint) -> Callable[[Burst], Awaitable[None]]:
    async def reach(burst: Burst) -> None:
        records, effects = tuple(burst.records), tuple(burst.effects)
        burst.records.clear()
        burst.effects.clear()
        state = freeze(burst, at_checkpoint=True)
        await checkpoint(Outcome(state=state, records=records, effects=effects))

    return reach


async def _drained(burst: Burst) -> None:
    call: Callable[[], Awaitable[None]] = burst.drain
    for middleware in reversed(burst.environment.around_burst):
        call = _around(middleware, burst, call)
    await call()


def _around(
    middleware: Callable[..., Awaitable[None]], burst: Burst, call: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    async def wrapped() -> None:
        await middleware(burst, call)

    return wrapped


def _settled(burst: Burst, told: tuple[Altered, ...], ended_at: datetime | None) -> Outcome:
    state = freeze(burst, at_checkpoint=bool(burst.queue))
    if told and ended_at is not None and state.finished_at is not None:
        state = msgspec.structs.replace(state, finished_at=ended_at)  # altered, but it ended when it did
    return Outcome(state=state, records=tuple(burst.records), effects=tuple(burst.effects), altered=told)


def _unaltered(state: State, attempted: Attempted) -> Outcome:
    """As it was, but for the line in its journal."""
    told = attempted.records
    counted = msgspec.structs.replace(state, records=state.records + len(told))
    return Outcome(state=counted, records=told, applied=False, altered=attempted.told)


def _adopted(state: State, environment: Environment) -> Outcome:
    number = state.records + 1
    record = Record(number, "Restored", 0, 0, 0, environment.clock.now())
    return Outcome(
        state=msgspec.structs.replace(state, records=number),
        records=(record,),
        effects=tuple(background_of(state)),
    )
