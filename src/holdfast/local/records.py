"""What became of each execution: the journal of an instance, folded into one record per execution.

The journal has a line for everything that happened to an execution; its record says where it stands
now, in the words of a definition: inputs and outputs by the names an author reads.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from holdfast.definitions.graph import Graph, Node
from holdfast.instance import ActivityStatus, Record, State


class ActivityRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of an activity, as far as it has come."""

    execution: int
    owner: int | None
    """The execution that scheduled it; None for the workflow itself."""
    activity_id: str
    activity_name: str | None
    activity_type: str
    status: ActivityStatus
    inputs: Mapping[str, Any]
    """Evaluated inputs by their PascalCase names; those the journal leaves out are absent."""
    outputs: Mapping[str, Any]
    outcomes: tuple[str, ...]
    """The outcomes it named when it completed; empty when it named none, which leads along `Done`."""
    faults: int
    """Its own unhandled faults and those of everything inside it."""
    started_at: datetime
    ended_at: datetime | None
    """When it completed or was cancelled; a faulted execution is still open, for somebody to retry."""
    message: str | None
    """What the journal said when it came to this status, such as the message of a fault."""


_STATUSES = {
    "Started": ActivityStatus.RUNNING,
    "Resumed": ActivityStatus.RUNNING,
    "Suspended": ActivityStatus.RUNNING,
    "Completed": ActivityStatus.COMPLETED,
    "Canceled": ActivityStatus.CANCELED,
    "Faulted": ActivityStatus.FAULTED,
    "Precondition Failed": ActivityStatus.PENDING,
}
_ENDED = frozenset({ActivityStatus.COMPLETED, ActivityStatus.CANCELED})


def fold_records(journal: Iterable[tuple[Record, Graph]], state: State) -> list[ActivityRecord]:
    """One record per execution, in the order in which they began."""
    lines: dict[int, list[tuple[Record, Node]]] = {}
    for record, graph in journal:
        lines.setdefault(record.execution, []).append((record, graph.nodes[record.node]))
    owners = {number: found[0][0].owner or None for number, found in lines.items()}
    faults = _count_faults(owners, state)
    return [_fold(lines[number], owners[number], faults.get(number, 0)) for number in sorted(lines)]


def _fold(lines: list[tuple[Record, Node]], owner: int | None, faults: int) -> ActivityRecord:
    first, node = lines[0]
    last = next((r for r, _ in reversed(lines) if r.event in _STATUSES), first)  # the others are remarks
    status = _STATUSES.get(last.event, ActivityStatus.RUNNING)
    inputs = next((r.inputs for r, _ in reversed(lines) if r.inputs is not None), None) or {}
    outputs = next((r.outputs for r, _ in reversed(lines) if r.outputs is not None), None) or {}
    names = {i.attribute: i.name for i in node.type.descriptor.inputs}
    return ActivityRecord(
        execution=first.execution,
        owner=owner,
        activity_id=node.id,
        activity_name=node.name,
        activity_type=node.type_name,
        status=status,
        inputs={names.get(attribute, attribute): value for attribute, value in inputs.items()},
        outputs=outputs,
        outcomes=tuple((last.payload or {}).get("Outcomes", ())),
        faults=faults,
        started_at=first.at,
        ended_at=last.at if status in _ENDED else None,
        message=last.message,
    )


def _count_faults(owners: Mapping[int, int | None], state: State) -> dict[int, int]:
    """Open executions know their count; for those that ended, each incident inside them is one."""
    counts: dict[int, int] = {}
    for incident in state.incidents:
        number: int | None = incident.execution
        while number is not None:
            counts[number] = counts.get(number, 0) + 1
            number = owners.get(number)
    return counts | {frame.number: frame.faults for frame in state.frames}
