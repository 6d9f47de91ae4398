"""Brings stimuli to whoever waits for them, and keeps what came too early.

Whoever makes a match possible looks for it after its commit: the sender of a stimulus that hit nobody,
an instance that waits for something new, one whose correlation changed. A sweep looks for those who
died in between. Accepting and matching share one predicate, else a message goes round for ever.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from holdfast.bookmark import Bookmark, Stimulus
from holdfast.codec import decode_payload, encode_payload
from holdfast.commit import Envelope, KeptStimulus
from holdfast.errors import NotFound
from holdfast.message import Resume, Start
from holdfast.runtime.changes import newborn
from holdfast.runtime.courier import Courier
from holdfast.runtime.letters import sealed
from holdfast.runtime.world import World
from holdfast.store import Admission, Waiting

ADDRESSED = timedelta(days=1)
ANYBODY = timedelta(minutes=1)
"""How long a stimulus that hit nobody is kept: longer when it was meant for somebody."""

SERVED = 10_000
"""Bookmarks remembered as having got their stimulus."""


class Found(msgspec.Struct, frozen=True):
    """Whom a stimulus hits now."""

    starts: tuple[Admission, ...] = ()
    messages: tuple[Envelope, ...] = ()


def accepts(stimulus: Stimulus | KeptStimulus, waiting: Waiting) -> bool:
    return stimulus.instance_id in (None, waiting.instance_id) and stimulus.correlation_id in (
        None,
        waiting.correlation_id,
    )


def kept_of(stimulus: Stimulus, tenant: str, name: str, now: datetime) -> KeptStimulus:
    """A stimulus that hit nobody so far."""
    life = ADDRESSED if stimulus.instance_id or stimulus.correlation_id else ANYBODY
    return KeptStimulus(
        id=name,
        tenant=tenant,
        key=stimulus.key,
        payload=encode_payload(dict(stimulus.input)),
        expires=now + life,
        instance_id=stimulus.instance_id,
        correlation_id=stimulus.correlation_id,
        sent_at=now,
    )


async def look(world: World, tenant: str, stimulus: Stimulus, name: str) -> Found:
    """The first look: every trigger and every bookmark with its key. `name` is unique for the stimulus."""
    triggers, waiting = await world.store.find(
        tenant, stimulus.key, instance_id=stimulus.instance_id, correlation_id=stimulus.correlation_id
    )
    now = world.environment.clock.now()
    starts: list[Admission] = []
    for trigger in triggers if stimulus.instance_id is None else ():
        try:
            program = await world.programs.find(tenant, trigger.version_id)
        except NotFound:
            continue  # deleted a moment ago
        words = f"{name}/{trigger.version_id}/{trigger.activity_id}"
        instance_id = sha256(words.encode()).hexdigest()[:32]
        shard = world.shards.of(tenant, program.definition_id, instance_id)
        start = Start(
            input=stimulus.input, correlation_id=stimulus.correlation_id, trigger=trigger.activity_id
        )
        starts.append(
            Admission(
                message=sealed(start, tenant=tenant, instance_id=instance_id, shard=shard),
                birth=newborn(
                    program,
                    instance_id=instance_id,
                    shard=shard,
                    now=now,
                    correlation_id=stimulus.correlation_id,
                ),
                activations=program.guards(stimulus.correlation_id),
            )
        )
    hit = [one for one in waiting if accepts(stimulus, one)]
    kept = kept_of(stimulus, tenant, name, now)
    return Found(tuple(starts), _messages(kept, hit, is_alone=not starts and len(hit) == 1))


def _messages(stimulus: KeptStimulus, hit: Sequence[Waiting], *, is_alone: bool) -> tuple[Envelope, ...]:
    """A message carries the key, not the bookmark's id, and its turn asks the state: a loop that waits
    for the same again has a new bookmark by then."""
    message = Resume(
        key=stimulus.key,
        input=decode_payload(stimulus.payload),
        expires=stimulus.expires,
        tries=stimulus.tries,
        # What was addressed to one instance is nobody else's, unless it only came back from there.
        only=is_alone if stimulus.instance_id is None else stimulus.only,
        correlation_id=stimulus.correlation_id,
    )
    return tuple(
        sealed(message, tenant=stimulus.tenant, instance_id=one.instance_id, shard=one.shard) for one in hit
    )


class Matching:
    """The second looks, and the sweep."""

    def __init__(self, world: World, courier: Courier) -> None:
        self._world = world
        self._courier = courier
        self._served: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    async def look_for(self, tenant: str, keys: Sequence[str]) -> int:
        """Somebody waits under these keys since a moment ago: is there something for them?"""
        kept = await self._world.store.kept(tenant, keys)
        return await self._pair(kept)

    async def look_again(self, stimulus: KeptStimulus) -> int:
        """It was kept a moment ago: does somebody wait for it by now?"""
        return await self._pair([stimulus])

    async def sweep(self, since: datetime | None, limit: int = 1000) -> int:
        """For those who died before their second look: kept stimuli under whose key somebody waits."""
        return await self._pair(await self._world.store.meetings(since, limit))

    async def _pair(self, kept: Sequence[KeptStimulus]) -> int:
        paired = 0
        together = Counter((stimulus.tenant, stimulus.key) for stimulus in kept)
        found: dict[tuple[str, str], list[Waiting]] = {}
        for stimulus in kept:
            key = (stimulus.tenant, stimulus.key)
            if together[key] == 1:
                _, waiting = await self._world.store.find(
                    *key, instance_id=stimulus.instance_id, correlation_id=stimulus.correlation_id
                )
            else:  # once for all of them: a key may have thousands on both sides
                if key not in found:
                    _, found[key] = await self._world.store.find(*key)
                waiting = found[key]
            hit = [one for one in waiting if accepts(stimulus, one) and not self._is_served(stimulus, one)]
            if not hit:
                continue
            messages = _messages(stimulus, hit, is_alone=len(hit) == 1)
            places = await self._world.store.pair(stimulus.tenant, stimulus.id, messages)
            if places is None:
                continue  # somebody else was quicker
            for one in hit:
                self._serve(stimulus, one)
            self._courier.deliver(messages, places)
            paired += 1
        return paired

    def wait_on(self, tenant: str, instance_id: str, bookmarks: Iterable[Bookmark]) -> set[str]:
        """These were hit and wait for more: the keys under which a next stimulus may be kept for them."""
        names = {(tenant, instance_id, bookmark.id): bookmark.key for bookmark in bookmarks}
        served = [name for name in names if name in self._served]
        for name in served:
            del self._served[name]
        return {names[name] for name in served}

    # One stimulus per bookmark: a second one would come back, and the eighth time be given up.
    def _is_served(self, stimulus: KeptStimulus, waiting: Waiting) -> bool:
        return (stimulus.tenant, waiting.instance_id, waiting.bookmark_id) in self._served

    def _serve(self, stimulus: KeptStimulus, waiting: Waiting) -> None:
        self._served[stimulus.tenant, waiting.instance_id, waiting.bookmark_id] = None
        while len(self._served) > SERVED:
            self._served.popitem(last=False)
