"""What operators change in an instance: repairs of single incidents, and whole lists of alterations.

A list is applied to a thawed burst that nobody else sees, so it is all or none: the first alteration that
is refused, and the burst is thrown away. What became of each is told to whoever asked, and is a line of
the journal. Finding a place for everything in another version is `engine.migration`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from holdfast.authoring import ScheduleChild
from holdfast.bookmark import Bookmark
from holdfast.definitions.graph import Graph
from holdfast.engine.burst import Burst
from holdfast.engine.context import Context
from holdfast.engine.environment import Environment
from holdfast.engine.faults import RETRY
from holdfast.engine.frame import FAULTED, RUNNING, Frame
from holdfast.engine.migration import migrate_state
from holdfast.engine.state import freeze, thaw
from holdfast.errors import HoldfastError, Invalid
from holdfast.instance import Record, State, Status, SubStatus
from holdfast.message import (
    Alter,
    Alteration,
    Cancel,
    CancelActivity,
    Migrate,
    Retry,
    RetryIncidents,
    ScheduleActivity,
    SetVariable,
    Skip,
    SkipIncidents,
)

ALTERED, REFUSED = "Altered", "Alteration failed"
"""Events of the journal."""


class Versions(Protocol):
    """Where a burst finds other versions of its definition; one of the services a host lends."""

    async def graph(self, tenant: str, definition_id: str, version: int) -> Graph:
        """Raises NotFound."""
        ...


class AlterationRefused(Invalid):
    code = "alteration.refused"


class Altered(msgspec.Struct, frozen=True):
    """What became of one alteration."""

    is_applied: bool
    text: str


class Attempted(msgspec.Struct, frozen=True):
    """How it went: a burst that has yet to go on, or None with why not, and the records of that."""

    burst: Burst | None
    told: tuple[Altered, ...]
    records: tuple[Record, ...] = ()


# --- lists ------------------------------------------------------------------------------------------


async def attempt(state: State, message: Alter, graph: Graph, environment: Environment) -> Attempted:
    """Apply all of them, or none."""
    texts: list[str] = []
    burst = thaw(state, graph, environment)
    if state.status is Status.FINISHED:
        burst.ended = state.sub_status  # else a cancelled one would seem to wait
    try:
        for alteration in message.alterations:
            if isinstance(alteration, Migrate):
                burst = await _migrated(burst, alteration)
                texts.append(f"Goes on as version {alteration.version}.")
            else:
                texts.append(_apply(burst, alteration))
    except Exception as error:  # whatever an author's container raises on hearing of it, nothing is changed
        return _refused(state, graph, environment, message, texts, error)
    for text in texts:
        burst.record(ALTERED, burst.root, text)
    return Attempted(burst, tuple(Altered(True, text) for text in texts))


def _refused(
    state: State,
    graph: Graph,
    environment: Environment,
    message: Alter,
    texts: Sequence[str],
    error: Exception,
) -> Attempted:
    words = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
    behind = len(message.alterations) - len(texts) - 1
    told = (
        *(Altered(False, "Not applied, because another one was refused.") for _ in texts),
        Altered(False, words),
        *(Altered(False, "Not tried, because another one was refused.") for _ in range(behind)),
    )
    number = len(texts) + 1
    at = f"{number} of {len(message.alterations)}: " if len(message.alterations) > 1 else ""
    record = Record(
        state.records + 1, REFUSED, 0, graph.root.index, 0, environment.clock.now(), f"{at}{words}"
    )
    return Attempted(None, told, (record,))


async def _migrated(burst: Burst, alteration: Migrate) -> Burst:
    versions: Versions | None = burst.environment.services.get(Versions)
    if versions is None:
        raise AlterationRefused("This host knows no other versions, so that nothing can be migrated.")
    present = burst.graph
    definition_id = present.definition.definition_id
    target = await versions.graph(burst.tenant, definition_id, alteration.version)
    state = freeze(burst, at_checkpoint=True)
    moved = thaw(migrate_state(state, present, target, alteration.activities), target, burst.environment)
    moved.ended = burst.ended
    moved.effects = burst.effects
    moved.records = [_moved(record, present, target, alteration) for record in burst.records]
    return moved


def _moved(record: Record, present: Graph, target: Graph, alteration: Migrate) -> Record:
    """A record of this very turn: all records of a turn name activities as one version does."""
    node = present.nodes[record.node]
    found = target.find(alteration.activities.get(node.id, node.id))
    return msgspec.structs.replace(record, node=0 if found is None else found.index)


def _apply(burst: Burst, alteration: Alteration) -> str:
    """Do it, and say what was done. Raises whatever speaks against it."""
    match alteration:
        case SetVariable():
            return _set_variable(burst, alteration)
        case ScheduleActivity():
            return _schedule(burst, alteration)
        case CancelActivity():
            number = cancel_activity(burst, alteration, repairs=True)
            if not number and alteration.activity_id is None:
                raise AlterationRefused(f"Execution {alteration.execution} is not open.")
            if not number:
                raise AlterationRefused(f"No execution of activity {alteration.activity_id!r} is open.")
            return f"{number} executions cancelled."
        case Retry():
            if not retry(burst, alteration):
                raise AlterationRefused(f"Execution {alteration.execution} has not faulted.")
            return f"Execution {alteration.execution} is executed again."
        case Skip():
            if not skip(burst, alteration):
                raise AlterationRefused(f"Execution {alteration.execution} has not faulted.")
            return f"Execution {alteration.execution} taken as completed."
        case RetryIncidents() | SkipIncidents():
            return _repair(burst, alteration)
        case Cancel():
            if burst.ended in (SubStatus.FINISHED, SubStatus.CANCELLED):
                raise AlterationRefused("The instance has ended already.")
            cancel_instance(burst, alteration)
            return "Cancelled."
        case _:
            raise AlterationRefused(f"{type(alteration).__name__} cannot be applied here.")


def _set_variable(burst: Burst, wanted: SetVariable) -> str:
    frames = _frames(burst) if wanted.execution is None else [_frame(burst, wanted.execution)]
    for frame in frames:
        names = {**frame.node.variable_ids, **{name: i for i, name in (frame.dynamic or {}).items()}}
        known = {*frame.node.variables, *(frame.dynamic or {})}
        found = wanted.variable if wanted.variable in known else names.get(wanted.variable)
        if found is not None:
            declared = frame.node.variables.get(found)
            frame.memory = frame.memory or {}
            frame.memory[found] = wanted.value if declared is None else declared.type.convert(wanted.value)
            fades = declared is not None and not declared.is_kept
            after = " It has no storage driver: at the next wait it is back at its default." if fades else ""
            return f"Variable {wanted.variable!r} set.{after}"
    raise AlterationRefused(
        f"Nothing that is open declares a variable {wanted.variable!r}. Give its id or its name."
    )


def _frames(burst: Burst) -> list[Frame]:
    """The outermost first."""
    return [burst.root, *(burst.frames[number] for number in sorted(burst.frames))]


def _frame(burst: Burst, execution: int) -> Frame:
    frame = burst.frames.get(execution)
    if frame is None:
        raise AlterationRefused(f"Execution {execution} is not open.")
    return frame


def _schedule(burst: Burst, wanted: ScheduleActivity) -> str:
    if burst.ended in (SubStatus.FINISHED, SubStatus.CANCELLED):
        raise AlterationRefused("The instance has ended; nothing more can be scheduled in it.")
    node = burst.graph.find(wanted.activity_id)
    if node is None:
        version = burst.graph.definition.version
        raise AlterationRefused(f"Version {version} has no activity {wanted.activity_id!r}.")
    containers = [
        frame
        for frame in burst.frames.values()
        if frame.node is node.parent and frame.status is RUNNING and wanted.execution in (None, frame.number)
    ]
    name = getattr(node.parent, "id", None)
    if not containers:
        raise AlterationRefused(f"The container {name!r} of activity {node.id!r} is not being executed.")
    if len(containers) > 1:
        numbers = ", ".join(str(frame.number) for frame in containers)
        raise AlterationRefused(f"{name!r} is being executed several times: say which of {numbers} is meant.")
    container = containers[0]
    signal = ScheduleChild(node)
    burst.activity(container).receive(Context(burst, container), signal)
    if not signal.stopped:
        raise AlterationRefused(
            f"A {container.node.type_name} decides by itself what it executes; {node.id!r} cannot be "
            f"scheduled in it. Schedule {name!r} instead."
        )
    return f"Activity {node.id!r} scheduled."


def _repair(burst: Burst, wanted: RetryIncidents | SkipIncidents) -> str:
    chosen = [i for i in burst.incidents if not wanted.activity_ids or i.activity_id in wanted.activity_ids]
    if not chosen:
        raise AlterationRefused("There is no such incident.")
    for number in sorted({incident.execution for incident in chosen}):
        if number not in burst.frames:  # it went with its container, a moment ago
            _forget_incidents(burst, number)
        elif isinstance(wanted, RetryIncidents):
            if not retry(burst, Retry(execution=number)):
                raise AlterationRefused(f"Execution {number} cannot be executed again; skip its incident.")
        elif not skip(burst, Skip(execution=number, outcomes=wanted.outcomes)):
            _forget_incidents(burst, number)  # about the instance, not about one execution: taken as seen
    verb = "executed again" if isinstance(wanted, RetryIncidents) else "skipped"
    return f"{len(chosen)} incidents: {verb}."


# --- single repairs ---------------------------------------------------------------------------------


def cancel_instance(burst: Burst, message: Cancel) -> None:
    burst.bookmarks.clear()
    burst.queue.clear()
    burst.ended = SubStatus.CANCELLED
    burst.record("Workflow cancelled", burst.root, message.reason)


def cancel_activity(burst: Burst, message: CancelActivity, *, repairs: bool = False) -> int:
    """Cancel open executions; how many. `repairs` takes back the incidents of those that had faulted."""
    found = [
        frame
        for frame in burst.frames.values()
        if message.activity_id in (None, frame.node.id)
        and message.execution in (None, frame.number)
        and (message.activity_id is not None or message.execution is not None)
    ]
    for frame in found:
        if repairs and frame.status is FAULTED:
            reopened(burst, frame.number)
        or_fault(burst, frame, lambda frame=frame: burst.cancel(frame))
    return len(found)


def skip(burst: Burst, message: Skip) -> bool:
    frame = reopened(burst, message.execution)
    if frame is None:
        return False
    frame.status = RUNNING
    or_fault(burst, frame, lambda: burst.complete(frame, message.outcomes or None))
    return True


def or_fault(burst: Burst, frame: Frame, act: Callable[[], None]) -> None:
    """Do what an operator asked; what a container raises on hearing of it faults that execution."""
    try:
        act()
    except Exception as error:  # an author's container may raise anything; it becomes a fault
        burst.fault(frame, error)


def retry(burst: Burst, message: Retry) -> bool:
    frame = reopened(burst, message.execution)
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


def reopened(burst: Burst, execution: int) -> Frame | None:
    """The faulted execution, its incident taken back and the instance open again."""
    frame = burst.frames.get(execution)
    if frame is None or frame.status is not FAULTED:
        return None
    counted: Frame | None = frame
    while counted is not None:
        counted.faults -= 1
        counted = counted.parent
    _forget_incidents(burst, execution)
    return frame


def _forget_incidents(burst: Burst, execution: int) -> None:
    burst.incidents = [i for i in burst.incidents if i.execution != execution]
    if not burst.incidents and burst.ended is SubStatus.FAULTED:
        burst.ended = None


# --- as others write them ---------------------------------------------------------------------------


def read_alterations(documents: Iterable[dict[str, Any]]) -> tuple[Alteration, ...]:
    """Alterations as Elsa's API has them. Raises Invalid."""
    return tuple(_read(document) for document in documents)


def _read(document: dict[str, Any]) -> Alteration:
    members = {name.lower(): value for name, value in document.items()}
    kind = str(members.get("type", "")).rpartition(".")[2]
    try:
        match kind:
            case "Migrate":
                given: dict[str, Any] = {
                    "version": members["targetversion"],
                    "activities": members.get("activities") or {},
                }
                return msgspec.convert(given, Migrate)
            case "ModifyVariable":
                return SetVariable(variable=str(members["variableid"]), value=members.get("value"))
            case "ScheduleActivity":
                return ScheduleActivity(activity_id=str(members["activityid"]))
            case "CancelActivity":
                if members.get("activityid") is None:
                    return CancelActivity(execution=_execution(members["activityinstanceid"]))
                return CancelActivity(activity_id=str(members["activityid"]))
            case "Cancel":
                return Cancel()
            case _:
                raise Invalid(f"There is no alteration {document.get('type')!r}.")
    except KeyError as missing:
        raise Invalid(f"The alteration {kind} needs a `{missing.args[0]}`.") from None
    except msgspec.ValidationError as problem:
        raise Invalid(f"The alteration {kind} cannot be read: {problem}") from problem


def _execution(execution_id: Any) -> int:
    """The number in `<instance>-<number>`."""
    number = str(execution_id).rpartition("-")[2]
    if not number.isdecimal():
        raise Invalid(f"{execution_id!r} is no id of an execution.")
    return int(number)
