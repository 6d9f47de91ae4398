"""How far one lane of one shard was read, and what was left behind on the way."""

from collections import deque

TRAIL = 15.0
"""Seconds: numbers are drawn before they become visible, so whoever reads looks back this far."""


class Position:
    """Everything up to `cursor` was seen, except what is `left` for a reason and what was not visible."""

    __slots__ = ("_trail", "cursor", "is_behind", "lane", "left", "shard")

    def __init__(self, shard: int, lane: int) -> None:
        self.shard = shard
        self.lane = lane
        self.cursor = 0
        self.is_behind = True
        """There may be more behind the cursor than was read."""
        self.left: dict[str, int] = {}
        """The lowest number that was not kept, by the reason."""
        self._trail: deque[tuple[float, int]] = deque([(float("-inf"), 0)])

    def advance(self, seq: int) -> None:
        self.cursor = max(self.cursor, seq)

    def leave(self, seq: int, reason: str) -> None:
        self.left[reason] = min(seq, self.left.get(reason, seq))

    def mark(self, monotonic: float) -> None:
        """Remember where the cursor stands now."""
        if self._trail[-1][1] != self.cursor:
            self._trail.append((monotonic, self.cursor))

    def trailing(self, monotonic: float) -> int:
        """Where the cursor stood a while ago."""
        while len(self._trail) > 1 and self._trail[1][0] <= monotonic - TRAIL:
            self._trail.popleft()
        return self._trail[0][1]
