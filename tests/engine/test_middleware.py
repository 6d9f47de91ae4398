"""Middleware around bursts and activities."""

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast import ActivityContext
from holdfast.testing import Host
from tests.documents import document, fault, sequence, write


async def test_middleware_wraps_each_activity_the_first_one_outermost() -> None:
    seen: list[str] = []

    def named(name: str) -> Any:
        async def middleware(context: ActivityContext, call: Callable[[], Awaitable[None]]) -> None:
            seen.append(f"{name} before {context.activity_id}")
            await call()
            seen.append(f"{name} after {context.activity_id}")

        return middleware

    host = Host(around_activity=[named("outer"), named("inner")])
    await host.load(document(write("a")))
    await host.run("test")
    assert seen[-4:] == ["outer before a", "inner before a", "inner after a", "outer after a"]


async def test_what_middleware_raises_faults_the_activity() -> None:
    async def refuse(context: ActivityContext, call: Callable[[], Awaitable[None]]) -> None:
        if context.activity_id == "b":
            raise PermissionError("not on my watch")
        await call()

    host = Host(around_activity=[refuse])
    await host.load(document(sequence(write("a"), write("b"))))
    instance = await host.run("test")
    assert (host.console.written, instance.incidents[0].message) == (["a"], "not on my watch")


async def test_an_activity_that_faults_does_so_inside_its_middleware() -> None:
    caught: list[str] = []

    async def watch(context: ActivityContext, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        except Exception as error:
            caught.append(str(error))
            raise

    host = Host(around_activity=[watch])
    await host.load(document(fault("broken")))
    instance = await host.run("test")
    assert (caught, instance.sub_status) == (["broken"], "Faulted")


async def test_middleware_wraps_the_whole_burst() -> None:
    seen: list[str] = []

    async def around(burst: Any, call: Callable[[], Awaitable[None]]) -> None:
        seen.append("before")
        await call()
        seen.append(f"after {burst.sub_status}")

    host = Host(around_burst=[around])
    await host.load(document(write("a")))
    await host.run("test")
    assert seen == ["before", "after Finished"]
