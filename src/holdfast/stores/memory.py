"""Durable state that is not durable: everything in dictionaries, for tests and simulations.

It keeps the same promises as a database except the one that matters, and is the shortest way to read
what they mean. Each method runs without awaiting, so each is atomic.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from holdfast.bookmark import Trigger
from holdfast.clock import Clock
from holdfast.commit import (
    CONTINUE,
    Birth,
    Commit,
    DeadLetter,
    Delivery,
    Envelope,
    InHand,
    KeptStimulus,
    Outgoing,
    Place,
    Segment,
    Then,
)
from holdfast.store import (
    Activation,
    Admission,
    Admitted,
    Committed,
    InstanceExists,
    KeyReused,
    LiveNode,
    Loaded,
    NodeExpired,
    Refused,
    Renewal,
    Repeated,
    StaleTurn,
    Taken,
    Verdict,
    Waiting,
)

Key = tuple[str, str]
"""Tenant and instance id."""


class _Lease(msgspec.Struct):
    node: str | None = None
    epoch: int = 0
    released: bool = True


class _Asked(msgspec.Struct):
    """What is known of an idempotency key."""

    request: bytes
    instance_id: str
    expires: datetime | None
    answer: bytes | None = None
    refused: str | None = None


class MemoryStore:
    """See `holdfast.store.Store` for the promises."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seq = 0
        self._nodes: dict[str, LiveNode] = {}
        self._leases: dict[str, _Lease] = {}
        self._instances: dict[Key, Loaded] = {}
        self._inbox: dict[Place, Delivery] = {}
        self._timers: dict[tuple[str, str, str], Delivery] = {}
        self._waits: dict[tuple[str, str, str], str] = {}
        self._triggers: dict[tuple[str, str], list[Trigger]] = {}
        self._stimuli: dict[Key, KeptStimulus] = {}
        self._asked: dict[tuple[str, str], _Asked] = {}
        self._activations: dict[tuple[str, str], str] = {}
        self.journal: dict[Key, list[Segment]] = {}
        self.outbox: list[tuple[str, str, Outgoing]] = []
        self.dead_letters: dict[str, DeadLetter] = {}

    # --- nodes ------------------------------------------------------------------------------------

    async def join(self, node_id: str, place: str, ttl: timedelta) -> Renewal:
        if node_id in self._nodes:
            raise NodeExpired(f"The node id {node_id!r} was used before. Every process joins under its own.")
        self._nodes[node_id] = LiveNode(node_id, place, self._clock.now() + ttl)
        return self._renewal(node_id)

    async def renew(self, node_id: str, ttl: timedelta) -> Renewal:
        node = self._nodes.get(node_id)
        if node is None or node.expires <= self._clock.now():
            raise NodeExpired(f"Node {node_id!r} did not renew in time. Join again under a new id.")
        self._nodes[node_id] = LiveNode(node_id, node.place, self._clock.now() + ttl)
        return self._renewal(node_id)

    def _renewal(self, node_id: str) -> Renewal:
        owned = {name: lease.epoch for name, lease in self._leases.items() if lease.node == node_id}
        return Renewal(self._clock.now(), owned)

    async def take(self, node_id: str, names: Sequence[str]) -> list[Taken]:
        if not self._is_alive(node_id):
            return []
        taken: list[Taken] = []
        for name in names:
            lease = self._leases.setdefault(name, _Lease())
            if lease.node is None or not self._is_alive(lease.node):
                taken.append(Taken(name, lease.epoch + 1, lease.released))
                lease.node, lease.epoch, lease.released = node_id, lease.epoch + 1, False
        return taken

    async def release(self, node_id: str, names: Sequence[str]) -> None:
        for name in names:
            lease = self._leases.get(name)
            if lease is not None and lease.node == node_id:
                lease.node, lease.released = None, True

    async def leave(self, node_id: str) -> None:
        node = self._nodes.get(node_id)
        if node is not None:
            self._nodes[node_id] = LiveNode(node_id, node.place, self._clock.now())

    async def nodes(self) -> list[LiveNode]:
        return [node for node in self._nodes.values() if self._is_alive(node.id)]

    def _is_alive(self, node_id: str) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.expires > self._clock.now()

    # --- inbox ------------------------------------------------------------------------------------

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]:
        found: list[Delivery] = []
        for position in after:
            behind = (
                delivery
                for place, delivery in self._inbox.items()  # in order of seq: that is how they came
                if (place.shard, place.lane) == (position.shard, position.lane) and place.seq > position.seq
            )
            found += [delivery for _, delivery in zip(range(limit), behind, strict=False)]
        return found

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]:
        timers = [
            (timer.due, timer)
            for timer in self._timers.values()
            if timer.due is not None and timer.due <= until and timer.envelope.shard in shards
        ]
        return [timer for _, timer in sorted(timers, key=lambda entry: entry[0])[:limit]]

    async def postpone(self, delivery: Delivery, retry_at: datetime, error: str) -> None:
        present = self._present(delivery)
        if present is not None:
            attempts = present.attempts + 1
            self._replace(msgspec.structs.replace(present, attempts=attempts, retry_at=retry_at, error=error))

    async def count_deaths(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        counted: list[Delivery] = []
        for delivery in deliveries:
            present = self._present(delivery)
            if present is not None:
                counted.append(msgspec.structs.replace(present, deaths=present.deaths + 1))
                self._replace(counted[-1])
        return counted

    def _present(self, delivery: Delivery) -> Delivery | None:
        if delivery.place is not None:
            return self._inbox.get(delivery.place)
        return self._timers.get(_timer_key(delivery))

    def _replace(self, delivery: Delivery) -> None:
        if delivery.place is not None:
            self._inbox[delivery.place] = delivery
        else:
            self._timers[_timer_key(delivery)] = delivery

    def _send(self, envelope: Envelope) -> Place:
        self._seq += 1
        place = Place(envelope.shard, envelope.lane, self._seq)
        self._inbox[place] = Delivery(envelope=envelope, place=place, sent_at=self._clock.now())
        return place

    # --- turns ------------------------------------------------------------------------------------

    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        return [self._instances[key] for key in keys if key in self._instances]

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        changed: set[Key] = set()
        results: list[Committed | StaleTurn] = []
        for commit in commits:
            key = (commit.tenant, commit.instance_id)
            reason = "it was changed in the same group" if key in changed else self._objection(commit)
            if reason is not None:
                results.append(StaleTurn(commit.instance_id, reason))
                continue
            changed.add(key)
            results.append(self._write(commit))
        return results

    def _objection(self, commit: Commit) -> str | None:
        """Why a commit is stale; None when it may be written."""
        change = commit.change
        if change is not None:
            present = self._instances.get((commit.tenant, commit.instance_id))
            if present is None:
                return "it does not exist"
            if present.revision != change.expects:
                return f"it is at revision {present.revision}, the turn began at {change.expects}"
            if present.columns.finished_at is not None and not change.reopens:
                return "it has ended"
        for birth in commit.births:
            if (commit.tenant, birth.instance_id) in self._instances:
                return f"instance {birth.instance_id} exists already"
        for message in commit.in_hand:
            if not self._is_there(commit, message):
                return "a message in hand is gone"
        return None

    def _is_there(self, commit: Commit, message: InHand) -> bool:
        if message.place is not None:
            present = self._inbox.get(message.place)
            return present is not None and message.kind in (None, present.envelope.kind)
        return message.timer is None or (commit.tenant, commit.instance_id, message.timer) in self._timers

    def _write(self, commit: Commit) -> Committed:
        tenant, owner = commit.tenant, (commit.tenant, commit.instance_id)
        revision, shard = 1, 0
        for birth in reversed(commit.births):  # so that the first one is the one it is about
            self._bear(tenant, birth, commit.turn)
            shard = birth.shard
        if commit.change is not None:
            change, revision, shard = commit.change, commit.change.expects + 1, commit.change.shard
            self._instances[owner] = Loaded(
                tenant=tenant,
                instance_id=commit.instance_id,
                shard=change.shard,
                revision=revision,
                turn=commit.turn,
                columns=change.columns,
                state=change.state,
            )
        continued: Place | None = None
        for message in commit.in_hand:
            continued = self._settle(commit, message, shard) or continued
        self._keep_waits(commit, shard)
        self.journal.setdefault(owner, []).extend(commit.journal)
        self.outbox += [(tenant, commit.instance_id, outgoing) for outgoing in commit.outbox]
        self._stimuli |= {(s.tenant, s.id): s for s in commit.put_back}
        self.dead_letters |= {letter.id: letter for letter in commit.dead_letters}
        for answer in commit.answers:
            asked = self._asked.get((tenant, answer.key))
            if asked is not None:
                asked.answer = answer.body
        if commit.frees_activations:
            self._activations = {k: i for k, i in self._activations.items() if (k[0], i) != owner}
        places = tuple(self._send(envelope) for envelope in commit.messages)
        return Committed(revision, places, continued)

    def _keep_waits(self, commit: Commit, shard: int) -> None:
        """Timers and bookmarks that came and went."""
        tenant, instance_id = commit.tenant, commit.instance_id
        for timer_id in commit.timers_gone:
            self._timers.pop((tenant, instance_id, timer_id), None)
        for timer in commit.timers:
            envelope = Envelope(
                tenant=tenant,
                instance_id=instance_id,
                shard=shard,
                kind=timer.kind,
                payload=timer.payload,
                trace=timer.trace,
            )
            delivery = Delivery(envelope=envelope, timer=timer.id, due=timer.due)
            self._timers[tenant, instance_id, timer.id] = delivery
        for wait_id in commit.waits_gone:
            self._waits.pop((tenant, instance_id, wait_id), None)
        for wait in commit.waits:
            self._waits[tenant, instance_id, wait.id] = wait.key

    def _bear(self, tenant: str, birth: Birth, turn: str) -> None:
        self._instances[tenant, birth.instance_id] = Loaded(
            tenant=tenant,
            instance_id=birth.instance_id,
            shard=birth.shard,
            revision=0 if birth.state is None else 1,
            turn=turn,
            columns=birth.columns,
            state=birth.state,
        )

    def _settle(self, commit: Commit, message: InHand, shard: int) -> Place | None:
        """What becomes of a message in hand; where it lies now, if it goes on as a `continue`."""
        timer_key = (commit.tenant, commit.instance_id, message.timer or "")
        if message.then is Then.CONSUME:
            if message.place is not None:
                del self._inbox[message.place]
            elif message.timer is not None:
                del self._timers[timer_key]
            return None
        if message.then is Then.KEEP:
            return None
        if message.place is not None:
            present = self._inbox[message.place]
            self._inbox[message.place] = Delivery(
                envelope=msgspec.structs.replace(present.envelope, kind=CONTINUE, payload=None),
                place=message.place,
                sent_at=present.sent_at,
            )
            return message.place
        self._timers.pop(timer_key, None)
        return self._send(
            Envelope(tenant=commit.tenant, instance_id=commit.instance_id, shard=shard, kind=CONTINUE)
        )

    # --- intake -----------------------------------------------------------------------------------

    async def admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        return [self._admit(admission) for admission in admissions]

    def _admit(self, admission: Admission) -> Verdict:
        message = admission.message
        tenant, instance_id = message.tenant, message.instance_id
        if admission.key is not None:
            asked = self._asked.get((tenant, admission.key))
            if asked is not None and (asked.expires is None or asked.expires > self._clock.now()):
                if asked.request != admission.request:
                    return KeyReused(admission.key)
                return Refused(asked.refused) if asked.refused else Repeated(asked.instance_id, asked.answer)
        if admission.birth is not None and (tenant, instance_id) in self._instances:
            return InstanceExists(instance_id)
        forbidding = None if admission.activation is None else self._forbidding(tenant, admission.activation)
        if admission.key is not None:
            self._asked[tenant, admission.key] = _Asked(
                admission.request, instance_id, admission.expires, refused=forbidding
            )
        if forbidding is not None:
            return Refused(forbidding)
        if admission.activation is not None:
            self._activations[tenant, admission.activation.key] = instance_id
        if admission.birth is not None:
            self._bear(tenant, admission.birth, "")
        return Admitted(self._send(message))

    def _forbidding(self, tenant: str, activation: Activation) -> str | None:
        """The instance because of which a guarded start is refused."""
        holder = self._activations.get((tenant, activation.key))
        if holder is not None:
            return holder
        for (owner, instance_id), loaded in self._instances.items():
            columns = loaded.columns
            if (
                owner == tenant
                and columns.finished_at is None
                and activation.definition_id in (None, columns.definition_id)
                and activation.correlation_id in (None, columns.correlation_id)
            ):
                return instance_id
        return None

    async def answer(self, tenant: str, key: str) -> bytes | None:
        asked = self._asked.get((tenant, key))
        return None if asked is None else asked.answer

    # --- waits ------------------------------------------------------------------------------------

    async def find(self, tenant: str, key: str) -> tuple[list[Trigger], list[Waiting]]:
        triggers = [
            trigger
            for (owner, _), indexed in self._triggers.items()
            for trigger in indexed
            if owner == tenant and trigger.key == key
        ]
        return triggers, list(self._waiting(tenant, key))

    def _waiting(self, tenant: str, key: str) -> Iterator[Waiting]:
        for (owner, instance_id, wait_id), wait_key in self._waits.items():
            if owner == tenant and wait_key == key:
                loaded = self._instances[owner, instance_id]
                if loaded.columns.finished_at is None:
                    yield Waiting(instance_id, loaded.shard, wait_id, loaded.columns.correlation_id)

    async def keep(self, stimulus: KeptStimulus) -> None:
        self._stimuli[stimulus.tenant, stimulus.id] = stimulus

    async def kept(self, tenant: str, key: str) -> list[KeptStimulus]:
        now = self._clock.now()
        return [s for s in self._stimuli.values() if (s.tenant, s.key) == (tenant, key) and s.expires > now]

    async def pair(self, tenant: str, stimulus_id: str, messages: Sequence[Envelope]) -> list[Place] | None:
        if self._stimuli.pop((tenant, stimulus_id), None) is None:
            return None
        return [self._send(envelope) for envelope in messages]

    async def replace_triggers(self, tenant: str, definition_id: str, triggers: Sequence[Trigger]) -> None:
        self._triggers[tenant, definition_id] = list(triggers)


def _timer_key(delivery: Delivery) -> tuple[str, str, str]:
    return delivery.envelope.tenant, delivery.envelope.instance_id, delivery.timer or ""
