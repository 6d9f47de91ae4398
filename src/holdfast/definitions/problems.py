"""What can be wrong with a definition, as a value, and the list that checks write to.

A problem's code decides whether it keeps a version from being published: what cannot be compiled at
all does, and so does a broken cron expression, as in Elsa. Everything else an author may publish and
mend later. Paths are written by the names that descriptors use and respelled as the document has them.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Literal

import msgspec

from holdfast.definitions.paths import Locator, spelled

BLOCKING = frozenset(
    {
        "activity.shape",
        "activity.untyped",
        "cron.invalid",
        "definition.invalid",
        "json.invalid",
        "retry.invalid",
    }
)
"""Codes of problems that keep a version from being published."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing an author should look at."""

    path: str
    """Where in the document, such as `$.root.activities[2].text`."""
    code: str
    """What kind of problem, stable: `activity.unknown`, `connection.dangling`, ..."""
    message: str
    """What is wrong, and how to mend it."""
    severity: Literal["error", "warning"] = "error"
    activity_id: str | None = None
    blocks_publishing: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class Problems:
    """What the checks of one definition have found so far."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        # Looking for similar names is slow, and a document with thousands of typing errors has other
        # worries: after that many comparisons there are no more suggestions.
        self._comparisons_left = 20_000

    def error(self, code: str, path: str, message: str, activity_id: str | None = None) -> None:
        self._add(code, path, message, activity_id, "error")

    def warn(self, code: str, path: str, message: str, activity_id: str | None = None) -> None:
        self._add(code, path, message, activity_id, "warning")

    def _add(
        self,
        code: str,
        path: str,
        message: str,
        activity_id: str | None,
        severity: Literal["error", "warning"],
    ) -> None:
        self.found.append(
            Problem(
                path=path,
                code=code,
                message=message,
                severity=severity,
                activity_id=activity_id,
                blocks_publishing=code in BLOCKING,
            )
        )

    def similar(self, name: str, known: Iterable[str]) -> str:
        """`Did you mean 'Elsa.WriteLine'? ` when something known is spelled nearly so, else nothing."""
        if len(name) > 100 or self._comparisons_left < 0:
            return ""
        spelled = {k.lower(): k for k in known if len(k) <= 100}
        self._comparisons_left -= len(spelled)
        close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.7)
        return f"Did you mean {spelled[close[0]]!r}? " if close else ""


def in_document_order(problems: Iterable[Problem], document: Any) -> list[Problem]:
    """The problems as somebody reading the document meets them, each path spelled as it is there."""
    locate = Locator(document).locate
    located = [(locate(problem.path), problem) for problem in problems]
    located.sort(key=lambda entry: [(step.position, step.missing) for step in entry[0]])
    return [msgspec.structs.replace(problem, path=spelled(steps)) for steps, problem in located]
