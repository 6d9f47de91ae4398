"""All that the store in memory keeps: one object with a dictionary per table, and the clock.

`Rows` is a table with the few indexes its readers need, so that no call looks at everything. The
modules beside this one are the subjects of the port; each is a class over these tables, and what
several of them do to the same rows stands here.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from holdfast.bookmark import Trigger
from holdfast.clock import Clock
from holdfast.commit import Birth, DeadLetter, Delivery, Envelope, KeptStimulus, Outgoing, Place, Segment
from holdfast.store import (
    DEFAULT,
    Attempt,
    LiveNode,
    Loaded,
    OutboxRow,
    Pause,
    Placement,
    Schedule,
    ShardGroup,
    StoredVersion,
)
from holdfast.stores.listeners import Listeners

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SHARDS = 64

Key = tuple[str, str]
"""Tenant and instance id."""


class Rows(MutableMapping[K, V], Generic[K, V]):
    """Rows by key, in the order they came, and by each index. What an index gives as None is not in it."""

    def __init__(self, **indexes: Callable[[K, V], Hashable]) -> None:
        self._rows: dict[K, V] = {}
        self._indexes = indexes
        self._entries: dict[str, dict[Hashable, dict[K, V]]] = {name: {} for name in indexes}

    def by(self, index: str, value: Hashable) -> Mapping[K, V]:
        """The rows an index has under a value."""
        return self._entries[index].get(value, {})

    def __getitem__(self, key: K) -> V:
        return self._rows[key]

    def __setitem__(self, key: K, row: V) -> None:
        present = self._rows.get(key)
        self._rows[key] = row
        for name, place_of in self._indexes.items():
            before, now = None if present is None else place_of(key, present), place_of(key, row)
            if before != now:
                self._leave(name, before, key)
            if now is not None:
                self._entries[name].setdefault(now, {})[key] = row

    def __delitem__(self, key: K) -> None:
        row = self._rows.pop(key)
        for name, place_of in self._indexes.items():
            self._leave(name, place_of(key, row), key)

    def _leave(self, index: str, value: Hashable, key: K) -> None:
        if value is not None:
            entries = self._entries[index]
            del entries[value][key]
            if not entries[value]:
                del entries[value]

    def __iter__(self) -> Iterator[K]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows


class Lease(msgspec.Struct):
    node: str | None = None
    epoch: int = 0
    released: bool = True


class Asked(msgspec.Struct):
    """What is known of an idempotency key."""

    request: bytes
    instance_id: str
    expires: datetime | None
    answer: bytes | None = None
    refused: str | None = None


class Work(msgspec.Struct):
    """Background work of one execution, and the node that does it."""

    attempt: Attempt
    node: str | None = None


class Tables:
    """Every table, and what several subjects do to them."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.seq = 0
        self.counters = {"catalogue": 0, "pauses": 0}
        self.nodes: dict[str, LiveNode] = {}
        self.leases: dict[str, Lease] = {}
        self.instances: Rows[Key, Loaded] = Rows(
            open=lambda key, row: key[0] if _is_open(row) else None,
            open_definition=lambda key, row: (key[0], row.columns.definition_id) if _is_open(row) else None,
            open_parent=lambda key, row: (key[0], row.columns.parent_id) if _is_open(row) else None,
        )
        self.inbox: Rows[Place, Delivery] = Rows(line=lambda place, _: (place.shard, place.lane))
        self.timers: Rows[tuple[str, str, str], Delivery] = Rows(
            shard=lambda _, row: row.envelope.shard, instance=lambda key, _: key[:2]
        )
        self.waits: Rows[tuple[str, str, str], str] = Rows(
            key=lambda key, wait_key: (key[0], wait_key), instance=lambda key, _: key[:2]
        )
        self.triggers: Rows[tuple[str, str, str, str], Trigger] = Rows(
            key=lambda key, row: (key[0], row.key), definition=lambda key, row: (key[0], row.definition_id)
        )
        self.stimuli: Rows[Key, KeptStimulus] = Rows(key=lambda key, row: (key[0], row.key))
        self.asked: dict[tuple[str, str], Asked] = {}
        self.activations: Rows[tuple[str, str], str] = Rows(instance=lambda key, holder: (key[0], holder))
        self.versions: Rows[tuple[str, str, int], StoredVersion] = Rows(
            definition=lambda key, _: key[:2],
            tenant=lambda key, _: key[0],
            id=lambda key, row: (key[0], row.header.version_id),
        )
        self.schedules: Rows[tuple[str, str, str], Schedule] = Rows(
            definition=lambda key, _: key[:2], tenant=lambda key, _: key[0], shard=lambda _, row: row.shard
        )
        self.firings: dict[tuple[tuple[str, str, str], datetime], str] = {}
        self.attempts: Rows[tuple[str, str, int], Work] = Rows(
            shard=lambda _, row: row.attempt.shard, instance=lambda key, _: key[:2]
        )
        self.journal: dict[Key, list[Segment]] = {}
        self.outbox: Rows[tuple[int, str, int], OutboxRow] = Rows(line=lambda key, _: key[:2])
        self.dead_letters: dict[str, DeadLetter] = {}
        self.pauses: dict[tuple[str, str], Pause] = {}
        self.groups = {DEFAULT: ShardGroup(DEFAULT, 0, SHARDS)}
        self.placements: dict[tuple[str, str], Placement] = {}
        self.listeners = Listeners()

    def now(self) -> datetime:
        return self.clock.now()

    def is_alive(self, node_id: str) -> bool:
        node = self.nodes.get(node_id)
        return node is not None and node.expires > self.now()

    def send(self, envelope: Envelope) -> Place:
        self.seq += 1
        place = Place(envelope.shard, envelope.lane, self.seq)
        self.inbox[place] = Delivery(envelope=envelope, place=place, sent_at=self.now())
        return place

    def put_out(self, shard: int, tenant: str, instance_id: str | None, outgoing: Outgoing) -> None:
        self.seq += 1
        self.outbox[shard, outgoing.stream, self.seq] = OutboxRow(
            shard=shard,
            stream=outgoing.stream,
            seq=self.seq,
            tenant=tenant,
            instance_id=instance_id,
            body=outgoing.body,
        )

    def keep(self, stimulus: KeptStimulus) -> None:
        sent_at = stimulus.sent_at or self.now()
        self.stimuli[stimulus.tenant, stimulus.id] = msgspec.structs.replace(stimulus, sent_at=sent_at)

    def bear(self, tenant: str, birth: Birth, turn: str) -> None:
        self.instances[tenant, birth.instance_id] = Loaded(
            tenant=tenant,
            instance_id=birth.instance_id,
            shard=birth.shard,
            revision=0 if birth.state is None else 1,
            turn=turn,
            columns=birth.columns,
            state=birth.state,
        )


class Subject:
    """A part of the store: what the port says about one subject, over the tables of all."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables


def _is_open(loaded: Loaded) -> bool:
    return loaded.columns.finished_at is None
