"""Definitions and their versions, in memory: drafts, publishing, consumers, compiled graphs.

The rules of versions are in `definitions.versions`; here they are kept, found and compiled. A published
version that is usable as an activity and wants it re-points its consumers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from holdfast.activities.composites import workflow_activity_types
from holdfast.authoring import ActivityTypes
from holdfast.clock import Ids
from holdfast.definitions import versions
from holdfast.definitions.compiler import WORKFLOW, compile_definition
from holdfast.definitions.consumers import pointed_at, used_by
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.evaluators import Expressions
from holdfast.definitions.graph import Graph, Node, NodeNotFound
from holdfast.definitions.versions import DefinitionNotFound


class Catalogue:
    def __init__(self, activities: ActivityTypes, expressions: Expressions, ids: Ids) -> None:
        self._built_in = activities
        self._expressions = expressions
        self._ids = ids
        self._versions: dict[str, versions.Versions] = {}
        self._provided: list[Definition] = []
        self._types: ActivityTypes | None = None
        self._graphs: dict[str, Graph] = {}

    def provide(self, source: bytes | str | Mapping[str, Any]) -> Definition:
        """Take a definition as a provider brings it: ids, version and flags as they are written."""
        definition = versions.provided(load_definition(source), self._ids)
        self._provided.append(definition)
        return self._put(definition)

    def restore_provided(self) -> list[Definition]:
        """Take again those versions of providers that are not here any more."""
        return [self._put(p) for p in self._provided if not self._has(p.definition_id, p.version)]

    def _has(self, definition_id: str, version: int) -> bool:
        return versions.find(self._of(definition_id), version) is not None

    def import_draft(self, source: bytes | str | Mapping[str, Any]) -> Definition:
        """Take an upload: update the draft, or make one with the next number."""
        uploaded = load_definition(source)
        return self._put(versions.draft_from(self._of(uploaded.definition_id), uploaded, self._ids))

    def draft_of(self, definition_id: str) -> Definition:
        """The draft, made from the latest version where there is none."""
        draft = versions.draft_of_latest(self._of(definition_id), self._ids)
        return self._put(draft) if draft is not None else self.find(definition_id, "Latest")

    def mark_published(self, definition: Definition) -> Definition:
        """Make it the published version; the others are not any more."""
        return self._put(versions.published(definition))

    def retract(self, definition_id: str) -> None:
        self._put(versions.retracted(self.find(definition_id, "Published")))

    def delete(self, definition_id: str) -> None:
        self._versions.pop(definition_id, None)
        self._changed()

    def _of(self, definition_id: str) -> versions.Versions:
        return self._versions.get(definition_id, ())

    def _put(self, definition: Definition) -> Definition:
        self._versions[definition.definition_id] = versions.put(
            self._of(definition.definition_id), definition
        )
        self._changed()
        return definition

    def find(self, definition_id: str, version: str | int = "Published") -> Definition:
        """One version: `Published`, `Latest`, `LatestOrPublished` or a number. Raises DefinitionNotFound."""
        found = versions.find(self._of(definition_id), version)
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
        for own in self._versions.values():
            yield from own

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
            consumer: used_by(self.find(consumer, "Latest"), self.types, self) for consumer in self._versions
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

    def update_consumers(self, published: Definition) -> list[Definition]:
        """Point every consumer's workflow-activity at a version that was just published."""
        changed: list[Definition] = []
        names = {kind.name for kind in workflow_activity_types(published)}
        for consumer in [self.find(d, "Latest") for d in list(self._versions)]:
            if published.definition_id not in used_by(consumer, self.types, self):
                continue
            target = self.draft_of(consumer.definition_id) if consumer.is_published else consumer
            draft = self._put(pointed_at(target, published, names))
            changed.append(self.mark_published(draft) if consumer.is_published else draft)
        return changed
