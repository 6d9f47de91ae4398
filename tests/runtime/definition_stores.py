"""A store with nothing in it, of each kind that needs no server, and what works on one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.activities.composites import workflow_activity_types
from holdfast.assembly import load_plugins
from holdfast.runtime.library import Library
from holdfast.runtime.publishing import Publishing
from holdfast.store import Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.store import SqlStore
from holdfast.stores.sql.tables import metadata, seed
from holdfast.testing.clock import ManualClock, NumberedIds

PLUGINS = load_plugins(installed=False)


class Counted:
    """A store that counts what is asked of it, and can be told to do something before an answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[str] = []
        self.before: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*given: Any, **named: Any) -> Any:
            self.calls.append(name)
            act = self.before.pop(name, None)
            if act is not None:
                await act()
            return await method(*given, **named)

        return call


class Desk:
    """Everything about definitions, on one store."""

    def __init__(self, store: Store, name: str = "i") -> None:
        self.clock = ManualClock()
        self.store = store
        self.counted: Any = Counted(store)
        self.library = Library(self.counted, PLUGINS, workflow_activity_types)
        self.publishing = Publishing(
            self.counted, self.library, PLUGINS, self.clock, NumberedIds(name), lambda *_: 5
        )

    async def publish(self, source: Any, tenant: str = "acme") -> Any:
        """Import and publish."""
        draft = await self.publishing.import_draft(tenant, source)
        return await self.publishing.publish(tenant, draft.definition_id)


@pytest.fixture(params=["memory", "sqlite"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    if request.param == "memory":
        yield Desk(MemoryStore(ManualClock()))
        return
    database = create(f"sqlite:///{tmp_path / 'holdfast.db'}")
    await database.write(metadata.create_all)
    await database.write(seed)
    yield Desk(SqlStore(database))
    await database.close()
