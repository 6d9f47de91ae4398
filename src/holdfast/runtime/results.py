"""Those who wait for an instance to end, or to wait itself: told by the commit, or by looking."""

import asyncio
from collections.abc import Callable

from holdfast.commit import Change, Commit
from holdfast.errors import NotFound, Unavailable
from holdfast.instance import SubStatus
from holdfast.store import Loaded, Turns

POLL = 1.0
"""Seconds after which is looked anyway."""
SOON = 0.02
"""Seconds in which the first commit of what was just started is expected, before anybody looks."""
_RESTS = frozenset(
    {
        SubStatus.SUSPENDED,
        SubStatus.INTERRUPTED,
        SubStatus.FINISHED,
        SubStatus.CANCELLED,
        SubStatus.FAULTED,
    }
)


class InstanceNotFound(NotFound):
    code = "instance.not_found"

    def __init__(self, instance_id: str) -> None:
        super().__init__(f"There is no instance {instance_id!r}. Was it deleted, or is it another tenant's?")


class _Waiter:
    """Somebody who waits, and what a commit of this node has told them."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.told: Loaded | None = None

    async def hear(self, patience: float) -> Loaded | None:
        """What was told; None when one has to look."""
        try:
            async with asyncio.timeout(patience):
                await self.news.wait()
        except TimeoutError:
            pass
        self.news.clear()
        told, self.told = self.told, None
        return told


class Results:
    """Waiting works from any node: by the commit here, by a wake-up from elsewhere, else by asking."""

    def __init__(self, store: Turns) -> None:
        self._store = store
        self._waiting: dict[tuple[str, str], set[_Waiter]] = {}

    def committed(self, commit: Commit) -> None:
        waiters = self._waiting.get((commit.tenant, commit.instance_id))
        if not waiters or commit.change is None:
            return
        told = None if commit.deletes else _as_loaded(commit, commit.change)
        for waiter in waiters:
            waiter.told = told
            waiter.news.set()

    def wake(self, tenant: str, instance_id: str) -> None:
        """Something happened to it, perhaps elsewhere, after what was told here."""
        for waiter in self._waiting.get((tenant, instance_id), ()):
            waiter.told = None
            waiter.news.set()

    def wake_all(self) -> None:
        for tenant, instance_id in self._waiting:
            self.wake(tenant, instance_id)

    async def ended(self, tenant: str, instance_id: str) -> Loaded:
        """Returns when it has ended. Raises InstanceNotFound, also when it is deleted meanwhile."""
        return await self._wait(tenant, instance_id, lambda loaded: loaded.columns.finished_at is not None)

    async def rested(self, tenant: str, instance_id: str) -> Loaded:
        """Returns when one that was just started has ended or waits for something."""
        return await self._wait(
            tenant, instance_id, lambda loaded: loaded.columns.sub_status in _RESTS, is_new=True
        )

    async def until(self, tenant: str, instance_id: str, is_it: Callable[[Loaded], bool]) -> Loaded:
        """Returns when it is so. Raises InstanceNotFound."""
        return await self._wait(tenant, instance_id, is_it)

    async def _wait(
        self, tenant: str, instance_id: str, is_it: Callable[[Loaded], bool], *, is_new: bool = False
    ) -> Loaded:
        waiter = _Waiter()
        key = (tenant, instance_id)
        self._waiting.setdefault(key, set()).add(waiter)
        try:
            loaded = await waiter.hear(SOON) if is_new else None
            while True:
                loaded = loaded or await self._load(key)
                if loaded is not None and is_it(loaded):
                    return loaded
                loaded = await waiter.hear(POLL)
        finally:
            left = self._waiting[key]
            left.discard(waiter)
            if not left:
                del self._waiting[key]

    async def _load(self, key: tuple[str, str]) -> Loaded | None:
        try:
            found = await self._store.load([key])
        except Unavailable:
            return None  # it is asked again
        if not found:
            raise InstanceNotFound(key[1])
        return found[0]


def _as_loaded(commit: Commit, change: Change) -> Loaded:
    """What whoever loads it now would find."""
    return Loaded(
        tenant=commit.tenant,
        instance_id=commit.instance_id,
        shard=change.shard,
        revision=change.expects + 1,
        turn=commit.turn,
        columns=change.columns,
        state=change.state,
    )
