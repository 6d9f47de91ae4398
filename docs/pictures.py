"""Pictures of the command line for the README and the docs, as SVG.

What a command prints is recorded with its colours and drawn by rich. Times differ from run to run, so
they are replaced by a fixed one: the same code gives the same picture.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
PICTURES = {"run.svg": ["run", "examples/order-saga.json"]}
_TIME = re.compile(r"\d+(?:\.\d+)? (?:µs|ms|s)\b")


def draw(command: list[str]) -> str:
    """The command and what it prints, as a picture of a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *command],
        capture_output=True,
        text=True,
        cwd=HERE.parent,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": "88", "TERM": "xterm-256color"},
        check=False,
    )
    printed = _TIME.sub(lambda found: "1 ms".rjust(len(found[0])), done.stdout + done.stderr)
    console = Console(record=True, width=88, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ holdfast {' '.join(command)}\n{printed.rstrip()}"))
    svg = console.export_svg(title="holdfast", unique_id="holdfast")
    # The fonts rich names live on somebody's server; a reader's own monospace will do.
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code, ", "")
    return re.sub(r"<!--.*?-->\n?", "", svg)


def write() -> None:
    """Draw all pictures anew."""
    for name, command in PICTURES.items():
        (HERE / "pictures" / name).write_text(draw(command), encoding="utf-8")
