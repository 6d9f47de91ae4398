"""Differences between what a case expects and what was found, each told by its key.

Nothing is raised for a difference: it is a `Failure`, and a case may have many. What is compared is
decided in `corpus_match` and `corpus_check`; what equal means is `corpus_values`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from holdfast.bookmark import Bookmark, Trigger
from holdfast.codec import read_payload
from holdfast.definitions.consumers import activities_in
from holdfast.definitions.validate import Problem
from holdfast.instance import Incident
from holdfast.testing import corpus_expectation as form
from holdfast.testing.corpus_values import ABSENT, SHOWN, as_json, at_path, can_pair, covers, is_equal, shown


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a case did not keep: a difference, or why it could not be played."""

    key: str
    expected: Any = ABSENT
    actual: Any = ABSENT
    problem: str | None = None
    trace: str | None = None

    def tell(self, room: int | None = SHOWN) -> str:
        """On one line; values longer than there is room for are cut."""
        if self.problem is not None:
            return f"{self.key}: {' '.join(self.problem.split())}"
        return f"{self.key}: expected {shown(self.expected, room)}, found {shown(self.actual, room)}"


Failures = Iterator[Failure]


def compare(key: str, actual: Any, expected: Any) -> Failures:
    if expected is not UNSET and not is_equal(as_json(actual), expected):
        yield Failure(key=key, expected=expected, actual=actual)


def compare_members(key: str, actual: Mapping[str, Any], expected: Mapping[str, Any]) -> Failures:
    for name, value in expected.items():
        found = as_json(actual.get(name, ABSENT))
        if not is_equal(found, value):
            yield Failure(key=f"{key}.{name}", expected=value, actual=found)


def compare_paths(key: str, document: Any, expected: Mapping[str, Any]) -> Failures:
    for path, value in expected.items():
        found = as_json(at_path(document, path))
        if not is_equal(found, value):
            yield Failure(key=f"{key}.{path}", expected=value, actual=found)


def compare_activities(key: str, document: Any, expected: list[dict[str, Any]]) -> Failures:
    activities = list(activities_in(document))
    for index, entry in enumerate(expected):
        if not any(covers(activity, entry) for activity in activities):
            named = [{k: a.get(k) for k in entry} for a in activities if a.get("id") == entry.get("id")]
            yield Failure(key=f"{key}[{index}]", expected=entry, actual=named[0] if named else ABSENT)


def compare_waiting(key: str, actual: Sequence[Bookmark | Trigger], expected: list[form.Waiting]) -> Failures:
    found = [
        {"activityId": w.activity_id, "name": w.name, "payload": as_json(read_payload(w.payload))}
        for w in actual
    ]
    wanted: list[dict[str, Any]] = msgspec.to_builtins(expected)
    if not can_pair(wanted, found, lambda a, e: covers(a, e, in_any_case=True)):
        yield Failure(key=key, expected=wanted, actual=found)


def compare_complaints(
    key: str, actual: Sequence[Incident | Problem], expected: list[form.Complaint]
) -> Failures:
    def fits(found: Incident | Problem, entry: form.Complaint) -> bool:
        start = "" if entry.message_starts_with is UNSET else entry.message_starts_with
        return (
            entry.activity_id in (UNSET, found.activity_id)
            and entry.message in (UNSET, found.message)
            and found.message.startswith(start)
        )

    if len(actual) != len(expected) or not all(map(fits, actual, expected)):
        told = [{"activityId": found.activity_id, "message": found.message} for found in actual]
        yield Failure(key=key, expected=msgspec.to_builtins(expected), actual=told)


def compare_triggers(expect: form.Triggers, found: list[Trigger], at: str) -> Failures:
    if expect.equals is not UNSET:
        yield from compare_waiting(f"{at}.equals", found, expect.equals)
    if expect.min_count is not UNSET and len(found) < expect.min_count:
        yield Failure(key=f"{at}.minCount", expected=expect.min_count, actual=len(found))
