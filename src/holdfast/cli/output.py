"""How the command line speaks: in colour or not, and never in a way that could harm a terminal.

Definitions come from anywhere, so what they contain is shown with its control characters made
visible. rich is imported by whoever prints, not before.
"""

import codecs
import os
import re
import sys
import textwrap
import traceback
from collections.abc import Sequence
from datetime import timedelta
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 120
"""How wide we write where there is no terminal to ask."""

_PLAIN = {
    "●": "*", "✓": "+", "✗": "x", "⏸": "=", "↷": "~", "▶": ">", "│": "|", "→": "->", "…": "...", "·": "-",
    "“": '"', "”": '"', "’": "'", "≥": ">=", "µ": "u",
}  # fmt: skip
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Settings:
    """What the options that every command has were set to."""

    def __init__(self) -> None:
        self.debug = False
        self.has_color = not os.environ.get("NO_COLOR")


def console(settings: Settings, *, stderr: bool = False) -> "Console":
    """Where to print: as wide as the terminal, in colour where that is possible and wanted."""
    from rich.console import Console

    file = sys.stderr if stderr else sys.stdout
    return Console(
        file=file,
        color_system="auto" if settings.has_color else None,
        width=None if file.isatty() or os.environ.get("COLUMNS") else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def complain(settings: Settings, message: str, *, code: str | None = None, kind: str = "Error") -> None:
    """One line on stderr, after the traceback if that was asked for."""
    if settings.debug and sys.exc_info()[0] is not None:
        traceback.print_exc()
    from rich.text import Text

    sys.stdout.flush()
    color = "red" if kind == "Error" else "yellow"
    line = Text.assemble((f"{kind}: ", f"bold {color}"), (clean(" ".join(message.split())), color))
    if code is not None:
        line.append(f"  [{code}]", "dim")
    console(settings, stderr=True).print(line, soft_wrap=True)


def forget_stdout() -> None:
    """Whoever read our output has gone. Python would complain once more when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_rows(out: "Console", rows: Sequence[Sequence[str]], styles: Sequence[str]) -> None:
    """Columns, indented. The last one is wrapped below itself, and no line ends in blanks."""
    from rich.text import Text

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = 2 + sum(width + 2 for width in widths)
    for row in rows:
        line = Text("  ")
        for cell, width, style in zip(row, widths, styles, strict=False):
            line.append(f"{cell:<{width}}  ", style)
        line.append(wrap(row[-1], out.width, indent), styles[-1])
        line.rstrip()
        out.print(line, soft_wrap=True)


def print_table(
    out: "Console", headings: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str]
) -> None:
    """Columns under their headings. The last one is cut where the line ends."""
    from rich.text import Text

    cleaned = [[clean(" ".join(cell.split())) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cleaned, strict=True)]
    for row, looks in ((headings, ["dim"] * len(headings)), *((row, styles) for row in cleaned)):
        line = Text()
        for cell, width, style in zip(row, widths, looks, strict=True):
            line.append(f"{cell:<{width}}  ", style)
        line.rstrip()
        line.truncate(out.width, overflow="ellipsis")
        out.print(line, soft_wrap=True)


def wrap(text: str, width: int, indent: int) -> str:
    """The text broken into lines that all begin at the same column, where the first one stands already."""
    lines = [
        part
        for line in clean(text).split("\n")
        for part in (textwrap.wrap(line, max(24, width - indent), break_on_hyphens=False) or [""])
    ]
    return ("\n" + " " * indent).join(lines)


def clean(text: str) -> str:
    """The text with its control characters made visible, so that it cannot move the cursor."""
    return _HARMFUL.sub(lambda m: chr(0x2400 + ord(m[0])) if ord(m[0]) < 0x20 else "\ufffd", text)


def shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: max(0, longest - 1)] + "…"


def show_value(value: Any, longest: int = 48) -> str:
    """A value as JSON, on one line and shortened."""
    from holdfast.codec import encode_bare
    from holdfast.errors import Invalid

    if isinstance(value, str):
        # Cut before it is written: a text of a megabyte is shown by its first few characters.
        value = shorten(value, longest)
    try:
        text = encode_bare(value).decode()
    except Invalid:
        text = repr(value)
    return clean(shorten(text, longest + 2))


def show_span(span: timedelta) -> str:
    """A duration for people: `40 µs`, `0.4 ms`, `1.2 s`, `3 min`, `2 days`."""
    seconds = span.total_seconds()
    if seconds < 0.0001:
        return f"{seconds * 1_000_000:.0f} µs"
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 0.95:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or unit == "min":
            return f"{seconds / size:.0f} {unit}"
    return ""


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def make_encodable(*files: TextIO) -> None:
    """Where a stream cannot carry our symbols, let it write plain ones instead of failing."""
    codecs.register_error("holdfast", _plain_instead)
    for file in files:
        if isinstance(file, TextIOWrapper):
            file.reconfigure(errors="holdfast")


def _plain_instead(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end
