"""Changing what an instance does: asked for by a message, answered when its turn has settled."""

import asyncio
from collections.abc import Mapping

import msgspec

from holdfast.clock import Ids
from holdfast.codec import decode_payload
from holdfast.commit import Lane
from holdfast.definitions.graph import Graph
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.engine.alterations import Altered
from holdfast.engine.migration import Migration, plan_migration
from holdfast.errors import Invalid
from holdfast.message import Alter, Alteration
from holdfast.runtime.bulk import pages_of
from holdfast.runtime.drawn import Drawn
from holdfast.runtime.library import Recent
from holdfast.runtime.program import Programs
from holdfast.runtime.reception import Reception
from holdfast.runtime.results import InstanceNotFound
from holdfast.runtime.world import World
from holdfast.store import Definitions, InstanceFilter, Loaded

SOONEST, LATEST = 0.005, 0.5
"""Seconds between two looks for the answer."""
SHOWN = 20
"""Instances of which a bulk dry run tells what is wrong."""


class StoredVersions:
    """The port `Versions` of the engine: other versions of a definition, as the store has them."""

    def __init__(self, store: Definitions, programs: Programs) -> None:
        self._store = store
        self._programs = programs
        self._ids: Recent[tuple[str, str, int], str] = Recent(1_000)

    async def graph(self, tenant: str, definition_id: str, version: int) -> Graph:
        """Raises DefinitionNotFound."""
        version_id = self._ids.get((tenant, definition_id, version))
        if version_id is None:
            for stored in (await self._store.edition(tenant, definition_id)).versions:
                self._ids.put((tenant, definition_id, stored.header.version), stored.header.version_id)
                if stored.header.version == version:
                    version_id = stored.header.version_id
        if version_id is None:
            raise DefinitionNotFound(f"There is no version {version} of a definition {definition_id!r}.")
        return graph_of(await self._programs.find(tenant, version_id))


def graph_of(program: object) -> Graph:
    if not isinstance(program, Drawn):
        raise Invalid("It is made of code, not of activities: it has no versions to choose from.")
    return program.graph


class AlterationReport(msgspec.Struct, frozen=True):
    """What became of each alteration. They are applied all, or none is."""

    succeeded: bool
    alterations: tuple[Altered, ...] = ()
    """In their order. Empty when the node died after it had applied them: the journal has the texts."""


class MigrationReport(msgspec.Struct, frozen=True):
    """What migrating many would come to."""

    possible: int = 0
    impossible: int = 0
    problems: Mapping[str, Migration] = {}
    """Of the first that cannot be migrated, by instance id."""


class Altering:
    def __init__(self, world: World, reception: Reception, versions: StoredVersions, ids: Ids) -> None:
        self._world = world
        self._reception = reception
        self._versions = versions
        self._ids = ids

    async def alter(
        self,
        tenant: str,
        instance_id: str,
        alterations: tuple[Alteration, ...],
        *,
        key: str | None,
        timeout: float | None,  # noqa: ASYNC109  it is what people look for
    ) -> AlterationReport:
        """Raises InstanceNotFound, KeyReused, TimeoutError."""
        if not alterations:
            raise Invalid("Say what shall be altered: at least one alteration.")
        key = key or f"alter-{self._ids.new()}"
        message = Alter(alterations=alterations)
        await self._reception.tell(
            message, tenant=tenant, instance_id=instance_id, key=key, lane=Lane.CONTROL
        )
        async with asyncio.timeout(timeout):
            return _report(await self._answer(tenant, key))

    async def _answer(self, tenant: str, key: str) -> bytes:
        pause = SOONEST
        while True:
            answer = await self._world.store.answer(tenant, key)
            if answer is not None:
                return answer
            await asyncio.sleep(pause)
            pause = min(pause * 2, LATEST)

    async def plan(
        self, tenant: str, instance_id: str, version: int, activities: Mapping[str, str] | None
    ) -> Migration:
        """What migrating an instance would come to. Raises InstanceNotFound, DefinitionNotFound."""
        found = await self._world.store.load([(tenant, instance_id)])
        if not found:
            raise InstanceNotFound(instance_id)
        return await self._plan(found[0], version, activities)

    async def _plan(self, loaded: Loaded, version: int, activities: Mapping[str, str] | None) -> Migration:
        if loaded.state is None:
            return Migration(problems=("It has not begun.",))
        program = await self._world.programs.find(loaded.tenant, loaded.columns.version_id)
        present = graph_of(program)
        target = await self._versions.graph(loaded.tenant, loaded.columns.definition_id, version)
        assert isinstance(program, Drawn)
        return plan_migration(program.decode(loaded.state), present, target, activities)

    async def plan_all(
        self, wanted: InstanceFilter, version: int, activities: Mapping[str, str] | None
    ) -> MigrationReport:
        possible = impossible = 0
        problems: dict[str, Migration] = {}
        async for page in pages_of(self._world.store, wanted, self._world.environment.clock.now()):
            for loaded in await self._world.store.load([(one.tenant, one.instance_id) for one in page]):
                plan = await self._plan(loaded, version, activities)
                if plan.is_possible:
                    possible += 1
                    continue
                impossible += 1
                if len(problems) < SHOWN:
                    problems[loaded.instance_id] = plan
        return MigrationReport(possible, impossible, problems)


def _report(answer: bytes) -> AlterationReport:
    body = decode_payload(answer)
    if "alterations" not in body:
        return AlterationReport(True)  # the node died later, in the burst that followed
    told = tuple(Altered(bool(one["succeeded"]), str(one["text"])) for one in body["alterations"])
    return AlterationReport(all(one.is_applied for one in told), told)
