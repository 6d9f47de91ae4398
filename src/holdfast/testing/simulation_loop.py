"""An event loop in which time is a number and nothing is left to chance.

Ready callbacks run in the order in which they became ready; when there is none, time jumps to the
next timer. Nothing waits for the machine: no selector, no thread, no sleep. Each callback belongs to
the node its context names, so that a node dies by its callbacks never being called again. What is run
is in `simulation_task`; seeds, clocks and the trace are `simulation`; letting go of what died is
`simulation_discard`.
"""

import asyncio
import sys
import weakref
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from types import CoroutineType
from typing import Any, Never, TypeVar

from holdfast.errors import HoldfastError
from holdfast.testing.simulation_discard import discard
from holdfast.testing.simulation_task import NODE, Call, Node, SimulatedFuture, SimulatedTask

T = TypeVar("T")


class Deadlock(HoldfastError):
    """Nothing can ever happen again, and what the loop runs for is not done."""


class Endless(HoldfastError):
    """More steps than were allowed."""


class NotSimulated(HoldfastError, NotImplementedError):
    """The simulated world has no sockets, processes, signals or threads."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs one story. Give it up with `close`; what is still suspended then runs no further."""

    def __init__(self, limit: int = 1_000_000) -> None:
        self.steps = 0
        self.unhandled: list[BaseException] = []
        self._limit = limit
        self._serial = 0
        self._time = 0.0
        self._ready: deque[Call] = deque()
        self._timers: list[tuple[float, int, Call]] = []
        self._timers_kept = 0
        self._tasks: list[SimulatedTask[Any]] = []
        self._tasks_kept = 0
        self._generators: dict[int, tuple[weakref.ref[AsyncGenerator[Any, Any]], Context]] = {}
        self._is_running = False
        self._is_closed = False

    # What asyncio asks of a loop

    def time(self) -> float:
        return self._time

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Call:
        call = self._call(self._time, callback, args, context)
        self._ready.append(call)
        return call

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        call = self._call(when, callback, args, context)
        if when <= self._time:
            self._ready.append(call)
            return call
        heappush(self._timers, (when, call.serial, call))
        if len(self._timers) > 2 * self._timers_kept + 100:
            # Most timeouts are cancelled long before they are due.
            self._timers = [timer for timer in self._timers if not timer[2].is_cancelled]
            heapify(self._timers)
            self._timers_kept = len(self._timers)
        return call

    def _call(
        self, at: float, callback: Callable[..., object], arguments: Any, context: Context | None
    ) -> Call:
        if self._is_closed:
            raise RuntimeError("The simulation is over: nothing can be scheduled any more.")
        within = copy_context() if context is None else context  # an empty one is false
        return Call(self._next_serial(), at, callback, arguments, within)

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def create_future(self) -> asyncio.Future[Any]:
        return SimulatedFuture(serial=self._next_serial(), loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
        **_: Any,
    ) -> asyncio.Task[T]:
        if not asyncio.iscoroutine(coro):
            raise TypeError(f"A task runs a coroutine, not {type(coro).__name__}.")
        told = None if name is None else str(name)
        within = copy_context() if context is None else context
        task = SimulatedTask(coro, serial=self._next_serial(), loop=self, name=told, context=within)
        self._tasks.append(task)
        if len(self._tasks) > 2 * self._tasks_kept + 100:
            self._tasks = [kept for kept in self._tasks if not kept.is_settled]
            self._tasks_kept = len(self._tasks)
        return task

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Calls it here and now; the result comes a step later, as from a thread it always would."""
        future: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:  # it is the caller's, who awaits the future
            self.call_soon(_unless_done, future, future.set_exception, error)
        else:
            self.call_soon(_unless_done, future, future.set_result, result)
        return future

    def set_default_executor(self, executor: object) -> None:
        """There is none to replace."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  asyncio's
        """There is none."""

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._is_closed:
            self.unhandled.append(context.get("exception") or RuntimeError(context["message"]))

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Until it is done. Raises `Deadlock` when it never will be, `Endless` after too many steps."""
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(self._generator_begins, self._generator_is_dropped)
        events._set_running_loop(self)  # pyright: ignore[reportPrivateUsage]  made for event loops
        self._is_running = True
        try:
            awaited = asyncio.ensure_future(future, loop=self)
            while not awaited.done():
                self._step()
            return awaited.result()
        finally:
            self._is_running = False
            events._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
            sys.set_asyncgen_hooks(*hooks)

    def _step(self) -> None:
        if not self._ready:
            self._jump()
        call = self._ready.popleft()
        node = call.context.get(NODE)
        if call.is_cancelled or (node is not None and node.is_dead):
            return
        if node is not None and node.frozen_until is not None:
            node.held.append(call)
            return
        self.steps += 1
        if self.steps > self._limit:
            raise Endless(
                f"The story is not done after {self._limit} steps, at {self._time:.6f} s. Give it more, or "
                f"look for code that goes in a circle without time passing. {self._tell_waiting()}"
            )
        try:
            call.context.run(call.callback, *call.arguments)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # a callback has nobody to tell; the simulation fails with it
            self.unhandled.append(error)

    def _jump(self) -> None:
        """To the next instant at which something is due."""
        timers = self._timers
        while timers and (timers[0][2].is_cancelled or _is_dead(timers[0][2])):
            heappop(timers)
        if not timers:
            raise Deadlock(
                f"Nothing can happen any more at {self._time:.6f} s, and the story is not done. "
                f"{self._tell_waiting()}"
            )
        self._time = timers[0][0]
        while timers and timers[0][0] <= self._time:
            self._ready.append(heappop(timers)[2])

    def _tell_waiting(self) -> str:
        return "Waiting:" + "".join(f"\n  {task.tell()}" for task in self._tasks if not task.done())

    # Nodes

    def kill(self, node: Node) -> None:
        node.is_dead = True
        node.held.clear()

    def freeze(self, node: Node, seconds: float) -> None:
        until = max(node.frozen_until or 0.0, self._time + seconds)
        node.frozen_until = until
        self.call_at(until, self._thaw, node, context=Context())

    def _thaw(self, node: Node) -> None:
        if node.frozen_until is not None and node.frozen_until <= self._time:
            node.frozen_until = None
            self._ready.extend(node.held)
            node.held.clear()

    # The end

    async def end_living(self) -> None:
        """Cancel the tasks of the living and wait for them, then close their generators."""
        living = [task for task in self._tasks if not task.done() and not task.is_dead]
        living.remove(_current(asyncio.current_task()))
        for task in living:
            task.cancel()
        if living:
            await asyncio.wait(living)
        await self.shutdown_asyncgens()

    async def shutdown_asyncgens(self) -> None:
        for reference, context in list(self._generators.values()):
            node, generator = context.get(NODE), reference()
            if generator is not None and not (node is not None and node.is_dead):
                await generator.aclose()

    def close(self) -> None:
        """The end of this world: what is suspended stays so, and errors nobody saw are `unhandled`."""
        if self._is_closed:
            return
        for task in self._tasks:
            if task.has_unseen_error and (error := task.exception()) is not None and not task.is_dead:
                self.unhandled.append(error)
        self._is_closed = True
        pending = [task for task in self._tasks if not task.is_settled]
        for task in pending:
            task.be_forgotten()
        discard(coroutine for task in pending if isinstance(coroutine := task.get_coro(), CoroutineType))
        self._ready.clear()
        self._timers.clear()
        self._tasks.clear()
        self._generators.clear()

    def _generator_begins(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators.pop(id(generator), None)  # one that is gone had the same address
        self._generators[id(generator)] = weakref.ref(generator), copy_context()

    def _generator_is_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        _, context = self._generators.pop(id(generator), (None, Context()))
        node = context.get(NODE)
        if not self._is_closed and not (node is not None and node.is_dead):
            self.call_soon(self._close_generator, generator, context=context)

    def _close_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        self.create_task(generator.aclose())


def _current(task: asyncio.Task[Any] | None) -> SimulatedTask[Any]:
    assert isinstance(task, SimulatedTask)
    return task


def _is_dead(call: Call) -> bool:
    return (node := call.context.get(NODE)) is not None and node.is_dead


def _unless_done(future: asyncio.Future[Any], settle: Callable[[Any], None], value: object) -> None:
    if not future.done():
        settle(value)


def _refusal(name: str) -> Callable[..., Never]:
    def refuse(*_: object, **__: object) -> Never:
        raise NotSimulated(
            f"A simulated loop has no {name}: there are no sockets, processes, signals or threads in its "
            f"world. Give the code under simulation a stand-in for what is outside."
        )

    return refuse


for _name in vars(asyncio.AbstractEventLoop):
    if not _name.startswith("_") and _name not in vars(SimulatedLoop):
        setattr(SimulatedLoop, _name, _refusal(_name))
