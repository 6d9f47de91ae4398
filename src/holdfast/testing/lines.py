"""A console that remembers what was written to it."""

from collections import deque
from collections.abc import Iterable


class Lines:
    def __init__(self, typed: Iterable[str] = ()) -> None:
        self.written: list[str] = []
        self._typed = deque(typed)

    def write_line(self, text: str) -> None:
        self.written.append(text)

    def read_line(self) -> str:
        return self._typed.popleft() if self._typed else ""

    def type(self, *lines: str) -> None:
        """What ReadLine shall read next."""
        self._typed.extend(lines)
