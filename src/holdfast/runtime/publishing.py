"""Bringing definitions into the store: drafts, publishing, retracting, deleting, and what folders bring.

Each change is worked out from definitions as they are (an `Edit`) and written as one transaction, triggers
and schedules with it. When somebody else was faster, or a schedule fired meanwhile, it is worked out again.
The rules of versions are in `definitions.versions`, those of schedules in `schedules`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from holdfast.authoring import ActivityTypes
from holdfast.clock import Clock, Ids
from holdfast.codec import encode
from holdfast.definitions import versions
from holdfast.definitions.consumers import pointed_at, used_by
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.reader import member
from holdfast.definitions.validate import validate
from holdfast.definitions.versions import NotPublished, Versions
from holdfast.engine import Environment
from holdfast.errors import Conflict, Invalid
from holdfast.instance import Status
from holdfast.plugin import Plugins
from holdfast.runtime.editing import Edit
from holdfast.runtime.entrances import Entrances, find_entrances
from holdfast.runtime.library import Library
from holdfast.runtime.lifecycle import LifecycleEvent, event_of_definition
from holdfast.runtime.listeners import Listeners
from holdfast.store import (
    Definitions,
    EditionChanged,
    InstanceFilter,
    Publication,
    Records,
    VersionHeader,
)

TRIES = 5
"""How often a change is worked out again because a definition changed meanwhile."""

_PAGE = 1_000

Source = bytes | str | Mapping[str, Any]
T = TypeVar("T")


class DefinitionInUse(Conflict):
    code = "definition.in_use"

    def __init__(self, definition_id: str, version: int | None, instances: int) -> None:
        which = "" if version is None else f"Version {version} of "
        super().__init__(
            f"{which}{definition_id!r} has {instances} open instances, which cannot go on without it. Let "
            f"them end, cancel them, or ask for them to be given up."
        )


class PublishingStore(Definitions, Records, Protocol):
    """What publishing asks of a store."""


class Publishing:
    """Changes definitions of all tenants. Whatever it returns is durable."""

    def __init__(
        self,
        store: PublishingStore,
        library: Library,
        plugins: Plugins,
        clock: Clock,
        ids: Ids,
        shards: Callable[[str, str, str], int],
        listeners: Listeners | None = None,
    ) -> None:
        self._store = store
        self._library = library
        self._expressions = plugins.expressions
        self._clock = clock
        self._ids = ids
        self._shards = shards
        self._listeners = listeners or Listeners()
        self._environment = Environment(
            clock=clock,
            services=plugins.services,
            functions=plugins.functions,
            expressions=plugins.expressions.languages,
        )

    async def import_draft(self, tenant: str, source: Source) -> Definition:
        """Take an upload as the draft of its definition, unless it says what the latest version says."""
        uploaded = load_definition(source)
        if not uploaded.definition_id:
            uploaded = uploaded.with_members(definitionId=self._ids.new())
        return await self._save(tenant, uploaded)

    async def save_draft(self, tenant: str, definition_id: str, source: Source) -> Definition:
        """The same for a definition that exists, whatever the document calls it."""
        saved = load_definition(source).with_members(definitionId=definition_id)
        return await self._save(tenant, saved, must_exist=True)

    async def _save(self, tenant: str, saved: Definition, *, must_exist: bool = False) -> Definition:
        async def change(edit: Edit) -> Definition:
            own = await edit.versions(saved.definition_id)
            if must_exist or own:
                latest = await edit.find(saved.definition_id)
                if latest.content_hash == saved.content_hash:
                    return latest
            draft = versions.draft_from(own, saved, self._ids)
            if not own and await self._store.version(tenant, draft.id) is not None:
                draft = draft.with_members(id=self._ids.new())  # a copy of another definition
            edit.put(draft)
            return draft

        return await self._write(tenant, change)

    async def draft(self, tenant: str, definition_id: str) -> Definition:
        """The draft, made from the latest version where there is none."""

        async def change(edit: Edit) -> Definition:
            latest = await edit.find(definition_id)
            draft = versions.draft_of_latest(await edit.versions(definition_id), self._ids) or latest
            edit.put(draft)
            return draft

        return await self._write(tenant, change)

    async def revert(self, tenant: str, definition_id: str, version: int) -> Definition:
        """An older version as the draft, in the place of the one there is."""

        async def change(edit: Edit) -> Definition:
            older = await edit.find(definition_id, version)
            draft = versions.reverted(await edit.versions(definition_id), version, self._ids) or older
            edit.put(draft)
            return draft

        return await self._write(tenant, change)

    async def publish(self, tenant: str, definition_id: str, *, ignore_problems: bool = False) -> Definition:
        """Publish the draft; where there is none, nothing changes. Raises NotPublished.

        Its consumers follow, where it wants them to. Triggers that cannot be used are left out when
        problems are ignored.
        """

        async def change(edit: Edit) -> Definition:
            latest = await edit.find(definition_id)
            if latest.is_published:
                return latest
            definition = versions.published(latest)
            types = await self._library.types(tenant)
            edit.put(definition)
            edit.open(definition_id, self._checked(edit, definition, types, ignore_problems))
            if definition.options.usable_as_activity and definition.options.auto_update_consumers:
                await self._update_consumers(edit, definition, types)
            return definition

        return await self._write(tenant, change)

    async def refresh(self, tenant: str, definition_id: str) -> Definition:
        """Evaluate the triggers of the published version again. Raises NotPublished."""

        async def change(edit: Edit) -> Definition:
            definition = await edit.find(definition_id, "Published")
            types = await self._library.types(tenant)
            edit.open(definition_id, self._checked(edit, definition, types, ignore_problems=False))
            return definition

        return await self._write(tenant, change)

    async def retract(self, tenant: str, definition_id: str) -> Definition:
        """No new instances of it any more. Those that there are go on."""

        async def change(edit: Edit) -> Definition:
            left = versions.retracted(await edit.find(definition_id, "Published"))
            edit.put(left)
            edit.close(definition_id)
            return left

        return await self._write(tenant, change)

    async def delete(
        self, tenant: str, definition_id: str, version: int | None = None, *, cascade: bool = False
    ) -> None:
        """Forget a definition, or one version of it. Raises DefinitionInUse while instances need it.

        With `cascade` whoever asks has told those instances to end, or gives them up.
        """

        async def change(edit: Edit) -> None:
            gone = await edit.find(definition_id, "Latest" if version is None else version)
            own = await edit.versions(definition_id)
            if not cascade:
                await self._refuse_while_used(gone, None if version is None else gone.id, tenant)
            left = () if version is None else versions.without(own, version)
            edit.keep(definition_id, left)
            if not left:
                edit.open(definition_id, Entrances())
            elif gone.is_published:
                edit.close(definition_id)

        await self._write(tenant, change)

    async def _refuse_while_used(self, gone: Definition, version_id: str | None, tenant: str) -> None:
        wanted = InstanceFilter(
            tenant=tenant,
            definition_ids=(gone.definition_id,),
            version_ids=() if version_id is None else (version_id,),
            status=Status.RUNNING,
        )
        found = await self._store.instances(wanted, limit=1)
        if found.total:
            raise DefinitionInUse(
                gone.definition_id, None if version_id is None else gone.version, found.total
            )

    async def provide(self, tenant: str, *sources: Source) -> list[Definition]:
        """Take what a folder or package brings, in any order. What is there already stays as it is.

        A document that has a number is that version. One without is the next one, when it says something
        new. Raises NotPublished, and then none of them was taken.
        """

        async def change(edit: Edit) -> list[Definition]:
            taken: list[Definition] = []
            new: list[Definition] = []
            for source in sources:
                definition = versions.provided(load_definition(source), self._ids)
                own = await edit.versions(definition.definition_id)
                same = _same(own, definition)
                if same is None:
                    definition = _numbered(own, definition)
                    edit.put(definition)
                    new.append(definition)
                taken.append(same or definition)
            usable = [definition for definition in new if definition.options.usable_as_activity]
            types = await self._library.types(tenant, also=usable)
            for definition in new:
                published = versions.find(await edit.versions(definition.definition_id))
                if published is definition:
                    edit.open(definition.definition_id, self._checked(edit, definition, types, False))
                elif published is None:
                    edit.close(definition.definition_id)
            return taken

        return await self._write(tenant, change)

    async def _write(self, tenant: str, change: Callable[[Edit], Awaitable[T]]) -> T:
        tries = 1
        while True:
            # What other nodes published a moment ago counts, even if this one has not heard of it.
            self._library.forget()
            edit = Edit(self._store, tenant, self._clock.now())
            result = await change(edit)
            events = self._events(edit)
            publications = [self._announced(one, events) for one in edit.publications()]
            if not publications:
                return result
            try:
                await self._store.publish(publications)
            except EditionChanged:
                if tries == TRIES:
                    raise
                tries += 1
            else:
                self._library.forget()
                self._listeners.tell(events)
                return result

    def _events(self, edit: Edit) -> list[LifecycleEvent]:
        """What those who listen shall hear."""
        if not self._listeners.wanted:
            return []
        now = self._clock.now()
        told = (event_of_definition(edit.tenant, *change, now) for change in edit.published())
        return [event for event in told if event is not None and event.type in self._listeners.wanted]

    def _announced(self, publication: Publication, events: list[LifecycleEvent]) -> Publication:
        """With what streams shall hear of it."""
        name = publication.definition_id
        outbox = self._listeners.outgoing([event for event in events if event.definition_id == name])
        shard = self._shards(publication.tenant, name, name)
        return msgspec.structs.replace(publication, shard=shard, outbox=outbox) if outbox else publication

    def _checked(
        self, edit: Edit, definition: Definition, types: ActivityTypes, ignore_problems: bool
    ) -> Entrances:
        """The entrances of a version that is about to be published. Raises NotPublished."""
        problems = [p for p in validate(definition, types, self._expressions) if p.blocks_publishing]
        if problems and not ignore_problems:
            raise NotPublished(problems)
        found = self._entrances(edit, definition, types)
        if found.problems and not ignore_problems:
            raise NotPublished(list(found.problems))
        return found

    def _entrances(self, edit: Edit, definition: Definition, types: ActivityTypes) -> Entrances:
        tenant, definition_id = edit.tenant, definition.definition_id
        return find_entrances(
            self._library.compile(definition, types),
            self._environment,
            tenant=tenant,
            shard_of=lambda activity_id: self._shards(tenant, definition_id, activity_id),
            before=edit.schedules(definition_id),
        )

    async def _update_consumers(self, edit: Edit, published: Definition, types: ActivityTypes) -> None:
        """Point the workflow-activities of all consumers at a version that is being published.

        A published consumer gets a new published version, a draft is changed in place. One that could not
        be published any more stays as it is: it must not keep others from being published.
        """
        names = self._library.type_names(published)
        marks = [encode(text)[1:-1] for text in (published.definition_id, *names)]
        latest = await self._latest(edit.tenant)
        for definition_id, header in latest.items():
            stored = await self._store.version(edit.tenant, header.version_id)
            if definition_id == published.definition_id or stored is None:
                continue
            if not any(mark in stored.document for mark in marks):
                continue
            consumer = load_definition(stored.document)
            if published.definition_id in used_by(consumer, types, latest):
                await self._update_consumer(edit, definition_id, published, names, types)

    async def _update_consumer(
        self,
        edit: Edit,
        definition_id: str,
        published: Definition,
        names: Iterable[str],
        types: ActivityTypes,
    ) -> None:
        latest = await edit.find(definition_id)
        draft = versions.draft_of_latest(await edit.versions(definition_id), self._ids) or latest
        draft = pointed_at(draft, published, set(names))
        if draft.content_hash == latest.content_hash:
            return
        if latest.is_published:
            draft = versions.published(draft)
            try:
                edit.open(definition_id, self._checked(edit, draft, types, ignore_problems=False))
            except Invalid:
                return
        edit.put(draft)

    async def _latest(self, tenant: str) -> dict[str, VersionHeader]:
        """The latest version of each definition, by its id."""
        found: dict[str, VersionHeader] = {}
        after = ""
        while page := await self._store.headers(tenant, after=after, limit=_PAGE):
            found |= {header.definition_id: header for header in page if header.is_latest}
            after = page[-1].definition_id
        return found


def _same(own: Versions, definition: Definition) -> Definition | None:
    """The version there is already that says what a document brings; None when it brings something new."""
    if member(definition.source, "version") is None:
        candidates = [versions.find(own), versions.find(own, "Latest")]
    else:
        candidates = [versions.find(own, definition.version)]
    found = [c for c in candidates if c is not None and c.content_hash == definition.content_hash]
    return next(iter(found), None)


def _numbered(own: Versions, definition: Definition) -> Definition:
    """A document as the version it is, or as the next one when it does not say which."""
    if member(definition.source, "version") is None:
        number = max((v.version for v in own), default=0) + 1
        members: dict[str, Any] = {"version": number}
        if own or member(definition.source, "id") is None:
            members["id"] = f"{definition.definition_id}-{number}"
        return definition.with_members(**members)
    newer = any(v.version > definition.version and v.is_latest for v in own)
    return definition.with_members(isLatest=False) if newer and definition.is_latest else definition
