"""Type checkers refuse a transition that was not declared, and take everything that was.

`types/accepted.py` must check, and in `types/refused.py` the lines that are marked, and no others, must
not: under mypy and under pyright, both strict.
"""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "types"
ROOT = HERE.parents[2]
MARK = "# refused"


@cache
def mypy() -> dict[str, set[int]]:
    """The lines with errors, by file."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(HERE)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = {}
    for line in said.stdout.splitlines():
        match = re.match(r"(?P<path>[^:]+):(?P<line>\d+):.* error: ", line)
        if match:
            found.setdefault(Path(match["path"]).name, set()).add(int(match["line"]))
    assert said.returncode in (0, 1), said.stderr + said.stdout
    return found


@cache
def pyright() -> dict[str, set[int]]:
    command = [
        sys.executable,
        "-m",
        "pyright",
        "-p",
        str(HERE),
        "--pythonpath",
        sys.executable,
        "--outputjson",
    ]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = {}
    for one in json.loads(said.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            found.setdefault(Path(one["file"]).name, set()).add(one["range"]["start"]["line"] + 1)
    return found


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_what_authors_may_write_is_taken(checker: object) -> None:
    assert checker().get("accepted.py", set()) == set()  # type: ignore[operator]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_what_authors_may_not_write_is_refused_where_it_stands(checker: object) -> None:
    lines = (HERE / "refused.py").read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith(MARK)}
    assert len(marked) > 10
    assert checker().get("refused.py", set()) == marked  # type: ignore[operator]
