"""Where the runtime finds what it drives: versions from the store, compiled once, and programs of code.

A compiled version is kept until newer ones crowd it out. When the catalogue changes, `forget` drops what
may have become untrue: which version is published, and which workflows are usable as activities. A graph
is taken up again when its document and the workflows it may contain are what they were.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import msgspec

from holdfast.authoring import ActivityType, ActivityTypes
from holdfast.definitions.compiler import NOT_FOUND, compile_definition
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.graph import Graph
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.errors import Conflict
from holdfast.plugin import Plugins
from holdfast.runtime.drawn import Drawn
from holdfast.runtime.program import Program
from holdfast.store import Definitions, StoredVersion

MOST = 1_000
"""Compiled versions a library keeps; also tenants whose workflow-activities it remembers."""

WorkflowTypes = Callable[[Definition], Iterable[ActivityType]]
"""From a definition usable as an activity to the activity types it is known by."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ProgramExists(Conflict):
    code = "program.exists"

    def __init__(self, program: Program) -> None:
        super().__init__(
            f"Version {program.version} of {program.definition_id!r} was added already, or the id of the "
            f"version, {program.version_id!r}, belongs to another. Give one of the two another version."
        )


class Recent(Generic[Key, Value]):
    """The entries that were used last, so many at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: Key, value: Value) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)


class Usable(msgspec.Struct, frozen=True, eq=False):
    """The workflows of one tenant that are usable as activities, among the activity types of the host."""

    edition: int
    definitions: dict[tuple[str, str], Definition]
    """By the id of the version and the hash of its content."""
    types: ActivityTypes


class Kept(msgspec.Struct, frozen=True, eq=False):
    """A compiled version, and what it was compiled from."""

    edition: int
    source: tuple[object, ...]
    uses: frozenset[tuple[str, str]] | None
    """The workflows usable as activities then; None when none of them can be in it."""
    drawn: Drawn


class Library:
    """Programs of all tenants. What it remembers is true for one edition of the catalogue."""

    def __init__(
        self, store: Definitions, plugins: Plugins, workflow_types: WorkflowTypes, *, most: int = MOST
    ) -> None:
        self._store = store
        self._plugins = plugins
        self._workflow_types = workflow_types
        self._added: dict[str, Program] = {}
        self._newest: dict[str, Program] = {}
        self._edition = 0
        self._kept: Recent[tuple[str, str], Kept] = Recent(most)
        self._usable: Recent[str, Usable] = Recent(most)
        self._published: Recent[tuple[str, str], tuple[int, str]] = Recent(most)
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    def add(self, program: Program) -> None:
        """A program that is not in the store, for every tenant. The highest version is the published one."""
        newest = self._newest.get(program.definition_id)
        if program.version_id in self._added or (newest and newest.version == program.version):
            raise ProgramExists(program)
        self._added[program.version_id] = program
        if newest is None or newest.version < program.version:
            self._newest[program.definition_id] = program

    def forget(self) -> None:
        """The catalogue has changed, here or on another node."""
        self._edition += 1

    async def find(self, tenant: str, version_id: str) -> Program:
        """Raises DefinitionNotFound."""
        found = self._added.get(version_id) or self._current(tenant, version_id)
        if found is not None:
            return found
        async with self._alone("version", tenant, version_id):
            current = self._current(tenant, version_id)
            if current is not None:
                return current
            edition = self._edition
            stored = await self._store.version(tenant, version_id)
            if stored is None:
                raise DefinitionNotFound(f"There is no version with the id {version_id!r}.")
            return await self._compiled(tenant, stored, edition)

    async def published(self, tenant: str, definition_id: str) -> Program:
        """The version that new instances run. Raises DefinitionNotFound."""
        added = self._newest.get(definition_id)
        if added is not None:
            return added
        known = self._known_as_published(tenant, definition_id)
        if known is not None:
            return await self.find(tenant, known)
        async with self._alone("published", tenant, definition_id):
            known = self._known_as_published(tenant, definition_id)
            if known is not None:
                return await self.find(tenant, known)
            edition = self._edition
            stored = await self._store.published(tenant, definition_id)
            if stored is None:
                raise DefinitionNotFound(
                    f"There is no published version of a definition {definition_id!r}. "
                    f"Publish one, or choose another definition."
                )
            self._published.put((tenant, definition_id), (edition, stored.header.version_id))
            return await self._compiled(tenant, stored, edition)

    async def types(self, tenant: str, *, also: Iterable[Definition] = ()) -> ActivityTypes:
        """The activity types of a tenant, workflows usable as activities among them, and these."""
        usable = await self._usable_by(tenant)
        return self._with_workflows(usable.types, also)

    def compile(self, definition: Definition, types: ActivityTypes) -> Graph:
        """The graph of a version that is not kept, such as one that is about to be published."""
        return compile_definition(definition, types, self._plugins.expressions)

    def type_names(self, definition: Definition) -> set[str]:
        """The names by which others use the definition as an activity."""
        return {kind.name for kind in self._workflow_types(definition)}

    def _alone(self, *key: str) -> asyncio.Lock:
        """One at a time for each key. Whoever waits keeps the lock alive; nobody else does."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def _known_as_published(self, tenant: str, definition_id: str) -> str | None:
        edition, version_id = self._published.get((tenant, definition_id)) or (None, None)
        return version_id if edition == self._edition else None

    def _current(self, tenant: str, version_id: str) -> Drawn | None:
        kept = self._kept.get((tenant, version_id))
        return kept.drawn if kept is not None and kept.edition == self._edition else None

    async def _compiled(self, tenant: str, stored: StoredVersion, edition: int) -> Drawn:
        """The version as it was in that edition, from an earlier graph where that is still true."""
        header = stored.header
        source = (header.version, header.content_hash, self._plugins.activities.revision)
        usable = await self._usable_by(tenant)
        uses = frozenset(usable.definitions)
        kept = self._kept.get((tenant, header.version_id))
        if kept is not None and kept.source == source and kept.uses in (None, uses):
            kept = msgspec.structs.replace(kept, edition=edition)
        else:
            graph = self.compile(load_definition(stored.document), usable.types)
            kept = Kept(edition, source, None if _stands_alone(graph) else uses, Drawn(graph))
        self._kept.put((tenant, header.version_id), kept)
        return kept.drawn

    async def _usable_by(self, tenant: str) -> Usable:
        async with self._alone("usable", tenant):
            known = self._usable.get(tenant)
            if known is not None and known.edition == self._edition:
                return known
            edition = self._edition
            loaded = {} if known is None else known.definitions
            definitions: dict[tuple[str, str], Definition] = {}
            for stored in await self._store.usable(tenant):
                key = (stored.header.version_id, stored.header.content_hash)
                definitions[key] = loaded.get(key) or load_definition(stored.document)
            types = self._with_workflows(self._plugins.activities, definitions.values())
            usable = Usable(edition, definitions, types)
            self._usable.put(tenant, usable)
            return usable

    def _with_workflows(self, types: ActivityTypes, definitions: Iterable[Definition]) -> ActivityTypes:
        """The same types and those of the definitions. What the host has itself, no workflow replaces."""
        own = set(self._plugins.activities.names())
        kinds = [kind for d in definitions for kind in self._workflow_types(d) if kind.name not in own]
        if not kinds:
            return types
        types = types.copy()
        for kind in kinds:
            types.add(kind)
        return types


def _stands_alone(graph: Graph) -> bool:
    """Whether it is the same whatever workflows are usable as activities."""
    return all(node.type.definition is None and node.type_name != NOT_FOUND for node in graph.nodes)
