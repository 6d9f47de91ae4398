"""The runs of one machine: what an application asks of them, typed as the machine is.

    runs = holdfast.machine(orders)
    run_id = await runs.trigger("order-17", Order(...))
    await runs.reached(run_id, Status.SHIPPED)

What changes a run is sent to it as a message, and is durable when the call returns. Waiting works from
any node.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, cast

import msgspec

from holdfast.bookmark import Stimulus
from holdfast.clock import Ids
from holdfast.commit import Lane
from holdfast.errors import Conflict, HoldfastError, Invalid
from holdfast.instance import Status, SubStatus
from holdfast.machines.interpreter import DELETE, PAUSE, RESUME
from holdfast.machines.keys import callback_key
from holdfast.machines.objects import Objects
from holdfast.machines.run import ObjectT, Run, RunState, StatusT, may_become
from holdfast.machines.view import run_of
from holdfast.message import Cancel, Message, Start, Steer, Unpause
from holdfast.runtime.coded import Coded
from holdfast.runtime.letters import WAKES
from holdfast.runtime.node import Node
from holdfast.runtime.reception import Reception, StartRefused
from holdfast.runtime.results import InstanceNotFound
from holdfast.runtime.run_callbacks import Answer, Callbacks
from holdfast.runtime.run_schedules import RunSchedules, Scheduled
from holdfast.store import InstanceFilter, Loaded

LONGEST_FOREIGN_ID = 200


class RunInProgress(Conflict):
    """There is an unfinished run of the same foreign id."""

    code = "run.in_progress"

    def __init__(self, machine: str, foreign_id: str, run_id: str) -> None:
        super().__init__(
            f"{machine!r} has an unfinished run for {foreign_id!r}, {run_id}. Wait for it to finish, or "
            f"cancel it."
        )
        self.run_id = run_id


class RunEnded(Conflict):
    """The run has ended without coming to the status that was awaited."""

    code = "run.ended"

    def __init__(self, run: Run[Any, Any], wanted: Sequence[Any]) -> None:
        names = ", ".join(status.name for status in wanted)
        super().__init__(
            f"Run {run.id} is {run.state.name.lower()} in {run.status.name} and never came to {names}."
        )
        self.run = run


class RunNotInState(Conflict):
    """The run is in a state from which this is not allowed."""

    code = "run.state"

    def __init__(self, run_id: str, before: RunState, after: RunState) -> None:
        super().__init__(f"Run {run_id} is {_words(before)}; from there it cannot become {_words(after)}.")


class Runs(Generic[ObjectT, StatusT]):
    """A handle; make as many as you like."""

    def __init__(self, program: Coded, node: Node, reception: Reception, ids: Ids, tenant: str) -> None:
        self._program = program
        self._machine = program.machine
        self._node = node
        self._world = node.world
        self._reception = reception
        self._tenant = tenant
        self._callbacks = Callbacks(node.world, node.courier, node.matching, ids)
        self._schedules = RunSchedules(
            program,
            node.world.store,
            node.world.environment.clock,
            tenant,
            lambda name: node.world.shards.of(tenant, program.definition_id, name),
        )

    # --- starting ---------------------------------------------------------------------------------

    async def trigger(
        self,
        foreign_id: str,
        object: ObjectT | None = None,  # noqa: A002  as the machine calls it
        *,
        at: StatusT | None = None,
        key: str | None = None,
    ) -> str:
        """Begin a run; its id, as soon as that is durable.

        `at` is another status to begin in. With the same idempotency `key` there is one run, however often
        it is asked for. Raises RunInProgress.
        """
        start = self._start(foreign_id, object, at)
        try:
            return await self._reception.start(
                self._program, start, tenant=self._tenant, key=key, reply=WAKES
            )
        except StartRefused as refused:
            raise RunInProgress(self._machine.name, foreign_id, refused.instance_id) from None

    async def trigger_many(self, objects: Mapping[str, ObjectT]) -> dict[str, str | HoldfastError]:
        """Begin one run for each foreign id, all in one transaction; an id or a refusal for each.

        They stand in a line of their own, so that a million of them delay nobody else.
        """
        starts = [self._start(foreign_id, value, None) for foreign_id, value in objects.items()]
        answers = await self._reception.start_many(self._program, starts, tenant=self._tenant)
        return {
            foreign_id: RunInProgress(self._machine.name, foreign_id, answer.instance_id)
            if isinstance(answer, StartRefused)
            else answer
            for foreign_id, answer in zip(objects, answers, strict=True)
        }

    def _start(self, foreign_id: str, value: ObjectT | None, at: StatusT | None) -> Start:
        if not foreign_id or len(foreign_id) > LONGEST_FOREIGN_ID:
            raise Invalid(
                f"A foreign id has 1 to {LONGEST_FOREIGN_ID} characters; this one {len(foreign_id)}."
            )
        objects: Objects[ObjectT] = self._machine.objects
        given = objects.write(objects.fresh() if value is None else value)
        values: dict[str, Any] = {"object": given.decode()}
        if at is not None:
            if at in self._machine.built.terminal:
                raise Invalid(f"A run cannot begin in {at.name}: it would have ended.")
            values["at"] = self._machine.status(at).value
        begins = self._machine.start if at is None else at
        return Start(input=values, correlation_id=foreign_id, name=begins.name)

    # --- from outside -----------------------------------------------------------------------------

    async def callback(
        self,
        foreign_id: str,
        status: StatusT,
        payload: Any = None,
        *,
        name: str = "",
        run_id: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """Bring something to the run of a foreign id, for the callback of a status; durable when it returns.

        One that comes too early is kept for the run. With the same idempotency `key` it is brought once.
        """
        handler = self._machine.built.callbacks.get(status, {}).get(name)
        if handler is None:
            called = f" called {name!r}" if name else ""
            raise Invalid(f"{status.name} of the machine {self._machine.name!r} has no callback{called}.")
        text = self._payload(handler.number, payload)
        asked = (self._machine.name, foreign_id, str(status.value), name, run_id or "", text)
        known = key is not None and await self._callbacks.was_answered(self._tenant, key)
        run = None
        if not known:
            run = await self.get(run_id) if run_id is not None else await self.latest(foreign_id)
            if run is not None and self._is_too_late(run, status):
                return await self._callbacks.refuse(tenant=self._tenant, key=key, asked=asked)
        owner = foreign_id if run is None else run.foreign_id
        stimulus = Stimulus(
            name="callback",
            exact_key=callback_key(self._machine.name, status.value, name, owner),
            input={"payload": text},
            instance_id=None if run is None else run.id,
            correlation_id=owner,
        )
        return await self._callbacks.bring(
            stimulus, tenant=self._tenant, keeps=self._machine.keeps, key=key, asked=asked
        )

    def _payload(self, number: int, payload: Any) -> str:
        objects = self._machine.built.payloads.get(number)
        if objects is None:
            return "null"
        if isinstance(payload, bytes) and objects.kind is not bytes:
            text = payload  # as it came over the wire
        elif isinstance(objects.kind, type) and isinstance(payload, objects.kind):
            text = objects.write(payload)
        else:
            text = msgspec.json.encode(payload)
        objects.read(text)  # raises now what the callback would raise
        return text.decode()

    def _is_too_late(self, run: Run[ObjectT, StatusT], status: StatusT) -> bool:
        if run.state.is_finished:
            return True
        return run.status != status and status not in self._machine.built.reach[run.status]

    # --- waiting ----------------------------------------------------------------------------------

    async def reached(
        self, run_id: str, *statuses: StatusT, within: timedelta | float | None = None
    ) -> Run[ObjectT, StatusT]:
        """The run, when it is in one of these or has been. Raises RunEnded, TimeoutError.

        A pause is no arrival: it is waited on.
        """
        wanted = {status.value for status in statuses}

        def is_it(loaded: Loaded) -> bool:
            if loaded.columns.finished_at is not None or loaded.state is None:
                return loaded.columns.finished_at is not None
            return not wanted.isdisjoint(self._program.decode(loaded.state).passed)

        run = self._view(await self._until(run_id, is_it, within))
        if wanted.isdisjoint(status.value for status in run.passed):
            raise RunEnded(run, statuses)
        return run

    async def finished(
        self, run_id: str, *, within: timedelta | float | None = None
    ) -> Run[ObjectT, StatusT]:
        """The run, when it has completed or was cancelled. Raises TimeoutError."""
        return self._view(
            await self._until(run_id, lambda loaded: loaded.columns.finished_at is not None, within)
        )

    async def _until(
        self, run_id: str, is_it: Callable[[Loaded], bool], within: timedelta | float | None
    ) -> Loaded:
        seconds = within.total_seconds() if isinstance(within, timedelta) else within
        async with asyncio.timeout(seconds):
            return await self._node.results.until(self._tenant, run_id, is_it)

    # --- steering ---------------------------------------------------------------------------------

    async def pause(self, run_id: str, reason: str = "") -> None:
        """Let it stand still until it is resumed: no errors, time or callbacks make it go on."""
        await self._steer(run_id, PAUSE, RunState.PAUSED, reason)

    async def resume(self, run_id: str) -> None:
        """Let it go on, whoever paused it."""
        loaded = await self._load(run_id)
        if loaded.columns.is_paused:  # as an instance, by somebody who operates all kinds of them
            await self._reception.tell(Unpause(), tenant=self._tenant, instance_id=run_id, reply=WAKES)
        if not loaded.columns.is_paused or self._kept_state(loaded) is RunState.PAUSED:
            await self._steer(run_id, RESUME, RunState.RUNNING, "")

    async def cancel(self, run_id: str, reason: str = "") -> None:
        """End it before its next step."""
        await self._tell(run_id, Cancel(reason=reason), RunState.CANCELLED)

    async def delete(self, run_id: str, reason: str = "") -> None:
        """Delete the data of a finished run: what its machine's `scrub` makes of the object stays."""
        await self._steer(run_id, DELETE, RunState.DATA_DELETION_REQUESTED, reason)

    async def _steer(self, run_id: str, order: str, becomes: RunState, reason: str) -> None:
        await self._tell(run_id, Steer(order=order, reason=reason), becomes)

    async def _tell(self, run_id: str, message: Message, becomes: RunState) -> None:
        loaded = await self._load(run_id)
        before = self._kept_state(loaded)
        is_paused_again = before is becomes is RunState.PAUSED  # by a person, and no more by itself
        is_begun = before is RunState.INITIATED and becomes is RunState.RUNNING  # which nobody asks for
        if is_begun or (not may_become(before, becomes) and not is_paused_again):
            raise RunNotInState(run_id, before, becomes)
        # What has not begun is steered after its start, which is in the ordinary lane.
        waits = loaded.state is None and isinstance(message, Steer)
        await self._reception.tell(
            message,
            tenant=self._tenant,
            instance_id=run_id,
            lane=Lane.ORDINARY if waits else None,
            reply=WAKES,
        )

    # --- schedules --------------------------------------------------------------------------------

    async def schedule(
        self,
        foreign_id: str,
        object: ObjectT | None = None,  # noqa: A002
        *,
        cron: str | None = None,
        every: timedelta | None = None,
        zone: str | None = None,
        when: Callable[[datetime], Any] | None = None,
        missed: str = "last",
    ) -> None:
        """Begin a run for the foreign id whenever it is due, from now on and after every restart.

        An occurrence is let go while an earlier run is unfinished, and when the condition `when`, a function
        decorated with `@machine.condition`, says no. `missed` occurrences are skipped, or the last one or all
        are caught up with. Scheduling again replaces it, and changes nothing when it says the same.
        """
        given = self._start(foreign_id, object, None).input["object"]
        condition = None
        if when is not None:
            condition = when.__name__
            if self._machine.conditions.get(condition) is not when:
                raise Invalid(
                    f"{condition!r} is no condition of the machine {self._machine.name!r}. Decorate it with "
                    f"`@machine.condition`, so that it is known after a restart."
                )
        await self._schedules.put(
            foreign_id,
            cron=cron,
            every=every,
            zone=zone,
            given=cast("str", given),
            condition=condition,
            missed=missed,
        )
        self._node.clockwork.look()

    async def unschedule(self, foreign_id: str) -> None:
        """Raises ScheduleNotFound."""
        await self._schedules.remove(foreign_id)

    async def schedules(self) -> list[Scheduled]:
        return await self._schedules.all()

    # --- asking -----------------------------------------------------------------------------------

    async def get(self, run_id: str) -> Run[ObjectT, StatusT]:
        """Raises InstanceNotFound."""
        return self._view(await self._load(run_id))

    async def latest(self, foreign_id: str) -> Run[ObjectT, StatusT] | None:
        """The newest run of a foreign id; None when there is none."""
        found = await self.list(foreign_id=foreign_id, limit=1)
        return found[0] if found else None

    async def list(
        self,
        *,
        foreign_id: str | None = None,
        status: StatusT | None = None,
        state: RunState | None = None,
        created_from: datetime | None = None,
        created_until: datetime | None = None,
        skip: int = 0,
        limit: int = 25,
        descending: bool = True,
    ) -> list[Run[ObjectT, StatusT]]:
        """Runs, the newest first."""
        wanted = InstanceFilter(
            tenant=self._tenant,
            definition_ids=(self._program.definition_id,),
            correlation_id=foreign_id,
            created_from=created_from,
            created_until=created_until,
            status=Status.RUNNING if state in _OPEN else None,
            sub_statuses=_SUB_STATUSES.get(state, ()) if state is not None else (),
            search=None if status is None else status.name,
        )
        found: list[Run[ObjectT, StatusT]] = []
        passed, at = 0, 0
        while len(found) < limit:
            page = await self._world.store.instances(wanted, descending=descending, skip=at, limit=_PAGE)
            loaded = {
                one.instance_id: one
                for one in await self._world.store.load([(s.tenant, s.instance_id) for s in page.items])
            }
            for summary in page.items:
                if summary.instance_id not in loaded:
                    continue
                run = self._view(loaded[summary.instance_id])
                if (status is None or run.status == status) and state in (None, run.state):
                    passed += 1
                    if skip < passed <= skip + limit:
                        found.append(run)
            at += _PAGE
            if len(page.items) < _PAGE:
                break
        return found

    async def _load(self, run_id: str) -> Loaded:
        found = await self._world.store.load([(self._tenant, run_id)])
        if not found or found[0].columns.definition_id != self._program.definition_id:
            raise InstanceNotFound(run_id)
        return found[0]

    def _state(self, loaded: Loaded) -> RunState:
        state = self._kept_state(loaded)
        return RunState.PAUSED if loaded.columns.is_paused and not state.is_finished else state

    def _kept_state(self, loaded: Loaded) -> RunState:
        if loaded.state is not None:
            return self._program.decode(loaded.state).run_state
        return RunState.INITIATED if loaded.columns.finished_at is None else RunState.CANCELLED

    def _view(self, loaded: Loaded) -> Run[ObjectT, StatusT]:
        if loaded.state is not None:
            found = run_of(self._machine, self._program.decode(loaded.state))
            found.state = self._state(loaded)
            return cast("Run[ObjectT, StatusT]", found)
        columns = loaded.columns
        return Run(
            object=cast("ObjectT", None),
            status=self._machine.status.__members__.get(columns.name or "", self._machine.start),
            foreign_id=columns.correlation_id or "",
            id=loaded.instance_id,
            tenant=loaded.tenant,
            state=self._state(loaded),
            created_at=columns.created_at,
            updated_at=columns.updated_at,
            finished_at=columns.finished_at,
        )


_PAGE = 100
_OPEN = (RunState.INITIATED, RunState.RUNNING, RunState.PAUSED)
_SUB_STATUSES = {
    RunState.INITIATED: (SubStatus.PENDING,),
    RunState.COMPLETED: (SubStatus.FINISHED,),
    RunState.CANCELLED: (SubStatus.CANCELLED,),
    RunState.DATA_DELETED: (SubStatus.FINISHED, SubStatus.CANCELLED),
}


def _words(state: RunState) -> str:
    return state.name.lower().replace("_", " ")
