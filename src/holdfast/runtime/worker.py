"""Takes turns: messages in, a commit out, and then what has become true is told to those it concerns.

A turn that came too late or whose outcome nobody knows is given up: memory forgets what it knew, and
reading tells what is true. One that raises is tried again later, and at last becomes a dead letter, so
that it holds back one instance and ends somewhere visible.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

import msgspec

from holdfast import telemetry
from holdfast.commit import Change, Commit, DeadLetter, Delivery, Envelope, Then
from holdfast.errors import HoldfastError, Unavailable
from holdfast.message import Cancel, Resume, Start, Steer
from holdfast.runtime.accounts import buried, turn_began, turn_late, turn_raised, turn_settled
from holdfast.runtime.backoff import until_retry
from holdfast.runtime.changes import interrupted
from holdfast.runtime.children import PARENT_SHARD, REPLY_TO, child_refused
from holdfast.runtime.committer import Committer
from holdfast.runtime.courier import RESULT, Courier
from holdfast.runtime.letters import WAKES, continued, in_hand, is_urgent, opened, sealed
from holdfast.runtime.lifecycle import EventType, LifecycleEvent, event_of_columns
from holdfast.runtime.lines import ALONE, MOST, Line, Lines, Name, name_of
from holdfast.runtime.loader import Loader
from holdfast.runtime.looks import SecondLooks, awaited_by, moved_by
from holdfast.runtime.matching import Matching
from holdfast.runtime.program import Program, Snapshot
from holdfast.runtime.reader import DOUBT, LEASE, PAUSE, Reader
from holdfast.runtime.spans import turn_span
from holdfast.runtime.turn import Turn
from holdfast.runtime.world import World
from holdfast.store import Committed, Loaded, StaleTurn, Unwritable

ATTEMPTS = 8
"""The last one makes a dead letter."""
DEATHS = 5
"""A message whose process died so often, the last times while it ran alone, is not run again."""
PATIENCE = 0.05
"""Seconds after which is asked again whether a commit was written."""
GRACE = timedelta(seconds=10)
"""How long an activity that does not listen may go on after a cancel."""


class Observer(Protocol):
    """Who is told of commits, after they have returned."""

    def committed(
        self, commit: Commit, committed: Committed, before: Snapshot | None, after: Snapshot | None
    ) -> None: ...


class Gate(Protocol):
    """What may not be begun now."""

    def is_closed(self, tenant: str, definition_id: str) -> bool: ...


class Worker:
    def __init__(
        self,
        world: World,
        *,
        lines: Lines,
        reader: Reader,
        loader: Loader,
        committer: Committer,
        courier: Courier,
        matching: Matching,
        gate: Gate,
        observer: Observer,
        names: Callable[[], str],
        may_begin: Callable[[], bool],
    ) -> None:
        """`names` gives each turn one of its own; `may_begin` says whether our leases still hold."""
        self._world = world
        self._lines = lines
        self._reader = reader
        self._loader = loader
        self._committer = committer
        self._courier = courier
        self._matching = matching
        self._gate = gate
        self._observer = observer
        self._names = names
        self._may_begin = may_begin
        self.looks = SecondLooks(matching)
        self._suspects: set[Name] = set()
        """Messages that ran alone in this life."""

    async def run(self, slots: int) -> None:
        """Until cancelled: so many turns at a time."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(slots):
                tasks.create_task(self._take_turns())
            tasks.create_task(self.looks.run())

    async def _take_turns(self) -> None:
        while True:
            line = await self._lines.next()
            try:
                await self._take(line)
            finally:
                self._lines.done(line)

    async def _take(self, line: Line) -> None:
        deliveries = line.take(MOST)
        if not deliveries:
            return
        if not self._may_begin() or not self._reader.owns(line.shard):
            self._reader.leave([*deliveries, *self._lines.drop_line(line)], LEASE)
        else:
            try:
                await self._try(line, deliveries)
            except asyncio.CancelledError:
                # This life of the node is over. In the next one they are read like any other.
                self._reader.leave(deliveries, DOUBT)
                raise

    async def _try(self, line: Line, deliveries: list[Delivery]) -> None:
        """`deliveries` are those in hand: what is settled, left or put back meanwhile is taken out."""
        try:
            await self._handle(line, deliveries)
        except StaleTurn as late:
            self._loader.forget(line.key)
            if isinstance(late, Unwritable):
                await self._fail(line, deliveries, late)
                return
            # Whether a message is gone or another turn was first: reading tells.
            turn_late(self._world, line.key, late)
            self._reader.leave(deliveries, DOUBT)
        except Unavailable as away:
            await self._doubt(line, deliveries, away)
        except Exception as error:  # an engine error, an unreadable state, a store that refuses the data
            self._loader.forget(line.key)
            await self._fail(line, deliveries, error)

    async def _handle(self, line: Line, deliveries: list[Delivery]) -> None:
        loaded, before = await self._loader.load(line.key)
        if loaded is None:
            await self._consume(line.key, deliveries)
            return
        if self._is_held(line, loaded, deliveries):
            return
        if deliveries[0].deaths >= DEATHS:
            error = "Its process died each time it was handled."
            await self._bury(loaded, deliveries[0], error)
            return
        if deliveries[0].deaths >= ALONE and name_of(deliveries[0]) not in self._suspects:
            # Counted before it runs, once in this life: should the process die now, it was this one.
            self._suspects.add(name_of(deliveries[0]))
            await self._world.store.count_deaths(deliveries[:1])
        if loaded.state is None and loaded.columns.finished_at is None:
            waits = [d for d in deliveries if d.envelope.kind != "start" and not is_urgent(d.envelope)]
            if len(waits) == len(deliveries):
                line.put_back(deliveries)
                # For its start, unless that has arrived while we looked.
                line.is_waiting = all(d.envelope.kind != "start" for d in line.rest)
                return
            if waits:
                deliveries[:] = [d for d in deliveries if d not in waits]
                line.put_back(waits)
        program = await self._world.programs.find(loaded.tenant, loaded.columns.version_id)
        if not await self._may_start(program, loaded, deliveries):
            return
        name = self._names()
        turn: Turn = Turn(
            loaded,
            program,
            name=name,
            world=self._world,
            write=lambda commit: self._write_checkpoint(commit, deliveries, turn),
            before=before,
        )
        turn_began(self._world, deliveries[0])
        if telemetry.tracing is None:
            commit = await self._taken(turn, line, deliveries)
            committed = await self._committer.write(commit)
        else:
            with turn_span(loaded, turn.before, name, deliveries):
                commit = await self._taken(turn, line, deliveries)
                committed = await self._committer.write(commit)
        turn_settled(self._world, loaded, commit, committed, turn.state is not turn.before)
        for delivery in deliveries:
            if committed.continued is not None and delivery.place in (None, committed.continued):
                self._reader.leave([continued(commit, committed.continued, loaded.shard)], DOUBT)
            else:
                self._reader.settled(delivery)
        for delivery in turn.handled:
            if delivery.envelope.reply == WAKES:
                self._courier.say(f"{RESULT}{loaded.tenant}/{loaded.instance_id}")
        self._remember(loaded, commit, committed, turn.state)
        if loaded.columns.is_paused and commit.change is not None and not commit.change.columns.is_paused:
            self._reader.resume(PAUSE)
        self._tell(commit, committed, loaded, turn.before, turn.state, turn.events)
        keys = self._matching.wait_on(loaded.tenant, loaded.instance_id, turn.hit_again)
        self.looks.owe(loaded.tenant, set(keys))

    def _is_held(self, line: Line, loaded: Loaded, deliveries: list[Delivery]) -> bool:
        """Whether a pause keeps it from going on. Control passes."""
        columns = loaded.columns
        if not columns.is_paused and not self._gate.is_closed(loaded.tenant, columns.definition_id):
            return False
        control = [d for d in deliveries if is_urgent(d.envelope)]
        held = [d for d in deliveries if not is_urgent(d.envelope)]
        self._reader.leave(held, PAUSE)
        deliveries[:] = control
        if not control:
            self._reader.leave(self._lines.drop_line(line), PAUSE)
        return not control

    async def _may_start(self, program: Program, loaded: Loaded, deliveries: Sequence[Delivery]) -> bool:
        """Whether one that was born inside another's commit, and could not ask then, may begin."""
        if (
            loaded.state is not None
            or loaded.turn == ""
            or all(d.envelope.kind != "start" for d in deliveries)
        ):
            return True
        guards = program.guards(loaded.columns.correlation_id)
        if not guards:
            return True
        store = self._world.store
        refused = await store.activate(loaded.tenant, loaded.instance_id, guards)
        if refused is None:
            return True
        start = next(opened(d.envelope) for d in deliveries if d.envelope.kind == "start")
        assert isinstance(start, Start)
        messages: list[Envelope] = []
        if start.parent_id is not None and (reply_to := start.properties.get(REPLY_TO)):
            told = child_refused(loaded.instance_id, start.parent_id, reply_to)
            messages.append(
                sealed(
                    Resume(key=told.key, input=told.input),
                    tenant=loaded.tenant,
                    instance_id=start.parent_id,
                    shard=int(start.properties.get(PARENT_SHARD, 0)),
                )
            )
        change = Change(shard=loaded.shard, expects=loaded.revision, columns=loaded.columns, state=None)
        commit = Commit(
            turn=self._names(),
            tenant=loaded.tenant,
            instance_id=loaded.instance_id,
            change=change,
            in_hand=in_hand(deliveries),
            messages=tuple(messages),
            deletes=True,
        )
        committed = await self._committer.write(commit)
        self._loader.forget((loaded.tenant, loaded.instance_id))
        for delivery in deliveries:
            self._reader.settled(delivery)
        self._courier.deliver(commit.messages, committed.places)
        return False

    async def _taken(self, turn: Turn, line: Line, deliveries: list[Delivery]) -> Commit:
        """Take the turn; when control arrives meanwhile, ask it to stop, and abandon it if it does not."""
        cancel: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        abandoned = False

        def abandon() -> None:
            nonlocal abandoned
            if task is not None:
                abandoned = True
                task.cancel("a cancel has waited long enough")

        def stop() -> None:
            nonlocal cancel
            if any(d.envelope.kind == _STEER for d in line.control):
                turn.stop()
            cancels = [opened(d.envelope) for d in line.control if d.envelope.kind == _CANCEL]
            if cancels:
                turn.stop()
                at_once = any(isinstance(one, Cancel) and one.at_once for one in cancels)
                if cancel is not None and at_once:
                    cancel.cancel()
                    cancel = None
                cancel = cancel or loop.call_later(0 if at_once else GRACE.total_seconds(), abandon)

        def late() -> list[Delivery]:
            arrived = line.take_control()
            deliveries.extend(arrived)
            return arrived

        line.on_control = stop
        try:
            commit = await turn.take(deliveries, late=late)
            if turn.held:
                deliveries[:] = [delivery for delivery in deliveries if delivery not in turn.held]
                line.put_back(turn.held)
            return commit
        except asyncio.CancelledError:
            if not abandoned or task is None:
                raise
            task.uncancel()
            raise StaleTurn(turn.instance_id, "it did not stop when it was cancelled") from None
        finally:
            line.on_control = None
            if cancel is not None:
                cancel.cancel()

    async def _write_checkpoint(self, commit: Commit, deliveries: list[Delivery], turn: Turn) -> Committed:
        committed = await self._committer.write(commit)
        self._loader.forget((commit.tenant, commit.instance_id))
        fates = {(one.place, one.timer): one.then for one in commit.in_hand}
        for number, delivery in reversed(list(enumerate(deliveries))):
            fate = fates.get((delivery.place, delivery.timer))
            if fate is Then.CONSUME:
                self._reader.settled(deliveries.pop(number))
            elif fate is Then.CONTINUE and committed.continued is not None and commit.change is not None:
                # The row is this turn's: whoever reads it meanwhile shall not take it for another message.
                onward = deliveries[number] = continued(commit, committed.continued, commit.change.shard)
                self._lines.forget(delivery)
                self._lines.claim(onward)
        self._tell(commit, committed, None, None, None, turn.events)
        return committed

    async def _consume(self, key: tuple[str, str], deliveries: Sequence[Delivery]) -> None:
        """For an instance that is not there any more."""
        commit = Commit(turn=self._names(), tenant=key[0], instance_id=key[1], in_hand=in_hand(deliveries))
        await self._committer.write(commit)
        for delivery in deliveries:
            self._reader.settled(delivery)

    # --- after a commit ---------------------------------------------------------------------------

    def _remember(self, loaded: Loaded, commit: Commit, committed: Committed, state: Snapshot | None) -> None:
        key = (loaded.tenant, loaded.instance_id)
        change = commit.change
        if change is None:
            return
        if change.columns.finished_at is not None or commit.deletes:
            self._loader.forget(key)
            return
        self._loader.remember(
            Loaded(
                tenant=loaded.tenant,
                instance_id=loaded.instance_id,
                shard=loaded.shard,
                revision=committed.revision,
                turn=commit.turn,
                columns=change.columns,
                state=change.state,
            ),
            state,
        )

    def _tell(
        self,
        commit: Commit,
        committed: Committed,
        loaded: Loaded | None,
        before: Snapshot | None,
        after: Snapshot | None,
        events: Sequence[LifecycleEvent],
    ) -> None:
        self._observer.committed(commit, committed, before, after)
        if events:
            self._world.listeners.tell(events)
        self._courier.deliver(commit.messages, committed.places)
        shard = 0 if commit.change is None else commit.change.shard
        for timer in commit.timers:
            self._reader.add_timer(
                Delivery(
                    envelope=Envelope(
                        tenant=commit.tenant,
                        instance_id=commit.instance_id,
                        shard=shard,
                        kind=timer.kind,
                        payload=timer.payload,
                        trace=timer.trace,
                    ),
                    timer=timer.id,
                    due=timer.due,
                )
            )
        for timer_id in commit.timers_gone:
            self._reader.withdraw((commit.tenant, commit.instance_id, timer_id))
        put_back = {kept.key for kept in commit.put_back}
        self.looks.owe(commit.tenant, awaited_by(commit) | moved_by(loaded, after) | put_back)

    # --- failure ----------------------------------------------------------------------------------

    async def _doubt(self, line: Line, deliveries: list[Delivery], away: Unavailable) -> None:
        """Nobody knows whether it was written, and nothing is counted. If it was, its messages are gone."""
        self._loader.forget(line.key)
        self._reader.leave([*deliveries, *self._lines.drop_line(line)], DOUBT)
        self._reader.doubt_timers()
        await asyncio.sleep(PATIENCE)

    async def _fail(self, line: Line, deliveries: list[Delivery], error: Exception) -> None:
        if len(deliveries) == 1:
            await self._count_failure(line, deliveries[0], error)
        else:
            # One of them is bad. Taken alone, only that one fails, and holds back those behind it.
            line.put_back(deliveries)
            line.singly = len(deliveries)

    async def _count_failure(self, line: Line, delivery: Delivery, error: Exception) -> None:
        words = str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
        turn_raised(self._world, line.key, error, delivery.attempts + 1)
        now = self._world.environment.clock.now()
        retry_at = now + until_retry(delivery.attempts, f"{delivery.place}{delivery.timer}")
        try:
            if delivery.attempts + 1 >= ATTEMPTS:
                loaded, _ = await self._loader.load(line.key)
                if loaded is None:
                    await self._consume(line.key, [delivery])
                else:
                    await self._bury(loaded, delivery, words)
                return
            await self._world.store.postpone(delivery, retry_at, words)
        except (StaleTurn, Unavailable):
            self._reader.leave([delivery], DOUBT)
            return
        later = msgspec.structs.replace(
            delivery, attempts=delivery.attempts + 1, retry_at=retry_at, error=words
        )
        self._lines.back_off(line, delivery, later, retry_at)
        self._reader.news.set()

    async def _bury(self, loaded: Loaded, delivery: Delivery, error: str) -> None:
        """A dead letter is a commit like any other; the state stays as it is, it may be unreadable."""
        now = self._world.environment.clock.now()
        is_over = loaded.columns.finished_at is not None
        columns = interrupted(loaded.columns, now)
        change = Change(shard=loaded.shard, expects=loaded.revision, columns=columns, state=loaded.state)
        letter = DeadLetter(
            id=self._names(),
            envelope=delivery.envelope,
            error=error,
            attempts=delivery.attempts + 1,
            deaths=delivery.deaths,
            at=now,
            sent_at=delivery.sent_at,
        )
        listeners, about = self._world.listeners, {"letterId": letter.id, "message": error}
        kind = EventType.INSTANCE_INTERRUPTED
        events = () if is_over else event_of_columns(kind, loaded, change, listeners.wanted, about)
        commit = Commit(
            turn=letter.id,
            tenant=loaded.tenant,
            instance_id=loaded.instance_id,
            change=None if is_over else change,
            in_hand=in_hand([delivery]),
            dead_letters=(letter,),
            outbox=listeners.outgoing(events),
        )
        self._loader.forget((loaded.tenant, loaded.instance_id))
        committed = await self._committer.write(commit)
        self._reader.settled(delivery)
        buried(self._world, loaded, letter)
        self._tell(commit, committed, None, None, None, events)


_CANCEL, _STEER = (str(kind.__struct_config__.tag) for kind in (Cancel, Steer))
