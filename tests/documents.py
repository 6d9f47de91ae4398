"""Small definitions for tests, written as short as JSON allows."""

from typing import Any


def literal(value: Any, type_name: str = "Object") -> dict[str, Any]:
    return {"typeName": type_name, "expression": {"type": "Literal", "value": value}}


def script(source: str, language: str = "JavaScript", type_name: str = "Object") -> dict[str, Any]:
    return {"typeName": type_name, "expression": {"type": language, "value": source}}


def captured(target: str) -> dict[str, Any]:
    return {"typeName": "Object", "memoryReference": {"id": target}}


def write(text: str, activity_id: str | None = None) -> dict[str, Any]:
    return {"id": activity_id or text, "type": "Elsa.WriteLine", "text": literal(text)}


def event(name: str, **members: Any) -> dict[str, Any]:
    return {"id": name, "type": "Elsa.Event", "eventName": literal(name), **members}


def fault(message: str = "broken", code: str | None = None) -> dict[str, Any]:
    return {"id": "fault", "type": "Elsa.Fault", "message": literal(message), "code": literal(code)}


def sequence(*activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"id": "sequence", "type": "Elsa.Sequence", "activities": list(activities), **members}


def flowchart(
    *activities: dict[str, Any], connections: list[str] | None = None, **members: Any
) -> dict[str, Any]:
    """Connections are written `a>b`, or `a:Outcome>b`."""
    ends = [connection.partition(">") for connection in connections or []]
    return {
        "id": "flowchart",
        "type": "Elsa.Flowchart",
        "activities": list(activities),
        "connections": [
            {
                "source": {"activity": source.partition(":")[0], "port": source.partition(":")[2] or "Done"},
                "target": {"activity": target, "port": "In"},
            }
            for source, _, target in ends
        ],
        **members,
    }


def variable(name: str, type_name: str = "Object", value: Any = None, *, kept: bool = True) -> dict[str, Any]:
    driver = "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core" if kept else None
    return {
        "id": name.lower(),
        "name": name,
        "typeName": type_name,
        "value": value,
        "storageDriverTypeName": driver,
    }


def document(root: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {
        "id": "test-1",
        "definitionId": "test",
        "name": "Test",
        "version": 1,
        "toolVersion": "3.6.0.0",
        "isLatest": True,
        "isPublished": True,
        "root": root,
        **members,
    }
