"""Inputs, expressions, variables and options that cannot work are told before they are needed."""

from typing import Any

import pytest

from holdfast.definitions.validate import Problem
from tests.definitions.validated import expect, only, root
from tests.documents import captured, literal, script, sequence, variable, write


@pytest.mark.parametrize("value", [None, literal(None), literal(""), {"typeName": "String"}])
def test_a_required_input_needs_a_value(value: Any) -> None:
    problem = only(root(sequence({"id": "g", "type": "Test.Greet", "who": value})))
    expect(problem, "error input.required $.root.activities[0].who of g", "Give it one")


def test_a_required_property_must_be_there() -> None:
    problem = only(root(sequence({"id": "s", "type": "Test.Shape"})))
    expect(problem, "error input.required $.root.activities[0].sides of s", "Add it")


def test_an_input_that_no_type_has_is_pointed_out_and_kept() -> None:
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLine", "Txt": literal("hello")})))
    expect(
        problem,
        "warning input.unknown $.root.activities[0].Txt of w",
        "Did you mean 'text'?",
        "Rename it, or remove it",
    )


def test_an_input_called_like_a_member_of_every_activity_is_found_without_its_underscore() -> None:
    problem = only(root(sequence({"id": "n", "type": "Test.Named", "name": literal("abc")})))
    expect(problem, "error value.conversion $.root.activities[0].name.expression of n", "Correct the value")


def test_members_that_do_not_look_like_inputs_are_nobodys_business() -> None:
    assert root(sequence({**write("a"), "note": "mine", "extra": {"deep": [1]}, "metadata": {}})) == []


def test_an_input_without_a_type_name_counts_as_not_given() -> None:
    given = {"expression": {"type": "Literal", "value": "hello"}}
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLine", "text": given})))
    expect(problem, "warning input.untyped $.root.activities[0].text of w", 'Add "typeName": "String"')


@pytest.mark.parametrize(
    ("kind", "name", "value", "reason"),
    [
        ("Elsa.For", "end", "abc", "Int32"),
        ("Elsa.For", "end", "2.5", "not a whole number"),
        ("Elsa.Delay", "timeSpan", "soon", "PT5S"),
        ("Elsa.If", "condition", "maybe", "neither True nor False"),
        ("Elsa.StartAt", "dateTime", "tomorrow", "DateTimeOffset"),
        ("Elsa.FlowJoin", "mode", "WaitSome", "WaitAll"),
        ("Elsa.DispatchWorkflow", "input", "{a: 1}", "not JSON"),
    ],
)
def test_a_literal_must_fit_its_type(kind: str, name: str, value: str, reason: str) -> None:
    problem = only(root(sequence({"id": "x", "type": kind, name: literal(value)})))
    expect(
        problem,
        f"error value.conversion $.root.activities[0].{name}.expression of x",
        reason,
        "Correct the value",
    )


def test_a_bare_literal_must_fit_as_well() -> None:
    problem = only(root(sequence({"id": "x", "type": "Elsa.For", "end": "abc"})))
    expect(problem, "error value.conversion $.root.activities[0].end of x", "Correct the value")


def test_a_plain_property_must_fit_its_type() -> None:
    problem = only(root({"id": "f", "type": "Elsa.Fork", "joinMode": "WaitSome", "branches": []}))
    expect(problem, "error value.conversion $.root.joinMode of f", "use one of WaitAll, WaitAny")


@pytest.mark.parametrize("text", ["", " ", "5", "[1]"])
def test_literals_that_elsa_takes_are_taken(text: str) -> None:
    items = {"id": "e", "type": "Elsa.ForEach", "items": literal(text)}
    number = {"id": "f", "type": "Elsa.For", "end": literal(text if text != "[1]" else 1.0)}
    assert root(sequence(items, number)) == []


# --- expressions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text", "reason"),
    [
        ("JavaScript", "1 +", "SyntaxError"),
        ("Liquid", "{{ x", "never closed"),
        ("Python", "1 +", "invalid syntax"),
    ],
)
def test_an_expression_must_be_one_of_its_language(language: str, text: str, reason: str) -> None:
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLine", "text": script(text, language)})))
    expect(
        problem,
        "error expression.invalid $.root.activities[0].text.expression of w",
        f"not {language}",
        reason,
        "Correct the expression",
    )


def test_the_script_of_a_script_activity_is_compiled_too() -> None:
    problem = only(root(sequence({"id": "s", "type": "Elsa.RunJavaScript", "script": literal("return (")})))
    expect(problem, "error expression.invalid $.root.activities[0].script.expression of s", "not JavaScript")


def test_conditions_of_cases_and_transitions_are_looked_at() -> None:
    switch = {
        "id": "switch",
        "type": "Elsa.Switch",
        "cases": [
            {"label": "a", "condition": {"type": "JavaScript", "value": "a ="}, "activity": write("x")},
            {"label": "b", "condition": {"type": "Literal", "value": "perhaps"}, "activity": {"id": "y"}},
        ],
    }
    machine = {
        "id": "machine",
        "type": "Elsa.StateMachine",
        "states": [{"name": "A", "entry": {"id": "z"}}],
        "transitions": [{"from": "A", "to": "A", "condition": script(")")}],
    }
    assert [(p.code, p.path) for p in root(sequence(switch, machine))] == [
        ("expression.invalid", "$.root.activities[0].cases[0].condition"),
        ("value.conversion", "$.root.activities[0].cases[1].condition"),
        ("activity.untyped", "$.root.activities[0].cases[1].activity.type"),
        ("activity.untyped", "$.root.activities[1].states[0].entry.type"),
        ("expression.invalid", "$.root.activities[1].transitions[0].condition"),
    ]


def test_an_unknown_expression_type_evaluates_to_null_and_is_warned_of() -> None:
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLine", "text": script("1", "Javascript")})))
    expect(
        problem,
        "warning expression.unknown $.root.activities[0].text.expression of w",
        "evaluates to null",
        "Did you mean 'JavaScript'?",
    )


@pytest.mark.parametrize("language", ["CSharp", "Secret", "Delegate"])
def test_expressions_that_only_elsa_can_evaluate_are_warned_of(language: str) -> None:
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLine", "text": script("x", language)})))
    expect(
        problem,
        "warning expression.foreign $.root.activities[0].text.expression of w",
        "faults when it is reached",
    )


def test_a_csharp_script_is_warned_of() -> None:
    problem = only(root(sequence({"id": "s", "type": "Elsa.RunCSharp", "script": literal("return 1;")})))
    expect(problem, "warning expression.foreign $.root.activities[0].script.expression of s", "Rewrite it")


def test_an_object_expression_is_json_unless_its_target_takes_any_text() -> None:
    broken = script("{a: 1}", "Object")
    dispatch = {"id": "d", "type": "Elsa.DispatchWorkflow", "input": broken}
    anything = {"id": "v", "type": "Elsa.Complete", "outcomes": broken}
    problem = only(root(sequence(dispatch, anything)))
    expect(
        problem,
        "error expression.json $.root.activities[0].input.expression of d",
        "line 1, column 2",
        "Correct it there",
    )


def test_json_of_another_shape_does_not_fit() -> None:
    problem = only(
        root(sequence({"id": "d", "type": "Elsa.DispatchWorkflow", "input": script("[1]", "Object")}))
    )
    expect(problem, "error value.conversion $.root.activities[0].input.expression of d", "ObjectDictionary")


# --- variables, inputs, outputs --------------------------------------------------------------------


def read(variable_id: str, activity_id: str | None = None) -> dict[str, Any]:
    value = {"typeName": "Object", "expression": {"type": "Variable", "value": {"id": variable_id}}}
    return {"id": activity_id or f"read {variable_id}", "type": "Elsa.WriteLine", "text": value}


def test_a_variable_must_be_in_scope() -> None:
    inner = sequence(read("inner"), read("outer"), id="inside", variables=[variable("Inner")])
    problem = only(root(sequence(inner, read("inner", "too late")), variables=[variable("Outer")]))
    expect(
        problem,
        "error variable.unknown $.root.activities[1].text.expression of too late",
        "'inner'",
        "Declare it",
    )


def test_a_variable_that_was_named_instead_of_identified_is_told_by_its_id() -> None:
    problem = only(root(sequence(read("Total")), variables=[{"id": "v1", "name": "Total"}]))
    assert problem.code == "variable.unknown"
    assert "The variable of that name has the id 'v1': refer to it by its id." in problem.message


def test_the_variable_to_set_must_be_in_scope() -> None:
    problem = only(root(sequence({"id": "s", "type": "Elsa.SetVariable", "variable": {"id": "x"}})))
    expect(problem, "error variable.unknown $.root.activities[0].variable.id of s", "Declare it")


def test_a_variable_to_set_must_be_chosen() -> None:
    problem = only(root(sequence({"id": "s", "type": "Elsa.SetVariable", "value": literal(1)})))
    expect(problem, "error variable.missing $.root.activities[0].variable of s", "Choose the variable")


def test_loops_give_their_body_the_current_value() -> None:
    each = {"id": "each", "type": "Elsa.ForEach", "items": literal("[1]"), "body": read("CurrentIndex")}
    count = {"id": "count", "type": "Elsa.For", "body": sequence(read("CurrentValue"))}
    assert root(sequence(each, count, id="outer")) == []
    assert only(root(sequence(read("CurrentValue")))).code == "variable.unknown"


def test_a_workflow_usable_as_activity_sees_its_inputs_as_variables() -> None:
    about = {"inputs": [{"name": "Customer", "type": "String"}], "options": {"usableAsActivity": True}}
    assert root(sequence(read("Customer")), **about) == []


def test_where_something_may_bring_variables_of_its_own_an_unknown_one_is_a_warning() -> None:
    around = {"id": "around", "type": "Test.Around", "body": read("Surprise")}
    problem = only(root(sequence(around)))
    assert (problem.code, problem.severity) == ("variable.unknown", "warning")


def test_a_variable_expression_must_name_one() -> None:
    value = {"typeName": "String", "expression": {"type": "Variable", "value": "{"}}
    problem = only(root(sequence({"id": "w", "type": "Elsa.WriteLine", "text": value})))
    expect(
        problem, "warning expression.reference $.root.activities[0].text.expression of w", "Give it a value"
    )


def test_an_input_expression_should_name_a_declared_input() -> None:
    def asks(value: Any) -> dict[str, Any]:
        text = {"typeName": "String", "expression": {"type": "Input", "value": value}}
        return {"id": str(value), "type": "Elsa.WriteLine", "text": text}

    activities = sequence(asks({"name": "customer"}), asks('{"name": "Custmer"}'), asks({"name": None}))
    undeclared, unreadable = root(activities, inputs=[{"name": "Customer"}])
    assert (undeclared.code, undeclared.severity) == ("input.undeclared", "warning")
    assert undeclared.path == "$.root.activities[1].text.expression"
    assert "Did you mean 'Customer'? Declare it" in undeclared.message
    assert (unreadable.code, unreadable.severity) == ("expression.reference", "warning")


def test_an_output_should_be_captured_where_it_is_kept() -> None:
    def reads(target: str) -> dict[str, Any]:
        return {"id": target, "type": "Elsa.ReadLine", "result": captured(target)}

    problem = only(
        root(
            sequence(reads("line"), reads("Answer"), reads("lime")),
            variables=[variable("Line")],
            outputs=[{"name": "Answer"}],
        )
    )
    expect(
        problem,
        "warning output.unbound $.root.activities[2].result.memoryReference.id of lime",
        "its value is lost",
        "Did you mean 'line'?",
    )


def test_a_workflow_variable_of_unknown_type_is_left_out_with_a_warning() -> None:
    problem = only(root(sequence(), variables=[{"id": "v", "name": "V", "typeName": "Acme.Thing"}]))
    expect(problem, "warning variable.type $.variables[0].typeName", "'Acme.Thing'", "Use a type")


def test_a_container_variable_of_unknown_type_takes_any_value() -> None:
    problem = only(root(sequence(variables=[{"id": "v", "name": "V", "typeName": "Acme.Thing"}])))
    expect(
        problem,
        "warning variable.type $.root.variables[0].typeName of sequence",
        "takes any value",
        "Use a type",
    )


def test_what_is_no_variable_is_ignored_with_a_warning() -> None:
    problem = only(root(sequence(variables=["Total"])))
    expect(problem, "warning variable.shape $.root.variables[0] of sequence", "Remove it, or write")


def test_a_default_that_does_not_fit_its_variable_is_warned_of() -> None:
    problem = only(root(sequence(), variables=[variable("Total", "Int32", "many")]))
    expect(problem, "warning variable.value $.variables[0].value", "Correct the value")


@pytest.mark.parametrize(
    ("second", "what"), [({"id": "b", "name": "A"}, "name"), ({"id": "a", "name": "B"}, "id")]
)
def test_variables_of_one_scope_differ_in_name_and_id(second: dict[str, Any], what: str) -> None:
    problem = only(root(sequence(), variables=[{"id": "a", "name": "A"}, second]))
    expect(problem, f"warning variable.duplicate $.variables[1].{what}", "Give each its own")


def test_a_variable_may_hide_one_further_out() -> None:
    assert root(sequence(variables=[variable("A")]), variables=[variable("A")]) == []


@pytest.mark.parametrize("group", ["inputs", "outputs"])
def test_inputs_and_outputs_are_declared_once(group: str) -> None:
    problem = only(root(sequence(), **{group: [{"name": "Total"}, {"name": "total"}]}))
    expect(problem, f"error parameter.duplicate $.{group}[1].name", "Remove or rename one")


def test_a_parameter_of_unknown_type_takes_any_value() -> None:
    problem = only(root(sequence(), inputs=[{"name": "Total", "type": "Acme.Thing"}]))
    expect(problem, "warning parameter.type $.inputs[0].type", "Use a type")


# --- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "close"),
    [
        ("activationStrategyType", "SingletonStrategi"),
        ("incidentStrategyType", "Elsa.Workflows.FaultStrateg, Elsa"),
        ("commitStrategyName", "Periodical"),
    ],
)
def test_an_unknown_strategy_is_warned_of(option: str, close: str) -> None:
    problem = only(root(sequence(), options={option: close}))
    expect(problem, f"warning option.unknown $.options.{option}", "Did you mean", "leave it out")


@pytest.mark.parametrize(("option", "value"), [("mergeMode", "Steam"), ("commitStrategyName", "Always")])
def test_an_unknown_strategy_of_an_activity_is_warned_of(option: str, value: str) -> None:
    problem = only(root(sequence({**write("a"), "customProperties": {option: value}})))
    expect(
        problem, f"warning option.unknown $.root.activities[0].customProperties.{option} of a", "Use one of"
    )


def test_strategies_that_elsa_knows_are_known() -> None:
    options = {
        "activationStrategyType": "Elsa.Workflows.CorrelatedSingletonStrategy, Elsa.Workflows.Core",
        "incidentStrategyType": "ContinueWithIncidentsStrategy",
        "commitStrategyName": "ActivityExecuted",
    }
    custom = {"mergeMode": "Race", "commitStrategyName": "CommitNever", "retryPolicy": {"delay": "00:00:05"}}
    assert root(sequence({**write("a"), "customProperties": custom}), options=options) == []


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        (5, ""),
        ({"attempts": "many"}, ".attempts"),
        ({"delay": "soon"}, ""),
        ({"delay": 10**400}, ""),
        ({"factor": "x"}, ""),
    ],
)
def test_a_retry_policy_must_be_usable(policy: Any, place: str) -> None:
    problem = only(root(sequence({**write("a"), "customProperties": {"retryPolicy": policy}})))
    expect(
        problem,
        f"error retry.invalid $.root.activities[0].customProperties.retryPolicy{place} of a blocks",
        'Write it like {"attempts": 3',
    )


# --- cron ------------------------------------------------------------------------------------------


def cron(expression: Any) -> list[Problem]:
    return root(sequence({"id": "c", "type": "Elsa.Cron", "cronExpression": expression}))


def test_a_cron_expression_must_parse_or_nothing_is_published() -> None:
    problem = only(cron(literal("0 0 25 * * *")))
    expect(
        problem,
        "error cron.invalid $.root.activities[0].cronExpression.expression of c blocks",
        "hours cannot be '25'",
    )
    assert problem.message.startswith("Error when parsing cron expression: ")


@pytest.mark.parametrize("text", ["0 0 * * * *", "*/5 * * * *", "@hourly"])
def test_five_and_six_fields_are_cron(text: str) -> None:
    assert cron(literal(text)) == []


def test_a_computed_cron_expression_is_left_alone() -> None:
    assert cron(script("getCron()")) == []


@pytest.mark.parametrize("nothing", [None, literal(" "), literal(None)])
def test_a_cron_trigger_without_an_expression_never_comes_true(nothing: Any) -> None:
    problem = only(cron(nothing))
    expect(problem, "error cron.missing $.root.activities[0].cronExpression of c", "Write one")
