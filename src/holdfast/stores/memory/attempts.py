"""Activities that are executed outside their turn."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from holdfast.commit import Envelope, Place
from holdfast.store import Attempt
from holdfast.stores.memory.tables import Subject, Work


class MemoryAttempts(Subject):
    async def idle_attempts(self, shards: Sequence[int], limit: int) -> list[Attempt]:
        idle = (
            work.attempt
            for shard in shards
            for work in self._tables.attempts.by("shard", shard).values()
            if self._is_idle(work)
        )
        return list(islice(idle, limit))

    def _is_idle(self, work: Work) -> bool:
        return work.node is None or not self._tables.is_alive(work.node)

    async def claim(self, node_id: str, attempt: Attempt) -> Attempt | None:
        work = self._tables.attempts.get(_key(attempt))
        if work is not None and (work.node, work.attempt.number) == (node_id, attempt.number + 1):
            return work.attempt
        if work is None or work.attempt.number != attempt.number or not self._is_idle(work):
            return None
        claimed = msgspec.structs.replace(work.attempt, number=attempt.number + 1)
        self._tables.attempts[_key(attempt)] = Work(claimed, node_id)
        return claimed

    def _work_of(self, attempt: Attempt) -> Work | None:
        work = self._tables.attempts.get(_key(attempt))
        return work if work is not None and work.attempt.number == attempt.number else None

    async def conclude(self, attempt: Attempt, message: Envelope) -> Place | None:
        if self._work_of(attempt) is None:
            return None
        del self._tables.attempts[_key(attempt)]
        return self._tables.send(message)


def _key(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.tenant, attempt.instance_id, attempt.execution
