"""Messages nobody could handle, and what a person does about them: look, mend, send again, throw away."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.clock import Clock
from holdfast.codec import decode_payload, encode_payload
from holdfast.commit import DeadLetter, Lane
from holdfast.errors import Invalid
from holdfast.runtime.courier import Courier
from holdfast.runtime.letters import opened
from holdfast.store import LetterNotFound, Page, Store

PAGE = 100


class DeadLetters:
    def __init__(self, store: Store, courier: Courier, clock: Clock, tenant: str) -> None:
        self._store = store
        self._courier = courier
        self._clock = clock
        self._tenant = tenant

    async def page(
        self, *, instance_id: str | None = None, tenant: str | None = None, skip: int = 0, limit: int = 100
    ) -> Page[DeadLetter]:
        """One page of them, the latest first."""
        owner = self._tenant if tenant is None else tenant
        return await self._store.dead_letters(owner, instance_id=instance_id, skip=skip, limit=limit)

    async def find(self, letter_id: str, *, tenant: str | None = None) -> DeadLetter:
        """Raises LetterNotFound."""
        return await self._store.dead_letter(self._tenant if tenant is None else tenant, letter_id)

    async def replay(
        self, letter_id: str, changes: Mapping[str, Any] | None = None, *, tenant: str | None = None
    ) -> None:
        """Send its message again, perhaps with some of its members changed.

        Raises LetterNotFound, and MessageUnreadable when the message would not be one after the change.
        """
        letter = await self.find(letter_id, tenant=tenant)
        envelope = letter.envelope
        payload: bytes | None = None
        if changes is not None:
            payload = encode_payload({**contents(letter), **changes})
            envelope = msgspec.structs.replace(envelope, payload=payload)
            opened(envelope)
        place = await self._store.replay(envelope.tenant, letter_id, payload)
        self._courier.deliver([msgspec.structs.replace(envelope, lane=Lane.BULK)], [place])

    async def replay_all(
        self,
        *,
        instance_id: str | None = None,
        kind: str | None = None,
        error: str | None = None,
        tenant: str | None = None,
    ) -> int:
        """Send all again that match; how many. `error` is a part of what went wrong.

        Only those that died before now: what dies again meanwhile is left for a person to see.
        """
        begun = self._clock.now()
        sent = left = 0
        while True:
            found = await self.page(instance_id=instance_id, tenant=tenant, skip=left, limit=PAGE)
            for letter in found.items:
                matches = kind in (None, letter.envelope.kind) and (error or "") in letter.error
                if letter.at > begun or not matches:
                    left += 1
                    continue
                try:
                    await self.replay(letter.id, tenant=tenant)
                    sent += 1
                except LetterNotFound:
                    pass  # somebody else was quicker
            if len(found.items) < PAGE:
                return sent

    async def discard(self, letter_id: str, *, tenant: str | None = None) -> None:
        """Throw it away. Raises LetterNotFound.

        An instance that waits for nothing else waits for ever then: cancel or delete it as well.
        """
        await self._store.discard(self._tenant if tenant is None else tenant, letter_id)


def contents(letter: DeadLetter) -> dict[str, Any]:
    """The members of its message. Raises Invalid when they cannot be read."""
    found: Any = {} if letter.envelope.payload is None else decode_payload(letter.envelope.payload)
    if not isinstance(found, dict):
        raise Invalid(f"What dead letter {letter.id!r} carries is no JSON object. Discard it.")
    return cast("dict[str, Any]", found)
