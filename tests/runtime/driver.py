"""The smallest thing that drives turns: one message after another, from any store.

It has no leases, no groups and no concurrency; those come with the nodes. What it shows is that turns
and commits alone carry an instance from its start to its end, over any number of deaths in between.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

import msgspec

from holdfast.authoring import Children
from holdfast.codec import decode_payload
from holdfast.commit import Birth, Columns, Commit, Delivery, Lane, Place
from holdfast.instance import SubStatus
from holdfast.message import Cancel, Message, Resume, Start
from holdfast.runtime.drawn import Drawn
from holdfast.runtime.inline import InlineChildren
from holdfast.runtime.letters import sealed
from holdfast.runtime.shards import Shards
from holdfast.runtime.turn import Turn
from holdfast.runtime.world import World
from holdfast.store import Admission, Committed, StaleTurn, Store
from holdfast.testing import Host

SHARDS = 4
TENANT = "acme"


class Loaded:
    """The definitions of a host, as programs."""

    def __init__(self, host: Host) -> None:
        self._definitions = host.definitions

    async def find(self, tenant: str, version_id: str) -> Drawn:
        return Drawn(self._definitions.graph(self._definitions.find_version(version_id)))

    async def published(self, tenant: str, definition_id: str) -> Drawn:
        return Drawn(self._definitions.graph(self._definitions.find(definition_id)))


class Died(Exception):
    """The process is gone, with everything it had in memory."""


class Driver:
    """One life of a process. `dies_at` is the commit after which it is killed."""

    def __init__(self, store: Store, host: Host, *, dies_at: int | None = None) -> None:
        self._store = store
        self._host = host
        self._dies_at = dies_at
        self._shards = Shards(SHARDS)
        environment = msgspec.structs.replace(
            host.environment, services={**host.environment.services, Children: InlineChildren()}
        )
        self._world = World(store=store, programs=Loaded(host), shards=self._shards, environment=environment)
        self.commits = 0

    async def dispatch(self, definition_id: str, instance_id: str, **start: Any) -> None:
        definition = self._host.definitions.find(definition_id)
        now = self._host.clock.now()
        shard = self._shards.of(TENANT, definition_id, instance_id)
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
        shard = (await self._store.shards(TENANT, [instance_id]))[instance_id]
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
                await self.take_turn(instance_id, deliveries)

    async def take_turn(self, instance_id: str, deliveries: list[Delivery]) -> None:
        (loaded,) = await self._store.load([(TENANT, instance_id)])
        program = await self._world.programs.find(TENANT, loaded.columns.version_id)
        name = f"{instance_id}-{loaded.revision}"
        turn = Turn(loaded, program, name=name, world=self._world, write=self._write)
        await self._write(await turn.take(deliveries))

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
        for stimulus in await self._store.kept(TENANT, [key]):
            _, waiting = await self._store.find(TENANT, key)
            wanted = [w for w in waiting if stimulus.instance_id in (None, w.instance_id)]
            resume = Resume(key=key, input=decode_payload(stimulus.payload), expires=stimulus.expires)
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
