"""Everything that is wrong with a definition is found at once, with its place and how to mend it."""

import json
from typing import Any

import pytest

from holdfast.definitions.document import load_definition
from holdfast.definitions.validate import Problem, validate, validate_source
from tests.definitions.hostile import CORPUS
from tests.definitions.validated import PLUGINS, expect, only, root, types_of, validated
from tests.documents import document, event, flowchart, literal, script, sequence, variable, write


def test_a_sound_definition_has_no_problems() -> None:
    sound = flowchart(
        write("a"),
        {"id": "set", "type": "Elsa.SetVariable", "variable": {"id": "total"}, "value": script("1 + 1")},
        write("b"),
        connections=["a>set", "set>b", "set:Error>b"],
    )
    assert root(sound, variables=[variable("Total", "Int32", "3")]) == []


def test_an_unknown_activity_type_is_named_with_one_that_is_spelled_nearly_so() -> None:
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLin"})))
    expect(
        problem,
        "error activity.unknown $.root.activities[0].type of w",
        "'Elsa.WriteLin'",
        "Did you mean 'Elsa.WriteLine'?",
        "Register it",
    )


def test_an_activity_needs_a_type() -> None:
    problem = only(root(sequence({"id": "w"})))
    expect(problem, "error activity.untyped $.root.activities[0].type of w blocks", "Say which it is")


@pytest.mark.parametrize("wrong", ["WriteLine", 5, True, [write("a")]])
def test_an_activity_is_an_object(wrong: Any) -> None:
    expect(
        only(root(sequence(wrong))),
        "error activity.shape $.root.activities[0] blocks",
        "Write one here, or remove this",
    )


def test_the_activities_of_a_container_are_a_list() -> None:
    problem = only(root({"id": "s", "type": "Elsa.Sequence", "activities": write("a")}))
    expect(problem, "error activity.shape $.root.activities of s blocks", "Put them in [ ]")


def test_an_id_is_text() -> None:
    problem = only(root(sequence({"id": 5, "type": "Elsa.WriteLine"})))
    expect(problem, "error activity.shape $.root.activities[0].id blocks", "Put it in quotes")


def test_custom_properties_are_an_object() -> None:
    problem = only(root(sequence({**write("a"), "customProperties": []})))
    expect(problem, "error activity.shape $.root.activities[0].customProperties of a blocks", "Write {}")


def test_two_activities_with_one_id_are_found_wherever_they_stand() -> None:
    problem = only(root(sequence(write("a"), {"id": "if", "type": "Elsa.If", "then": write("b", "a")})))
    expect(
        problem,
        "error activity.same_id $.root.activities[1].then.id of a",
        "$.root.activities[0]",
        "an id of its own",
    )


def test_what_an_activity_raises_while_it_is_prepared_is_told_with_its_place() -> None:
    problem = only(root(sequence({"id": "p", "type": "Test.Picky", "sides": "many"})))
    expect(problem, "error definition.invalid $.root.activities[0] of p blocks", "Test.Picky", "Correct")


def test_activities_inside_an_unknown_activity_are_looked_at_all_the_same() -> None:
    unknown = {
        "id": "u",
        "type": "Acme.Box",
        "label": script("("),
        "parts": {"$values": [{"inner": {"id": "x", "type": "Elsa.WriteLine", "text": script("1 +")}}]},
    }
    assert [(p.code, p.path) for p in root(unknown)] == [
        ("activity.unknown", "$.root.type"),
        ("expression.invalid", "$.root.label.expression"),
        ("expression.invalid", "$.root.parts.$values[0].inner.text.expression"),
    ]


# --- workflow-activities ------------------------------------------------------------------------


def workflow(name: str, *uses: str) -> dict[str, Any]:
    activities = sequence(*({"id": f"use {used} {i}", "type": used} for i, used in enumerate(uses)))
    about = {"id": f"{name}-1", "definitionId": name, "name": name, "options": {"usableAsActivity": True}}
    return document(activities, **about)


@pytest.mark.parametrize("uses", [("A",), ("B",)])
def test_a_workflow_that_contains_itself_is_told_where(uses: tuple[str, ...]) -> None:
    own, other = workflow("A", "Elsa.Start", *uses), workflow("B", "A")
    problem = only(validated(own, types_of(own, other)))
    expect(
        problem,
        f"error activity.recursive $.root.activities[1] of use {uses[0]} 1",
        "→",
        "Elsa.DispatchWorkflow",
    )


def test_workflow_activities_that_unfold_to_too_many_activities_cannot_be_published() -> None:
    documents = [workflow(f"W{i}", f"W{i + 1}", f"W{i + 1}") for i in range(16)]
    problem = only(validated(documents[0], types_of(*documents)))
    expect(problem, "error definition.invalid $ blocks", "more than 20000 activities")


def test_workflow_activities_nested_too_deeply_cannot_be_published() -> None:
    documents = [workflow(f"W{i}", f"W{i + 1}") for i in range(200)]
    problem = only(validated(documents[0], types_of(*documents)))
    expect(problem, "error definition.invalid $ blocks", "more than 100 levels deep")


def test_inputs_of_a_workflow_activity_are_checked_by_their_declarations() -> None:
    child = document(
        sequence(),
        name="Child",
        definitionId="child",
        options={"usableAsActivity": True},
        inputs=[{"name": "Count", "type": "Int32"}],
        outcomes=["Won"],
    )
    uses = {"id": "c", "type": "Child", "count": literal("abc")}
    problems = validated(
        document(flowchart(uses, write("a"), connections=["c:Won>a", "c:Lost>a"])), types_of(child)
    )
    assert [(p.code, p.path) for p in problems] == [
        ("value.conversion", "$.root.activities[0].count.expression"),
        ("connection.port", "$.root.connections[1].source.port"),
    ]


# --- all at once -----------------------------------------------------------------------------------


def test_all_problems_are_reported_in_the_order_of_the_document() -> None:
    broken = {
        "name": "Many",
        "variables": [{"id": "v", "name": "V", "typeName": "Nope"}],
        "root": {
            "id": "flow",
            "type": "Elsa.Flowchart",
            "connections": [{"source": {"activity": "a", "port": "Nope"}, "target": {"activity": "zzz"}}],
            "activities": [
                {"id": "a", "type": "Elsa.WriteLine", "text": script("1 +")},
                {"id": "b"},
                {"id": "a", "type": "Elsa.Delay", "timeSpan": literal("soon"), "strategy": literal("x")},
                {"id": "c", "customProperties": {"retryPolicy": 1}, "type": "Elsa.Wrong"},
            ],
        },
        "outputs": [{"name": "X"}, {"name": "X"}],
        "options": {"incidentStrategyType": "Nope"},
    }
    assert [(p.code, p.path) for p in validated(broken)] == [
        ("variable.type", "$.variables[0].typeName"),
        ("connection.port", "$.root.connections[0].source.port"),
        ("connection.dangling", "$.root.connections[0].target.activity"),
        ("expression.invalid", "$.root.activities[0].text.expression"),
        ("activity.unreachable", "$.root.activities[1]"),
        ("activity.untyped", "$.root.activities[1].type"),
        ("activity.unreachable", "$.root.activities[2]"),
        ("activity.same_id", "$.root.activities[2].id"),
        ("value.conversion", "$.root.activities[2].timeSpan.expression"),
        ("input.unknown", "$.root.activities[2].strategy"),
        ("activity.unreachable", "$.root.activities[3]"),
        ("retry.invalid", "$.root.activities[3].customProperties.retryPolicy"),
        ("activity.unknown", "$.root.activities[3].type"),
        ("parameter.duplicate", "$.outputs[1].name"),
        ("option.unknown", "$.options.incidentStrategyType"),
    ]


def test_paths_are_spelled_as_the_document_spells_them() -> None:
    spelled = {
        "Root": {"Type": "Elsa.Sequence", "Activities": {"_type": "x", "items": [{"Type": "Elsa.Wrong"}]}}
    }
    assert [p.path for p in validated(spelled)] == ["$.Root.Activities.items[0].Type"]


def test_a_problem_prints_as_place_and_message() -> None:
    problem = only(root(sequence({"id": "b"})))
    assert str(problem).startswith("$.root.activities[0].type: The activity has no type.")


# --- what cannot be loaded -------------------------------------------------------------------------


def sent(source: bytes | str | dict[str, Any]) -> list[Problem]:
    text = json.dumps(source) if isinstance(source, dict) else source
    return validate_source(text, PLUGINS.activities, PLUGINS.expressions)


@pytest.mark.parametrize(
    "text", [b"", b"{", "{]", b"\xff\xfe", "[" * 100_000, '"\\ud800"', "NaN", "1" * 5000]
)
def test_what_is_not_json_is_a_problem_not_an_exception(text: bytes | str) -> None:
    expect(only(sent(text)), "error json.invalid $ blocks")


@pytest.mark.parametrize("text", ["[]", "5", "null", '"{}"'])
def test_json_that_is_no_object_is_no_definition(text: str) -> None:
    expect(only(sent(text)), "error definition.invalid $ blocks", "Put its members in { }")


def test_a_byte_order_mark_is_skipped() -> None:
    assert sent(b"\xef\xbb\xbf" + json.dumps(document(sequence())).encode()) == []


def test_members_that_cannot_be_read_do_not_hide_what_else_is_wrong() -> None:
    broken = document(
        sequence({"id": "w", "type": "Elsa.Wrong"}),
        Version="two",
        variables=[{"id": "a", "name": []}, 5, {"id": "v", "name": "V", "typeName": "Nope"}],
        outcomes=["Done", 5],
        options=[],
    )
    del broken["version"]
    problems = sent(broken)
    assert {(p.code, p.path) for p in problems} == {
        ("definition.invalid", "$.Version"),
        ("definition.invalid", "$.variables[0].name"),
        ("definition.invalid", "$.variables[1]"),
        ("variable.type", "$.variables[2].typeName"),
        ("definition.invalid", "$.outcomes[1]"),
        ("definition.invalid", "$.options"),
        ("activity.unknown", "$.root.activities[0].type"),
    }
    assert "expected a whole number, found text" in next(p.message for p in problems if p.path == "$.Version")


def test_a_root_that_is_no_object_is_told() -> None:
    assert [(p.code, p.path) for p in sent({"root": 5})] == [("definition.invalid", "$.root")]


# --- the corpus ------------------------------------------------------------------------------------

OUTSIDE = {"Elsa.HttpEndpoint", "Elsa.WriteHttpResponse"}
"""Activity types that the built-in activities do not have: HTTP comes with the server."""

GENUINE = {
    ("t-flowchart-outcome-port/ports.json", "connection.port"): "it is about an outcome that does not exist",
}


def test_no_definition_that_elsa_runs_has_an_error() -> None:
    errors: list[str] = []
    checked = 0
    for folder in sorted(path.parent for path in CORPUS.glob("*/expected.json")):
        entries = json.loads((folder / "expected.json").read_bytes())["definitions"]
        files = [folder / entry["file"] for entry in entries if entry["load"] != "data"]
        loaded = [load_definition(file.read_bytes()) for file in files]
        types = types_of(*(d.source for d in loaded if d.options.usable_as_activity))
        for file, definition in zip(files, loaded, strict=True):
            checked += 1
            errors += [
                f"{folder.name}/{file.name} {problem.code} {problem}"
                for problem in validate(definition, types, PLUGINS.expressions)
                if problem.severity == "error"
                and not (
                    problem.code == "activity.unknown" and any(name in problem.message for name in OUTSIDE)
                )
                and (f"{folder.name}/{file.name}", problem.code) not in GENUINE
            ]
    assert errors == []
    assert checked > 100


def test_a_variable_that_is_lost_at_a_wait_is_warned_of() -> None:
    variables = [variable("Kept"), variable("Lost", kept=False)]
    waiting = document(sequence(write("a"), event("e")), variables=variables)
    found = validate(load_definition(waiting), PLUGINS.activities, PLUGINS.expressions)
    assert [(p.code, p.path, p.severity) for p in found] == [("variable.unkept", "$.variables[1]", "warning")]
    assert "(at 'e')" in found[0].message
    straight = document(sequence(write("a")), variables=variables)
    assert validate(load_definition(straight), PLUGINS.activities, PLUGINS.expressions) == []
