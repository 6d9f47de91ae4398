"""Definitions and their versions."""

from collections.abc import Sequence

from holdfast.errors import Conflict
from holdfast.store import Edition, EditionChanged, Publication, StoredVersion, VersionHeader
from holdfast.stores.marks import mark_of
from holdfast.stores.memory.tables import Subject


class MemoryDefinitions(Subject):
    async def edition(self, tenant: str, definition_id: str) -> Edition:
        return self._edition(tenant, definition_id)

    def _edition(self, tenant: str, definition_id: str) -> Edition:
        owner = (tenant, definition_id)
        versions = [*self._tables.versions.by("definition", owner).values()]
        schedules = [*self._tables.schedules.by("definition", owner).values()]
        return Edition(
            versions=tuple(sorted(versions, key=lambda stored: stored.header.version)),
            schedules=tuple(sorted(schedules, key=lambda schedule: schedule.activity_id)),
            mark=mark_of([stored.header for stored in versions], schedules),
        )

    async def publish(self, publications: Sequence[Publication]) -> None:
        named: set[tuple[str, str]] = set()
        for publication in publications:
            owner = (publication.tenant, publication.definition_id)
            if owner in named or self._edition(*owner).mark != publication.mark:
                raise EditionChanged(publication.definition_id)
            self._check_ids(publication)
            named.add(owner)
        for publication in publications:
            self._write_versions(publication)
            self._write_entrances(publication)
            for outgoing in publication.outbox:
                self._tables.put_out(publication.shard, publication.tenant, None, outgoing)
        self._tables.counters["catalogue"] += len(publications) > 0

    def _check_ids(self, publication: Publication) -> None:
        tenant, definition_id = publication.tenant, publication.definition_id
        for stored in publication.versions:
            wanted = stored.header.version
            for _, owner, number in self._tables.versions.by("id", (tenant, stored.header.version_id)):
                if owner != definition_id or (number != wanted and number not in publication.gone):
                    raise Conflict(f"The version id {stored.header.version_id!r} is taken. Choose another.")

    def _write_versions(self, publication: Publication) -> None:
        tenant, definition_id = publication.tenant, publication.definition_id
        for number in publication.gone:
            self._tables.versions.pop((tenant, definition_id, number), None)
        for stored in publication.versions:
            self._tables.versions[tenant, definition_id, stored.header.version] = stored

    def _write_entrances(self, publication: Publication) -> None:
        """Triggers and schedules, those that are given."""
        tables, tenant = self._tables, publication.tenant
        owner = (tenant, publication.definition_id)
        if publication.triggers is not None:
            for key in list(tables.triggers.by("definition", owner)):
                del tables.triggers[key]
            for trigger in publication.triggers:
                tables.triggers[tenant, trigger.key, trigger.version_id, trigger.activity_id] = trigger
        if publication.schedules is not None:
            for key in list(tables.schedules.by("definition", owner)):
                del tables.schedules[key]
            for schedule in publication.schedules:
                tables.schedules[*owner, schedule.activity_id] = schedule

    async def version(self, tenant: str, version_id: str) -> StoredVersion | None:
        return next(iter(self._tables.versions.by("id", (tenant, version_id)).values()), None)

    async def published(self, tenant: str, definition_id: str) -> StoredVersion | None:
        versions = self._tables.versions.by("definition", (tenant, definition_id)).values()
        return max(
            (stored for stored in versions if stored.header.is_published),
            key=lambda stored: stored.header.version,
            default=None,
        )

    async def usable(self, tenant: str) -> list[StoredVersion]:
        stored = self._tables.versions.by("tenant", tenant)
        return [
            stored[key]
            for key in sorted(stored)
            if stored[key].header.is_usable
            and (stored[key].header.is_published or stored[key].header.is_latest)
        ]

    async def headers(
        self, tenant: str, *, published: bool | None = None, after: str = "", limit: int = 1000
    ) -> list[VersionHeader]:
        found = [
            stored.header
            for (_, definition_id, _), stored in sorted(
                self._tables.versions.by("tenant", tenant).items(), key=lambda entry: entry[0]
            )
            if definition_id > after and published in (None, stored.header.is_published)
        ]
        page = list(dict.fromkeys(header.definition_id for header in found))[:limit]
        return [header for header in found if page and header.definition_id <= page[-1]]
