"""Timing that can be believed on a machine that others use as well.

What is counted is processor time, so others on the same cores cost us less than they would on the
clock. Cases take turns, round after round, so that a bad moment hits all of them; of all rounds the
best is what the code can do, and the median what it did on the day. The garbage collector stays on:
what it costs is part of the price.
"""

import gc
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Something to time. One call does so many operations; `is_right` looks at what it came to."""

    name: str
    call: Callable[[], Awaitable[Any]]
    operations: int = 1
    is_right: Callable[[Any], bool] = bool


class Timing(msgspec.Struct, frozen=True):
    """Seconds of processor time for one operation."""

    best: float
    median: float


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long to look. A round repeats a case until `sample` seconds have passed."""

    rounds: int = 20
    fewest: int = 5
    """Rounds that even a slow case gets."""
    sample: float = 0.03
    most: float = 3.0
    """Seconds that one case may take altogether, if the fewest rounds allow it."""
    counts_the_first: bool = False
    """Whether the call that warms up is a round as well."""
    is_full: bool = False
    """Whether what takes minutes to prepare is measured at its full size."""


THOROUGH = Effort()
FULL = Effort(is_full=True)
QUICK = Effort(rounds=0, fewest=0, sample=0.0, counts_the_first=True)
"""Only to see that everything runs. Its figures mean little."""


class WentWrong(Exception):
    """A case did not do what it is timed for, so its time would mean nothing."""


class Stopwatch:
    """Times cases side by side, and tells `tell` how far it is: what is done, of how much."""

    def __init__(self, effort: Effort, tell: Callable[[int, int], None]) -> None:
        self.effort = effort
        self.tell = tell

    async def time(self, cases: Sequence[Case]) -> dict[str, Timing]:
        """Each case by its name. The first call of each warms it up, and is checked."""
        # What was prepared for all cases together is more than any of them would have in memory by itself.
        # Frozen, it is not searched for garbage each time; and sweeping up between samples is cheap.
        gc.collect()
        gc.freeze()
        try:
            return await self._time(cases)
        finally:
            gc.unfreeze()

    async def _time(self, cases: Sequence[Case]) -> dict[str, Timing]:
        samples: dict[str, list[float]] = {}
        calls: dict[str, int] = {}
        rounds: dict[str, int] = {}
        for done, case in enumerate(cases):
            self.tell(done, 0)
            cold, outcome = await self._sample(case, 1)
            if not case.is_right(outcome):
                raise WentWrong(f"{case.name} did not do its work, so there is nothing to time.")
            samples[case.name] = [cold] if self.effort.counts_the_first else []
            # The first call may have compiled this or filled that; a second tells more, if it is affordable.
            once = cold if cold > self.effort.sample else (await self._sample(case, 1))[0]
            calls[case.name] = max(1, math.ceil(self.effort.sample / once))
            affordable = int(self.effort.most / (once * calls[case.name]))
            rounds[case.name] = max(self.effort.fewest, min(self.effort.rounds, affordable))
        total, done = sum(rounds.values()), 0
        for turn in range(max(rounds.values())):
            # Forwards and backwards in turns: nobody always comes after the same neighbour.
            for case in cases if turn % 2 == 0 else reversed(cases):
                if turn < rounds[case.name]:
                    spent, _ = await self._sample(case, calls[case.name])
                    samples[case.name].append(spent)
                    done += 1
                    self.tell(done, total)
        return {
            case.name: Timing(
                min(samples[case.name]) / case.operations,
                statistics.median(samples[case.name]) / case.operations,
            )
            for case in cases
        }

    async def _sample(self, case: Case, calls: int) -> tuple[float, Any]:
        # Everybody sweeps up their own garbage and nobody that of the one before.
        gc.collect()
        call = case.call
        outcome = None
        begun = time.process_time()
        for _ in range(calls):
            outcome = await call()
        # Never nothing: some systems count processor time in steps longer than a quick call.
        return max(time.process_time() - begun, 1e-7) / calls, outcome


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was found out, in a unit that people think in."""

    name: str
    """Its key in the report; it stays the same from release to release."""
    section: str
    label: str
    value: float
    unit: str
    typical: float | None = None
    """The same by the median round."""
    at_least: float | None = None
    at_most: float | None = None
    is_ratio: bool = False

    @property
    def is_met(self) -> bool | None:
        """Whether the aim is reached; None for a figure without one."""
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most


class Section:
    """Collects the figures under one heading."""

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self.figures: list[Figure] = []

    def rate(self, name: str, label: str, timing: Timing, unit: str, **aim: float) -> None:
        """Operations per second."""
        self._add(name, label, 1 / timing.best, f"{unit}/s", 1 / timing.median, **aim)

    def duration(self, name: str, label: str, timing: Timing, unit: str = "µs", **aim: float) -> None:
        """How long one operation takes."""
        scale = {"µs": 1e6, "ms": 1e3}[unit]
        self._add(name, label, timing.best * scale, unit, timing.median * scale, **aim)

    def amount(self, name: str, label: str, value: float, unit: str, **aim: float) -> None:
        self._add(name, label, value, unit, None, **aim)

    def ratio(self, name: str, label: str, over: Timing, under: Timing, **aim: float) -> None:
        """How many times as long the one takes as the other."""
        typical = over.median / under.median
        self._add(name, label, over.best / under.best, "×", typical, is_ratio=True, **aim)

    def _add(
        self, name: str, label: str, value: float, unit: str, typical: float | None, **more: Any
    ) -> None:
        made = Figure(
            name=name, section=self.heading, label=label, value=value, unit=unit, typical=typical, **more
        )
        self.figures.append(made)
