"""One turn: up to many messages of one instance handled, and everything that changed as one commit.

The turn begins from a loaded instance and ends with a `Commit` that expects exactly that revision. A
checkpoint in the middle is a commit too; its first one turns the message in hand into a `continue`, so
that whoever finds it later carries on from the state instead of applying the message again.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import msgspec

from holdfast.bookmark import Bookmark, Stimulus
from holdfast.codec import encode_payload
from holdfast.commit import (
    CONTINUE,
    Birth,
    Change,
    Columns,
    Commit,
    Delivery,
    Envelope,
    InHand,
    KeptStimulus,
    Segment,
    Then,
    Timer,
    Wait,
)
from holdfast.definitions.graph import Graph
from holdfast.engine import Environment, Outcome, decode_state, encode_state, run_burst
from holdfast.instance import Record, State, Status, SubStatus
from holdfast.message import Effect, Message, Resume, Retry, Send, Skip, StartChild
from holdfast.runtime.children import child_ended, child_start
from holdfast.runtime.letters import opened, sealed, shard_of
from holdfast.store import Committed, Loaded

ADDRESSED = timedelta(days=1)
ANYBODY = timedelta(minutes=1)
"""How long a stimulus that hit nobody is kept: longer when it was meant for somebody."""

Write = Callable[[Commit], Awaitable[Committed]]
"""Writes a checkpoint. Raises StaleTurn when the turn must be given up."""

Children = Callable[[str], tuple[str, str, int]]
"""From a definition id to the published version: definition id, version id, version."""

_segments = msgspec.json.Encoder()


class Turn:
    """A turn under way. It lives in memory only: what is not in a commit never happened."""

    def __init__(
        self,
        loaded: Loaded,
        graph: Graph,
        *,
        turn: str,
        environment: Environment,
        shards: int,
        published: Children,
        write: Write,
    ) -> None:
        self._graph = graph
        self._turn = turn
        self._environment = environment
        self._shards = shards
        self._published = published
        self._write = write
        self._loaded = loaded
        self._revision = loaded.revision
        self._before = None if loaded.state is None else decode_state(loaded.state)
        self._state = self._before
        self._settled: list[InHand] = []
        self._present: InHand | None = None
        self._records: list[Record] = []
        self._effects: list[Effect] = []
        self._put_back: list[KeptStimulus] = []

    async def take(self, deliveries: Sequence[Delivery]) -> Commit:
        """Handle messages in their order; the commit that settles the turn."""
        for delivery in deliveries:
            self._present = InHand(Then.CONSUME, delivery.place, delivery.timer, delivery.envelope.kind)
            await self._handle(opened(delivery.envelope))
            self._settled.append(msgspec.structs.replace(self._present, then=Then.CONSUME))
            self._present = None
        return self._commit(tuple(self._settled))

    async def _handle(self, message: Message) -> None:
        has_ended = self._state is not None and self._state.status is Status.FINISHED
        if has_ended and not isinstance(message, Retry | Skip):
            return  # too late; the message is consumed without effect
        outcome = await run_burst(
            self._graph,
            message,
            environment=self._environment,
            state=self._state,
            instance_id=self._loaded.instance_id,
            tenant=self._loaded.tenant,
            checkpoint=self._reach_checkpoint,
        )
        if not outcome.applied and isinstance(message, Resume) and message.key is not None:
            self._put_back.append(self._kept(message))
        self._keep(outcome)

    def _keep(self, outcome: Outcome) -> None:
        self._state = outcome.state
        self._records += outcome.records
        self._effects += outcome.effects

    async def _reach_checkpoint(self, outcome: Outcome) -> None:
        self._keep(outcome)
        present = self._present
        is_first = present is not None and present.then is Then.CONSUME
        in_hand = [*self._settled]
        if present is not None:
            in_hand.append(msgspec.structs.replace(present, then=Then.CONTINUE if is_first else Then.KEEP))
        committed = await self._write(self._commit(tuple(in_hand)))
        self._revision = committed.revision
        self._before = self._state
        self._settled.clear()
        self._records.clear()
        self._effects.clear()
        self._put_back.clear()
        if is_first:
            self._present = InHand(Then.KEEP, committed.continued, kind=CONTINUE)

    def _kept(self, message: Resume) -> KeptStimulus:
        """Nobody waits here any more: back to where it may be found again, addressed to this instance."""
        now = self._environment.clock.now()
        return KeptStimulus(
            id=f"{self._turn}-{len(self._put_back)}",
            tenant=self._loaded.tenant,
            key=message.key or "",
            payload=encode_payload(dict(message.input)),
            expires=now + ADDRESSED,
            instance_id=self._loaded.instance_id,
            tries=1,
        )

    # --- the commit -------------------------------------------------------------------------------

    def _commit(self, in_hand: tuple[InHand, ...]) -> Commit:
        state, loaded = self._state, self._loaded
        assert state is not None, "a turn handles at least one message"
        births: list[Birth] = []
        messages: list[Envelope] = []
        put_back = [*self._put_back]
        for number, effect in enumerate(self._effects):
            match effect:
                case StartChild():
                    births.append(self._born(effect))
                    messages.append(self._first_message(effect, births[-1].shard))
                case Send():
                    put_back.append(self._sent(effect.stimulus, number))
                case _:
                    pass  # tasks and background work are carried out by whoever drives the turn
        change = self._change(state)
        ends = change is not None and state.status is Status.FINISHED
        if ends:
            messages += self._ending(state)
        gone, come = _waits(self._before, state)
        return Commit(
            turn=self._turn,
            tenant=loaded.tenant,
            instance_id=loaded.instance_id,
            change=change,
            births=tuple(births),
            in_hand=in_hand,
            messages=tuple(messages),
            timers=tuple(_timer(b) for b in come if b.due is not None),
            timers_gone=tuple(b.id for b in gone if b.due is not None),
            waits=tuple(Wait(b.id, b.key) for b in come if b.due is None),
            waits_gone=tuple(b.id for b in gone if b.due is None),
            journal=_segment(self._records),
            put_back=tuple(put_back),
            frees_activations=ends,
        )

    def _change(self, state: State) -> Change | None:
        was_over = self._before is not None and self._before.status is Status.FINISHED
        if was_over and state is self._before:
            return None  # everything came too late: what has ended does not change
        return Change(
            shard=self._loaded.shard,
            expects=self._revision,
            columns=columns_of(state, self._loaded.columns),
            state=encode_state(state),
            reopens=was_over,
        )

    def _born(self, effect: StartChild) -> Birth:
        definition_id, version_id, version = self._published(effect.definition_id)
        now = self._environment.clock.now()
        columns = Columns(
            definition_id=definition_id,
            version_id=version_id,
            version=version,
            sub_status=SubStatus.PENDING,
            created_at=now,
            updated_at=now,
            correlation_id=effect.correlation_id,
            parent_id=effect.parent_id,
        )
        return Birth(
            instance_id=effect.instance_id, shard=shard_of(effect.instance_id, self._shards), columns=columns
        )

    def _first_message(self, effect: StartChild, shard: int) -> Envelope:
        return sealed(
            child_start(effect), tenant=self._loaded.tenant, instance_id=effect.instance_id, shard=shard
        )

    def _sent(self, stimulus: Stimulus, number: int) -> KeptStimulus:
        life = ADDRESSED if stimulus.instance_id or stimulus.correlation_id else ANYBODY
        return KeptStimulus(
            id=f"{self._turn}-s{number}",
            tenant=self._loaded.tenant,
            key=stimulus.key,
            payload=encode_payload(dict(stimulus.input)),
            expires=self._environment.clock.now() + life,
            instance_id=stimulus.instance_id,
            correlation_id=stimulus.correlation_id,
        )

    def _ending(self, state: State) -> list[Envelope]:
        """What an instance that has just ended tells its parent."""
        ended = child_ended(state)
        if ended is None or ended.instance_id is None:
            return []
        message = Resume(key=ended.key, input=ended.input)
        parent = ended.instance_id
        return [
            sealed(
                message, tenant=self._loaded.tenant, instance_id=parent, shard=shard_of(parent, self._shards)
            )
        ]


def columns_of(state: State, before: Columns) -> Columns:
    """What lists shall know of a state."""
    return Columns(
        definition_id=state.definition_id,
        version_id=state.version_id,
        version=state.version,
        sub_status=state.sub_status,
        created_at=before.created_at,
        updated_at=state.updated_at,
        finished_at=state.finished_at,
        correlation_id=state.correlation_id,
        name=state.name,
        parent_id=state.parent_id,
        incident_count=len(state.incidents),
        is_paused=before.is_paused,
    )


def _waits(before: State | None, after: State) -> tuple[list[Bookmark], list[Bookmark]]:
    """Bookmarks that are gone, and those that have come. Ids are never used twice."""
    old = {} if before is None else {bookmark.id: bookmark for bookmark in before.bookmarks}
    new = {bookmark.id: bookmark for bookmark in after.bookmarks}
    return [b for i, b in old.items() if i not in new], [b for i, b in new.items() if i not in old]


def _timer(bookmark: Bookmark) -> Timer:
    assert bookmark.due is not None
    payload = encode_payload(msgspec.structs.asdict(Resume(bookmark_id=bookmark.id)))
    return Timer(id=bookmark.id, due=bookmark.due, kind="resume", payload=payload)


def _segment(records: Sequence[Record]) -> tuple[Segment, ...]:
    """The records of a turn, with how often each activity did what."""
    if not records:
        return ()
    counts: dict[str, dict[str, int]] = {}
    for record in records:
        events = counts.setdefault(str(record.node), {})
        events[record.event] = events.get(record.event, 0) + 1
    body = encode_payload([msgspec.structs.astuple(record) for record in records])
    return (
        Segment(
            sequence=records[0].sequence,
            records=len(records),
            version=1,
            summary=_segments.encode(counts),
            body=body,
        ),
    )
