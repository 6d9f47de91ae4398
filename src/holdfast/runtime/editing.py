"""A change to one or several definitions, worked out in memory before it is written as one transaction."""

from datetime import datetime

from holdfast.definitions import versions
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.versions import DefinitionNotFound, Versions
from holdfast.runtime.entrances import Entrances, closed
from holdfast.store import Definitions, Edition, Publication, Schedule, StoredVersion, VersionHeader


class Edit:
    """What becomes of a tenant's definitions. Each is read when it is first asked for, and once."""

    def __init__(self, store: Definitions, tenant: str, now: datetime) -> None:
        self.tenant = tenant
        self._store = store
        self._now = now
        self._editions: dict[str, Edition] = {}
        self._read: dict[str, Versions] = {}
        self._versions: dict[str, Versions] = {}
        self._entrances: dict[str, Entrances] = {}

    async def versions(self, definition_id: str) -> Versions:
        """As they are after this edit, so far."""
        if definition_id not in self._editions:
            edition = await self._store.edition(self.tenant, definition_id)
            read = tuple(load_definition(stored.document) for stored in edition.versions)
            self._editions[definition_id] = edition
            self._read[definition_id] = self._versions[definition_id] = read
        return self._versions[definition_id]

    async def find(self, definition_id: str, version: str | int = "Latest") -> Definition:
        """Raises DefinitionNotFound."""
        found = versions.find(await self.versions(definition_id), version)
        if found is None:
            raise DefinitionNotFound(f"There is no {version} version of a definition {definition_id!r}.")
        return found

    def schedules(self, definition_id: str) -> tuple[Schedule, ...]:
        """Those a definition has now."""
        return self._editions[definition_id].schedules

    def put(self, definition: Definition) -> None:
        """Take in a version of a definition that was read."""
        own = self._versions[definition.definition_id]
        self._versions[definition.definition_id] = versions.put(own, definition)

    def keep(self, definition_id: str, left: Versions) -> None:
        """Only these versions are left of a definition that was read."""
        self._versions[definition_id] = left

    def open(self, definition_id: str, entrances: Entrances) -> None:
        """These are the triggers and schedules of a definition from now on."""
        self._entrances[definition_id] = entrances

    def close(self, definition_id: str) -> None:
        """Nothing starts the definition from now on."""
        self._entrances[definition_id] = closed(self.schedules(definition_id))

    def published(self) -> list[tuple[Definition | None, Definition | None]]:
        """Of each definition that was read, the version that was published and the one that is now."""
        return [
            (versions.find(self._read[name]), versions.find(self._versions[name]))
            for name in sorted(self._editions)
        ]

    def publications(self) -> list[Publication]:
        """All that has changed, one for each definition."""
        made = [self._publication(definition_id) for definition_id in sorted(self._editions)]
        return [p for p in made if p.versions or p.gone or p.triggers is not None]

    def _publication(self, definition_id: str) -> Publication:
        edition, left = self._editions[definition_id], self._versions[definition_id]
        before = {stored.header.version: stored for stored in edition.versions}
        untouched = {id(definition) for definition in self._read[definition_id]}
        stored = [self._stored(d, before.get(d.version)) for d in left if id(d) not in untouched]
        numbers = {definition.version for definition in left}
        entrances = self._entrances.get(definition_id)
        return Publication(
            tenant=self.tenant,
            definition_id=definition_id,
            mark=edition.mark,
            versions=tuple(new for new in stored if before.get(new.header.version) != new),
            gone=tuple(number for number in before if number not in numbers),
            triggers=None if entrances is None else entrances.triggers,
            schedules=None if entrances is None else entrances.schedules,
        )

    def _stored(self, definition: Definition, known: StoredVersion | None) -> StoredVersion:
        header = VersionHeader(
            tenant=self.tenant,
            definition_id=definition.definition_id,
            version=definition.version,
            version_id=definition.id,
            name=definition.name,
            is_latest=definition.is_latest,
            is_published=definition.is_published,
            is_usable=definition.options.usable_as_activity,
            content_hash=definition.content_hash,
            created_at=self._now if known is None else known.header.created_at,
        )
        return StoredVersion(header=header, document=definition.save())
