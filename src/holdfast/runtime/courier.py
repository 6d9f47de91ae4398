"""Brings what was just committed to whoever handles it: into memory here, by a wake-up elsewhere."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from holdfast.commit import Delivery, Envelope, Place
from holdfast.errors import Unavailable
from holdfast.runtime.loader import Loader
from holdfast.runtime.reader import Reader
from holdfast.store import Admission, Bell

RESULT = "r:"
CATALOGUE = "catalogue"
PAUSES = "pauses"
"""Words of wake-ups: an instance came to rest, something was published, something was paused."""

GATHER = 0.003
"""Seconds in which wake-ups for other nodes are gathered."""


class Courier:
    def __init__(self, reader: Reader, loader: Loader, bell: Bell) -> None:
        self._reader = reader
        self._loader = loader
        self._bell = bell
        self._hints: dict[tuple[int, int], int] = {}
        self._words: set[str] = set()
        self._news = asyncio.Event()

    def owns(self, shard: int) -> bool:
        """Whether this node works it, so that what happens there is heard of without a wake-up."""
        return self._reader.owns(shard)

    def deliver(self, envelopes: Sequence[Envelope], places: Sequence[Place]) -> None:
        """After the commit that sent them, never before."""
        for envelope, place in zip(envelopes, places, strict=True):
            self._hand_over(envelope, place)

    @contextmanager
    def expecting(self, admissions: Sequence[Admission]) -> Generator[None]:
        """While they are admitted and delivered."""
        keys = [
            (admission.message.tenant, admission.birth.instance_id)
            for admission in admissions
            if admission.birth is not None and self._reader.owns(admission.birth.shard)
        ]
        self._loader.expect(keys)
        try:
            yield
        finally:
            self._loader.expect_no_more(keys)

    def deliver_admitted(self, admission: Admission, place: Place) -> None:
        """After the transaction that admitted it. Who was born with it need not be loaded here."""
        birth = admission.birth
        if birth is not None:
            self._loader.bear(admission.message.tenant, birth)
        self._hand_over(admission.message, place)

    def _hand_over(self, envelope: Envelope, place: Place) -> None:
        if not self._reader.hand_over(Delivery(envelope=envelope, place=place)):
            key = (place.shard, place.lane)
            self._hints[key] = min(place.seq, self._hints.get(key, place.seq))
            self._news.set()

    def say(self, word: str) -> None:
        """A word for every node: that something has been answered, published, paused."""
        self._words.add(word)
        self._news.set()

    async def run(self) -> None:
        """Until cancelled: ring for what was gathered. A lost wake-up costs a second, nothing else."""
        while True:
            await self._news.wait()
            await asyncio.sleep(GATHER)
            self._news.clear()
            words = [f"{shard}.{lane}.{seq}" for (shard, lane), seq in self._hints.items()]
            words += sorted(self._words)
            self._hints.clear()
            self._words.clear()
            try:
                await self._bell.ring(words)
            except Unavailable:
                continue


def place_in(word: str) -> Place | None:
    """The message a wake-up is about; None when it is about something else."""
    parts = word.split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return None
    return Place(*map(int, parts))
