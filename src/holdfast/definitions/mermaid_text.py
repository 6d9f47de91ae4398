"""Names and labels that Mermaid can read, whatever an author called things.

Mermaid takes apart what is in a label: quotes end it, `%%{` configures the diagram, `fa:` is an icon,
`$$` a formula, and the rest is Markdown and HTML. So all ASCII punctuation that could mean something
becomes a numeric entity. Letters and symbols of any script stay as they are.
"""

import re

from holdfast.codec import is_object
from holdfast.definitions.reader import Json, member

LONGEST = 60
"""Characters of a label; Mermaid refuses diagrams that are too long as a whole."""

# Kept are letters, digits, `, ' ? ! ( /`, a closing bracket that numbers no list, and `-` in a word.
_MEANINGFUL = re.compile(r"(?<=[0-9])\)|(?<![^\W_])-|-(?![^\W_])|_|[\"#$%&*+.:;<=>@\[\\\]^`{|}~]")

# What Mermaid recognises even when it is written as entities: an invisible space takes it apart.
_FORMULA_OR_ICON = re.compile(r"(?<=\$)(?=\$)|(?<=:)(?=fa-)")

# Words with a meaning of their own as the id of a node, in Mermaid or for the script that reads it.
_RESERVED = frozenset(
    {
        "call", "class", "classdef", "click", "constructor", "default", "direction", "end", "flowchart",
        "graph", "href", "interpolate", "linkstyle", "prototype", "style", "subgraph", "tostring", "valueof",
    }
)  # fmt: skip


class Names:
    """Ids for nodes: letters, digits and underscores, and none of them twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def new(self, wanted: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_]", "_", wanted[:LONGEST])
        if not name[:1].isalpha() or name.lower() in _RESERVED:
            name = f"a_{name}"
        free, number = name, 2
        while free in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free)
        return free

    def number(self, short_type: str) -> str:
        """The id of an activity that has none, counted as the compiler counts them."""
        self._numbers[short_type] = self._numbers.get(short_type, 0) + 1
        return f"{short_type}{self._numbers[short_type]}"


def caption(json: Json, between: str = "<br>") -> str:
    """What an activity is called and, small, its type, where the name does not say it."""
    kind = str(member(json, "type") or "").rpartition(".")[2]
    title = _title(json) or kind
    if re.sub(r"[\W_]|\d+$", "", title).lower() == re.sub(r"[\W_]|\d+$", "", kind).lower():
        return escape(title)
    return f"{escape(title)}{between}<small>{escape(kind)}</small>"


def _title(json: Json) -> str | None:
    metadata = member(json, "metadata")
    shown = member(metadata, "displayText") if is_object(metadata) else None
    titles = (value for value in (shown, member(json, "name")) if isinstance(value, str) and value.strip())
    return next(titles, None)


def escape(text: str) -> str:
    """A label, cut when it is long, on one line."""
    printable = "".join(c if c.isprintable() or c in "\u200c\u200d" else " " for c in text[: 4 * LONGEST])
    line = " ".join(printable.split())
    if len(line) > LONGEST:
        line = f"{line[: LONGEST - 1]}…"
    line = _FORMULA_OR_ICON.sub("\u200b", line)
    return _MEANINGFUL.sub(lambda found: f"#{ord(found[0])};", line) or " "
