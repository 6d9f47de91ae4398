"""One run of one workflow in this process: in memory, on the machine's clock, with the real console.

What it leaves behind is shown by `summary` for people and `report` for programs.
"""

import signal
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdfast.authoring import Console
from holdfast.cli.files import Surroundings, WorkflowFile
from holdfast.cli.output import forget_stdout, show_span
from holdfast.cli.trace import Trace
from holdfast.clock import SystemClock, TimeOrderedIds
from holdfast.definitions.document import Definition
from holdfast.errors import HoldfastError
from holdfast.local import HostedInstance, LocalHost

LONG = timedelta(seconds=5)
"""A wait that deserves a word."""


class NotStarted(HoldfastError):
    """An activation strategy refused to start one more instance."""

    code = "instance.not_started"


class Terminal:
    """The port `Console` on our own standard streams."""

    def __init__(self, trace: Trace | None, *, is_silent: bool = False) -> None:
        self.lines: list[str] = []
        self._trace = trace
        self._is_silent = is_silent

    def write_line(self, text: str) -> None:
        self.lines.append(text)
        if self._trace is not None:
            self._trace.wrote(text)
        elif not self._is_silent:
            try:
                print(text, flush=True)
            except BrokenPipeError:  # raised on, it would be a fault of the activity that writes
                forget_stdout()
                raise SystemExit(1) from None

    def read_line(self) -> str:
        # asyncio answers the first Ctrl-C only when the event loop turns again: not while we read here.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if self._trace is not None and sys.stdin.isatty():
                print("> ", end="", flush=True)
            return sys.stdin.readline().rstrip("\r\n")
        finally:
            signal.signal(signal.SIGINT, before)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance is started with, and what shall happen to it."""

    input: Mapping[str, Any] = {}
    variables: Mapping[str, Any] = {}
    correlation_id: str | None = None
    name: str | None = None
    events: tuple[tuple[str, Any], ...] = ()
    waits: bool = False
    """Go on through timers, in real time."""


class Session:
    """A local host with one workflow to run and those it may need beside it."""

    def __init__(
        self,
        around: Surroundings,
        workflow: WorkflowFile,
        *,
        trace: Trace | None,
        terminal: Terminal,
    ) -> None:
        plugins = around.plugins
        plugins.add_service(Console, terminal)
        if trace is not None:
            plugins.add_burst_middleware(trace.around_burst)
            plugins.add_activity_middleware(trace.around_activity)
        self.clock = SystemClock()
        self.trace = trace
        self.terminal = terminal
        self.host = LocalHost(
            plugins, clock=self.clock, ids=TimeOrderedIds(self.clock), fires_schedules=False
        )
        self.definition = self._take(workflow, around.companions)
        self.begun_at: datetime = self.clock.now()
        self.instance: HostedInstance | None = None
        """The one that was started here; its children are with the host."""

    def _take(self, workflow: WorkflowFile, companions: Iterable[WorkflowFile]) -> Definition:
        """Publish them all; the one to run comes last, so that it counts where two have one id."""
        catalogue = self.host.definitions
        taken = [catalogue.provide(w.definition().source) for w in (*companions, workflow)]
        published = [catalogue.mark_published(definition) for definition in taken]
        for definition in published:
            self.host.index(definition)
        return published[-1]

    async def run(self, given: Given) -> None:
        """Start it, send the events, and go on until it has ended or waits for what does not come."""
        self.begun_at = self.clock.now()
        self.instance = await self.host.run(
            self.definition.definition_id,
            version=self.definition.version,
            input=given.input,
            variables=given.variables,
            correlation_id=given.correlation_id,
            name=given.name,
        )
        if not self.instance.started:
            raise NotStarted(
                f"The activation strategy of {self.definition.definition_id!r} does not allow it."
            )
        for name, payload in given.events:
            self._note(f'Event "{name}"')
            await self.host.publish_event(name, payload)
        while given.waits and (due := self.host.next_due()) is not None:
            left = due - self.clock.now()
            if self.trace is not None and left > LONG:
                self.trace.note_quietly(f"… waiting {show_span(left)}; Ctrl-C leaves")
            await self.clock.sleep_until(due)
            self._note(f"Timer at {due.astimezone():%H:%M:%S}")
            await self.host.do_due()

    def _note(self, text: str) -> None:
        if self.trace is not None:
            self.trace.note(text)
