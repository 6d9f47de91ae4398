"""`make soak SEEDS=100000`: many simulations, with progress, and how many went wrong.

Each seed plays one of the stories, so that all of them are played. A seed that went wrong replays
exactly: `python -m tests.simulation.soak 1 SEED` tells what happened in it.
"""

import logging
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from rich.progress import Progress

from holdfast.testing.simulation import Failure, run_seeds
from tests.simulation import test_turns
from tests.simulation.story import ACTS, PEACEFUL, peace_with, standstills, story, story_with

STORIES = (story, story_with(*ACTS, faults=standstills), story, peace_with(*PEACEFUL), test_turns.story)
BLOCK = 50
STEPS = 200_000
"""More than any story needs that does not go round in a circle."""


def play(seeds: range) -> list[Failure]:
    logging.disable()  # what raises on purpose is told by the workers
    return [f for seed in seeds for f in run_seeds(STORIES[seed % len(STORIES)], [seed], steps=STEPS)]


def play_block(seeds: range) -> tuple[int, list[tuple[int, str]]]:
    """In another process, from where errors do not always come back whole."""
    return len(seeds), [(failure.seed, repr(_root(failure.error))) for failure in play(seeds)]


def _root(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def played(count: int, first: int) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    blocks = [range(begin, min(begin + BLOCK, first + count)) for begin in range(first, first + count, BLOCK)]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
        for done in as_completed([processes.submit(play_block, block) for block in blocks]):
            yield done.result()


def main(count: int, first: int) -> int:
    violations = 0
    with Progress() as progress:
        task = progress.add_task(f"{count} seeds", total=count)
        for done, failures in played(count, first):
            progress.advance(task, done)
            violations += len(failures)
            for seed, error in failures:
                progress.console.print(f"seed {seed}: {error}")
    print(f"{count} seeds, {violations} violations")
    return 1 if violations else 0


def replay(seed: int) -> int:
    """One seed, with all that happened in it."""
    failures = play(range(seed, seed + 1))
    for failure in failures:
        for entry in failure.trace:
            print(f"{entry.at:10.3f} {entry.node:8} {entry.words}")
        print(f"seed {failure.seed}: {_root(failure.error)!r}")
    print(f"1 seeds, {len(failures)} violations")
    return 1 if failures else 0


if __name__ == "__main__":
    wanted, beginning = (int(given) for given in [*sys.argv[1:], "10000", "0"][:2])
    sys.exit(replay(beginning) if wanted == 1 else main(wanted, beginning))
