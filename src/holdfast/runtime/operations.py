"""What operators do, in one place: `holdfast.operations`.

    await holdfast.operations.bulk.cancel(InstanceFilter(tenant="", definition_ids=("order",)))
    report = await holdfast.operations.alter("order-17", Migrate(version=2))

Everything that changes an instance is a message like any other. What it consists of has modules beside
this one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.clock import Clock, Ids
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.engine.adoption import adopt_state
from holdfast.engine.migration import Migration
from holdfast.errors import Invalid
from holdfast.instance import Status
from holdfast.message import Alteration, Start
from holdfast.runtime.altering import (
    AlterationReport,
    Altering,
    MigrationReport,
    StoredVersions,
    graph_of,
)
from holdfast.runtime.bulk import Bulk
from holdfast.runtime.courier import Courier
from holdfast.runtime.dead_letters import DeadLetters
from holdfast.runtime.exported import NOTHING, Exported, export, read_export
from holdfast.runtime.program import Program
from holdfast.runtime.reception import Reception, StartRefused
from holdfast.runtime.results import InstanceNotFound
from holdfast.runtime.retention import Retention
from holdfast.runtime.standstill import Standstill
from holdfast.runtime.world import World
from holdfast.store import Admission, InstanceExists, InstanceFilter, Refused


class Operations:
    """Unless told otherwise, about instances of the host's own tenant."""

    def __init__(
        self,
        world: World,
        reception: Reception,
        courier: Courier,
        *,
        clock: Clock,
        ids: Ids,
        tenant: str,
        retention: Retention,
        monotonic: Callable[[], float],
    ) -> None:
        self._world = world
        self._reception = reception
        self._tenant = tenant
        self._altering = Altering(world, reception, StoredVersions(world.store, world.programs), ids)
        self.bulk = Bulk(world, courier)
        self.letters = DeadLetters(world.store, courier, clock, tenant)
        self.pauses = Standstill(world.store, courier, clock, tenant, monotonic)
        self.retention = retention

    # --- alterations ------------------------------------------------------------------------------

    async def alter(
        self,
        instance_id: str,
        *alterations: Alteration,
        key: str | None = None,
        timeout: float | None = 30.0,  # noqa: ASYNC109  it is what people look for
        tenant: str | None = None,
    ) -> AlterationReport:
        """Change an instance in these ways, in this order, all or none, then let it go on.

        Returns when that is committed, also while the instance is paused. Raises InstanceNotFound,
        TimeoutError when it was not handled in time; it will be all the same.
        """
        owner = self._owner(tenant)
        return await self._altering.alter(owner, instance_id, alterations, key=key, timeout=timeout)

    async def plan_migration(
        self,
        instance_id: str,
        version: int,
        activities: Mapping[str, str] | None = None,
        *,
        tenant: str | None = None,
    ) -> Migration:
        """A dry run: what is open and has no place in that version, and which variables would go."""
        return await self._altering.plan(self._owner(tenant), instance_id, version, activities)

    async def plan_migrations(
        self, wanted: InstanceFilter, version: int, activities: Mapping[str, str] | None = None
    ) -> MigrationReport:
        """A dry run over all that match."""
        return await self._altering.plan_all(wanted, version, activities)

    # --- export and import ------------------------------------------------------------------------

    async def export(self, instance_id: str, *, tenant: str | None = None) -> bytes:
        """An instance with its journal, as a JSON document. Raises InstanceNotFound."""
        owner = self._owner(tenant)
        found = await self._world.store.load([(owner, instance_id)])
        if not found:
            raise InstanceNotFound(instance_id)
        loaded = found[0]
        journal = await self._world.store.journal_of(owner, instance_id, limit=1_000_000)
        return export(
            tenant=owner,
            instance_id=instance_id,
            revision=loaded.revision,
            columns=loaded.columns,
            state=loaded.state,
            journal=tuple(journal),
        )

    async def restore(
        self,
        document: bytes | str | Mapping[str, Any],
        *,
        instance_id: str | None = None,
        tenant: str | None = None,
    ) -> str:
        """Take in an exported instance: it goes on where it was, with its bookmarks and timers.

        Under its old id unless another is given. Its definition must be here, in the version it was
        exported from. Its journal and its children are not taken in. Raises ExportUnreadable,
        StateUnreadable, StateForeign, InstanceExists, StartRefused.
        """
        exported = read_export(document)
        owner = self._owner(tenant)
        program = await self._program(owner, exported)
        text = bytes(exported.state)
        if text == bytes(NOTHING):
            raise Invalid(f"Instance {exported.id!r} had not begun when it was exported. Start it anew.")
        columns = exported.columns
        name = instance_id or exported.id
        adopt_state(text, graph_of(program), name, owner)
        start = Start(
            state=text.decode(),
            correlation_id=columns.correlation_id,
            name=columns.name,
            parent_id=columns.parent_id,
        )
        admission = self._reception.start_of(program, start, tenant=owner, instance_id=name)
        verdict = await self._reception.admit(_as_it_was(admission, exported))
        if isinstance(verdict, InstanceExists):
            raise verdict
        if isinstance(verdict, Refused):
            raise StartRefused(program.definition_id, verdict.instance_id)
        return name

    async def _program(self, tenant: str, exported: Exported) -> Program:
        columns = exported.columns
        try:
            return await self._world.programs.find(tenant, columns.version_id)
        except DefinitionNotFound:
            pass  # published here under another id, perhaps
        for stored in (await self._world.store.edition(tenant, columns.definition_id)).versions:
            if stored.header.version == columns.version:
                return await self._world.programs.find(tenant, stored.header.version_id)
        raise DefinitionNotFound(
            f"Instance {exported.id!r} needs version {columns.version} of definition "
            f"{columns.definition_id!r}, which is not here. Import and publish it first."
        )

    def _owner(self, tenant: str | None) -> str:
        return self._tenant if tenant is None else tenant


def _as_it_was(admission: Admission, exported: Exported) -> Admission:
    """As old as it is, and paused if it was: then it is taken in when it shall go on."""
    assert admission.birth is not None
    is_over = exported.columns.sub_status.status is Status.FINISHED
    columns = msgspec.structs.replace(
        admission.birth.columns,
        created_at=exported.columns.created_at,
        is_paused=exported.columns.is_paused and not is_over,
    )
    return msgspec.structs.replace(
        admission,
        birth=msgspec.structs.replace(admission.birth, columns=columns),
        activations=() if is_over else admission.activations,
    )
