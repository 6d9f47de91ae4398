"""Which spans a node makes: a turn, its bursts, their activities; and how one trace follows an instance.

A message carries the context it was sent in, a timer that of the turn that set it, and the state the
context of its start. So a turn goes on in its instance's trace over days and nodes, and is linked to
whatever caused it when that belongs to another trace. Only what leaves its turn comes here while nobody
wants spans.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

import msgspec

from holdfast import telemetry
from holdfast.authoring import ActivityContext
from holdfast.commit import Delivery
from holdfast.engine.environment import ActivityMiddleware, BurstMiddleware
from holdfast.message import Start
from holdfast.runtime.program import Snapshot
from holdfast.store import Loaded

TRACE = "holdfast:trace"
"""The property of an instance under which the context of its start is kept."""


P = ParamSpec("P")
T = TypeVar("T")


def spanned(
    name: str,
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """A request from outside: what it sends is sent in its span."""

    def decorate(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(method)
        def call(*args: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
            return method(*args, **named) if telemetry.tracing is None else within(*args, **named)

        async def within(*args: P.args, **named: P.kwargs) -> T:
            about = {key: str(named[key]) for key in ("tenant", "instance_id") if named.get(key)}
            with telemetry.span(name, kind="PRODUCER", **about):
                return await method(*args, **named)

        return call

    return decorate


def turn_span(
    loaded: Loaded, state: Snapshot | None, name: str, deliveries: Sequence[Delivery]
) -> AbstractContextManager[Any]:
    """Around the bursts of a turn and its commit."""
    assert telemetry.tracing is not None
    cause, home = deliveries[0].envelope.trace, home_of(state)
    columns = loaded.columns
    # A timer or a continue was sent from within the instance's own trace: closer than the start.
    is_own = cause is not None and home is not None and cause[3:35] == home[3:35]
    return telemetry.tracing.span(
        "turn",
        {
            "holdfast.tenant": loaded.tenant,
            "holdfast.definition": columns.definition_id,
            "holdfast.version": columns.version,
            "holdfast.instance": loaded.instance_id,
            "holdfast.turn": name,
            "holdfast.message": deliveries[0].envelope.kind,
            "holdfast.messages": len(deliveries),
        },
        kind="CONSUMER",
        parent=cause if is_own or home is None else home,
        cause=cause,
    )


def attempt_span(
    loaded: Loaded, state: Snapshot, activity_id: str, attempt: int
) -> AbstractContextManager[Any]:
    """Around an activity that executes outside its turn."""
    if telemetry.tracing is None:
        return nullcontext()
    attributes = {
        "holdfast.tenant": loaded.tenant,
        "holdfast.definition": loaded.columns.definition_id,
        "holdfast.instance": loaded.instance_id,
        "holdfast.activity": activity_id,
        "holdfast.attempt": attempt,
    }
    return telemetry.tracing.span("activity", attributes, parent=home_of(state))


def home_of(state: Snapshot | None) -> str | None:
    """The context an instance was started in."""
    found = None if state is None else state.properties.get(TRACE)
    return found if isinstance(found, str) else None


def with_home(start: Start, sent: str | None) -> Start:
    """A start that remembers its context."""
    home = sent or telemetry.trace_now()
    return (
        start
        if home is None
        else msgspec.structs.replace(start, properties={**start.properties, TRACE: home})
    )


def middleware(
    figures: telemetry.Figures,
) -> tuple[tuple[ActivityMiddleware, ...], tuple[BurstMiddleware, ...]]:
    """Around activities, and around bursts."""
    return (around_activity(figures),), (around_burst(),)


def around_burst() -> BurstMiddleware:
    async def spanned(burst: Any, call: Callable[[], Awaitable[None]]) -> None:
        with telemetry.span("burst"):
            await call()

    return spanned


def around_activity(figures: telemetry.Figures) -> ActivityMiddleware:
    async def spanned(context: ActivityContext, call: Callable[[], Awaitable[None]]) -> None:
        kind = str(getattr(context, "activity_type", ""))
        attributes: dict[str, str | int] = {
            "holdfast.activity": context.activity_id,
            "holdfast.activity_type": kind,
            "holdfast.execution": context.execution_id,
            "holdfast.attempt": context.attempt,
        }
        began = perf_counter()
        try:
            if telemetry.tracing is None:
                await call()
                return
            with telemetry.tracing.span("activity", attributes):
                await call()
        finally:
            figures.histogram("activity_seconds", kind).observe(perf_counter() - began)

    return spanned
