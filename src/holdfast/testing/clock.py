"""Time and identity that tests decide."""

from datetime import UTC, datetime, timedelta


class ManualClock:
    """Stands still until somebody moves it."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def move_to(self, when: datetime) -> None:
        """Never backwards."""
        self._now = max(self._now, when)

    def advance(self, span: timedelta) -> None:
        self._now += span

    async def sleep_until(self, when: datetime) -> None:
        self.move_to(when)


class NumberedIds:
    """`i1`, `i2`, ...: the same in each run."""

    def __init__(self, prefix: str = "i") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"
