"""The second looks: after a commit that lets somebody wait, is there something for them already?

Whoever makes a match possible looks for it after its commit, never before. Looks are gathered while one
is under way. What is owed when a node dies, the sweep does; one that is told to stop does it first.
"""

import asyncio

from holdfast.commit import Commit
from holdfast.errors import Unavailable
from holdfast.runtime.backoff import Backoff
from holdfast.runtime.matching import Matching
from holdfast.runtime.program import Snapshot
from holdfast.store import Loaded


class SecondLooks:
    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._wanted: dict[str, set[str]] = {}
        self._news = asyncio.Event()
        self._is_looking = False

    @property
    def are_owed(self) -> bool:
        return self._is_looking or bool(self._wanted)

    def owe(self, tenant: str, keys: set[str]) -> None:
        """Somebody waits under these keys from now on."""
        if keys:
            self._wanted.setdefault(tenant, set()).update(keys)
            self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        backoff = Backoff()
        while True:
            self._is_looking = False
            if not self._wanted:
                self._news.clear()
                await self._news.wait()
            self._is_looking = True
            wanted, self._wanted = self._wanted, {}
            for tenant, keys in wanted.items():
                try:
                    await self._matching.look_for(tenant, sorted(keys))
                    backoff.reset()
                except Unavailable:
                    self.owe(tenant, keys)
                    await backoff.wait()


def awaited_by(commit: Commit) -> set[str]:
    """The keys under which somebody waits from this commit on."""
    inside = {wait.key for birth in commit.births for wait in birth.waits}
    return inside | {wait.key for wait in commit.waits}


def moved_by(loaded: Loaded | None, after: Snapshot | None) -> set[str]:
    """The keys under which an instance waits whose correlation id is another one now."""
    if loaded is None or after is None or after.correlation_id == loaded.columns.correlation_id:
        return set()
    return {bookmark.key for bookmark in after.bookmarks}
