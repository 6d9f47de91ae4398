"""The pages of the documentation, cut into the blocks that are checked.

A fenced block says by its info string what it is: `python`, `python name.py`, `json`, `json name.json`,
`console`, `sh`, `mermaid` or `text`. What is done with each kind is `test_snippets`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")


class Block(NamedTuple):
    """One fenced block, and the line of the page on which it opens."""

    info: str
    text: str
    line: int
    follows_directly: bool
    """Nothing but blank lines stands between it and the block before it."""

    @property
    def kind(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def name(self) -> str:
        """The file it is written to; empty when it is none."""
        return self.info.partition(" ")[2].strip()


def all_pages() -> list[Path]:
    """README.md and everything below docs/, in a fixed order."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    return list(_blocks(page.read_text("utf-8").splitlines(), page))


def prose_of(page: Path) -> str:
    """The page without its fenced blocks."""
    lines = page.read_text("utf-8").splitlines()
    inside: set[int] = set()
    for block in _blocks(lines, page):
        inside.update(range(block.line - 1, block.line + 1 + block.text.count("\n")))
    return "\n".join(line for number, line in enumerate(lines) if number not in inside)


def _blocks(lines: list[str], page: Path) -> Iterator[Block]:
    opening: re.Match[str] | None = None
    begun = 0
    prose = True
    for number, line in enumerate(lines, start=1):
        found = _FENCE.match(line)
        if opening is None:
            if found is None:
                prose = prose or bool(line.strip())
                continue
            opening, begun = found, number
        elif line.strip() == opening["fence"]:
            indent = len(opening["indent"])
            text = "".join(f"{inner[indent:]}\n" for inner in lines[begun : number - 1])
            yield Block(opening["info"].strip(), text, begun, not prose)
            opening, prose = None, False
    assert opening is None, f"{page}:{begun}: the block that opens here is never closed"
