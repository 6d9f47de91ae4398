"""Who waits under a key, and what came before anybody did."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from holdfast.bookmark import Trigger
from holdfast.commit import Envelope, KeptStimulus, Place
from holdfast.store import Waiting
from holdfast.stores.expiry import letter_of
from holdfast.stores.memory.tables import Subject


class MemoryWaits(Subject):
    async def find(
        self, tenant: str, key: str, *, instance_id: str | None = None, correlation_id: str | None = None
    ) -> tuple[list[Trigger], list[Waiting]]:
        triggers = self._tables.triggers.by("key", (tenant, key))
        waiting = [
            one
            for one in self._waiting(tenant, key)
            if instance_id in (None, one.instance_id) and correlation_id in (None, one.correlation_id)
        ]
        return list(triggers.values()), waiting

    def _waiting(self, tenant: str, key: str) -> Iterator[Waiting]:
        for owner, instance_id, wait_id in self._tables.waits.by("key", (tenant, key)):
            loaded = self._tables.instances[owner, instance_id]
            if loaded.columns.finished_at is None:
                yield Waiting(instance_id, loaded.shard, wait_id, loaded.columns.correlation_id)

    async def keep(self, stimulus: KeptStimulus) -> None:
        self._tables.keep(stimulus)

    async def kept(self, tenant: str, keys: Sequence[str]) -> list[KeptStimulus]:
        stimuli, now = self._tables.stimuli, self._tables.now()
        found = [
            stimulus
            for key in set(keys)
            for stimulus in stimuli.by("key", (tenant, key)).values()
            if stimulus.expires > now
        ]
        return sorted(found, key=_age)

    async def pair(self, tenant: str, stimulus_id: str, messages: Sequence[Envelope]) -> list[Place] | None:
        if self._tables.stimuli.pop((tenant, stimulus_id), None) is None:
            return None
        return [self._tables.send(envelope) for envelope in messages]

    async def meetings(self, since: datetime | None, limit: int) -> list[KeptStimulus]:
        now = self._tables.now()
        found = [
            stimulus
            for stimulus in self._tables.stimuli.values()
            if stimulus.expires > now
            and (since is None or stimulus.sent_at is None or stimulus.sent_at >= since)
            and any(_is_meant(stimulus, one) for one in self._waiting(stimulus.tenant, stimulus.key))
        ]
        return sorted(found, key=_age)[:limit]

    async def expire_stimuli(self, limit: int) -> int:
        tables, now = self._tables, self._tables.now()
        expired = [stimulus for stimulus in tables.stimuli.values() if stimulus.expires <= now][:limit]
        for stimulus in expired:
            del tables.stimuli[stimulus.tenant, stimulus.id]
            if stimulus.instance_id is not None:
                instance = tables.instances.get((stimulus.tenant, stimulus.instance_id))
                shard = 0 if instance is None else instance.shard
                letter = letter_of(stimulus, stimulus.instance_id, shard, now)
                tables.dead_letters[letter.id] = letter
        return len(expired)


def _is_meant(stimulus: KeptStimulus, waiting: Waiting) -> bool:
    return stimulus.instance_id in (None, waiting.instance_id) and stimulus.correlation_id in (
        None,
        waiting.correlation_id,
    )


def _age(stimulus: KeptStimulus) -> tuple[datetime, str]:
    return stimulus.sent_at or stimulus.expires, stimulus.id
