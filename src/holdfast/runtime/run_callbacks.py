"""A callback on its way to a run: to the one that waits for it, or kept until one does."""

from datetime import timedelta
from enum import StrEnum
from hashlib import sha256

import msgspec

from holdfast.bookmark import Stimulus
from holdfast.clock import Ids
from holdfast.runtime.courier import Courier
from holdfast.runtime.matching import Matching, kept_of, look
from holdfast.runtime.world import World
from holdfast.store import KeyReused, Posting, Repeated


class Answer(StrEnum):
    """What became of a callback, as soon as that is durable."""

    ACCEPTED = "accepted"
    """The run waits for it, and has it."""
    KEPT = "kept"
    """The run does not wait for it yet; it gets it when it does."""
    TOO_LATE = "too late"
    """The run has ended, or cannot come to that status again. Nothing was kept."""


class Callbacks:
    def __init__(self, world: World, courier: Courier, matching: Matching, ids: Ids) -> None:
        self._world = world
        self._courier = courier
        self._matching = matching
        self._ids = ids

    async def was_answered(self, tenant: str, key: str) -> bool:
        return await self._world.store.answer(tenant, key) is not None

    async def bring(
        self, stimulus: Stimulus, *, tenant: str, keeps: timedelta, key: str | None, asked: tuple[str, ...]
    ) -> Answer:
        """`asked` is what the caller said, to tell a repetition from something else. Raises KeyReused."""
        self._world.sizes.check_value("payload", stimulus.input)
        name = self._ids.new()
        found = await look(self._world, tenant, stimulus, name)
        now = self._world.environment.clock.now()
        keep = None
        if not found.messages:
            keep = msgspec.structs.replace(kept_of(stimulus, tenant, name, now), expires=now + keeps)
        answer = Answer.KEPT if keep is not None else Answer.ACCEPTED
        posting = Posting(
            tenant=tenant,
            messages=found.messages,
            keep=keep,
            key=key,
            request=_digest(asked) if key is not None else b"",
            answer=msgspec.json.encode(answer),
        )
        outcome = await self._world.store.post(posting)
        if isinstance(outcome, KeyReused):
            raise outcome
        if isinstance(outcome, Repeated):
            return msgspec.json.decode(outcome.answer or b'"kept"', type=Answer)
        self._courier.deliver(found.messages, outcome.places)
        # Somebody may have begun to wait between our look and our commit: look again, after it.
        if keep is not None and await self._matching.look_again(keep):
            return Answer.ACCEPTED
        return answer

    async def refuse(self, *, tenant: str, key: str | None, asked: tuple[str, ...]) -> Answer:
        """Too late; also for whoever repeats it under the same key. Raises KeyReused."""
        if key is None:
            return Answer.TOO_LATE
        answer = msgspec.json.encode(Answer.TOO_LATE)
        outcome = await self._world.store.post(
            Posting(tenant=tenant, key=key, request=_digest(asked), answer=answer)
        )
        if isinstance(outcome, KeyReused):
            raise outcome
        if isinstance(outcome, Repeated):
            return msgspec.json.decode(outcome.answer or answer, type=Answer)
        return Answer.TOO_LATE


def _digest(asked: tuple[str, ...]) -> bytes:
    return sha256(msgspec.json.encode(asked)).digest()
