"""The smallest thing that drives turns: one message after another, from any store.

It has no leases, no groups and no concurrency; those come with the nodes. What it shows is that turns
and commits alone carry an instance from its start to its end, over any number of deaths in between.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

from holdfast.codec import decode_payload
from holdfast.commit import Birth, Columns, Commit, Delivery, Lane, Place
from holdfast.instance import SubStatus
from holdfast.message import Cancel, Message, Resume, Start
from holdfast.runtime.letters import sealed, shard_of
from holdfast.runtime.turn import Turn
from holdfast.store import Admission, Committed, StaleTurn, Store
from holdfast.testing import Host

SHARDS = 4
TENANT = "acme"


class Died(Exception):
    """The process is gone, with everything it had in memory."""


class Driver:
    """One life of a process. `dies_at` is the commit after which it is killed."""

    def __init__(self, store: Store, host: Host, *, dies_at: int | None = None) -> None:
        self._store = store
        self._host = host
        self._dies_at = dies_at
        self.commits = 0

    async def dispatch(self, definition_id: str, instance_id: str, **start: Any) -> None:
        definition = self._host.definitions.find(definition_id)
        now = self._host.clock.now()
        shard = shard_of(instance_id, SHARDS)
        columns = Columns(
            definition_id=definition.definition_id,
            version_id=definition.id,
            version=definition.version,
            sub_status=SubStatus.PENDING,
            created_at=now,
            updated_at=now,
        )
        message = sealed(Start(**start), tenant=TENANT, instance_id=instance_id, shard=shard)
        birth = Birth(instance_id=instance_id, shard=shard, columns=columns)
        await self._store.admit([Admission(message=message, birth=birth)])

    async def cancel(self, instance_id: str) -> None:
        await self.send(instance_id, Cancel())

    async def send(self, instance_id: str, message: Message) -> None:
        shard = shard_of(instance_id, SHARDS)
        sent = sealed(message, tenant=TENANT, instance_id=instance_id, shard=shard)
        await self._store.admit([Admission(message=sent)])

    async def settle(self) -> None:
        """Take turns until nothing is left to do now."""
        while True:
            lanes = [Place(shard, lane, 0) for shard in range(SHARDS) for lane in Lane]
            waiting = await self._store.read(lanes, 100)
            waiting += await self._store.due(range(SHARDS), self._host.clock.now(), 100)
            if not waiting:
                return
            by_instance: dict[str, list[Delivery]] = defaultdict(list)
            for delivery in waiting:
                by_instance[delivery.envelope.instance_id].append(delivery)
            for instance_id, deliveries in by_instance.items():
                await self._take_turn(instance_id, deliveries)

    async def _take_turn(self, instance_id: str, deliveries: list[Delivery]) -> None:
        (loaded,) = await self._store.load([(TENANT, instance_id)])
        definition = self._host.definitions.find_version(loaded.columns.version_id)
        turn = Turn(
            loaded,
            self._host.definitions.graph(definition),
            turn=f"{instance_id}-{loaded.revision}",
            environment=self._host.environment,
            shards=SHARDS,
            published=self._published,
            write=self._write,
        )
        await self._write(await turn.take(deliveries))

    def _published(self, definition_id: str) -> tuple[str, str, int]:
        found = self._host.definitions.find(definition_id)
        return found.definition_id, found.id, found.version

    async def _write(self, commit: Commit) -> Committed:
        (outcome,) = await self._store.commit([commit])
        if isinstance(outcome, StaleTurn):
            raise outcome
        self.commits += 1
        if self.commits == self._dies_at:
            raise Died
        for stimulus in commit.put_back:
            await self.look(stimulus.key)
        return outcome

    async def look(self, key: str) -> None:
        """Bring kept stimuli to whoever waits for them."""
        for stimulus in await self._store.kept(TENANT, key):
            _, waiting = await self._store.find(TENANT, key)
            wanted = [w for w in waiting if stimulus.instance_id in (None, w.instance_id)]
            resume = Resume(key=key, input=decode_payload(stimulus.payload))
            messages = [
                sealed(resume, tenant=TENANT, instance_id=w.instance_id, shard=w.shard) for w in wanted
            ]
            if messages:
                await self._store.pair(TENANT, stimulus.id, messages)

    async def status(self, instance_id: str) -> str:
        (loaded,) = await self._store.load([(TENANT, instance_id)])
        return loaded.columns.sub_status.value

    async def next_due(self) -> datetime | None:
        far = await self._store.due(
            range(SHARDS), datetime.max.replace(tzinfo=self._host.clock.now().tzinfo), 1
        )
        return far[0].due if far else None
