"""What a simulated loop runs: callbacks, futures and tasks, and the node each belongs to.

Python orders what is in a set by hash, and hashes these by their address, which is another one in the
next process. Ours hash by serial number, so that `asyncio.wait` and its like go through them in one order.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from types import CoroutineType, FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class Node:
    """One life of a process: what runs in a context that names it runs in that process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.frozen_until: float | None = None
        self.held: list[Call] = []


NODE: ContextVar[Node | None] = ContextVar("node", default=None)


class Call(asyncio.TimerHandle):
    """A callback that is ready, or will be at an instant."""

    __slots__ = ("arguments", "at", "callback", "context", "is_cancelled", "serial")

    def __init__(
        self, serial: int, at: float, callback: Callable[..., object], arguments: Any, context: Context
    ) -> None:
        # Not the parent's: it would ask for a stack and a debug mode that we have not.
        self.serial = serial
        self.at = at
        self.callback = callback
        self.arguments = arguments
        self.context = context
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.callback, self.arguments = _nothing, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.at

    def get_context(self) -> Context:
        return self.context

    def __hash__(self) -> int:
        return self.serial

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<Call {self.serial} at {self.at}>"


def _nothing() -> None: ...


class SimulatedFuture(asyncio.Future[T]):
    """Hashes by serial number: in a set, futures are otherwise ordered by their address."""

    def __init__(self, *, serial: int, loop: asyncio.AbstractEventLoop) -> None:
        self.serial = serial
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self.serial


class SimulatedTask(asyncio.Task[T]):
    """Hashes and is named by serial number, and knows its node."""

    def __init__(
        self,
        coro: Coroutine[Any, Any, T],
        *,
        serial: int,
        loop: asyncio.AbstractEventLoop,
        name: str | None,
        context: Context,
    ) -> None:
        self.serial = serial
        self.context = context
        super().__init__(coro, loop=loop, name=name or f"task-{self.serial}", context=context)

    def __hash__(self) -> int:
        return self.serial

    def cancel(self, msg: Any = None) -> bool:
        if self.is_dead:
            # Nothing of it runs, but whoever awaits it with a timeout must be let go.
            return super(asyncio.Task, self).cancel(msg)
        return super().cancel(msg)

    @property
    def node(self) -> Node | None:
        return self.context.get(NODE)

    @property
    def is_dead(self) -> bool:
        return (node := self.node) is not None and node.is_dead

    @property
    def has_unseen_error(self) -> bool:
        return self.done() and self._log_traceback

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left of it. One of the dead may be cancelled and yet be suspended."""
        return self.done() and not self.is_dead and not self.has_unseen_error

    def be_forgotten(self) -> None:
        """It will never be done, and nobody shall complain about that."""
        self._log_destroy_pending = False

    def tell(self) -> str:
        node = f" of node {self.node.name}" if self.node is not None else ""
        return f"{self.get_name()}{node}{' (dead)' if self.is_dead else ''} {_place(self.get_coro())}"


def _place(coroutine: object) -> str:
    frame: FrameType | None = None
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        frame, coroutine = coroutine.cr_frame, coroutine.cr_await
    return "at its end" if frame is None else f"in {frame.f_code.co_qualname}, line {frame.f_lineno}"
