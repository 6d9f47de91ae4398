"""Real nodes on one store, in worlds where everything goes wrong: the promises hold with every seed."""

import os
import subprocess
import sys

import pytest

from holdfast.testing.simulation import Failure, run_seeds, simulate
from tests.simulation.story import ACTS, PEACEFUL, peace_with, standstills, story, story_with

BLOCK = 25


def tell(failures: list[Failure]) -> str:
    return "".join(f"\nseed {failure.seed}: {failure.error!r}" for failure in failures)


@pytest.mark.parametrize("block", range(8))
def test_whatever_goes_wrong_the_promises_hold(block: int) -> None:
    failures = run_seeds(story, range(block * BLOCK, (block + 1) * BLOCK), steps=60_000)
    assert not failures, tell(failures)


@pytest.mark.parametrize("block", range(2))
def test_they_hold_where_nodes_stand_still_and_go_on(block: int) -> None:
    told = story_with(*ACTS, faults=standstills)
    failures = run_seeds(told, range(block * BLOCK, (block + 1) * BLOCK), steps=60_000)
    assert not failures, tell(failures)


@pytest.mark.parametrize("block", range(3))
def test_in_peace_nothing_is_even_done_twice(block: int) -> None:
    failures = run_seeds(peace_with(*PEACEFUL), range(block * BLOCK, (block + 1) * BLOCK), steps=60_000)
    assert not failures, tell(failures)


def test_a_seed_replays_exactly() -> None:
    first, second = simulate(story, 7), simulate(story, 7)
    assert (first.trace, first.steps, first.seconds) == (second.trace, second.steps, second.seconds)
    assert len(first.trace) > 10


def test_it_replays_in_another_process() -> None:
    """There strings hash otherwise, and nothing else has been simulated before."""
    code = (
        "from holdfast.testing.simulation import simulate\n"
        "from tests.simulation.story import story\n"
        "for entry in simulate(story, 11).trace: print(*entry)"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert told[0].splitlines() == [" ".join(map(str, entry)) for entry in simulate(story, 11).trace]
