"""The durable example, interrupted and killed: it goes on where it was, and no step is done twice."""

import signal
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "durable.py"
LAST = 5


def run_until(step: int, folder: Path, number: int) -> tuple[list[str], list[int]]:
    """Run it until it has said that step, then send it that signal; all it said, and the steps."""
    process = subprocess.Popen(
        [sys.executable, "-u", EXAMPLE],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line.rstrip())
        if f"{step} of 5" in line and step < LAST:
            process.send_signal(number)
    rest, complaint = process.communicate(timeout=60)
    assert complaint == ""
    said += rest.splitlines()
    return said, [int(line.split()[0]) for line in said if " of 5 " in line]


def test_an_order_goes_on_after_ctrl_c_and_after_kill_9(tmp_path: Path) -> None:
    first, steps = run_until(1, tmp_path, signal.SIGINT)
    assert "begins" in first[0]
    assert first[-1] == "Interrupted. Run me again, and the order goes on where it was."
    second, more = run_until(3, tmp_path, signal.SIGKILL)
    assert "was interrupted. It goes on where it was:" in second[0]
    third, rest = run_until(LAST, tmp_path, 0)
    assert "was interrupted. It goes on where it was:" in third[0]
    assert third[-1].startswith("Finished.")
    done = [*steps, *more, *rest]
    assert sorted(set(done)) == [1, 2, 3, 4, 5]
    assert done == sorted(done)
    assert len(done) <= 6, "only what was being done when it was killed may be done again"
