"""Whether a case kept what it says: after each step, and at its end.

What is said about an instance or the whole host is compared by `corpus_match`; what only one kind of
step can have brought is compared here.
"""

from typing import Any

from msgspec import UNSET

from holdfast.testing import corpus_scenario as form
from holdfast.testing.corpus_compare import (
    Failure,
    Failures,
    compare,
    compare_activities,
    compare_complaints,
    compare_paths,
    compare_triggers,
)
from holdfast.testing.corpus_expectation import ConsumersExpectation, DocumentExpectation, PublishExpectation
from holdfast.testing.corpus_match import match_expectation
from holdfast.testing.corpus_steps import Fetched, Published, Stage
from holdfast.testing.corpus_values import ABSENT, at_path


def check_case(stage: Stage, case: form.Case) -> Failures:
    yield from match_expectation(stage, case.expect, "expect")
    yield from match_expectation(stage, case.derived, "derived")


def check_step(stage: Stage, step: form.AnyStep, result: Any) -> Failures:
    """What a step's own `expect` says; without one, that it went well."""
    match step:
        case form.Run() | form.Resume() | form.Cancel():
            if step.expect is not None:
                yield from match_expectation(stage, step.expect, "expect")
        case form.Publish() | form.PublishNewVersion():
            yield from _publish(step.expect, result)
        case form.Alter():
            succeeded = all(one.is_applied for one in result)
            wanted = True if step.expect is None else step.expect.succeeded
            if wanted is not UNSET and succeeded is not wanted:
                texts = [one.text for one in result]
                yield Failure(key="expect.succeeded", expected=wanted, actual=texts)
        case form.GetDefinition() | form.GetSubgraph():
            if step.expect is not None:
                yield from _fetched(step.expect, result)
        case form.Consumers():
            yield from _consumers(step, result)
        case form.GetTriggers():
            if step.expect is not None:
                yield from compare_triggers(step.expect, result, "expect")
        case form.RoundTripState():
            expected = True if step.expect is None or step.expect.no_error is UNSET else step.expect.no_error
            if expected is not (result is None):
                yield Failure(key="expect.noError", expected=expected, actual=result)
        case _:
            pass


def _publish(expect: PublishExpectation | None, published: Published) -> Failures:
    problems = [{"activityId": p.activity_id, "message": p.message} for p in published.problems]
    succeeded = published.definition is not None
    if expect is None:
        if not succeeded:
            yield Failure(key="publish", expected="published", actual=problems)
        return
    version = published.definition.version if published.definition is not None else ABSENT
    yield from compare("expect.succeeded", succeeded, expect.succeeded)
    yield from compare("expect.version", version, expect.version)
    yield from compare("expect.validationErrorCount", len(problems), expect.validation_error_count)
    if expect.validation_errors is not UNSET:
        yield from compare_complaints("expect.validationErrors", published.problems, expect.validation_errors)


def _fetched(expect: DocumentExpectation, fetched: Fetched) -> Failures:
    yield from compare("expect.version", fetched.definition.version, expect.version)
    yield from compare("expect.isPublished", fetched.definition.is_published, expect.is_published)
    if expect.activities is not UNSET:
        yield from compare_activities("expect.activities", fetched.document, expect.activities)
    if expect.json_path is not UNSET:
        yield from compare_paths("expect.jsonPath", fetched.document, expect.json_path)
    for path in [] if expect.json_path_absent is UNSET else expect.json_path_absent:
        found = at_path(fetched.document, path)
        if found is not ABSENT:
            yield Failure(key=f"expect.jsonPathAbsent.{path}", actual=found)


def _consumers(step: form.Consumers, found: list[str] | None) -> Failures:
    expect = step.expect or ConsumersExpectation()
    not_found = False if expect.not_found is UNSET else expect.not_found
    if not_found is not (found is None):
        yield Failure(key="expect.notFound", expected=not_found, actual=found is None)
    if found is None:
        return
    if expect.equals is not UNSET and sorted(found) != sorted(expect.equals):
        yield Failure(key="expect.equals", expected=expect.equals, actual=found)
    if expect.contains is not UNSET and not set(expect.contains) <= set(found):
        yield Failure(key="expect.contains", expected=expect.contains, actual=found)
