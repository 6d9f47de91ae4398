"""Definitions of a durable test host: as they are stored, and changed by the runtime's own publishing.

Changing one is asynchronous, since it is a transaction. Looking at them is not: after each change they
are read back from the store.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.authoring import ActivityTypes
from holdfast.clock import Ids
from holdfast.definitions.document import Definition
from holdfast.definitions.graph import Graph
from holdfast.local.catalogue import Catalogue
from holdfast.plugin import Plugins
from holdfast.runtime.publishing import Publishing
from holdfast.store import Definitions

Source = bytes | str | Mapping[str, Any]

_PAGE = 1000


class StoredDefinitions:
    """The definitions of one tenant."""

    def __init__(
        self, store: Definitions, publishing: Publishing, plugins: Plugins, ids: Ids, tenant: str
    ) -> None:
        self._store = store
        self._publishing = publishing
        self._plugins = plugins
        self._ids = ids
        self._tenant = tenant
        self._provided: list[Source] = []
        self._view = self._empty()

    def _empty(self) -> Catalogue:
        return Catalogue(self._plugins.activities, self._plugins.expressions, self._ids)

    async def read(self) -> None:
        """See what is stored now."""
        view = self._empty()
        after = ""
        while page := await self._store.headers(self._tenant, after=after, limit=_PAGE):
            for header in page:
                stored = await self._store.version(self._tenant, header.version_id)
                if stored is not None:
                    view.provide(stored.document)
            after = page[-1].definition_id
        self._view = view

    # --- changing ---------------------------------------------------------------------------------

    async def provide(self, *sources: Source) -> list[Definition]:
        """Take definitions as a provider brings them, in any order. Raises NotPublished."""
        self._provided += sources
        taken = await self._publishing.provide(self._tenant, *sources)
        await self.read()
        return taken

    async def restore_provided(self) -> None:
        """Take again what providers brought and is not here any more."""
        if self._provided:
            await self._publishing.provide(self._tenant, *self._provided)
            await self.read()

    async def import_draft(self, source: Source) -> Definition:
        """Take an upload: update the draft, or make one with the next number."""
        imported = await self._publishing.import_draft(self._tenant, source)
        await self.read()
        return imported

    async def draft_of(self, definition_id: str) -> Definition:
        """The draft, made from the latest version where there is none."""
        draft = await self._publishing.draft(self._tenant, definition_id)
        await self.read()
        return draft

    async def publish(self, definition_id: str, *, ignore_problems: bool = False) -> Definition:
        """Publish the draft, or a new version of what is published. Raises NotPublished."""
        await self._publishing.draft(self._tenant, definition_id)
        try:
            return await self._publishing.publish(
                self._tenant, definition_id, ignore_problems=ignore_problems
            )
        finally:
            await self.read()

    async def retract(self, definition_id: str) -> None:
        await self._publishing.retract(self._tenant, definition_id)
        await self.read()

    async def delete(self, definition_id: str) -> None:
        await self._publishing.delete(self._tenant, definition_id, cascade=True)
        await self.read()

    async def refresh(self, *definition_ids: str) -> None:
        """Evaluate the triggers of published definitions again: of these, or of all."""
        published = {d.definition_id for d in self if d.is_published}
        for definition_id in sorted(published.intersection(definition_ids) if definition_ids else published):
            await self._publishing.refresh(self._tenant, definition_id)

    # --- looking ----------------------------------------------------------------------------------

    def find(self, definition_id: str, version: str | int = "Published") -> Definition:
        """One version: `Published`, `Latest`, `LatestOrPublished` or a number. Raises DefinitionNotFound."""
        return self._view.find(definition_id, version)

    def find_version(self, version_id: str) -> Definition:
        """Raises DefinitionNotFound."""
        return self._view.find_version(version_id)

    def graph(self, definition: Definition) -> Graph:
        return self._view.graph(definition)

    def subgraph(self, version_id: str, node_id: str) -> dict[str, Any]:
        """One activity's JSON with all that is inside."""
        return self._view.subgraph(version_id, node_id)

    def consumers(self, definition_id: str) -> list[str]:
        """Definitions that contain this one's workflow-activity, directly or through others."""
        return self._view.consumers(definition_id)

    @property
    def types(self) -> ActivityTypes:
        """The host's activity types, workflows usable as activities among them."""
        return self._view.types

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._view)

    def __contains__(self, definition_id: str) -> bool:
        return definition_id in self._view
