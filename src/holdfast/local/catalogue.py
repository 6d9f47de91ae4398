"""Definitions and their versions, in memory: drafts, publishing, consumers, compiled graphs.

The rules of versions are Elsa's: an import updates the draft of a definition or makes one with the
next number; publishing makes it the one published version; a published version that is usable as an
activity and wants it re-points its consumers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from holdfast.activities.composites import workflow_activity_types
from holdfast.authoring import ActivityTypes
from holdfast.clock import Ids
from holdfast.definitions.compiler import WORKFLOW, compile_definition
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.evaluators import Expressions
from holdfast.definitions.graph import Graph, Node, NodeNotFound
from holdfast.definitions.reader import member
from holdfast.errors import NotFound


class DefinitionNotFound(NotFound):
    code = "definition.not_found"


class Catalogue:
    def __init__(self, activities: ActivityTypes, expressions: Expressions, ids: Ids) -> None:
        self._built_in = activities
        self._expressions = expressions
        self._ids = ids
        self._versions: dict[str, list[Definition]] = {}
        self._provided: list[Definition] = []
        self._types: ActivityTypes | None = None
        self._graphs: dict[str, Graph] = {}

    def provide(self, source: bytes | str | Mapping[str, Any]) -> Definition:
        """Take a definition as a provider brings it: ids, version and flags as they are written.

        Written by hand, a file says nothing of being published; then it is meant to be used.
        """
        definition = load_definition(source)
        if not definition.definition_id:
            definition = definition.with_members(definitionId=self._ids.new())
        if member(definition.source, "isPublished") is None and member(definition.source, "isLatest") is None:
            definition = definition.with_members(isPublished=True, isLatest=True)
        self._provided.append(definition)
        return self._keep(definition)

    def restore_provided(self) -> list[Definition]:
        """Take again those versions of providers that are not here any more."""
        return [self._keep(p) for p in self._provided if not self._has(p.definition_id, p.version)]

    def _has(self, definition_id: str, version: int) -> bool:
        return any(v.version == version for v in self._versions.get(definition_id, ()))

    def _keep(self, definition: Definition) -> Definition:
        versions = self._versions.setdefault(definition.definition_id, [])
        versions[:] = [v for v in versions if v.version != definition.version]
        versions.append(definition)
        self._changed()
        return definition

    def import_draft(self, source: bytes | str | Mapping[str, Any]) -> Definition:
        """Take an upload: update the draft, or make one with the next number."""
        definition = load_definition(source)
        definition_id = definition.definition_id or self._ids.new()
        versions = self._versions.setdefault(definition_id, [])
        draft = next((v for v in versions if v.is_latest and not v.is_published), None)
        if draft is not None:
            versions.remove(draft)
            number, version_id = draft.version, draft.id
        else:
            number = max((v.version for v in versions), default=0) + 1
            given = definition.source.get("id")
            version_id = given if not versions and isinstance(given, str) and given else self._ids.new()
        return self._put(
            definition.with_members(
                definitionId=definition_id, id=version_id, version=number, isLatest=True, isPublished=False
            )
        )

    def draft_of(self, definition_id: str) -> Definition:
        """The draft, made from the latest version where there is none."""
        latest = self.find(definition_id, "Latest")
        if not latest.is_published:
            return latest
        number = max(v.version for v in self._versions[definition_id]) + 1
        return self._put(
            latest.with_members(id=self._ids.new(), version=number, isLatest=True, isPublished=False)
        )

    def mark_published(self, definition: Definition) -> Definition:
        """Make it the published version; the others are not any more."""
        versions = self._versions[definition.definition_id]
        versions[:] = [v.with_members(isPublished=False) if v.is_published else v for v in versions]
        return self._put(definition.with_members(isPublished=True, isLatest=True))

    def retract(self, definition_id: str) -> None:
        published = self.find(definition_id, "Published")
        self._put(published.with_members(isPublished=False))

    def delete(self, definition_id: str) -> None:
        self._versions.pop(definition_id, None)
        self._changed()

    def _put(self, definition: Definition) -> Definition:
        if definition.is_latest:
            versions = self._versions[definition.definition_id]
            versions[:] = [v.with_members(isLatest=False) if v.is_latest else v for v in versions]
        return self._keep(definition)

    def find(self, definition_id: str, version: str | int = "Published") -> Definition:
        """One version: `Published`, `Latest`, `LatestOrPublished` or a number. Raises DefinitionNotFound."""
        versions = self._versions.get(definition_id, [])
        highest = sorted(versions, key=lambda v: v.version, reverse=True)
        found: Definition | None
        if isinstance(version, int):
            found = next((v for v in versions if v.version == version), None)
        elif version == "Published":
            found = next((v for v in highest if v.is_published), None)
        else:
            found = next((v for v in highest if v.is_latest), None) or next(iter(highest), None)
        if found is None:
            known = ", ".join(sorted(self._versions)) or "none"
            raise DefinitionNotFound(
                f"There is no {version} version of a definition {definition_id!r}. "
                f"Known definitions: {known}."
            )
        return found

    def find_version(self, version_id: str) -> Definition:
        found = next((v for v in self if v.id == version_id), None)
        if found is None:
            raise DefinitionNotFound(f"There is no version with the id {version_id!r}.")
        return found

    def __iter__(self) -> Iterator[Definition]:
        for versions in self._versions.values():
            yield from versions

    def __contains__(self, definition_id: str) -> bool:
        return definition_id in self._versions

    @property
    def types(self) -> ActivityTypes:
        """The host's activity types, workflows usable as activities among them."""
        if self._types is None:
            types = self._built_in.copy()
            for definition in self:
                if definition.options.usable_as_activity and (
                    definition.is_published or definition.is_latest
                ):
                    for kind in workflow_activity_types(definition):
                        types.replace(kind)
            self._types = types
        return self._types

    def graph(self, definition: Definition) -> Graph:
        """The version compiled, once."""
        graph = self._graphs.get(definition.id)
        if graph is None:
            graph = self._graphs[definition.id] = compile_definition(
                definition, self.types, self._expressions
            )
        return graph

    def subgraph(self, version_id: str, node_id: str) -> dict[str, Any]:
        """One activity's JSON with all that is inside, the workflows behind workflow-activities too."""
        graph = self.graph(self.find_version(version_id))
        node = graph.find(node_id)
        if node is None:
            raise NodeNotFound(node_id, graph.definition)
        nodes = {id(n.json): n for n in graph.nodes}

        def unfold(json: Any) -> Any:
            if isinstance(json, list):
                return [unfold(item) for item in cast("list[Any]", json)]
            if not isinstance(json, dict):
                return json
            found = nodes.get(id(cast("Any", json)))
            members = {name: unfold(value) for name, value in cast("dict[str, Any]", json).items()}
            return members if found is None else members | unfold_inside(found)

        def unfold_inside(found: Node) -> dict[str, Any]:
            """The root of a workflow, or of the workflow behind a workflow-activity."""
            workflow = found if found.type_name == WORKFLOW else found.fixed.get("workflow")
            return {} if workflow is None else {"root": unfold(workflow.fixed["root"].json)}

        return unfold(node.json)

    def _changed(self) -> None:
        self._types = None
        self._graphs.clear()

    def consumers(self, definition_id: str) -> list[str]:
        """Definitions that contain this one's workflow-activity, directly or through others."""
        self.find(definition_id, "Latest")
        uses = {
            consumer: set(self._used_by(self.find(consumer, "Latest"))) for consumer in list(self._versions)
        }
        found: list[str] = []
        waiting = [definition_id]
        while waiting:
            wanted = waiting.pop()
            for consumer, used in uses.items():
                if wanted in used and consumer not in found and consumer != definition_id:
                    found.append(consumer)
                    waiting.append(consumer)
        return found

    def _used_by(self, definition: Definition) -> Iterator[str]:
        for json in activities_in(definition.root):
            kind = self.types.find(str(json.get("type")))
            used = json.get("workflowDefinitionId")
            if isinstance(used, str) and used in self._versions:
                yield used
            elif kind is not None and kind.definition is not None:
                yield kind.definition.definition_id

    def update_consumers(self, published: Definition) -> list[Definition]:
        """Point every consumer's workflow-activity at a version that was just published."""
        changed: list[Definition] = []
        for consumer in [self.find(d, "Latest") for d in list(self._versions)]:
            if published.definition_id not in set(self._used_by(consumer)):
                continue
            root = _repointed(consumer.root, published, {k.name for k in workflow_activity_types(published)})
            target = self.draft_of(consumer.definition_id) if consumer.is_published else consumer
            draft = self._put(target.with_members(root=root))
            changed.append(self.mark_published(draft) if consumer.is_published else draft)
        return changed


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


def _repointed(json: Any, published: Definition, names: set[str]) -> Any:
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
