"""What a run does between two waits: it calls functions, and each call is kept before the next begins.

A burst begins from the run as it was last kept and works off its queue. After each call it reaches a
checkpoint; so a call that is repeated after a crash sees the same object under the same key. Errors,
waits and pauses are part of the state: whoever keeps it keeps the timers that carry on from it, and no
run holds up another.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from enum import Enum
from inspect import isawaitable
from typing import Any

import msgspec

from holdfast.bookmark import Bookmark
from holdfast.errors import Invalid
from holdfast.instance import Incident, Record
from holdfast.machines.draft import TIMES_OUT, TRIES_AGAIN, WAITS, Draft
from holdfast.machines.handler import Handler
from holdfast.machines.results import Again, Cancel, GiveUp, Pause, Retry, Skip
from holdfast.machines.run import Run, RunState
from holdfast.machines.state import (
    ARM,
    BY_ERRORS,
    BY_STEP,
    CALLBACK,
    STEP,
    TIMEOUT,
    KeptRun,
    Paused,
    Work,
)
from holdfast.machines.view import run_of
from holdfast.message import Effect

MOST = 100
"""Calls in one burst; then others have a turn."""
LONGEST = 2_000
"""Characters that are kept of what an error says."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one message came to."""

    state: KeptRun
    records: tuple[Record, ...] = ()
    effects: tuple[Effect, ...] = ()
    applied: bool = True


class Undeclared(Invalid):
    """A function returned what its machine does not know of. Trying again would not help."""

    code = "machine.undeclared"


Checkpoint = Callable[[Outcome], Awaitable[None]]


class Burst(Draft):
    """A burst under way. Set `stopping`, and it stops before its next call."""

    stopping = False

    def hit(self, bookmark: Bookmark, given: str | None) -> None:
        """Something it waits for has come."""
        del self._bookmarks[bookmark.id]
        match bookmark.name:
            case name if name == TRIES_AGAIN:
                work = self._retries.pop(bookmark.id, None)
                if work is not None:
                    self._queue.append(work)
            case name if name == TIMES_OUT:
                self._queue.append(self._work(TIMEOUT, bookmark.activity_id))
            case name if name == WAITS:
                self._queue.append(self._work(CALLBACK, bookmark.activity_id, payload=given or "null"))
            case _:
                self.resume()

    # --- working --------------------------------------------------------------------------------------

    async def work(self, checkpoint: Checkpoint) -> None:
        """Make the calls that are to be made, each kept before the next begins."""
        calls = 0
        while self._is_working and not self.stopping and calls < MOST:
            work = self._queue.popleft()
            await self._do(work)
            if work.kind != ARM:  # asking when something is due does nothing to the world
                calls += 1
                if self._is_working:
                    await checkpoint(self.outcome())

    @property
    def _is_working(self) -> bool:
        return bool(self._queue) and self._paused is None and self._finished_at is None

    def outcome(self) -> Outcome:
        """All that happened since this was asked last."""
        records, effects = tuple(self._records), tuple(self._effects)
        self._records.clear()
        self._effects.clear()
        return Outcome(state=self._freeze(), records=records, effects=effects)

    async def _do(self, work: Work) -> None:
        self._now = self._clock.now()
        handler = self._find(work)
        if handler is None:
            self._record("Skipped", work, message=f"There is no {work.kind} {work.name!r} here any more.")
            return
        run = self._run(work)
        try:
            if work.kind == ARM:
                self._arm(handler, await _called(handler.given.due, run, self._now))
                return
            result = await self._called(handler, run, work)
            self._check(handler, result)
            self._object = self._machine.objects.write(run.object)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # this life of the node is over, or the run was cancelled
            self._fail(work, handler, error)  # something inside the function was
            return
        except (Exception, SystemExit) as error:  # whatever an author's function raises
            self._fail(work, handler, error)
            return
        self._now = self._clock.now()
        self._settle(work, handler, result)

    async def _called(self, handler: Handler, run: Run[Any, Any], work: Work) -> Any:
        objects = self._built.payloads.get(handler.number) if work.kind == CALLBACK else None
        more = () if objects is None else (objects.read((work.payload or "null").encode()),)
        function = handler.given.function
        if handler.is_async:
            return await function(run, *more)
        # In a thread, so that a plain function that waits holds up nobody else.
        result = await asyncio.to_thread(function, run, *more)
        return await result if isawaitable(result) else result

    def _check(self, handler: Handler, result: Any) -> None:
        if isinstance(result, Pause) and isinstance(result.until, datetime) and result.until.tzinfo is None:
            raise Undeclared(f"The {handler.given.said} paused until {result.until}, which has no time zone.")
        if type(result) in handler.controls:
            return
        if result in handler.to and isinstance(result, self._built.statuses):
            return
        shown = result.name if isinstance(result, Enum) else repr(result)
        names = [status.name for status in handler.to]
        known = ", ".join([*names, *sorted(control.__name__ for control in handler.controls)])
        raise Undeclared(
            f"The {handler.given.said} returned {shown}, but declares {known or 'no status'}. "
            f"Add it to what it returns, deploy, and resume the run."
        )

    # --- what a call came to --------------------------------------------------------------------------

    def _settle(self, work: Work, handler: Handler, result: Any) -> None:
        match result:
            case Pause():
                self._record("Completed", work, handler, payload={"pause": result.reason})
                self._requeue(work)
                until = self._now + result.until if isinstance(result.until, timedelta) else result.until
                self._pause(Paused(by=BY_STEP, reason=result.reason, until=until))
            case Skip():
                self._record("Completed", work, handler, payload={"skip": True})
                self._wait_for_callbacks()
            case Cancel():
                self._record("Completed", work, handler, payload={"cancel": result.reason})
                self._finish(RunState.CANCELLED, result.reason)
            case Again():
                self._record("Completed", work, handler, payload={"again": True})
                self._repeat(work, handler, result.delay)
            case _:
                self._record(
                    "Completed", work, handler, payload={"from": self._status.value, "to": result.value}
                )
                self._leave()
                self._enter(result)

    def _requeue(self, work: Work) -> None:
        """A step or a timeout that paused the run is called again when it goes on, under a new key."""
        if work.kind != CALLBACK:
            self._queue.append(self._work(work.kind, work.name))

    def _repeat(self, work: Work, handler: Handler, delay: timedelta | None) -> None:
        if work.kind == CALLBACK:
            step = self._built.steps.get(self._status)
            if step is not None:
                self._later(self._work(STEP, step.name), delay or timedelta(0))
            self._wait_for_callbacks()
        elif work.kind == TIMEOUT and delay is None:
            self._set_timeout(handler)
        else:
            self._later(self._work(work.kind, work.name), delay or timedelta(0))

    def _fail(self, work: Work, handler: Handler, error: BaseException) -> None:
        self._now = self._clock.now()
        said = str(error)[:LONGEST]
        text = f"{type(error).__name__}: {said}" if said else type(error).__name__
        options, failures = handler.options, work.failures + 1
        failed = msgspec.structs.replace(work, failures=failures, calls=work.calls + 1, error=text)
        self._record("Faulted", work, handler, message=text, payload={"attempt": work.calls + 1})
        is_useless = isinstance(error, (GiveUp, Undeclared, *options.fatal))
        if not is_useless and (options.pause_after is None or failures < options.pause_after):
            delay = (
                error.after if isinstance(error, Retry) else options.delay(failures, self._key(work, handler))
            )
            self._later(failed, delay)
            if work.kind == CALLBACK:
                self._wait_for_callbacks()
            return
        until = None if is_useless or options.pause_retry is None else self._now + options.pause_retry
        self._queue.append(msgspec.structs.replace(failed, failures=0))
        self._incidents.append(
            Incident(
                activity_id=handler.given.function.__name__,
                node_id=handler.given.function.__qualname__,
                activity_type=handler.given.kind,
                execution=work.execution,
                message=text,
                at=self._now,
                exception_type=type(error).__qualname__,
            )
        )
        self._pause(Paused(by=BY_ERRORS, reason=text, until=until))

    # --- calls ----------------------------------------------------------------------------------------

    def _find(self, work: Work) -> Handler | None:
        """The function of a call. Renamed ones are found where there is no doubt."""
        if work.kind == STEP:
            return self._built.steps.get(self._status)
        kind = self._built.callbacks if work.kind == CALLBACK else self._built.timeouts
        here = kind.get(self._status, {})
        return here.get(work.name) or (next(iter(here.values())) if len(here) == 1 else None)

    def _key(self, work: Work, handler: Handler) -> str:
        return f"{self._kept.id}/{handler.given.function.__name__}/{work.execution}"

    def _run(self, work: Work) -> Run[Any, Any]:
        handler = self._find(work)
        key = "" if handler is None else self._key(work, handler)
        return run_of(self._machine, self._freeze(), key=key, attempt=work.calls + 1)


async def _called(function: Callable[..., Any] | None, *arguments: Any) -> Any:
    result = None if function is None else function(*arguments)
    return await result if isawaitable(result) else result
