"""`make crash`: many workflows while their workers are killed and their database is stopped.

python -m tests.crash [ORDERS] [KILLS] [SEED]
"""

import asyncio
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.crash.story import Plan, play


def main(arguments: list[str]) -> int:
    defaults = Plan()
    given = [int(argument) for argument in arguments]
    orders, kills, seed = [*given, *(defaults.orders, defaults.kills, defaults.seed)[len(given) :]]
    seconds = max(15.0, defaults.seconds * max(orders / defaults.orders, kills / defaults.kills))
    plan = Plan(orders=orders, kills=kills, kills_in_commit=min(5, kills), seed=seed, seconds=seconds)
    folder = Path(tempfile.mkdtemp(prefix="hf-crash-"))
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begun:5.0f} s  {text}", flush=True)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left running
    result = asyncio.run(play(plan, folder, say))
    print(result)
    print(
        f"{result.kills} workers killed with -9, {result.kills_in_commit} of them during a commit; "
        f"PostgreSQL stopped once"
    )
    print(
        f"{result.repeats} side effects repeated under the same idempotency key, "
        f"{result.refusals} stale attempts refused"
    )
    if not result.is_good:
        print(f"lost: {result.lost[:20]}, doubled: {result.doubled[:20]}; logs and ledger are in {folder}")
        print(f"the doctor says: {'; '.join(result.findings) or 'nothing'}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    if result.kills < plan.kills or result.kills_in_commit < plan.kills_in_commit:
        print("Fewer were killed than planned: there was nothing left to do. Send more orders.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
