"""Wake-ups between nodes. Each is a hint: it may get lost, come late or come twice."""

from collections.abc import Callable, Sequence
from typing import Protocol


class Bell(Protocol):
    async def ring(self, words: Sequence[str]) -> None:
        """Tell every node that listens, this one too. Never inside a commit, always after it."""
        ...

    async def listen(self, hear: Callable[[str], None]) -> None:
        """Call `hear` with each word, until cancelled. After a lost connection it is called with ``."""
        ...
