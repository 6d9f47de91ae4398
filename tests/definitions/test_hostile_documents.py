"""Whatever is sent, reading it ends with a definition or with an error of ours, and soon."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.activities.composites import workflow_activity_types
from holdfast.assembly import load_plugins
from holdfast.authoring import ActivityTypes
from holdfast.definitions.compiler import compile_definition
from holdfast.definitions.document import load_definition
from holdfast.definitions.reader import DefinitionInvalid
from holdfast.definitions.validate import Problem, validate_source
from holdfast.errors import HoldfastError
from tests.definitions.hostile import anything, awkward, corpus_files, documents, spoil
from tests.documents import document, literal, sequence, write

PLUGINS = load_plugins(installed=False)
FILES = [json.loads(path.read_text("utf-8-sig")) for path in corpus_files()]

some = settings(
    deadline=None,
    max_examples=300,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def read(source: bytes | str, types: ActivityTypes = PLUGINS.activities) -> list[Problem]:
    """All that is done with a document before it runs. Only errors of ours may leave it."""
    problems = validate_source(source, types, PLUGINS.expressions)
    assert all(isinstance(problem, Problem) and problem.path.startswith("$") for problem in problems)
    try:
        definition = load_definition(source)
        assert load_definition(definition.save()).content_hash == definition.content_hash
        types = with_workflows(types, definition.source)
        graph = compile_definition(definition, types, PLUGINS.expressions)
        graph.output_accessor("getResultFromX")
    except HoldfastError:
        assert any(problem.blocks_publishing for problem in problems)
    return problems


def with_workflows(types: ActivityTypes, *sources: dict[str, Any]) -> ActivityTypes:
    types = types.copy()
    for source in sources:
        for kind in workflow_activity_types(load_definition(source)):
            types.replace(kind)
    return types


@some
@given(st.binary(max_size=50) | st.text(max_size=50))
def test_text_that_is_no_json_is_one_problem(source: bytes | str) -> None:
    try:
        json.loads(source)
    except (ValueError, RecursionError):
        assert [p.code for p in validate_source(source, PLUGINS.activities, PLUGINS.expressions)] == [
            "json.invalid"
        ]
    else:
        read(source)


@some
@given(anything)
def test_any_json_is_read_or_refused(value: Any) -> None:
    read(json.dumps(value))


@some
@given(st.integers(0, 2**32))
def test_definitions_with_anything_anywhere_are_read_or_refused(seed: int) -> None:
    read(json.dumps(documents(Random(seed), PLUGINS.activities.names())))


@some
@given(
    st.integers(0, len(FILES) - 1),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2), awkward | anything), max_size=4),
)
def test_real_definitions_with_parts_lost_replaced_or_repeated_are_read_or_refused(
    which: int, choices: list[tuple[int, int, Any]]
) -> None:
    read(json.dumps(spoil(FILES[which], choices)))


@pytest.mark.parametrize("version", ["--5", "²", "9" * 5000, 10**400, 2.5, True, [], {}])
def test_a_strange_version_is_refused_or_read(version: Any) -> None:
    read(json.dumps(document(sequence(), version=version)))


@pytest.mark.parametrize("version", ["²", "9" * 5000, "٣.0", "3", "", "."])
def test_a_strange_tool_version_is_read(version: str) -> None:
    assert read(json.dumps(document(sequence(), toolVersion=version))) == []
    assert load_definition(document(sequence(), toolVersion=version)).is_modern is (version in ("3", "٣.0"))


@pytest.mark.parametrize("levels", [10, 30, 31, 32, 60, 5_000, 200_000])
def test_any_depth_of_nesting_is_read_or_refused(levels: int) -> None:
    around = '{"type": "Elsa.Sequence", "activities": ['
    problems = read('{"root": ' + around * levels + "]}" * levels + "}")
    assert [problem.code for problem in problems] == ([] if levels <= 31 else ["json.invalid"])


def test_workflow_activities_that_use_each_other_are_unfolded_within_limits() -> None:
    def workflow(name: str, *uses: str) -> dict[str, Any]:
        about = {"id": name, "definitionId": name, "name": name, "options": {"usableAsActivity": True}}
        return document(sequence(*({"type": used} for used in uses)), **about)

    everybody = [f"W{i}" for i in range(12)]
    ring = [workflow(f"W{i}", f"W{(i + 1) % 12}") for i in range(12)]
    for sources, is_refused in (
        ([workflow("W0", "W0", "W0")], False),
        (ring, False),
        ([workflow(name, *everybody) for name in everybody], True),
        ([workflow(f"W{i}", f"W{i + 1}") for i in range(300)], True),
    ):
        types = with_workflows(PLUGINS.activities, *sources)
        problems = validate_source(json.dumps(sources[0]), types, PLUGINS.expressions)
        assert [p.code for p in problems if p.blocks_publishing] == ["definition.invalid"] * is_refused
        try:
            compile_definition(load_definition(sources[0]), types, PLUGINS.expressions)
        except DefinitionInvalid as refusal:
            assert is_refused, refusal
        else:
            assert not is_refused


def test_thousands_of_problems_are_found_in_the_time_of_a_few() -> None:
    many = 1_000
    variables = [{"id": f"v{i}", "name": f"n{i}"} for i in range(many)]
    activities = [
        {"id": f"a{i}", "type": f"Nope.{i}", **{f"m{j}": literal(j) for j in range(2)}} for i in range(many)
    ]
    odd = {**write("odd"), **{f"x{i}": literal(i) for i in range(many)}}
    unset = [{"id": f"s{i}", "type": "Elsa.SetVariable", "variable": {"id": f"u{i}"}} for i in range(many)]
    problems = read(json.dumps(document(sequence(*activities, odd, *unset), variables=variables)))
    assert len(problems) == 3 * many
