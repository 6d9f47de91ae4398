"""Freezing a burst into a `State`, thawing it again, and the versioned JSON of a state.

A suspension drops what Elsa drops: variables without a storage driver, the output register, inputs
that were not declared to be kept. A checkpoint keeps all of that, and the work queue, in the
`transient` part, so that whoever reads it carries on in the middle of the burst.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.codec import NotEncodable, Type, read_payload, write_payload
from holdfast.definitions.graph import Graph
from holdfast.engine.burst import Burst
from holdfast.engine.environment import Environment
from holdfast.engine.frame import CANCELED, COMPLETED, Frame
from holdfast.errors import Invalid
from holdfast.instance import FORMAT, OpenFrame, State, SubStatus, Transient, Work


class StateUnreadable(Invalid):
    code = "state.unreadable"


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(State)

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""From a format to the next one, for each format that was ever released."""


def encode_state(state: State) -> bytes:
    """The state as JSON: readable in the database, the same bytes for the same state."""
    return _encoder.encode(state)


def decode_state(text: bytes) -> State:
    """A state in this or an older format. Raises StateUnreadable."""
    try:
        if text.startswith(_PRESENT):
            return _decoder.decode(text)
        peek = msgspec.json.decode(text, type=_Format)
        if peek.format > FORMAT:
            raise StateUnreadable(
                f"This state has format {peek.format}; this version of Holdfast reads up to {FORMAT}. "
                f"Read it with the version that wrote it, or a newer one."
            )
        if peek.format < FORMAT:
            document: dict[str, Any] = msgspec.json.decode(text)
            for version in range(peek.format, FORMAT):
                document = MIGRATIONS[version](document)
            return msgspec.convert(document, State)
        return _decoder.decode(text)
    except (msgspec.DecodeError, KeyError, RecursionError) as problem:
        raise StateUnreadable(f"This is no instance state: {problem}") from problem


class _Format(msgspec.Struct):
    format: int


_PRESENT = f'{{"format":{FORMAT},'.encode()


def freeze(burst: Burst, *, at_checkpoint: bool = False) -> State:
    """The burst as a value."""
    now = burst.clock.now()
    sub_status = SubStatus.EXECUTING if at_checkpoint and burst.ended is None else burst.sub_status
    is_over = sub_status in (SubStatus.FINISHED, SubStatus.CANCELLED)
    is_terminal = is_over or sub_status is SubStatus.FAULTED
    by_number = {} if is_over else dict(burst.frames)
    by_number[burst.root.number] = burst.root
    if at_checkpoint:
        # Work may be queued by an owner that has completed meanwhile; it still sees its owner's variables.
        for queued in burst.queue:
            owner = queued.parent
            while owner is not None and owner.number not in by_number:
                by_number[owner.number] = owner
                owner = owner.parent
    frames = [by_number[number] for number in sorted(by_number)]
    definition = burst.graph.definition
    transient: dict[str, Any] = {}
    open_frames = tuple(_freeze_frame(burst, frame, is_terminal, transient) for frame in frames)
    return State(
        format=FORMAT,
        id=burst.instance_id,
        tenant=burst.tenant,
        definition_id=definition.definition_id,
        version_id=definition.id,
        version=definition.version,
        sub_status=sub_status,
        created_at=burst.created_at or now,
        updated_at=now,
        finished_at=now if is_terminal else None,
        parent_id=burst.parent_id,
        correlation_id=burst.correlation_id,
        name=burst.name,
        executions=burst.executions,
        records=burst.sequence,
        input=_written(burst.input if is_terminal else burst.kept_input),
        output=_written(burst.output),
        properties=_written(burst.properties),
        frames=open_frames,
        bookmarks=() if is_over else tuple(burst.bookmarks.values()),
        incidents=tuple(burst.incidents),
        transient=_freeze_transient(burst, frames, transient) if at_checkpoint else None,
    )


def _freeze_frame(burst: Burst, frame: Frame, is_terminal: bool, transient: dict[str, Any]) -> OpenFrame:
    kept: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    if frame.memory:
        dynamic = frame.dynamic or {}
        declared = frame.node.variables
        for variable_id, value in frame.memory.items():
            is_kept = (
                (is_terminal and frame.parent is None)
                or variable_id in dynamic
                or (variable_id in declared and declared[variable_id].is_kept)
            )
            try:
                (kept if is_kept else dropped)[variable_id] = write_payload(value)
            except NotEncodable as problem:
                if is_kept:
                    burst.record("Variable not kept", frame, f"{variable_id}: {problem}")
    if dropped:
        transient[str(frame.number)] = dropped
    return OpenFrame(
        number=frame.number,
        node=frame.node.ref,
        parent=None if frame.parent is None else frame.parent.number,
        status=frame.status,
        done=frame.done,
        tag=write_payload(frame.tag),
        state=_written(frame.state or {}),
        inputs=_freeze_inputs(frame),
        variables=kept,
        dynamic=frame.dynamic or {},
        faults=frame.faults,
        attempt=frame.attempt,
        ids=frame.ids,
        backward=frame.backward,
    )


def _freeze_inputs(frame: Frame) -> dict[str, Any] | None:
    """Inputs that had to be evaluated; None when some cannot be kept, so that all are evaluated again."""
    if frame.inputs is None or frame.node.unkept_inputs:
        return None
    if not frame.node.dynamic and not frame.edited:
        return {}
    evaluated = [entry.attribute for entry in frame.node.dynamic]
    if frame.edited:
        evaluated += [name for name in frame.edited if name not in evaluated]
    try:
        return {name: write_payload(frame.inputs[name]) for name in evaluated if name in frame.inputs}
    except NotEncodable:
        return None


def _freeze_transient(burst: Burst, frames: list[Frame], variables: dict[str, Any]) -> Transient:
    return Transient(
        work=tuple(
            Work(
                node=frame.node.ref,
                owner=None if frame.parent is None else frame.parent.number,
                execution=frame.number or None,
                resumption=frame.resumption,
                done=frame.done,
                tag=write_payload(frame.tag),
                variables={
                    name: write_payload((frame.memory or {})[i]) for i, name in (frame.dynamic or {}).items()
                },
                backward=frame.backward,
            )
            for frame in burst.queue
            if frame.status is not CANCELED
        ),
        input=_written(burst.input),
        variables=variables,
        outputs=tuple(
            (frame.number, activity_id, name, write_payload(value))
            for frame in frames
            for (activity_id, name), value in (frame.results or {}).items()
        ),
        last_result=write_payload(burst.last_result),
        trigger=burst.trigger,
    )


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return write_payload(values) if values else {}


def thaw(state: State, graph: Graph, environment: Environment) -> Burst:
    """A burst that goes on where the state was frozen. Raises NodeNotFound for a foreign state."""
    burst = Burst(graph, environment, state.id)
    burst.tenant = state.tenant
    burst.created_at = state.created_at
    burst.parent_id = state.parent_id
    burst.correlation_id = state.correlation_id
    burst.name = state.name
    burst.executions = state.executions
    burst.sequence = state.records
    burst.kept_input = dict(read_payload(state.input))
    burst.input = dict(burst.kept_input)
    burst.output = dict(read_payload(state.output))
    burst.properties = dict(read_payload(state.properties))
    burst.incidents = list(state.incidents)
    burst.ended = state.sub_status if state.sub_status is SubStatus.FAULTED else None
    by_number: dict[int, Frame] = {}
    for kept in state.frames:
        frame = _thaw_frame(kept, graph, by_number)
        by_number[kept.number] = frame
        if frame.parent is not None and frame.status is not COMPLETED:
            frame.parent.children = frame.parent.children or {}
            frame.parent.children[frame.number] = frame
    burst.frames = {n: f for n, f in by_number.items() if f.status is not COMPLETED}
    burst.root = by_number[min(by_number)]
    for bookmark in state.bookmarks:
        burst.bookmarks[bookmark.id] = bookmark
        if bookmark.execution in by_number:
            by_number[bookmark.execution].bookmarks += 1
    if state.transient is not None:
        _thaw_transient(burst, state.transient, by_number)
    return burst


def _thaw_frame(kept: OpenFrame, graph: Graph, by_number: Mapping[int, Frame]) -> Frame:
    node = graph.node(kept.node)
    frame = Frame(node, None if kept.parent is None else by_number[kept.parent], kept.done)
    frame.tag = None if kept.tag is None else read_payload(kept.tag)
    frame.number = kept.number
    frame.status = kept.status
    frame.state = dict(read_payload(kept.state)) if kept.state else None
    frame.dynamic = dict(kept.dynamic) or None
    if node.declares_variables or kept.variables:
        frame.memory = {i: v.fresh() for i, v in node.variables.items() if i not in kept.variables}
        for variable_id, value in kept.variables.items():
            declared = node.variables.get(variable_id)
            frame.memory[variable_id] = _read(value, None if declared is None else declared.type)
    if kept.inputs is not None and not kept.inputs:
        frame.inputs = node.constants
    elif kept.inputs is not None:
        types = {i.attribute: i.type for i in node.type.descriptor.inputs}
        frame.inputs = node.constants.copy()
        for name, value in kept.inputs.items():
            frame.inputs[name] = _read(value, types.get(name))
    frame.faults = kept.faults
    frame.attempt = kept.attempt
    frame.ids = kept.ids
    frame.backward = kept.backward
    return frame


def _read(value: Any, kind: Type | None) -> Any:
    """A kept value, as what it was declared to be: a struct or a list of structs is only JSON in a state."""
    value = read_payload(value)
    return value if kind is None or kind.is_object else kind.convert(value)


def _thaw_transient(burst: Burst, transient: Transient, by_number: Mapping[int, Frame]) -> None:
    burst.input = dict(read_payload(transient.input))
    burst.last_result = read_payload(transient.last_result)
    burst.trigger = transient.trigger
    for number, values in transient.variables.items():
        frame = by_number.get(int(number))
        if frame is not None and frame.memory is not None:
            frame.memory.update(read_payload(values))
    for number, activity_id, name, value in transient.outputs:
        frame = by_number.get(number)
        if frame is not None:
            frame.results = frame.results or {}
            frame.results[activity_id, name] = read_payload(value)
    for work in transient.work:
        if work.execution is not None:
            frame = by_number[work.execution]
            frame.resumption = work.resumption
        else:
            owner = None if work.owner is None else by_number.get(work.owner)
            frame = Frame(burst.graph.node(work.node), owner, work.done, read_payload(work.tag))
            frame.backward = work.backward
            if work.variables:
                frame.memory = dict(read_payload(work.variables))
                frame.dynamic = {name: name for name in frame.memory}
            if owner is not None:
                owner.queued += 1
        burst.queue.append(frame)
