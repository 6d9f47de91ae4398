"""Which workflows a definition uses as activities, and pointing it at a newer version of one."""

from collections.abc import Collection, Container, Iterator
from typing import Any, cast

from holdfast.authoring import ActivityTypes
from holdfast.definitions.document import Definition


def activities_in(json: Any) -> Iterator[dict[str, Any]]:
    """Every object in an activity's JSON that is an activity itself."""
    if isinstance(json, dict):
        members = cast("dict[str, Any]", json)
        if isinstance(members.get("type"), str) and "id" in members:
            yield members
        for value in members.values():
            yield from activities_in(value)
    elif isinstance(json, list):
        for item in cast("list[Any]", json):
            yield from activities_in(item)


def used_by(definition: Definition, types: ActivityTypes, known: Container[str]) -> set[str]:
    """The ids of the definitions, of those that are known, whose workflow-activities this one contains."""
    used: set[str] = set()
    for json in activities_in(definition.root):
        kind = types.find(str(json.get("type")))
        named = json.get("workflowDefinitionId")
        if isinstance(named, str) and named in known:
            used.add(named)
        elif kind is not None and kind.definition is not None:
            used.add(kind.definition.definition_id)
    return used


def pointed_at(consumer: Definition, published: Definition, names: Collection[str]) -> Definition:
    """The consumer with its workflow-activities of those type names at that version."""
    return consumer.with_members(root=_repointed(consumer.root, published, names))


def _repointed(json: Any, published: Definition, names: Collection[str]) -> Any:
    if isinstance(json, list):
        return [_repointed(item, published, names) for item in cast("list[Any]", json)]
    if not isinstance(json, dict):
        return json
    members = {k: _repointed(v, published, names) for k, v in cast("dict[str, Any]", json).items()}
    uses = members.get("workflowDefinitionId") == published.definition_id
    if uses or (members.get("type") in names and "workflowDefinitionVersionId" in members):
        members["version"] = published.version
        members["workflowDefinitionVersionId"] = published.id
    return members
