"""One message in, one burst, one outcome out: the way everybody drives the engine.

The driver gives a graph, the state as it was last kept (none for a start) and a message. What comes
back is all that happened, as values; nothing was written anywhere.
"""

from collections.abc import Awaitable, Callable

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.definitions.graph import Graph
from holdfast.engine.burst import Burst
from holdfast.engine.environment import Environment
from holdfast.engine.faults import RETRY
from holdfast.engine.frame import FAULTED, RUNNING, Frame
from holdfast.engine.state import freeze, thaw
from holdfast.errors import Invalid
from holdfast.instance import Incident, Record, State, Status, SubStatus
from holdfast.message import (
    Cancel,
    CancelActivity,
    Continue,
    Effect,
    Message,
    Resume,
    Retry,
    Skip,
    Start,
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one burst came to."""

    state: State
    records: tuple[Record, ...] = ()
    effects: tuple[Effect, ...] = ()
    applied: bool = True
    """False when the message found nothing to do: no such bookmark, or the instance had ended."""


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
) -> Outcome:
    """Handle one message. `checkpoint` is awaited in the middle, where a commit strategy asks for it."""
    if isinstance(message, Start):
        if instance_id is None:
            raise Invalid("A start needs the id of the instance that begins.")
        burst = _started(graph, message, environment, instance_id, tenant)
    else:
        if state is None:
            raise Invalid(
                f"{type(message).__name__} is for an instance that exists; its state was not given."
            )
        if state.status is Status.FINISHED and not isinstance(message, Retry | Skip):
            return Outcome(state=state, applied=False)
        burst = thaw(state, graph, environment)
        if not _apply(burst, message):
            return Outcome(state=state, applied=False)
    if checkpoint is not None:
        burst.checkpoint = _checkpointing(checkpoint)
    await _drained(burst)
    return _settled(burst)


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
            burst.bookmarks.clear()
            burst.queue.clear()
            burst.ended = SubStatus.CANCELLED
            burst.record("Workflow cancelled", burst.root, message.reason)
        case CancelActivity():
            found = [
                frame
                for frame in burst.frames.values()
                if frame.node.id == message.activity_id
                and (message.execution is None or message.execution == frame.number)
            ]
            for frame in found:
                _or_fault(burst, frame, lambda frame=frame: burst.cancel(frame))
            return bool(found)
        case Retry():
            return _retry(burst, message)
        case Skip():
            frame = _reopened(burst, message.execution)
            if frame is None:
                return False
            frame.status = RUNNING
            _or_fault(burst, frame, lambda: burst.complete(frame, message.outcomes or None))
        case Start():
            return False
    return True


def _or_fault(burst: Burst, frame: Frame, act: Callable[[], None]) -> None:
    """Do what an operator asked; what a container raises on hearing of it faults that execution."""
    try:
        act()
    except Exception as error:  # an author's container may raise anything; it becomes a fault
        burst.fault(frame, error)


def _find_bookmark(burst: Burst, message: Resume) -> Bookmark | None:
    if message.bookmark_id is not None:
        return burst.bookmarks.get(message.bookmark_id)
    return next((b for b in burst.bookmarks.values() if b.key == message.key), None)


def _retry(burst: Burst, message: Retry) -> bool:
    frame = _reopened(burst, message.execution)
    if frame is None:
        return False
    for child in list((frame.children or {}).values()):
        burst.cancel(child)
    by_name = {
        name.lower(): descriptor
        for descriptor in frame.node.type.descriptor.inputs
        for name in (descriptor.name, descriptor.attribute)
    }
    unknown = [name for name in message.inputs if name.lower() not in by_name]
    if unknown:
        known = ", ".join(d.name for d in frame.node.type.descriptor.inputs) or "none"
        raise Invalid(f"{frame.node.type_name} has no input {unknown[0]!r}. Its inputs: {known}.")
    frame.edited = {
        by_name[name.lower()].attribute: by_name[name.lower()].type.convert(value)
        for name, value in message.inputs.items()
    } or None
    frame.attempt += 1
    frame.state = None
    frame.status = RUNNING
    frame.resumption = Bookmark(
        id="",
        name=RETRY,
        key="",
        activity_id=frame.node.id,
        execution=frame.number,
        created_at=burst.clock.now(),
    )
    burst.queue.append(frame)
    return True


def _reopened(burst: Burst, execution: int) -> Frame | None:
    """The faulted execution, its incident taken back and the instance open again."""
    frame = burst.frames.get(execution)
    if frame is None or frame.status is not FAULTED:
        return None
    left: list[Incident] = [i for i in burst.incidents if i.execution != execution]
    counted: Frame | None = frame
    while counted is not None:
        counted.faults -= 1
        counted = counted.parent
    burst.incidents = left
    burst.ended = burst.ended if left else None
    return frame


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


def _settled(burst: Burst) -> Outcome:
    state = freeze(burst, at_checkpoint=bool(burst.queue))
    return Outcome(state=state, records=tuple(burst.records), effects=tuple(burst.effects))
