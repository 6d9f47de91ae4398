"""All an instance does in memory between two waits: one FIFO queue, and the rules around it.

Everything that looks parallel is interleaving by this queue. A burst is deterministic: executions
are numbered by a counter that is part of the state, other ids derive from those numbers, and time
is asked of the clock it was given. This module is longer than most because it is the one loop of
the engine: what an execution is, how it completes, faults and is cancelled belongs on one page.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from inspect import isawaitable, iscoroutine
from typing import Any

from holdfast.authoring import Activity, Canceled, Completed, Fault, Signal
from holdfast.bookmark import Bookmark, key_of
from holdfast.definitions.graph import Graph, Node
from holdfast.engine.commits import wants_checkpoint
from holdfast.engine.context import Context
from holdfast.engine.environment import Environment
from holdfast.engine.faults import RETRY, give_up, handle_fault
from holdfast.engine.frame import CANCELED, COMPLETED, FAULTED, PENDING, RUNNING, Frame
from holdfast.engine.journal import shown_inputs
from holdfast.engine.scope import FrameScope
from holdfast.errors import HoldfastError, Invalid
from holdfast.expression import ExpressionFailed
from holdfast.instance import Incident, Record, SubStatus
from holdfast.message import DoInBackground, Effect

BACKGROUND = "Elsa.BackgroundActivity"


class Burst:
    """One instance at work. Made by `engine.state` from a state, or new; gone when it settles."""

    def __init__(self, graph: Graph, environment: Environment, instance_id: str) -> None:
        self.graph = graph
        self.environment = environment
        self.clock = environment.clock
        self.instance_id = instance_id
        self.tenant = ""
        self.parent_id: str | None = None
        self.correlation_id: str | None = None
        self.name: str | None = None
        self.created_at: datetime | None = None
        self.input: dict[str, Any] = {}
        self.kept_input: dict[str, Any] = {}
        self.output: dict[str, Any] = {}
        self.properties: dict[str, Any] = {}
        self.trigger: str | None = None
        self.root = Frame(graph.root, None)
        self.queue: deque[Frame] = deque()
        self.frames: dict[int, Frame] = {}
        """Executions that have not ended, by number."""
        self.bookmarks: dict[str, Bookmark] = {}
        self.incidents: list[Incident] = []
        self.records: list[Record] = []
        self.effects: list[Effect] = []
        self.executions = 0
        self.sequence = 0
        self.last_result: Any = None
        self.ended: SubStatus | None = None
        """Set as soon as it is known how the instance ends, though the queue may still drain."""
        self.stopping = False
        """Set from outside to stop before the next activity."""
        self.checkpoint: Callable[[Burst], Awaitable[None]] | None = None
        self.checkpointed_at: datetime | None = None
        options = graph.definition.options
        self.incident_strategy = options.incident_strategy or environment.incident_strategy
        self.commit_strategy = options.commit_strategy

    # --- the loop ---------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Execute until the queue is empty. A fault does not stop it: siblings still get their turn."""
        queue = self.queue
        limits = self.environment.limits
        begun = 0
        while queue and not self.stopping:
            frame = queue.popleft()
            if frame.status is CANCELED:
                continue
            begun += 1
            if begun % limits.breath == 0:
                await asyncio.sleep(0)
                if begun >= limits.executions:
                    give_up(self, frame.node, begun)
                    return
            if self.checkpoint is not None and wants_checkpoint(self, frame.node, "Executing"):
                queue.appendleft(frame)
                await self._reach_checkpoint()
                queue.popleft()
            pending = self._execute(frame)
            if pending is not None:
                await pending
            if self.checkpoint is not None and wants_checkpoint(self, frame.node, "Executed"):
                await self._reach_checkpoint()

    @property
    def sub_status(self) -> SubStatus:
        """Where the instance stands now that nothing is left to execute."""
        if self.ended is not None:
            return self.ended
        return SubStatus.SUSPENDED if self.frames else SubStatus.FINISHED

    def _execute(self, frame: Frame) -> Awaitable[None] | None:
        """Execute one work item; what must be awaited is returned, so that plain activities are not."""
        node = frame.node
        if frame.number == 0:
            self._begin(frame)
        else:
            self.record("Resumed", frame)
        try:
            if self.environment.around_activity:
                return self._execute_within_middleware(frame)
            pending = self._call(frame)
            if pending is not None:
                return self._settle_awaited(frame, pending)
            if frame.status is RUNNING:
                self._settle(frame, node)
        except Exception as error:  # an activity may raise anything; it becomes a fault
            self.fault(frame, error)
        return None

    def _begin(self, frame: Frame) -> None:
        self.executions = number = self.executions + 1
        frame.number = number
        self.frames[number] = frame
        owner = frame.parent
        if owner is not None:
            owner.queued -= 1
            if owner.children is None:
                owner.children = {number: frame}
            else:
                owner.children[number] = frame
        node = frame.node
        if node.declares_variables:
            memory = {variable_id: variable.fresh() for variable_id, variable in node.variables.items()}
            if frame.memory is not None:
                memory.update(frame.memory)
            frame.memory = memory
        self.sequence = sequence = self.sequence + 1
        self.records.append(
            Record(
                sequence,
                "Started",
                number,
                node.index,
                0 if owner is None else owner.number,
                self.clock.now(),
            )
        )

    def _call(self, frame: Frame) -> Awaitable[Any] | None:
        """Evaluate the inputs and call `execute`, or the method that carries on from a bookmark."""
        node = frame.node
        resumption = frame.resumption
        frame.status = RUNNING
        activity: Activity = object.__new__(node.implementation)
        frame.activity = activity
        context = Context(self, frame)
        attributes = activity.__dict__
        attributes.update(node.fixed)
        frame.inputs = inputs = self._evaluate_inputs(frame)
        attributes.update(inputs)
        if node.checks and not activity.can_execute(context):
            frame.status = PENDING
            self.record("Precondition Failed", frame)
            return None
        if resumption is not None:
            frame.resumption = None
            return self._resume(frame, activity, context, resumption)
        if node.is_background and self.environment.has_background:
            bookmark = self.bookmark(frame, name=BACKGROUND, resume="", private=True)
            self.effects.append(
                DoInBackground(execution=frame.number, activity_id=node.id, bookmark_id=bookmark.id)
            )
            return None
        result = activity.execute(context)
        return result if result is not None and isawaitable(result) else None

    def _resume(
        self, frame: Frame, activity: Any, context: Context, bookmark: Bookmark
    ) -> Awaitable[Any] | None:
        if bookmark.name == BACKGROUND:
            self._take_background(frame)
            return None
        if bookmark.name == RETRY:
            result = activity.execute(context)
        elif bookmark.resume is None:
            self.complete(frame)
            return None
        else:
            result = getattr(activity, bookmark.resume)(context)
        return result if result is not None and isawaitable(result) else None

    def _evaluate_inputs(self, frame: Frame) -> dict[str, Any]:
        node = frame.node
        dynamic = node.dynamic
        if not dynamic and frame.edited is None:
            return node.constants  # shared by all executions: inputs are read, never written
        inputs = node.constants.copy()
        if dynamic:
            # Evaluated in the owner's scope and in order of declaration, each seeing what was set before.
            scope = FrameScope(self, frame)
            for entry in dynamic:
                try:
                    inputs[entry.attribute] = entry.evaluate(scope)
                except HoldfastError as reason:
                    raise ExpressionFailed(
                        f"Failed to evaluate activity input '{entry.name}': {reason}"
                    ) from reason
        if frame.edited is not None:
            inputs.update(frame.edited)
        return inputs

    def _settle(self, frame: Frame, node: Node) -> None:
        """After executing: suspended, completed by itself, or waiting for what it scheduled."""
        if frame.bookmarks:
            self.record("Suspended", frame)
        elif node.auto_complete and not frame.queued and not frame.children:
            if node.must_choose:
                raise Fault(
                    f"{node.type_name} ended without choosing an outcome. Call `context.complete` with one "
                    f"of: {', '.join(node.type.descriptor.outcomes)}."
                )
            self.complete(frame)

    async def _settle_awaited(self, frame: Frame, pending: Awaitable[Any]) -> None:
        try:
            await pending
            if frame.status is RUNNING:
                self._settle(frame, frame.node)
        except Exception as error:  # an activity may raise anything; it becomes a fault
            self.fault(frame, error)

    async def _execute_within_middleware(self, frame: Frame) -> None:
        context = Context(self, frame)

        async def innermost() -> None:
            pending = self._call(frame)
            if pending is not None:
                await pending
            if frame.status is RUNNING:
                self._settle(frame, frame.node)

        call: Callable[[], Awaitable[None]] = innermost
        for middleware in reversed(self.environment.around_activity):
            call = _wrapped(middleware, context, call)
        try:
            await call()
        except Exception as error:  # an activity may raise anything; it becomes a fault
            self.fault(frame, error)

    # --- what activities cause --------------------------------------------------------------------

    def schedule(
        self,
        owner: Frame,
        node: Node,
        done: str | None,
        tag: Any,
        variables: Mapping[str, Any] | None,
        backward: bool,
    ) -> None:
        frame = Frame(node, owner, done, tag)
        frame.backward = backward
        if variables:
            frame.memory = dict(variables)
            frame.dynamic = {name: name for name in variables}
        owner.queued += 1
        self.queue.append(frame)

    def complete(
        self, frame: Frame, outcomes: tuple[str, ...] | None = None, *, quietly: bool = False
    ) -> None:
        """Take an execution as done: cancel what is open inside, then tell its owner.

        The owner's method runs inside this call, so an exception there surfaces in the execution
        that completed, which is the one that faults. Elsa does the same.
        """
        if frame.status is not RUNNING:
            return
        frame.status = COMPLETED
        if frame.children:
            for child in list(frame.children.values()):
                self.cancel(child)
        frame.outcomes = outcomes
        node = frame.node
        owner = frame.parent
        number = frame.number
        self.sequence = sequence = self.sequence + 1
        log = frame.log
        if outcomes is not None:
            log = {**log, "Outcomes": outcomes} if log else {"Outcomes": outcomes}
        self.records.append(
            Record(
                sequence,
                "Completed",
                number,
                node.index,
                0 if owner is None else owner.number,
                self.clock.now(),
                None,
                frame.inputs if node.unlogged is None else shown_inputs(self, frame),
                frame.outputs,
                log,
            )
        )
        self.frames.pop(number, None)
        if frame.bookmarks:
            self.remove_bookmarks(frame)
        if owner is None:
            return
        if owner.children is not None:
            owner.children.pop(number, None)
        if owner.status is RUNNING and not quietly:
            self._tell(owner, frame, outcomes)

    def _tell(self, owner: Frame, frame: Frame, outcomes: tuple[str, ...] | None) -> None:
        if frame.done is not None:
            completed = Completed(frame.node, outcomes, frame.tag, frame.number, frame.backward)
            result = getattr(self.activity(owner), frame.done)(Context(self, owner), completed)
            if result is not None and iscoroutine(result):
                result.close()
                raise Invalid(
                    f"{owner.node.type_name}.{frame.done} is async. What hears of a completed child only "
                    f"decides what to schedule next; put work that awaits into an activity of its own."
                )
        if (
            owner.status is RUNNING
            and owner.node.auto_complete
            and not owner.queued
            and not owner.children
            and not owner.bookmarks
        ):
            self.complete(owner)

    def cancel(self, frame: Frame, *, quietly: bool = False) -> None:
        """Withdraw its queued work, cancel what is open inside it, and close it."""
        if frame.status is CANCELED or frame.status is COMPLETED:
            return
        frame.status = CANCELED
        if frame.queued:
            self.withdraw(frame)
        if frame.children:
            for child in list(frame.children.values()):
                self.cancel(child)
        self.frames.pop(frame.number, None)
        if frame.bookmarks:
            self.remove_bookmarks(frame)
        self.record("Canceled", frame)
        owner = frame.parent
        if owner is not None:
            if owner.children is not None:
                owner.children.pop(frame.number, None)
            # Only the owner hears it: a container further out never scheduled this activity.
            if owner.status is RUNNING and owner.node.receives and not quietly:
                self.activity(owner).receive(
                    Context(self, owner), Canceled(frame.node, frame.number, frame.backward)
                )

    def withdraw(self, owner: Frame, nodes: frozenset[Any] | None = None) -> None:
        """Take queued work of that owner off the queue."""
        for queued in self.queue:
            if queued.parent is owner and queued.number == 0 and queued.status is not CANCELED:
                if nodes is not None and queued.node not in nodes:
                    continue
                queued.status = CANCELED
                owner.queued -= 1

    def signal(self, frame: Frame, signal: Signal) -> None:
        """Visit the sender, then each ancestor, until one stops it."""
        visited: Frame | None = frame
        while visited is not None and not signal.stopped:
            if visited.node.receives and visited.status in (RUNNING, FAULTED):
                self.activity(visited).receive(Context(self, visited), signal)
            visited = visited.parent

    def fault(self, frame: Frame, error: BaseException) -> None:
        """An execution raised: retry it, let an ancestor handle it, or record an incident."""
        handle_fault(self, frame, error)

    def finish(self) -> None:
        """End the whole instance as finished; what is open keeps its status."""
        for queued in self.queue:
            queued.status = CANCELED
        self.queue.clear()
        self.bookmarks.clear()
        for frame in self.frames.values():
            frame.done = None
            frame.bookmarks = 0
        self.ended = SubStatus.FINISHED

    # --- bookmarks --------------------------------------------------------------------------------

    def bookmark(
        self,
        frame: Frame,
        *,
        name: str | None = None,
        payload: Any = None,
        resume: str | None = None,
        private: bool = False,
        burns: bool = True,
        due: datetime | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Bookmark:
        name = name or frame.node.type_name
        frame.ids += 1
        execution_id = f"{self.instance_id}-{frame.number}"
        made = Bookmark(
            id=f"{execution_id}-{frame.ids}",
            name=name,
            key=key_of(name, payload, execution_id if private else None),
            activity_id=frame.node.id,
            execution=frame.number,
            created_at=self.clock.now(),
            payload=payload,
            resume=resume,
            burns=burns,
            due=due,
            metadata=metadata or {},
        )
        self.bookmarks[made.id] = made
        frame.bookmarks += 1
        return made

    def remove_bookmarks(self, frame: Frame) -> None:
        number = frame.number
        for bookmark in [b for b in self.bookmarks.values() if b.execution == number]:
            del self.bookmarks[bookmark.id]
        frame.bookmarks = 0

    def hit(self, bookmark: Bookmark) -> bool:
        """Queue the execution that waits at a bookmark. False when nothing waits there any more."""
        frame = self.frames.get(bookmark.execution)
        if frame is None or bookmark.id not in self.bookmarks:
            return False
        if bookmark.burns:
            del self.bookmarks[bookmark.id]
            frame.bookmarks -= 1
        frame.resumption = bookmark
        self.queue.append(frame)
        return True

    def _take_background(self, frame: Frame) -> None:
        """Apply what was done outside the burst, as it came back with the message."""
        outcome: Mapping[str, Any] = self.input.pop("BackgroundOutcome", {})
        if outcome.get("fault"):
            raise Fault(outcome["fault"], fault_code=outcome.get("code"))
        context = Context(self, frame)
        for name, value in outcome.get("outputs", {}).items():
            context.set_output(name, value)
        for name, value in outcome.get("log", {}).items():
            context.log(name, value)
        outcomes = outcome.get("outcomes")
        self.complete(frame, None if outcomes is None else tuple(outcomes))

    # --- small things -----------------------------------------------------------------------------

    def activity(self, frame: Frame) -> Activity:
        """The object behind an open execution; made again after a wait, with the inputs it had."""
        activity = frame.activity
        if activity is None:
            activity = frame.activity = object.__new__(frame.node.implementation)
            activity.__dict__.update(frame.node.fixed)
            if frame.inputs is None:
                frame.inputs = self._evaluate_inputs(frame)
            activity.__dict__.update(frame.inputs)
        return activity

    def record(self, event: str, frame: Frame, message: str | None = None) -> None:
        """One line for the journal, with what the execution has to show."""
        self.sequence = sequence = self.sequence + 1
        node = frame.node
        owner = frame.parent
        self.records.append(
            Record(
                sequence,
                event,
                frame.number,
                node.index,
                0 if owner is None else owner.number,
                self.clock.now(),
                message,
                frame.inputs if node.unlogged is None else shown_inputs(self, frame),
                frame.outputs,
                frame.log,
            )
        )

    async def _reach_checkpoint(self) -> None:
        # Before the first execution the start message says it all, and with nothing queued the burst is
        # about to settle.
        if self.checkpoint is not None and self.ended is None and self.queue and self.executions:
            await self.checkpoint(self)
            self.checkpointed_at = self.clock.now()


def _wrapped(
    middleware: Callable[..., Awaitable[None]], context: Context, call: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    async def wrapped() -> None:
        await middleware(context, call)

    return wrapped
