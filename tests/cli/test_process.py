"""The command as a process of its own: what only a real one can show."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import EXAMPLES, Save, write_line

COMMAND = [sys.executable, "-m", "holdfast"]


def call(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    surroundings = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, env=surroundings | env, timeout=60, check=False
    )


def test_the_module_is_the_command() -> None:
    done = call("run", EXAMPLES / "hello.json", "--quiet", "--input", "name=Ada")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Hello, Ada!\n", b"")


def test_the_version_needs_neither_the_engine_nor_rich() -> None:
    code = (
        "import sys; sys.argv = ['holdfast', '--version']\n"
        "from holdfast.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'msgspec', 'asyncio', 'liquid', 'quickjs', 'holdfast.engine'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    for arguments in (["activities"], ["activities", "--json"]):
        process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaint = process.stderr.read()
        process.stderr.close()
        process.wait(timeout=60)
        assert complaint == b""


def test_a_workflow_whose_reader_leaves_does_not_fault(save: Save) -> None:
    loop = {"id": "for", "type": "Elsa.For", "end": 5000, "body": write_line("x" * 200)}
    for quiet in ([], ["--quiet"]):
        command = [*COMMAND, "run", str(save(loop)), *quiet]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()
        process.stderr.close()
        process.wait(timeout=60)
        assert complaint == b""


def test_colours_are_for_terminals_and_for_who_asks() -> None:
    hello = ("run", EXAMPLES / "hello.json")
    assert b"\x1b[" not in call(*hello).stdout
    assert b"\x1b[" in call(*hello, FORCE_COLOR="1").stdout
    assert b"\x1b[" not in call(*hello, FORCE_COLOR="1", NO_COLOR="1").stdout
    assert b"\x1b[" not in call(*hello, "--no-color", FORCE_COLOR="1").stdout
    assert b"\x1b[" not in call("--no-color", *hello, FORCE_COLOR="1").stdout


def test_a_terminal_that_knows_only_ascii_gets_plain_symbols() -> None:
    done = call("run", EXAMPLES / "hello.json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.startswith(b"> Hello  hello - version 1\n  * Steps")


def test_ctrl_c_while_it_waits_leaves_with_a_word(save: Save) -> None:
    delay = {"id": "nap", "name": "Nap", "type": "Elsa.Delay", "timeSpan": "01:00:00"}
    command = [*COMMAND, "run", str(save(delay)), "--wait"]
    surroundings = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings)
    assert process.stdout is not None
    for line in process.stdout:
        if b"Ctrl-C leaves" in line:
            break
    process.send_signal(signal.SIGINT)
    rest, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "⏸ Suspended after".encode() in rest
    assert complaint == b"Note: Stopped while it was waiting. Nothing was kept.\n"


def test_an_unexpected_error_is_one_line_and_debug_shows_where(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        "from holdfast import load_definition\n"
        "class Odd:\n"
        "    def build(self):\n"
        "        raise ZeroDivisionError('odd')\n"
        "odd = Odd()\n"
    )
    done = call("run", file)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "Error: Something unexpected happened: ZeroDivisionError: odd (--debug shows where)"
    ]
    told = call("run", file, "--debug")
    assert told.returncode == 1
    assert b"Traceback" in told.stderr
    assert told.stderr.splitlines()[-1].endswith(b"ZeroDivisionError: odd")
