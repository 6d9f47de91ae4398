"""The workers of a crash test, and how they are killed: at any moment, or in the middle of a commit."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from random import Random

from tests.crash.worker import COMMITTING, JOINED, Marks

PATIENCE = 60.0
WATCH = 1.0
"""Seconds in which a worker is expected to begin a commit; else it is killed as it is."""


class Worker:
    """One process, watched through its marks."""

    def __init__(self, folder: Path, number: int, url: str, ledger: Path) -> None:
        path = folder / f"worker-{number}.marks"
        self._marks = Marks.make(path)
        self._log = (folder / f"worker-{number}.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.worker", url, str(ledger), str(path)],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # a Ctrl-C is for the one who kills
        )

    @property
    def has_joined(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"A worker ended by itself: {Path(self._log.name).read_text()[-4000:]}")
        return self._marks[JOINED] == 1

    @property
    def is_committing(self) -> bool:
        return self._marks[COMMITTING] > 0

    def kill(self) -> bool:
        """Whether it died during a commit. Nothing in the process hears of it."""
        self._process.kill()
        self._process.wait()
        self._log.close()
        return self.is_committing

    def drain(self) -> None:
        self._process.terminate()

    def ended(self, patience: float) -> int:
        code = self._process.wait(patience)
        self._log.close()
        return code


class Crew:
    """So many workers at any time; for each that is killed another one comes."""

    def __init__(self, folder: Path, url: str, ledger: Path, *, size: int, random: Random) -> None:
        self._folder = folder
        self._url = url
        self._ledger = ledger
        self._random = random
        self._number = 0
        self.kills = 0
        self.kills_in_commit = 0
        self.workers = [self._start() for _ in range(size)]

    def _start(self) -> Worker:
        self._number += 1
        return Worker(self._folder, self._number, self._url, self._ledger)

    async def joined(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not all(worker.has_joined for worker in self.workers):
            if time.monotonic() > deadline:
                raise TimeoutError(f"Workers did not join; their logs are in {self._folder}.")
            await asyncio.sleep(0.02)

    async def kill_one(self, *, in_commit: bool) -> None:
        """Kill one that works, and start another in its place."""
        joined = [place for place, worker in enumerate(self.workers) if worker.has_joined]
        if not joined:
            return
        found = await self._committing(joined) if in_commit else None
        place = self._random.choice(joined) if found is None else found
        self.kills_in_commit += self.workers[place].kill()
        self.kills += 1
        self.workers[place] = self._start()

    async def _committing(self, places: list[int]) -> int | None:
        """The place of a worker that is in a commit right now: looked at without a pause, for a while."""
        deadline = time.monotonic() + WATCH
        while time.monotonic() < deadline:
            turn = time.monotonic() + 0.01
            while time.monotonic() < turn:
                for place in places:
                    if self.workers[place].is_committing:
                        time.sleep(self._random.uniform(0, 0.004))  # some way into it
                        if self.workers[place].is_committing:
                            return place
            await asyncio.sleep(0.002)
        return None

    def end(self) -> list[int]:
        """Drain them all; how they ended."""
        for worker in self.workers:
            worker.drain()
        return [worker.ended(PATIENCE) for worker in self.workers]

    def kill_all(self) -> None:
        for worker in self.workers:
            worker.kill()
