"""`holdfast worker` as a process: it joins, works, shares, and drains when it is told to stop."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import msgspec
import pytest

from holdfast import Holdfast as Application
from holdfast.stores.opening import open_store
from tests.cli.conftest import EXAMPLES, Holdfast, Save, write_line
from tests.cli.test_process import COMMAND

PATIENCE = 30


class Process:
    """A worker, and what it says."""

    def __init__(self, *arguments: str | Path, cwd: Path) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "worker", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env={k: v for k, v in os.environ.items() if k not in ("HOLDFAST_DATABASE", "FORCE_COLOR")},
        )
        self._said: Queue[str] = Queue()
        self._listening = [
            threading.Thread(target=self._listen, args=(stream,), daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for thread in self._listening:
            thread.start()

    def _listen(self, stream: object) -> None:
        for line in stream:  # type: ignore[attr-defined]
            self._said.put(line.rstrip("\n"))

    def says(self, text: str) -> str:
        """Wait until it says that; the line."""
        heard: list[str] = []
        while True:
            try:
                line = self._said.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"It never said {text!r}, only {heard}.") from None
            heard.append(line)
            if text in line:
                return line

    def end(self, number: int) -> int:
        self._process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        code = self._process.wait(PATIENCE)
        for thread in self._listening:
            thread.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()
        return code

    def kill(self) -> None:
        if self._process.poll() is None:
            self.end(signal.SIGKILL)


Work = Callable[..., Process]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    begun: list[Process] = []

    def work(*arguments: str | Path) -> Process:
        begun.append(Process(*arguments, cwd=tmp_path))
        return begun[-1]

    yield work
    for process in begun:
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_what_it_is_and_drains_when_told_to_stop(work: Work, number: int) -> None:
    worker = work()
    assert worker.says("Worker").endswith("works 64 shards and housekeeping. Ctrl-C drains.")
    assert worker.end(number) == 0
    worker.says("Drained: what was under way is finished, and the shards are given back.")


def test_it_publishes_a_folder_and_works_what_is_dispatched(work: Work, save: Save, tmp_path: Path) -> None:
    (tmp_path / "flows").mkdir()
    made = save(write_line("Hello from the worker"), name="made")
    made.rename(tmp_path / "flows" / "made.json")
    worker = work("--folder", "flows")
    worker.says("Published made, version 1.")
    worker.says("works 64 shards")

    async def dispatch() -> str:
        url = f"sqlite:///{tmp_path / '.holdfast' / 'holdfast.db'}"
        async with Application(url, works=False) as application:
            started = await application.dispatch("made")
            return (await application.result(started, timeout=PATIENCE)).sub_status

    assert asyncio.run(dispatch()) == "Finished"
    worker.says("Hello from the worker")
    (tmp_path / "flows" / "broken.json").write_text('{"root": ')
    assert "broken.json is not used" in worker.says("broken.json")
    assert worker.end(signal.SIGTERM) == 0


def test_activities_of_your_own_come_with_a_file(work: Work) -> None:
    worker = work("--with", EXAMPLES / "custom_activity.py", "--slots", "4", "--json")
    joined = msgspec.json.decode(worker.says('"joined"'))
    assert (joined["event"], joined["shards"], joined["roles"]) == ("joined", 64, ["housekeeping"])
    assert worker.end(signal.SIGTERM) == 0
    assert msgspec.json.decode(worker.says('"drained"'))["node"] == joined["node"]


def test_two_share_the_shards_and_one_goes_on_alone_when_the_other_is_killed(
    work: Work, postgres_url: str, holdfast: Holdfast
) -> None:
    assert holdfast("migrate", "--database", postgres_url).exit_code == 0
    first = work("--database", postgres_url)
    first.says("works 64 shards")
    second = work("--database", postgres_url)
    second.says("works")
    first.says("given up: 32 shards")
    second.kill()
    first.says("taken: 64 shards")
    assert first.end(signal.SIGTERM) == 0

    async def left() -> list[str]:
        store = await open_store(postgres_url)
        try:
            return [node.id for node in await store.nodes()]
        finally:
            await store.close()

    assert asyncio.run(left()) == []


@pytest.mark.parametrize(
    ("arguments", "complaint", "code"),
    [
        (["--database", "nonsense"], "is no URL", 2),
        (["--database", "postgresql://me:secret@127.0.0.1:1/x"], "cannot be reached", 1),
        (["--folder", "nowhere"], "There is no folder nowhere", 2),
        (["--activities", "nothing_of_the_kind"], "There is no module", 2),
        (["--slots", "0"], "0 is not in the range", 2),
    ],
)
def test_what_it_cannot_work_with_is_said_without_a_traceback(
    tmp_path: Path, arguments: list[str], complaint: str, code: int
) -> None:
    done = subprocess.run(
        [*COMMAND, "worker", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def test_a_server_with_old_tables_is_sent_to_be_migrated(tmp_path: Path, postgres_url: str) -> None:
    async def make_old() -> None:
        import sqlalchemy as sa

        from holdfast.stores.sql.engines import create

        database = create(postgres_url)

        def forget(connection: sa.Connection) -> None:
            connection.execute(sa.text("drop table if exists holdfast_version"))

        try:
            await database.write(forget)
        finally:
            await database.close()

    asyncio.run(make_old())
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "--database", postgres_url],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Run `holdfast migrate`" in done.stderr
