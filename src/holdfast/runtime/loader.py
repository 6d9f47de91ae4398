"""Loads instances, all that are asked for meanwhile in one query, and remembers the ones worked on.

A remembered instance is valid because only the owner of a shard commits to its instances: it goes with
the lease, with a stale turn and with any doubt about a commit.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from holdfast.commit import Birth
from holdfast.errors import Unavailable
from holdfast.runtime.program import Snapshot
from holdfast.store import Loaded, Turns

Key = tuple[str, str]

BYTES = 64 * 1024 * 1024
"""State that is remembered."""
QUERIES = 2
"""Under way at a time."""
MOST = 300
"""Instances in one query."""


class Loader:
    def __init__(self, store: Turns, *, size: int = BYTES) -> None:
        self._store = store
        self._size = size
        self._wanted: dict[Key, list[asyncio.Future[Loaded | None]]] = {}
        self._news = asyncio.Event()
        self._cache: OrderedDict[Key, tuple[Loaded, Snapshot | None]] = OrderedDict()
        self._cached = 0
        self._expected: set[Key] = set()
        """About to be born, and asked for by nobody yet."""

    async def load(self, key: Key) -> tuple[Loaded | None, Snapshot | None]:
        """An instance as last committed, and its state decoded, if that is at hand."""
        known = self._cache.get(key)
        if known is not None:
            self._cache.move_to_end(key)
            return known
        self._expected.discard(key)
        answer: asyncio.Future[Loaded | None] = asyncio.get_running_loop().create_future()
        self._wanted.setdefault(key, []).append(answer)
        self._news.set()
        return await answer, None

    def remember(self, loaded: Loaded, state: Snapshot | None = None) -> None:
        key = (loaded.tenant, loaded.instance_id)
        self.forget(key)
        self._cache[key] = loaded, state
        self._cached += _weight(loaded)
        while self._cached > self._size:
            _, (oldest, _) = self._cache.popitem(last=False)
            self._cached -= _weight(oldest)

    def expect(self, keys: Iterable[Key]) -> None:
        """They are about to be born on this node."""
        self._expected.update(keys)

    def expect_no_more(self, keys: Iterable[Key]) -> None:
        self._expected.difference_update(keys)

    def bear(self, tenant: str, birth: Birth) -> None:
        """It was born. Remembered as such, unless somebody has asked for it meanwhile."""
        if (tenant, birth.instance_id) in self._expected:
            self.remember(
                Loaded(
                    tenant=tenant,
                    instance_id=birth.instance_id,
                    shard=birth.shard,
                    revision=0,
                    turn="",
                    columns=birth.columns,
                    state=None,
                )
            )

    def forget(self, key: Key) -> None:
        known = self._cache.pop(key, None)
        if known is not None:
            self._cached -= _weight(known[0])

    def forget_shard(self, shard: int | None) -> None:
        """All of one shard; of every one without."""
        self._expected.clear()
        for key, (loaded, _) in list(self._cache.items()):
            if shard in (None, loaded.shard):
                self.forget(key)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as queries:
            for _ in range(QUERIES):
                queries.create_task(self._query_forever())

    async def _query_forever(self) -> None:
        while True:
            if not self._wanted:
                self._news.clear()
                await self._news.wait()
                continue
            keys = list(self._wanted)[:MOST]
            waiting = {key: self._wanted.pop(key) for key in keys}
            try:
                found = {(one.tenant, one.instance_id): one for one in await self._store.load(keys)}
            except Exception as error:  # whatever it was, those who wait must hear of it
                for answer in (answer for answers in waiting.values() for answer in answers):
                    if not answer.done():
                        answer.set_exception(_copy(error))
                continue
            for key, answers in waiting.items():
                for answer in answers:
                    if not answer.done():
                        answer.set_result(found.get(key))


def _copy(error: Exception) -> Exception:
    return Unavailable(str(error)) if isinstance(error, Unavailable) else error


def _weight(loaded: Loaded) -> int:
    return 500 + 3 * len(loaded.state or b"")
