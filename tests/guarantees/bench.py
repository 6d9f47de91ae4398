"""What the checks of the guarantees work with: nodes on one database, a world outside, workflows.

A node is killed by cancelling everything it does, without giving anything back; that its process is gone
is said to the database as another process of the same machine would say it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from holdfast import ActivityContext, Holdfast, activity
from holdfast.errors import Unavailable
from holdfast.runtime import worker
from holdfast.store import Store
from tests.documents import document, event, literal, sequence, variable

PATIENCE = 20.0
"""Seconds after which something that should have happened counts as never happening."""


class Outside:
    """The world outside Holdfast: what activities did to it, under which keys."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int]] = []
        self.begun = asyncio.Event()
        """Set when something was done for the first time."""
        self.blocked: set[str | int] = set()
        """What does not return before it is taken out of here: by its name, or the n-th call."""

    def did(self, name: str) -> list[str]:
        """The idempotency keys under which that was done, in order."""
        return [key for done, key, _ in self.calls if done == name]


def activities_of(outside: Outside) -> list[Any]:
    @activity(type="Test.Call", category="Test")
    async def call(name: str, *, context: ActivityContext) -> None:
        """Does something outside, and may have to wait before it returns."""
        outside.calls.append((name, context.idempotency_key, context.attempt))
        number = len(outside.calls)
        outside.begun.set()
        while not outside.blocked.isdisjoint({name, number}):
            await asyncio.sleep(0.01)

    return [call]


def call(name: str) -> dict[str, Any]:
    return {"id": name, "type": "Test.Call", "name": literal(name)}


def plus_one(name: str) -> dict[str, Any]:
    value = {"typeName": "Object", "expression": {"type": "Python", "value": "variables.Count + 1"}}
    return {"id": name, "type": "Elsa.SetVariable", "variable": {"id": "count"}, "value": value}


def delay(span: str) -> dict[str, Any]:
    return {"id": "delay", "type": "Elsa.Delay", "timeSpan": literal(span)}


def workflow(name: str, *activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(
        sequence(*activities),
        id=f"{name}-1",
        definitionId=name,
        variables=[variable("Count", "Int32", "0")],
        **members,
    )


class Bench:
    """One database, and as many nodes on it as a check wants."""

    def __init__(self, open_store: Callable[[], Awaitable[Store]]) -> None:
        self._open_store = open_store
        self.outside = Outside()

    @asynccontextmanager
    async def node(self, *definitions: dict[str, Any], **options: Any) -> AsyncIterator[Holdfast]:
        store = await self._open_store()
        try:
            async with Holdfast(
                store, definitions=definitions, activities=activities_of(self.outside), **options
            ) as holdfast:
                yield holdfast
        finally:
            await store.close()

    async def kill(self, holdfast: Holdfast) -> None:
        """Its process is gone: nothing is finished, nothing is given back."""
        node_id = holdfast.node.id
        running = [holdfast._running, holdfast._receiving]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        store = await self._open_store()
        try:
            await store.leave(node_id)
        finally:
            await store.close()

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        store = await self._open_store()
        try:
            yield store
        finally:
            await store.close()


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    """Fails when it does not become true."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await what():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError("it never happened") from None


async def reached(holdfast: Holdfast, instance_id: str, sub_status: str) -> None:
    async def is_there() -> bool:
        try:
            return (await holdfast.instance(instance_id)).sub_status.value == sub_status
        except Unavailable:
            return False

    await until(is_there)


__all__ = [
    "PATIENCE",
    "Bench",
    "Outside",
    "call",
    "delay",
    "event",
    "plus_one",
    "reached",
    "until",
    "worker",
    "workflow",
]
