"""One turn: up to many messages of one instance handled, and everything that changed as one commit.

The turn begins from a loaded instance and ends with a `Commit` that expects exactly that revision. A
checkpoint in the middle is a commit too; its first one turns the message in hand into a `continue`, so
that whoever finds it later carries on from the state instead of applying the message again.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast import telemetry
from holdfast.bookmark import Bookmark
from holdfast.codec import encode_payload, read_payload
from holdfast.commit import (
    CONTINUE,
    Answer,
    Change,
    Columns,
    Commit,
    Delivery,
    InHand,
    KeptStimulus,
    Segment,
    Then,
)
from holdfast.engine.alterations import Altered
from holdfast.errors import Invalid, Unavailable
from holdfast.instance import Record, State, Status, SubStatus
from holdfast.message import (
    Alter,
    Cancel,
    CancelChildren,
    Continue,
    Delete,
    Effect,
    Message,
    Order,
    Pause,
    Resume,
    Retry,
    Skip,
    Start,
    Steer,
    Unpause,
)
from holdfast.runtime.changes import (
    came_and_went,
    columns_of,
    segments_of,
    tasks_of,
    timers_of,
    waits_of,
)
from holdfast.runtime.children import DELETED, PARENT_SHARD, REPLY_TO, child_ended, child_refused
from holdfast.runtime.consequences import Consequences
from holdfast.runtime.letters import WAKES, is_urgent, opened
from holdfast.runtime.lifecycle import (
    EventType,
    LifecycleEvent,
    Told,
    event_of_columns,
    events_of_turn,
    executed_in,
    is_altered_only,
    told_by,
)
from holdfast.runtime.program import Program, Result, Snapshot, Stoppable
from holdfast.runtime.sizes import StateTooLarge, faulted
from holdfast.runtime.spans import with_home
from holdfast.runtime.world import World
from holdfast.store import Committed, Loaded

CHILDREN = 500
"""Children that one commit cancels; the others follow by a message to itself."""

TRIES = 8
"""How often a stimulus is put back before it is nobody's."""

Write = Callable[[Commit], Awaitable[Committed]]
"""Writes a checkpoint. Raises StaleTurn when the turn must be given up."""

CURRENT: ContextVar["Turn"] = ContextVar("turn")
"""The turn in which this code runs, for services that belong to it."""


class Turn:
    """A turn under way. It lives in memory only: what is not in a commit never happened."""

    def __init__(
        self,
        loaded: Loaded,
        program: Program,
        *,
        name: str,
        world: World,
        write: Write,
        before: Snapshot | None = None,
    ) -> None:
        """`before` is the loaded state decoded, where the caller still has it."""
        self.loaded = loaded
        self.program = program
        self.world = world
        self.handled: list[Delivery] = []
        """Messages that this turn has settled."""
        self.held: list[Delivery] = []
        """Those that it has not touched, because one before them paused the instance."""
        self.hit_again: list[Bookmark] = []
        """Bookmarks that were hit and wait for more."""
        self._name = name
        self._write = write
        self._revision = loaded.revision
        if before is None and loaded.state is not None:
            before = program.decode(loaded.state)
        self.before = before
        """As it was last committed."""
        self.state: Any = before
        """As it is now; None while the instance has not begun."""
        self._columns: Columns | None = None
        """Set when it changes without its state doing so."""
        self._is_paused = loaded.columns.is_paused
        self._deletes = False
        self._settled: list[InHand] = []
        self._present: InHand | None = None
        self._records: list[Record] = []
        self._earlier: list[Segment] = []
        """What was recorded before the instance became one of another version."""
        self._effects: list[Effect] = []
        self._answers: list[tuple[str, bool, tuple[Altered, ...]]] = []
        self._altered: tuple[Altered, ...] = ()
        """What became of the alterations that the message in hand brought."""
        self.consequences = Consequences(self)
        self.events: tuple[LifecycleEvent, ...] = ()
        """What the last commit tells those who listen."""
        self._executed: list[Told] = []
        """What was executed before the instance became one of another version."""
        self._burst: Stoppable | None = None
        self._away: Unavailable | None = None
        self._cancel: Cancel | None = None
        """What ended it, when that was a cancel of this turn."""

    @contextmanager
    def asking(self) -> Generator[None, None, None]:
        """Around what an activity asks of the store. That it is away is no fault of the workflow's: the
        engine will take it for one, but no commit ever says so, and the turn is taken again."""
        try:
            yield
        except Unavailable as away:
            self._away = away
            raise

    @property
    def tenant(self) -> str:
        return self.loaded.tenant

    @property
    def instance_id(self) -> str:
        return self.loaded.instance_id

    def stop(self) -> None:
        """Ask the burst to stop before its next step."""
        if self._burst is not None:
            self._burst.stopping = True

    async def take(
        self, deliveries: Sequence[Delivery], late: Callable[[], Iterable[Delivery]] = tuple
    ) -> Commit:
        """Handle messages in their order; the commit that settles the turn.

        `late` is asked, when the burst was stopped, for what must be handled next.
        """
        CURRENT.set(self)
        line = deque(deliveries)
        while line:
            delivery = line.popleft()
            if self._is_paused and not is_urgent(delivery.envelope):
                self.held.append(delivery)
                continue
            self._present = InHand(Then.CONSUME, delivery.place, delivery.timer, delivery.envelope.kind)
            self._altered = ()
            message = opened(delivery.envelope)
            if telemetry.tracing is not None and isinstance(message, Start):
                message = with_home(message, delivery.envelope.trace)
            try:
                applied = await self._handle(message)
            except StateTooLarge as problem:  # at a checkpoint
                applied = self._give_up(problem)
            if delivery.envelope.reply not in (None, WAKES):
                self._answers.append((delivery.envelope.reply or "", applied, self._altered))
            self._settled.append(msgspec.structs.replace(self._present, then=Then.CONSUME))
            self._present = None
            self.handled.append(delivery)
            if self.state is not None and self.state.is_halfway:
                line.extendleft(reversed(list(late())))
        if self.state is not None and self.state.is_halfway:
            # Stopped, and what stopped it is not here: the last message carries on from the state.
            self._settled[-1] = msgspec.structs.replace(self._settled[-1], then=Then.CONTINUE)
        try:
            return await self._commit(tuple(self._settled), self._answers)
        except StateTooLarge as problem:
            self._give_up(problem)
            self._answers = [(key, False, altered) for key, _, altered in self._answers]
            return await self._commit(tuple(self._settled), self._answers)

    # --- messages ---------------------------------------------------------------------------------

    async def _handle(self, message: Message | Order) -> bool:
        """Whether it found something to do."""
        match message:
            case Pause() | Unpause():
                return self._pause(isinstance(message, Pause))
            case Delete():
                self._deletes = True
                return True
            case CancelChildren():
                await self._cancel_children(message.reason, message.after)
                return True
            case _:
                pass
        if self.state is None and isinstance(message, Alter):
            self._altered = (Altered(False, "The instance has not begun."),)
            return False
        if self._has_ended and not isinstance(message, Retry | Skip | Alter | Steer):
            if isinstance(message, Resume):
                self._put_back(message)
            return False
        if self.state is None and not isinstance(message, Start):
            return self._handle_unbegun(message)
        if self.state is not None and isinstance(message, Start):
            return False
        if (
            self.state is not None
            and self.state.is_halfway
            and not isinstance(message, Continue | Cancel | Steer)
        ):
            # A checkpoint's work comes before anything that arrived later, whatever was read first.
            # The `continue` itself will find nothing left to do.
            await self._burst_once(Continue())
        result = await self._burst_once(message)
        if isinstance(message, Resume):
            if not result.applied:
                self._put_back(message)
            elif message.key is not None:
                self.hit_again += [b for b in result.state.bookmarks if b.key == message.key and not b.burns]
        if result.applied and (isinstance(message, Cancel) or _cancels(message)):
            self._cancel = Cancel(reason=getattr(message, "reason", None))
            await self._cancel_children(self._cancel.reason, "")
        return result.applied

    @property
    def _has_ended(self) -> bool:
        if self.state is None:
            return (self._columns or self.loaded.columns).finished_at is not None
        return self.state.status is Status.FINISHED

    async def _burst_once(self, message: Message) -> Result:
        if isinstance(message, Alter) and self._records:
            self._earlier += segments_of(self._records, self.program.version)
            self._executed += executed_in(self.program, self._records, self.world.listeners.wanted)
            self._records.clear()
        result = await self.program.burst(
            message,
            environment=self.world.environment,
            state=self.state,
            instance_id=self.instance_id,
            tenant=self.tenant,
            checkpoint=self._reach_checkpoint,
            on_begin=self._begin,
        )
        self._burst = None
        self._keep(result)
        if isinstance(message, Alter):
            self._altered = getattr(result, "altered", ())
            if self.state.version_id != self.program.version_id:
                self.program = await self.world.programs.find(self.tenant, self.state.version_id)
        return result

    def _begin(self, burst: Stoppable) -> None:
        self._burst = burst

    def _handle_unbegun(self, message: Message) -> bool:
        """It was never started, and only one thing can be done to it before it is."""
        if not isinstance(message, Cancel):
            raise Invalid(f"Instance {self.instance_id} has not begun; {type(message).__name__} must wait.")
        now = self.world.environment.clock.now()
        self._columns = msgspec.structs.replace(
            self.loaded.columns, sub_status=SubStatus.CANCELLED, updated_at=now, finished_at=now
        )
        return True

    def _pause(self, is_paused: bool) -> bool:
        changes = not self._has_ended and self._is_paused != is_paused
        if changes:
            self._is_paused = is_paused
            if self.state is None:
                self._columns = msgspec.structs.replace(self.loaded.columns, is_paused=is_paused)
        return changes

    async def _cancel_children(self, reason: str | None, after: str) -> None:
        # Complete: only this instance's own commits bear children, and this one proves its revision.
        found = await self.world.store.open_children(self.tenant, self.instance_id, CHILDREN, after)
        for child in found:
            self.consequences.send(Cancel(reason=reason), child.instance_id, child.shard)
        if len(found) == CHILDREN:
            onward = CancelChildren(after=found[-1].instance_id, reason=reason)
            self.consequences.send(onward, self.instance_id, self.loaded.shard)

    def _put_back(self, message: Resume) -> None:
        """Nobody waits here any more: back to where it may be found again."""
        if message.key is None or message.expires is None:
            return
        if self._has_ended and not message.only:
            return
        name = f"{self._name}-{self._revision}-{len(self._settled)}-b"
        if message.tries + 1 >= TRIES:
            self.consequences.bury(message, name)
            return
        self.consequences.put_back(
            KeptStimulus(
                id=name,
                tenant=self.tenant,
                key=message.key,
                payload=encode_payload(dict(message.input)),
                expires=message.expires,
                instance_id=None if self._has_ended else self.instance_id,
                correlation_id=message.correlation_id,
                only=message.only,
                tries=message.tries + 1,
                sent_at=self.world.environment.clock.now(),
            )
        )

    def _give_up(self, problem: StateTooLarge) -> bool:
        """It has grown too large: as it was before this turn, faulted."""
        grown, before = self.state, self.before
        if not isinstance(grown, State) or not isinstance(before, State | None):
            raise problem
        now = self.world.environment.clock.now()
        self.state, record = faulted(self.program, before, grown, problem, now)
        self._records, self._earlier, self._effects = [record], [], []
        self._executed = []
        self.consequences = Consequences(self)
        return False

    # --- the commit -------------------------------------------------------------------------------

    def _keep(self, result: Result) -> None:
        self.state = result.state
        self._records += result.records
        self._effects += result.effects

    async def _reach_checkpoint(self, result: Result) -> None:
        self._keep(result)
        present = self._present
        is_first = present is not None and present.then is Then.CONSUME
        in_hand = [*self._settled]
        if present is not None:
            in_hand.append(msgspec.structs.replace(present, then=Then.CONTINUE if is_first else Then.KEEP))
        committed = await self._write(await self._commit(tuple(in_hand), self._answers))
        self._revision = committed.revision
        self.before = self.state
        self._settled.clear()
        self._records.clear()
        self._earlier.clear()
        self._executed.clear()
        self._effects.clear()
        self._answers.clear()
        self.consequences = Consequences(self)
        if is_first:
            self._present = InHand(Then.KEEP, committed.continued, kind=CONTINUE)

    async def _commit(
        self, in_hand: tuple[InHand, ...], answers: Sequence[tuple[str, bool, tuple[Altered, ...]]]
    ) -> Commit:
        if self._away is not None:
            raise self._away
        state, so_far = self.state, self.consequences
        for number, effect in enumerate(self._effects):
            await so_far.add(effect, f"{self._name}-{self._revision}-{number}")
        if self._cancel is not None:
            # Those that this very turn bears are not among the children that were found.
            so_far.cancel_newborn(self._cancel.reason)
        change = self._change()
        ends = change is not None and change.columns.finished_at is not None
        if state is not None and (ends or self._deletes):
            self._tell_parent(state)
        come, gone = ([], []) if state is None or change is None else came_and_went(self.before, state)
        self.events = self._happened(change) if self.world.listeners.wanted and change is not None else ()
        return Commit(
            turn=self._name,
            tenant=self.tenant,
            instance_id=self.instance_id,
            change=change,
            births=tuple(so_far.births),
            in_hand=in_hand,
            messages=tuple(so_far.messages),
            timers=timers_of(come),
            timers_gone=tuple(b.id for b in gone if b.due is not None),
            waits=waits_of(come),
            waits_gone=tuple(b.id for b in gone if b.due is None),
            tasks=tasks_of(self._effects),
            tasks_gone=tuple(b.execution for b in gone if b.name == self.program.background),
            journal=(*self._earlier, *segments_of(self._records, (state or self.program).version)),
            outbox=self.world.listeners.outgoing(self.events) if self.events else (),
            put_back=tuple(so_far.kept),
            dead_letters=tuple(so_far.dead_letters),
            answers=tuple(Answer(key, self._answer(applied, altered)) for key, applied, altered in answers),
            frees_activations=ends,
            deletes=self._deletes,
        )

    def _happened(self, change: Change) -> tuple[LifecycleEvent, ...]:
        """What this commit tells, of the instance and of the children its burst executed."""
        wanted, before, state = self.world.listeners.wanted, self.before, self.state
        if state is None:  # it was cancelled before it began, or is as it was
            ended = change.columns.finished_at is not None
            return (
                event_of_columns(EventType.INSTANCE_CANCELLED, self.loaded, change, wanted) if ended else ()
            )
        own = events_of_turn(
            before,
            state,
            (
                *self._executed,
                *executed_in(self.program, self._records, wanted),
                *told_by(before, state, self._effects),
            ),
            tenant=self.tenant,
            instance_id=self.instance_id,
            revision=self._revision + 1,
            wanted=wanted,
            is_altered=not self._earlier and is_altered_only(self._records),
        )
        return (*own, *self.consequences.events)

    def _change(self) -> Change | None:
        loaded, state = self.loaded, self.state
        was_over = self.before is not None and self.before.status is Status.FINISHED
        is_same = state is self.before and self._is_paused == loaded.columns.is_paused
        if is_same and self._columns is None and (was_over or state is None) and not self._deletes:
            return None  # everything came too late: what has ended does not change
        if state is None:
            columns = self._columns or loaded.columns
        else:
            columns = columns_of(state, loaded.columns.created_at, is_paused=self._is_paused)
        encoded = None if state is None else self.program.encode(state)
        if encoded is not None and len(encoded) > self.world.sizes.state and not self._deletes:
            raise StateTooLarge(self.instance_id, len(encoded), self.world.sizes.state)
        return Change(
            shard=loaded.shard,
            expects=self._revision,
            columns=columns,
            state=encoded,
            reopens=was_over,
        )

    def _tell_parent(self, state: Snapshot) -> None:
        """What an instance that has just ended, or is being deleted, tells its parent."""
        ended = child_ended(state, self.instance_id)
        if ended is None and self._deletes and state.parent_id is not None:
            reply_to = state.properties.get(REPLY_TO)
            ended = child_refused(self.instance_id, state.parent_id, reply_to, DELETED) if reply_to else None
        elif self._deletes:
            return  # it was told when the instance ended
        if ended is not None and ended.instance_id is not None:
            shard = int(state.properties.get(PARENT_SHARD, 0))
            self.consequences.send(Resume(key=ended.key, input=ended.input), ended.instance_id, shard)

    def _answer(self, applied: bool, altered: tuple[Altered, ...]) -> bytes:
        columns = self._columns or self.loaded.columns
        sub_status = columns.sub_status if self.state is None else self.state.sub_status
        body: dict[str, Any] = {
            "instanceId": self.instance_id,
            "applied": applied,
            "status": sub_status.status.value,
            "subStatus": sub_status.value,
        }
        if self.state is not None and self.state.output:
            body["output"] = read_payload(self.state.output)
        if altered:
            body["alterations"] = [{"succeeded": one.is_applied, "text": one.text} for one in altered]
        return encode_payload(body)


def _cancels(message: Message | Order) -> bool:
    return isinstance(message, Alter) and any(isinstance(one, Cancel) for one in message.alterations)
