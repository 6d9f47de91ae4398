"""`make soak SEEDS=100000`: many simulations, with progress, and how many went wrong.

A seed that went wrong replays exactly: `python -m tests.simulation.soak 1 SEED`.
"""

import sys

from rich.progress import Progress

from holdfast.testing.simulation import Failure, run_seeds
from tests.simulation.test_turns import story


def main(count: int, first: int) -> int:
    with Progress() as progress:
        task = progress.add_task(f"{count} seeds", total=count)

        def told(seed: int, failure: Failure | None) -> None:
            progress.advance(task)
            if failure is not None:
                progress.console.print(f"seed {seed}: {failure.error!r}")

        failures = run_seeds(story, range(first, first + count), told)
    print(f"{count} seeds, {len(failures)} violations")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*(int(given) for given in [*sys.argv[1:], "10000", "0"][:2])))
