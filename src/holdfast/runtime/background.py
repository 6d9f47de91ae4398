"""Does the work that left its turn: claimed by a write, because it is long; accepted by its number.

Whoever claims an attempt gives it a new number, and only that number may bring the outcome. So a node
that was taken for dead and comes back is refused, and the activity sees the same idempotency key.
"""

import asyncio
from collections.abc import Callable

import msgspec

from holdfast.commit import Commit
from holdfast.errors import NotFound, Unavailable
from holdfast.message import DoInBackground
from holdfast.runtime.backoff import Backoff, surely
from holdfast.runtime.courier import Courier
from holdfast.runtime.letters import sealed
from holdfast.runtime.spans import attempt_span
from holdfast.runtime.world import World
from holdfast.store import Attempt

POLL = 5.0
"""Seconds after which work is looked for that nobody does."""


class Background:
    def __init__(
        self,
        world: World,
        courier: Courier,
        *,
        shards: Callable[[], list[int]],
        node_id: Callable[[], str],
        slots: int,
    ) -> None:
        self._world = world
        self._courier = courier
        self._shards = shards
        self._node_id = node_id
        self._slots = asyncio.Semaphore(slots)
        self._most = slots
        self._under_way: set[tuple[str, str, int]] = set()
        self._news = asyncio.Event()

    @property
    def busy(self) -> int:
        """Attempts under way."""
        return len(self._under_way)

    def committed(self, commit: Commit) -> None:
        if commit.tasks or any(birth.tasks for birth in commit.births):
            self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        backoff = Backoff()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._news.clear()
                try:
                    for attempt in await self._world.store.idle_attempts(self._shards(), self._most):
                        name = (attempt.tenant, attempt.instance_id, attempt.execution)
                        if name not in self._under_way:
                            self._under_way.add(name)
                            tasks.create_task(self._do(attempt, name))
                    backoff.reset()
                except Unavailable:
                    await backoff.wait()
                    continue
                try:
                    async with asyncio.timeout(POLL):
                        await self._news.wait()
                except TimeoutError:
                    pass

    async def _do(self, attempt: Attempt, name: tuple[str, str, int]) -> None:
        store, node_id = self._world.store, self._node_id()
        try:
            async with self._slots:
                # Nobody else takes up what this node has claimed while it lives: it asks until it knows.
                claimed = await surely(lambda: store.claim(node_id, attempt))
                if claimed is None:
                    return
                found = await surely(lambda: store.load([(attempt.tenant, attempt.instance_id)]))
                if not found or found[0].state is None:
                    return
                loaded = found[0]
                program = await surely(
                    lambda: self._world.programs.find(loaded.tenant, loaded.columns.version_id)
                )
                task = msgspec.json.decode(claimed.payload, type=DoInBackground)
                state = program.decode(found[0].state)
                with attempt_span(loaded, state, task.activity_id, claimed.number):
                    message = await program.attempt(state, task, self._world.environment)
                    envelope = sealed(
                        message, tenant=claimed.tenant, instance_id=claimed.instance_id, shard=claimed.shard
                    )
                # When it was done and we did not hear so, the outcome is found where it lies.
                place = await surely(lambda: store.conclude(claimed, envelope))
                if place is not None:
                    self._courier.deliver([envelope], [place])
        except NotFound:
            return  # cancelled between the claim and the look: the row is gone as well
        finally:
            self._under_way.discard(name)
