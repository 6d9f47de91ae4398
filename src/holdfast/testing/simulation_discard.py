"""Letting go of suspended code as a crash does: not one more line of it runs.

Python will not do that by itself: a suspended coroutine that is closed or collected first runs its
`finally` blocks. What died in a simulation must not, and keeping it for ever would keep the whole
world of each seed in memory.
"""

import gc
import sys
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import AsyncGeneratorType, CoroutineType, GeneratorType, MethodType
from typing import Any, Protocol, TypeGuard, cast


class Suspended(Protocol):
    def close(self) -> object: ...


def discard(coroutines: Iterable[Suspended]) -> None:
    """Empty these coroutines and the generators they hold, running nothing of what is in them."""
    found: list[Suspended] = []
    # Also keeps what the frames held alive until we are back: `__del__` needs room to run in.
    reached: list[Any] = list(coroutines)
    seen = {id(thing) for thing in reached}
    for thing in reached:
        if _is_suspended(thing):
            found.append(thing)
        for held in _held_by(thing):
            if id(held) not in seen:
                seen.add(id(held))
                reached.append(held)
    tracer = sys.gettrace()
    sys.settrace(None)  # a tracer written in Python would fail down there
    try:
        _close_without_room(found)
    finally:
        sys.settrace(tracer)


def _close_without_room(suspended: list[Suspended]) -> None:
    """Close them so deep in the stack that no frame can be entered.

    To close a coroutine is to enter its frame with a GeneratorExit. Where the recursion limit forbids
    to enter it, Python gives the frame up without looking for a handler in it, and that is what we want.
    """
    try:  # noqa: SIM105  `suppress` would need room of its own
        _close_without_room(suspended)
    except RecursionError:
        pass
    while suspended:
        try:
            suspended[-1].close()
        except RecursionError:
            # Nothing to do when that emptied it. It fails again where there was no room even to call
            # `close`: then the caller, one level higher, has it.
            suspended[-1].close()
        suspended.pop()


def _is_suspended(thing: object) -> TypeGuard[Suspended]:
    if isinstance(thing, CoroutineType):
        return thing.cr_frame is not None and not thing.cr_running
    # An asynchronous generator ends without a word when its loop wants nothing done about it.
    return isinstance(thing, GeneratorType) and thing.gi_frame is not None and not thing.gi_running


def _held_by(thing: object) -> list[Any]:
    """Through what a dead coroutine may own another: by awaiting it, or in a `with`."""
    match thing:
        case CoroutineType() | GeneratorType() | AsyncGeneratorType():
            return gc.get_referents(thing)
        case MethodType():
            return [thing.__self__]
        case AbstractContextManager() | AbstractAsyncContextManager():
            manager = cast("Any", thing)  # one made from a generator, or a stack of others
            return [getattr(manager, "gen", None), *(e for _, e in getattr(manager, "_exit_callbacks", ()))]
        case _:
            # These have no name to import them by.
            is_awaited = type(thing).__name__ in {"async_generator_asend", "async_generator_athrow"}
            return gc.get_referents(thing) if is_awaited else []
