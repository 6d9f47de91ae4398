"""What a definition looks like as a Mermaid diagram."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.activities import BUILT_IN
from holdfast.authoring import ActivityTypes
from holdfast.definitions.document import load_definition
from holdfast.definitions.mermaid import draw
from tests.documents import event, flowchart, sequence, write

CORPUS = Path(__file__).parents[1] / "corpus" / "elsa"
DEFINITIONS = sorted(path for path in CORPUS.glob("*/*.json") if b'"root"' in path.read_bytes())

LABEL = r"[^\"\[\]{}<>|`$%*_~\\;#]*(?:(?:#\d+;)[^\"\[\]{}<>|`$%*_~\\;#]*)*"
CAPTION = rf"{LABEL}(?:(?:<br>| )<small>{LABEL}</small>)?"
NAME = r"[A-Za-z][A-Za-z0-9_]*"
LINE = re.compile(
    rf"flowchart TD|\s+(?:end|direction TB|subgraph {NAME}\[\"{CAPTION}\"\]"
    rf"|{NAME}(?:\[\[|\[|\(\[|\(\(\(|\(\(|\(|\{{\{{|\{{)\"{CAPTION}\"(?:\]\]|\]|\]\)|\)\)\)|\)\)|\)|\}}\}}|\}})"
    rf"|{NAME} (?:-->|-\.->)(?:\|\"{LABEL}\"\|)? {NAME})"
)


def drawn(root: dict[str, Any], types: ActivityTypes | None = None) -> str:
    return draw(load_definition({"definitionId": "d", "root": root}), types)


def declared(text: str) -> list[str]:
    """The names of all nodes and subgraphs."""
    return [m[1] for m in re.finditer(rf"^\s+(?:subgraph )?({NAME})(?:\[|\(|\{{)", text, re.MULTILINE)]


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


# --- small pictures, whole ------------------------------------------------------------------------


def test_a_sequence_is_a_chain_and_an_if_points_at_its_branches() -> None:
    check = {"id": "check", "type": "Elsa.If", "then": write("yes"), "else": write("no")}
    assert drawn(sequence(write("first"), check, write("last"))) == (
        """flowchart TD
    start(("start"))
    first["WriteLine"]
    check{"If"}
    yes["WriteLine"]
    no["WriteLine"]
    check -.->|"then"| yes
    check -.->|"else"| no
    last["WriteLine"]
    first --> check
    check --> last
    finish((("end")))
    start --> first
    last --> finish
"""
    )


def test_a_flowchart_has_its_connections_labelled_by_outcome_except_done() -> None:
    decision = {"id": "check", "type": "Elsa.FlowDecision", "metadata": {"displayText": "Paid?"}}
    root = flowchart(
        event("ordered", customProperties={"canStartWorkflow": True}),
        decision,
        write("ship"),
        write("remind"),
        connections=["ordered>check", "check:True>ship", "check:False>remind", "remind>check"],
    )
    assert drawn(root) == (
        """flowchart TD
    start(("start"))
    ordered(["Event"])
    check{"Paid?<br><small>FlowDecision</small>"}
    ship["WriteLine"]
    remind["WriteLine"]
    ordered --> check
    check -->|"True"| ship
    check -->|"False"| remind
    remind --> check
    finish((("end")))
    start --> ordered
    ship --> finish
"""
    )


def test_nested_containers_are_boxes_and_their_branches_stand_side_by_side() -> None:
    inner = flowchart(write("a"), write("b"), connections=["a>b"]) | {"name": "Pack"}
    both = {"id": "both", "type": "Elsa.Parallel", "activities": [inner, write("c")]}
    assert drawn(sequence(both, write("d"))) == (
        """flowchart TD
    start(("start"))
    subgraph both["Parallel"]
        direction TB
        subgraph a_flowchart["Pack <small>Flowchart</small>"]
            direction TB
            a_flowchart_start((" "))
            a["WriteLine"]
            b["WriteLine"]
            a_flowchart_start --> a
            a --> b
        end
        c["WriteLine"]
    end
    d["WriteLine"]
    both --> d
    finish((("end")))
    start --> both
    d --> finish
"""
    )


def test_a_saga_shows_what_undoes_each_step() -> None:
    steps = [{"action": write("book"), "undo": write("cancel")}, {"action": write("pay"), "undo": None}]
    assert drawn({"id": "trip", "type": "Holdfast.Saga", "steps": steps}) == (
        """flowchart TD
    start(("start"))
    subgraph trip["Saga"]
        direction TB
        book["WriteLine"]
        cancel["WriteLine"]
        book -.->|"undo"| cancel
        pay["WriteLine"]
        book --> pay
    end
    finish((("end")))
    start --> trip
    trip --> finish
"""
    )


def test_a_state_machine_goes_from_state_to_state_over_triggers_and_actions() -> None:
    machine = {
        "id": "m",
        "type": "Elsa.StateMachine",
        "initialState": "New",
        "states": [{"name": "New", "entry": write("greet")}, {"name": "Paid"}],
        "transitions": [
            {"name": "Pay", "from": "New", "to": "Paid", "trigger": event("pay"), "action": write("thank")}
        ],
    }
    assert drawn(machine) == (
        """flowchart TD
    start(("start"))
    subgraph m["StateMachine"]
        direction TB
        m_start((" "))
        m_New("New")
        greet["WriteLine"]
        m_New -.->|"entry"| greet
        m_Paid("Paid")
        pay(["Event"])
        thank["WriteLine"]
        m_start --> m_New
        m_New -->|"Pay"| pay
        pay --> thank
        thank --> m_Paid
    end
    finish((("end")))
    start --> m
    m --> finish
"""
    )


def test_an_empty_workflow_leads_from_start_to_end() -> None:
    assert lines(drawn(sequence())) == [
        "flowchart TD",
        'start(("start"))',
        'finish((("end")))',
        "start --> finish",
    ]


# --- shapes and labels ----------------------------------------------------------------------------


def test_cases_are_labelled_as_their_author_named_them() -> None:
    cases = [{"label": "Big", "condition": {"type": "JavaScript", "value": "true"}, "activity": write("a")}]
    root = {"id": "s", "type": "Elsa.Switch", "cases": cases, "default": write("b")}
    assert {'s{"Switch"}', 's -.->|"Big"| a', 's -.->|"default"| b'} <= set(lines(drawn(root)))


def test_loops_triggers_and_workflow_activities_have_shapes_of_their_own() -> None:
    loop = {"id": "l", "type": "Elsa.ForEach", "body": write("b")}
    child = {"id": "w", "type": "Ship", "workflowDefinitionId": "ship"}
    found = lines(drawn(sequence(loop, event("e"), child)))
    assert {'l{{"ForEach"}}', 'l -.->|"body"| b', 'e(["Event"])', 'w[["Ship"]]'} <= set(found)


def test_registered_types_tell_triggers_from_other_activities() -> None:
    may_start = write("a") | {"customProperties": {"canStartWorkflow": True}}
    assert 'a(["WriteLine"])' in lines(drawn(sequence(may_start)))
    assert 'a["WriteLine"]' in lines(drawn(sequence(may_start), ActivityTypes(BUILT_IN)))


def test_whatever_an_unknown_container_holds_is_drawn() -> None:
    root = {
        "id": "x",
        "type": "Acme.Retry",
        "body": write("a"),
        "steps": [{"name": "One", "work": write("b")}, write("c")],
        "input": {
            "typeName": "Object",
            "expression": {"type": "Object", "value": {"id": "no", "type": "A.B"}},
        },
        "metadata": {"nested": {"id": "no", "type": "Elsa.WriteLine"}},
    }
    found = lines(drawn(root))
    assert {'x -.->|"body"| a', 'x -.->|"One work"| b', 'x -.->|"steps 2"| c'} <= set(found)
    assert not any("no" in line.split() for line in found)


def test_the_type_is_added_where_the_name_does_not_say_it() -> None:
    named = [
        write(str(n), f"w{n}") | {"name": name}
        for n, name in enumerate(["WriteLine7", "Write line", "Greet"])
    ]
    found = lines(drawn(sequence(*named)))
    assert found[2:5] == ['w0["WriteLine7"]', 'w1["Write line"]', 'w2["Greet<br><small>WriteLine</small>"]']


def test_what_follows_a_terminal_activity_is_not_connected() -> None:
    found = lines(drawn(sequence(write("a"), {"id": "stop", "type": "Elsa.End"}, write("b"))))
    assert "a --> stop" in found
    assert "stop --> b" not in found


def test_legacy_connections_and_activities_without_ids_are_drawn() -> None:
    root = {
        "Type": "Elsa.Flowchart",
        "activities": [{"id": "a", "type": "Elsa.WriteLine"}, {"type": "Elsa.WriteLine"}],
        "connections": {"$values": [{"Source": "a", "Target": "a", "SourcePort": "Again"}, {"source": "a"}]},
    }
    found = lines(drawn(root))
    assert {'a["WriteLine"]', 'WriteLine1["WriteLine"]', 'a -->|"Again"| a'} <= set(found)


# --- for all definitions --------------------------------------------------------------------------


def activities(json: Any) -> Iterator[dict[str, Any]]:
    if isinstance(json, dict):
        if isinstance(json.get("type"), str) and "id" in json:
            yield json
        for value in json.values():
            yield from activities(value)
    elif isinstance(json, list):
        yield from chain.from_iterable(map(activities, json))


@pytest.mark.skipif(not DEFINITIONS, reason="there is no corpus here")
def test_every_definition_of_the_corpus_is_drawn_with_each_activity_once() -> None:
    for path in DEFINITIONS:
        definition = load_definition(path.read_bytes())
        text = draw(definition)
        names = declared(text)
        assert text == draw(load_definition(path.read_bytes())), path
        assert all(LINE.fullmatch(line) for line in text.splitlines()), path
        assert len(names) == len(set(names)), path
        ids = [a["id"] for a in activities(definition.root)]
        if definition.root["type"] in ("Elsa.Sequence", "Elsa.Flowchart"):
            ids.remove(definition.root["id"])
        for name in (re.sub(r"\W", "_", activity_id) for activity_id in ids):
            assert names.count(name) + names.count(f"a_{name}") == 1, (path, name)


HOSTILE = [
    'say "hi"', "a]b[c}{)(", "end", "subgraph", "line\nbreak", "<script>alert(1)</script>", "`code`", "#35;",
    '%%{init: {"theme": "forest"}}%%', "fa:fa-car", "$$x^2$$", "1. list", "- item", "_em_ **b**", "A --> B",
    'click a "javascript:x"', "; ;", "|", "x" * 5000, "", "\\", "\u202eevil", "\x00", "&lt;", "__proto__",
    "ünï 漢字 🎉",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_the_diagram(name: str) -> None:
    check_hostile(name)


@given(st.text(max_size=80))
def test_no_text_at_all_breaks_the_diagram(name: str) -> None:
    check_hostile(name)


def check_hostile(name: str) -> None:
    inner = {"id": name, "type": f"X.{name}", "name": name, "body": write("b") | {"name": name}}
    machine = {"id": "m", "type": "Elsa.StateMachine", "states": [{"name": name}], "initialState": name}
    root = flowchart(
        inner,
        machine,
        sequence(write("c")) | {"name": name},
        connections=[f"m:{name}>sequence".replace("\n", " ")],
    )
    text = drawn(root)
    assert all(LINE.fullmatch(line) for line in text.splitlines()), text
    assert len(declared(text)) == len(set(declared(text)))


def test_labels_keep_what_is_harmless_and_are_cut_when_long() -> None:
    named = [
        write(str(n), f"w{n}") | {"name": name} for n, name in enumerate(["Ship (it's 漢字), ok?", "y" * 99])
    ]
    found = lines(drawn(sequence(*named)))
    assert found[2] == """w0["Ship (it's 漢字), ok?<br><small>WriteLine</small>"]"""
    assert found[3] == f'w1["{"y" * 59}…<br><small>WriteLine</small>"]'


def test_ids_that_look_alike_stay_apart() -> None:
    root = flowchart(
        write("a", "x-1"), write("b", "x_1"), write("c", "x.1"), connections=["x-1>x_1", "x_1>x.1"]
    )
    assert {"x_1 --> x_1_2", "x_1_2 --> x_1_3"} <= set(lines(drawn(root)))


@pytest.mark.parametrize(
    "root",
    [
        {},
        {"type": 5},
        {"type": "Elsa.Flowchart", "activities": {"type": "Elsa.WriteLine"}, "connections": 5},
        {
            "type": "Elsa.Flowchart",
            "activities": [None, "x", write("a")],
            "connections": [None, {"source": {}}],
        },
        {"type": "Elsa.Sequence", "activities": [{"type": "Elsa.Switch", "cases": {"label": []}}]},
        {"type": "Elsa.StateMachine", "states": [{}, write("a")], "transitions": [{"trigger": write("b")}]},
        {"type": "Holdfast.Saga", "steps": [{"undo": write("a")}, None, {"action": {"type": None}}]},
    ],
)
def test_a_draft_full_of_mistakes_is_drawn_too(root: dict[str, Any]) -> None:
    assert all(LINE.fullmatch(line) for line in drawn(root).splitlines())
