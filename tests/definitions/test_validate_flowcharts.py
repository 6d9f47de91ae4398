"""Connections that lead nowhere, from nowhere or in circles are told, and so is what they miss."""

from typing import Any

import pytest

from tests.definitions.validated import expect, only, root
from tests.documents import flowchart, literal, script, write


def test_both_ends_of_a_connection_must_exist() -> None:
    source, target = root(flowchart(write("first"), connections=["frist>first", "first>last"]))
    expect(
        source,
        "error connection.dangling $.root.connections[0].source.activity of flowchart",
        "Did you mean 'first'?",
        "or remove the connection",
    )
    assert (target.code, target.path) == ("connection.dangling", "$.root.connections[1].target.activity")


def test_flat_connections_are_told_by_their_own_members() -> None:
    chart = flowchart(write("a"), write("b"))
    chart["connections"] = {
        "$values": [
            {"source": "a", "target": "b", "sourcePort": "Dnoe"},
            {"source": "x", "target": "b"},
        ]
    }
    assert [(p.code, p.path) for p in root(chart)] == [
        ("connection.port", "$.root.connections.$values[0].sourcePort"),
        ("connection.dangling", "$.root.connections.$values[1].source"),
    ]


def test_a_connection_begins_at_an_outcome_its_source_has() -> None:
    decision = {"id": "d", "type": "Elsa.FlowDecision"}
    problem = only(root(flowchart(decision, write("a"), connections=["d:Treu>a"])))
    expect(
        problem,
        "error connection.port $.root.connections[0].source.port of d",
        "Did you mean 'True'?",
        "True, False",
    )


def test_outcomes_may_depend_on_what_the_author_wrote() -> None:
    switch = {"id": "s", "type": "Elsa.FlowSwitch", "Cases": [{"label": "Red"}, {"label": "Blue"}]}
    fork = {"id": "f", "type": "Elsa.FlowFork", "branches": literal(["up", "down"])}
    computed = {"id": "c", "type": "Elsa.FlowFork", "branches": script("getBranches()")}
    chosen = {"id": "j", "type": "Elsa.RunJavaScript", "script": literal("setOutcome('X')")}
    problems = root(
        flowchart(
            switch,
            fork,
            computed,
            chosen,
            write("end"),
            connections=[
                "s:Red>f", "s:Default>end", "s:Green>end", "f:up>c", "f:left>end", "c:any>j", "j:X>end",
            ],
        )
    )  # fmt: skip
    assert [(p.code, p.path, p.severity) for p in problems] == [
        ("connection.port", "$.root.connections[2].source.port", "error"),
        ("connection.port", "$.root.connections[4].source.port", "warning"),
        ("connection.port", "$.root.connections[6].source.port", "warning"),
    ]


def test_every_activity_has_the_outcomes_done_and_error() -> None:
    chart = flowchart(write("a"), write("b"), write("c"), connections=["a:Done>b", "a:Error>c"])
    chart["connections"].append({"source": {"activity": "b", "port": None}, "target": {"activity": "c"}})
    assert root(chart) == []


@pytest.mark.parametrize("wrong", [5, {"source": {"activity": "a"}}, {"source": 1, "target": "a"}])
def test_a_connection_has_a_source_and_a_target(wrong: Any) -> None:
    chart = flowchart(write("a"))
    chart["connections"] = [wrong]
    expect(
        only(root(chart)), "error connection.shape $.root.connections[0] of flowchart", "Remove it, or write"
    )


def test_connections_are_a_list() -> None:
    problem = only(root({"id": "f", "type": "Elsa.Flowchart", "activities": [], "connections": "none"}))
    expect(problem, "error connection.shape $.root.connections of f", "Write []")


def test_the_same_connection_twice_is_warned_of() -> None:
    problem = only(root(flowchart(write("a"), write("b"), connections=["a>b", "a>b"])))
    expect(problem, "warning connection.duplicate $.root.connections[1] of a", "Remove this one")


def test_an_activity_no_connection_leads_to_is_warned_of() -> None:
    problem = only(root(flowchart(write("a"), write("b"), write("lost"), connections=["a>b"])))
    expect(
        problem,
        "warning activity.unreachable $.root.activities[2] of lost",
        "'a', where the flowchart starts",
        "Connect it, or remove it",
    )


def test_whatever_can_start_the_workflow_is_reached() -> None:
    first = {**write("first"), "customProperties": {"canStartWorkflow": True}}
    second = {**write("second"), "customProperties": {"CanStartWorkflow": True}}
    chart = flowchart(write("idle"), first, second, write("end"), connections=["first>end", "second>end"])
    assert [p.activity_id for p in root(chart)] == ["idle"]


def test_a_connection_back_into_the_middle_of_a_path_is_warned_of() -> None:
    chart = flowchart(
        write("start"),
        write("a"),
        write("b"),
        write("c"),
        connections=["start>a", "start>b", "a>c", "b>c", "c>a"],
    )
    problem = only(root(chart))
    expect(problem, "warning connection.backward $.root.connections[4] of c", "Lead it back")
    assert root(chart, customProperties={"Flowchart:ExecutionMode": "TokenBased"}) == []


def test_a_loop_back_to_what_every_path_passes_is_fine() -> None:
    assert (
        root(flowchart(write("start"), write("a"), write("b"), connections=["start>a", "a>b", "b>a"])) == []
    )
