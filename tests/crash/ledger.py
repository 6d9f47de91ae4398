"""Who did what, outside Holdfast: a file that every worker writes to before it goes on.

It is what a bank or a warehouse would be. Each call brings an idempotency key and an attempt number. A
call under a key that is known is counted and has no further effect; one from an attempt that is older
than the latest is refused. Whether anything was lost or done twice is asked here, not of the database.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TABLES = """
create table if not exists effects (
  key text primary key, work text not null, step text not null, attempt integer not null,
  calls integer not null, repeats integer not null
) without rowid;
create index if not exists effects_by_work on effects (work, step);
create table if not exists refusals (key text not null, attempt integer not null, latest integer not null);
"""


class Stale(Exception):
    """A newer attempt was here before."""


class Ledger:
    """Opened by each process for itself. What a call has written outlives the process that called."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path, timeout=30, isolation_level=None)
        # Processes die here, not the machine: what was handed to the system is safe.
        self._file.execute("pragma synchronous = off")
        for _ in range(100):
            try:
                self._file.execute("pragma journal_mode = wal")
                self._file.executescript(_TABLES)
                return
            except sqlite3.OperationalError:  # several begin at once, and the first one makes it a WAL
                time.sleep(0.05)
        raise TimeoutError(f"The ledger {path} is locked all the time.")

    def close(self) -> None:
        self._file.close()

    def record(self, key: str, attempt: int, work: str, step: str) -> bool:
        """Whether this is the first call under that key. Raises Stale."""
        with self._alone():
            found = self._file.execute("select attempt from effects where key = ?", (key,)).fetchone()
            if found is None:
                self._file.execute(
                    "insert into effects values (?, ?, ?, ?, 1, 0)", (key, work, step, attempt)
                )
                return True
            [latest] = found
            if attempt < latest:
                self._file.execute("insert into refusals values (?, ?, ?)", (key, attempt, latest))
            else:
                self._file.execute(
                    "update effects set calls = calls + 1, repeats = repeats + ?, attempt = ? where key = ?",
                    (int(attempt == latest), attempt, key),
                )
        if attempt < latest:
            raise Stale(f"Attempt {attempt} of {key} comes after attempt {latest}.")
        return False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._file.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._file.execute("rollback")
            raise
        self._file.execute("commit")

    # --- afterwards -------------------------------------------------------------------------------

    def done(self, steps: tuple[str, ...]) -> set[str]:
        """Whatever has all of these steps."""
        marks = ", ".join("?" * len(steps))
        query = (
            f"select work from effects where step in ({marks}) group by work having count(distinct step) = ?"
        )
        return {work for (work,) in self._file.execute(query, (*steps, len(steps)))}

    def doubled(self) -> list[tuple[str, str]]:
        """Steps that took effect under more than one key."""
        query = "select work, step from effects group by work, step having count(*) > 1"
        return self._file.execute(query).fetchall()

    def repeats(self) -> int:
        """Calls that came again from the same attempt: it had been done, and its worker died."""
        [total] = self._file.execute("select coalesce(sum(repeats), 0) from effects").fetchone()
        return int(total)

    def refusals(self) -> int:
        [total] = self._file.execute("select count(*) from refusals").fetchone()
        return int(total)
