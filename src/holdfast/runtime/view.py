"""An instance as people and programs ask about it: what it is, where it waits, what it gave."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.bookmark import Bookmark
from holdfast.codec import read_payload
from holdfast.instance import Incident, Status, SubStatus
from holdfast.runtime.exported import export
from holdfast.runtime.program import Program, Snapshot
from holdfast.store import Loaded


class Instance:
    """As it was last committed, at the moment it was asked for."""

    def __init__(self, loaded: Loaded, program: Program) -> None:
        self._loaded = loaded
        self._program = program
        self._state: Snapshot | None = None if loaded.state is None else program.decode(loaded.state)

    @property
    def id(self) -> str:
        return self._loaded.instance_id

    @property
    def tenant(self) -> str:
        return self._loaded.tenant

    @property
    def definition_id(self) -> str:
        return self._loaded.columns.definition_id

    @property
    def version(self) -> int:
        return self._loaded.columns.version

    @property
    def status(self) -> Status:
        return self._loaded.columns.sub_status.status

    @property
    def sub_status(self) -> SubStatus:
        return self._loaded.columns.sub_status

    @property
    def correlation_id(self) -> str | None:
        return self._loaded.columns.correlation_id

    @property
    def name(self) -> str | None:
        return self._loaded.columns.name

    @property
    def parent_id(self) -> str | None:
        return self._loaded.columns.parent_id

    @property
    def is_paused(self) -> bool:
        return self._loaded.columns.is_paused

    @property
    def created_at(self) -> datetime:
        return self._loaded.columns.created_at

    @property
    def finished_at(self) -> datetime | None:
        return self._loaded.columns.finished_at

    @property
    def revision(self) -> int:
        return self._loaded.revision

    @property
    def state(self) -> Any:
        """What its program keeps between bursts; None while it has not begun."""
        return self._state

    @property
    def output(self) -> dict[str, Any]:
        return {} if self._state is None else dict(read_payload(self._state.output))

    @property
    def variables(self) -> dict[str, Any]:
        """The workflow's variables by name, as they were kept."""
        return {} if self._state is None else self._program.variables(self._state)

    @property
    def bookmarks(self) -> Sequence[Bookmark]:
        return () if self._state is None else self._state.bookmarks

    @property
    def incidents(self) -> Sequence[Incident]:
        return () if self._state is None else self._state.incidents

    def export(self) -> bytes:
        """As a JSON document that `holdfast.operations.restore` takes in. Without its journal."""
        loaded = self._loaded
        return export(
            tenant=loaded.tenant,
            instance_id=loaded.instance_id,
            revision=loaded.revision,
            columns=loaded.columns,
            state=loaded.state,
        )

    def __repr__(self) -> str:
        return f"<Instance {self.id} of {self.definition_id}: {self.sub_status.value}>"
