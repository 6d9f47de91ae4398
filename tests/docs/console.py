"""Comparing what a command printed with what a page says it prints.

In a page `…` stands for anything within a line, and a line of nothing but `…` for any number of lines. A line
`^C` is what the reader types, not what the command prints.
"""

import re
from collections.abc import Iterator
from difflib import unified_diff

ELISION = "…"
INTERRUPT = "^C"


class Exchange:
    """A command, and the lines that shall answer it."""

    def __init__(self, command: str, line: int) -> None:
        self.command = command
        self.line = line
        self.answer: list[str] = []


def exchanges(text: str, first_line: int) -> Iterator[Exchange]:
    """The commands of a console block, each with what follows it. A `\\` at the end continues a command."""
    current: Exchange | None = None
    is_open = False
    for number, line in enumerate(text.splitlines(), start=first_line):
        if is_open and current is not None:
            current.command += f"\n{line}"
            is_open = line.endswith("\\")
        elif line.startswith("$ "):
            if current is not None:
                yield current
            current = Exchange(line[2:], number)
            is_open = line.endswith("\\")
        else:
            assert current is not None, f"line {number}: a console block begins with a line like `$ command`"
            current.answer.append(line)
    if current is not None:
        yield current


def is_answered(expected: list[str], printed: str) -> bool:
    """Whether the output is what was expected, blanks at the ends of lines aside."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == ELISION else f"{_line_pattern(line)}\n"
        for line in _trimmed(expected)
    )
    actual = "".join(f"{line}\n" for line in _trimmed(printed.splitlines()))
    return re.fullmatch(pattern, actual) is not None


def difference(expected: list[str], printed: str) -> str:
    """Both, side by side as a diff, for whoever must mend the page."""
    return "\n".join(
        unified_diff(
            _trimmed(expected), _trimmed(printed.splitlines()), "the page", "the output", "", "", 9, ""
        )
    )


def _line_pattern(line: str) -> str:
    return r"[^\n]*".join(map(re.escape, line.split(ELISION)))


def _trimmed(lines: list[str]) -> list[str]:
    """Without blanks at the ends of lines, and without empty lines at both ends."""
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines
