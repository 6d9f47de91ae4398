"""How a run ended, for programs: one JSON document."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.cli.session import Session
from holdfast.codec import encode_bare
from holdfast.definitions.graph import Graph
from holdfast.errors import Invalid
from holdfast.instance import Record, State
from holdfast.local import HostedInstance
from holdfast.machines.state import KeptRun


def to_json(document: Any) -> str:
    """Indented, and readable for programs that know nothing of us."""
    return msgspec.json.format(encode_bare(document), indent=2).decode()


def report(session: Session, instance: HostedInstance) -> dict[str, Any]:
    """The instance, what it wrote, and the other instances that it caused."""
    others = [other for other in session.host.instances.values() if other is not instance]
    return {
        **_instance(instance),
        "lines": session.terminal.lines,
        "journal": _journal(instance),
        "otherInstances": [{**_instance(other), "journal": _journal(other)} for other in others],
    }


def _instance(instance: HostedInstance) -> dict[str, Any]:
    state = instance.state
    return {
        "id": state.id,
        "definitionId": state.definition_id,
        "version": state.version,
        "parentId": state.parent_id,
        "correlationId": state.correlation_id,
        "name": state.name,
        "status": state.status.value,
        "subStatus": state.sub_status.value,
        "output": encodable(instance.output),
        "variables": encodable(instance.variables),
        **waits_and_faults(state),
    }


def waits_and_faults(state: State | KeptRun) -> dict[str, Any]:
    return {
        "bookmarks": [
            {
                "id": b.id,
                "name": b.name,
                "activityId": b.activity_id,
                "execution": b.execution,
                "payload": b.payload,
                "due": b.due,
            }
            for b in state.bookmarks
        ],
        "incidents": [
            {
                "activityId": i.activity_id,
                "activityType": i.activity_type,
                "execution": i.execution,
                "message": i.message,
                "code": i.code,
                "at": i.at,
            }
            for i in state.incidents
        ],
    }


def _journal(instance: HostedInstance) -> list[dict[str, Any]]:
    return [_record(r, g) for r, g in zip(instance.records, instance.graphs, strict=True)]


def _record(record: Record, graph: Graph) -> dict[str, Any]:
    node = graph.nodes[record.node]
    names = {i.attribute: i.name for i in node.type.descriptor.inputs}
    told = {
        "sequence": record.sequence,
        "event": record.event,
        "activityId": node.id,
        "activityNodeId": node.path,
        "activityType": node.type_name,
        "execution": record.execution,
        "owner": record.owner or None,
        "at": record.at,
        "message": record.message,
        "inputs": encodable({names.get(k, k): v for k, v in (record.inputs or {}).items()}) or None,
        "outputs": encodable(record.outputs or {}) or None,
        "payload": encodable(record.payload or {}) or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def encodable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that JSON can carry; in the place of another stands how Python shows it."""
    return {name: _or_repr(value) for name, value in values.items()}


def _or_repr(value: Any) -> Any:
    try:
        encode_bare(value)
    except Invalid:
        return repr(value)
    return value
