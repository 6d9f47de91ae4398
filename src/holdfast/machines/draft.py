"""A run as it changes in memory: where it stands, what it waits for, what there is to tell of it.

It is thawed from what was kept and frozen again; nobody else sees it meanwhile. What its functions are
called for, and what becomes of what they return, is `machines.burst`.
"""

from collections import deque
from datetime import datetime, timedelta
from enum import Enum
from inspect import isawaitable
from typing import Any

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.clock import Clock
from holdfast.instance import Record
from holdfast.machines.handler import Handler, MachineInvalid
from holdfast.machines.keys import callback_key, private_key
from holdfast.machines.machine import CANCEL, CHANGE, COMPLETE, DELETE, PAUSE, Machine
from holdfast.machines.run import RunState, may_become
from holdfast.machines.state import ARM, BY_PERSON, FORMAT, STEP, KeptRun, Paused, Work
from holdfast.message import Effect, StartChild

WAITS = "Machine.Callback"
TIMES_OUT = "Machine.Timeout"
TRIES_AGAIN = "Machine.Retry"
STANDS = "Machine.Pause"
"""What a bookmark of a run is for."""

HOOKS = ".hooks"
"""The name of the machine that calls the hooks of another is the other's name and this."""


class Draft:
    """Private, and mutable."""

    def __init__(self, machine: Machine[Any, Any], clock: Clock, state: KeptRun) -> None:
        self._machine = machine
        self._built = machine.built
        self._clock = clock
        self._kept = state
        self._now = clock.now()
        self._state = state.run_state
        self._status: Enum = self._built.statuses(state.at)
        self._entered = state.entered
        self._entered_at = state.entered_at
        self._passed = dict.fromkeys(state.passed)
        self._object = bytes(state.object)
        self._queue = deque(state.queue)
        self._retries = dict(state.retries)
        self._bookmarks = {bookmark.id: bookmark for bookmark in state.bookmarks}
        self._incidents = list(state.incidents)
        self._paused = state.paused
        self._reason = state.reason
        self._finished_at = state.finished_at
        self._is_cancelled = state.is_cancelled
        self._executions = state.executions
        self._numbered = state.records
        self._records: list[Record] = []
        self._effects: list[Effect] = []

    # --- what is asked of it --------------------------------------------------------------------------

    def begin(self) -> None:
        self._record("Started")
        self._enter(self._status)

    def pause(self, reason: str) -> bool:
        """A person says so. What errors or a step have paused does not go on by itself any more."""
        if self._paused is not None:
            self._drop(STANDS)
        elif not may_become(self._state, RunState.PAUSED):
            return False
        self._pause(Paused(by=BY_PERSON, reason=reason))
        return True

    def resume(self) -> bool:
        if self._paused is None:
            return False
        self._record("Resumed")
        self._state, self._paused, self._reason = RunState.RUNNING, None, ""
        self._incidents.clear()
        self._drop(STANDS)
        self._wait_for_callbacks()
        return True

    def cancel(self, reason: str) -> bool:
        if self._finished_at is not None:
            return False
        self._finish(RunState.CANCELLED, reason)
        return True

    async def delete(self, reason: str) -> bool:
        """Its data go. What its scrubber raises is raised: then nothing was done."""
        if not may_become(self._state, RunState.DATA_DELETION_REQUESTED):
            return False
        scrubber = self._machine.scrubber
        if scrubber is None:
            self._object = b"null"
        elif self._object != b"null":
            objects = self._machine.objects
            scrubbed = scrubber(objects.read(self._object))
            self._object = objects.write(await scrubbed if isawaitable(scrubbed) else scrubbed)
        self._state, self._reason = RunState.DATA_DELETED, reason
        self._record("Deleted", message=reason)
        self._call_hooks(DELETE)
        return True

    # --- statuses -------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """Whatever belongs to this visit of the status goes."""
        self._queue.clear()
        self._retries.clear()
        self._bookmarks.clear()

    def _enter(self, status: Enum) -> None:
        self._status = status
        self._entered = self._next_number()
        self._entered_at = self._now
        self._passed.setdefault(status.value)
        self._state = RunState.RUNNING
        if status in self._built.terminal:
            self._finish(RunState.COMPLETED, "")
            return
        for handler in self._built.timeouts.get(status, {}).values():
            self._set_timeout(handler)
        step = self._built.steps.get(status)
        if step is not None:
            work = self._work(STEP, step.name)
            if step.options.lag > timedelta(0):
                self._later(work, step.options.lag)
            else:
                self._queue.append(work)
        self._wait_for_callbacks()
        self._call_hooks(CHANGE)

    def _set_timeout(self, handler: Handler) -> None:
        given = handler.given
        if given.due is not None:
            self._queue.append(self._work(ARM, handler.name))
        else:
            self._arm(handler, given.at if given.after is None else self._now + given.after)

    def _arm(self, handler: Handler, due: Any) -> None:
        if due is None:
            return
        if not isinstance(due, datetime) or due.tzinfo is None:
            raise MachineInvalid(
                f"`due` of the {handler.given.said} gave {due!r}: an aware datetime or None."
            )
        self._wait(TIMES_OUT, handler.name, due=due)

    def _finish(self, state: RunState, reason: str) -> None:
        self._leave()
        self._incidents.clear()
        self._paused = None
        self._state, self._reason = state, reason
        self._is_cancelled = state is RunState.CANCELLED
        self._finished_at = self._now
        self._record("Cancelled" if self._is_cancelled else "Finished", message=reason or None)
        if not self._is_cancelled:
            self._call_hooks(CHANGE)
        self._call_hooks(CANCEL if self._is_cancelled else COMPLETE)

    def _pause(self, paused: Paused) -> None:
        self._state, self._paused, self._reason = RunState.PAUSED, paused, paused.reason
        self._record("Paused", message=paused.reason or None, payload={"by": paused.by})
        self._drop(WAITS)
        self._drop(TRIES_AGAIN)
        self._queue.extend(self._retries.values())
        self._retries.clear()
        self._wait(STANDS, "", due=paused.until)
        self._call_hooks(PAUSE)

    # --- waits ----------------------------------------------------------------------------------------

    def _wait_for_callbacks(self) -> None:
        """One bookmark for each callback of the status; a new one for each that was used."""
        callbacks = self._built.callbacks.get(self._status)
        if callbacks is None:
            return
        waits = {b.activity_id for b in self._bookmarks.values() if b.name == WAITS}
        for name in callbacks:
            if name not in waits:
                self._wait(WAITS, name)

    def _later(self, work: Work, delay: timedelta) -> None:
        self._retries[self._wait(TRIES_AGAIN, work.name, due=self._now + delay)] = work

    def _drop(self, name: str) -> None:
        self._bookmarks = {i: bookmark for i, bookmark in self._bookmarks.items() if bookmark.name != name}

    def _wait(self, name: str, about: str, *, due: datetime | None = None) -> str:
        number = self._next_number()
        kept = self._kept
        if name == WAITS:
            key = callback_key(self._machine.name, self._status.value, about, kept.correlation_id or kept.id)
        else:
            key = private_key(kept.id, number)
        bookmark = Bookmark(
            id=f"{kept.id}-{number}",
            name=name,
            key=key,
            activity_id=about,
            execution=number,
            created_at=self._now,
            payload=self._status.name if name == WAITS else None,
            due=due,
        )
        self._bookmarks[bookmark.id] = bookmark
        return bookmark.id

    # --- numbers, records, hooks ----------------------------------------------------------------------

    def _next_number(self) -> int:
        self._executions += 1
        return self._executions

    def _work(self, kind: str, name: str, payload: str | None = None) -> Work:
        return Work(kind=kind, name=name, execution=self._next_number(), payload=payload)

    def _record(
        self,
        event: str,
        work: Work | None = None,
        handler: Handler | None = None,
        *,
        message: str | None = None,
        payload: dict[str, Any] | None = None,
    ) -> None:
        self._numbered += 1
        number = 0 if handler is None else handler.number
        about: dict[str, Any] = {"status": self._status.value, **(payload or {})}
        if handler is not None:
            about["function"] = handler.given.function.__name__
        self._records.append(
            Record(
                self._numbered,
                event,
                0 if work is None else work.execution,
                number,
                0,
                self._now,
                message,
                None,
                None,
                about,
            )
        )

    def _call_hooks(self, event: str) -> None:
        """Each call is a small run of its own, born with this commit: it is made after it, at least once,
        and what it raises is its own affair."""
        hooks = self._machine.hooks.get(event, ())
        if not hooks:
            return
        run = msgspec.json.encode(self._freeze()).decode()
        for hook in hooks:
            call = {"event": event, "hook": hook.__name__, "run": run}
            self._effects.append(
                StartChild(
                    instance_id=f"{self._kept.id}-{self._next_number()}",
                    definition_id=f"{self._machine.name}{HOOKS}",
                    input={"object": msgspec.json.encode(call).decode()},
                    correlation_id=self._kept.correlation_id,
                )
            )

    def _freeze(self) -> KeptRun:
        label = self._status.name
        if self._state is RunState.PAUSED:
            label += " (paused)"
        return msgspec.structs.replace(
            self._kept,
            format=FORMAT,
            run_state=self._state,
            at=self._status.value,
            entered=self._entered,
            entered_at=self._entered_at,
            passed=tuple(self._passed),
            object=msgspec.Raw(self._object),
            updated_at=self._now,
            finished_at=self._finished_at,
            is_cancelled=self._is_cancelled,
            name=label,
            reason=self._reason,
            paused=self._paused,
            queue=tuple(self._queue),
            retries=dict(self._retries),
            executions=self._executions,
            records=self._numbered,
            bookmarks=tuple(self._bookmarks.values()),
            incidents=tuple(self._incidents),
        )
