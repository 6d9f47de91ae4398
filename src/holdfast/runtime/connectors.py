"""From a topic into workflows: a function for each message, which starts or resumes what it will.

    async def paid(message, holdfast):
        await holdfast.publish_event("paid", correlation_id=message.key, key=message.id)

    await Connector(stream, "payments", "orders", paid).run(holdfast)

A message is acknowledged when the function has returned, so what it asked for was committed before. It may
come again: with `key=message.id` its requests count once. A function that raises is tried again, later
each time, and holds back the messages of its key.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from holdfast.errors import Invalid, Unavailable
from holdfast.runtime.backoff import Backoff, until_retry
from holdfast.stream import Delivery, Message, Start, Stream, Subscription

_log = logging.getLogger("holdfast")

HoldfastT = TypeVar("HoldfastT")


class Connector(Generic[HoldfastT]):
    """One member of a group. Run it in as many processes as you like: they share the topic."""

    def __init__(
        self,
        stream: Stream,
        topic: str,
        group: str,
        receive: Callable[[Message, HoldfastT], Awaitable[object]],
        *,
        start: Start = "oldest",
        parallel: int = 4,
    ) -> None:
        if parallel < 1:
            raise Invalid(f"A connector receives at least one message at a time, not {parallel}.")
        self._stream = stream
        self._topic = topic
        self._group = group
        self._receive = receive
        self._start: Start = start
        self._parallel = parallel

    async def run(self, holdfast: HoldfastT) -> None:
        """Until cancelled. It joins again when the broker was away."""
        backoff = Backoff()
        while True:
            try:
                async with self._stream.subscribe(
                    self._topic, self._group, start=self._start
                ) as subscription:
                    backoff.reset()
                    async with asyncio.TaskGroup() as tasks:
                        for _ in range(self._parallel):
                            tasks.create_task(self._work(subscription, holdfast))
            except* Unavailable as away:
                _log.warning("Topic %s cannot be read at the moment: %s", self._topic, away.exceptions[0])
            await backoff.wait()

    async def _work(self, subscription: Subscription, holdfast: HoldfastT) -> None:
        async for delivery in subscription:
            if await self._is_received(delivery, holdfast):
                await delivery.ack()
            else:
                wait = until_retry(delivery.attempt - 1, delivery.message.id)
                await delivery.nack(wait.total_seconds())

    async def _is_received(self, delivery: Delivery, holdfast: HoldfastT) -> bool:
        try:
            await self._receive(delivery.message, holdfast)
        except Exception:  # whatever the function raises, the next message is none the worse for it
            _log.warning(
                "Message %s of topic %s was not received at attempt %d, and comes again.",
                delivery.message.id,
                self._topic,
                delivery.attempt,
                exc_info=True,
            )
            return False
        return True
