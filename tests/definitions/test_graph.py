"""A compiled version: how nodes are found, named and kept apart."""

import pytest

from holdfast.assembly import load_plugins
from holdfast.definitions.compiler import compile_definition
from holdfast.definitions.document import load_definition
from holdfast.definitions.graph import Graph, NodeNotFound, RetryPolicy
from tests.documents import document, sequence, write

PLUGINS = load_plugins()


def compiled(root: dict[str, object]) -> Graph:
    return compile_definition(load_definition(document(root)), PLUGINS.activities, PLUGINS.expressions)


def test_a_node_is_found_by_id_node_id_and_name() -> None:
    graph = compiled(sequence({**write("x", "a"), "name": "First"}))
    for named in ("a", "Workflow1:sequence:a", "First"):
        assert graph.find(named) is graph.nodes[2]
    assert graph.find("nobody") is None


def test_how_another_host_numbered_the_workflow_node_does_not_matter() -> None:
    graph = compiled(sequence(write("x", "a")))
    assert graph.find("Workflow3:sequence:a") is graph.nodes[2]


def test_activities_without_an_id_are_numbered_by_their_type() -> None:
    graph = compiled(
        {"type": "Elsa.Sequence", "activities": [{"type": "Elsa.WriteLine"}, {"type": "Elsa.WriteLine"}]}
    )
    assert [node.id for node in graph.nodes] == ["Workflow1", "Sequence1", "WriteLine1", "WriteLine2"]


def test_two_activities_with_one_id_have_different_names_in_states() -> None:
    inner = {**sequence(write("x", "a")), "id": "inner"}
    graph = compiled(sequence(write("x", "a"), write("y", "a"), inner))
    refs = [node.ref for node in graph.nodes]
    assert len(set(refs)) == len(refs)
    assert all(graph.node(ref).ref == ref for ref in refs)


def test_a_state_of_another_version_is_refused_by_name() -> None:
    with pytest.raises(NodeNotFound, match="has no activity 'ghost'"):
        compiled(write("x")).node("ghost")


def test_a_retry_waits_longer_each_time_but_never_longer_than_it_may() -> None:
    policy = RetryPolicy(attempts=9, delay=2, factor=3, longest=40)
    assert [policy.wait_before(attempt) for attempt in (2, 3, 4, 5, 6)] == [2, 6, 18, 40, 40]
    assert RetryPolicy(attempts=9, factor=10).wait_before(5000) == 300
