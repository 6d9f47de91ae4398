"""A checkpoint keeps everything, so that whoever reads it carries on in the middle of the burst."""

from typing import Any

import pytest

from holdfast.engine import Outcome, decode_state, encode_state, run_burst
from holdfast.instance import SubStatus
from holdfast.message import Continue, Start
from holdfast.testing import Host
from tests.documents import captured, document, event, flowchart, literal, script, sequence, variable, write


def loud(strategy: str, root: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(root, options={"commitStrategyName": strategy}, **members)


class Crash(Exception):
    """The process dies right after a checkpoint was kept."""


async def run_and_crash_everywhere(host: Host, source: dict[str, Any]) -> list[list[str]]:
    """What is written when the process dies after the n-th checkpoint, for each n, and is started again."""
    definition = await host.load(source)
    graph = host.definitions.graph(definition)
    told: list[list[str]] = []
    for dies_at in range(1, 100):
        host.console.written.clear()
        kept: list[bytes] = []

        async def keep(outcome: Outcome, kept: list[bytes] = kept, dies_at: int = dies_at) -> None:
            kept.append(encode_state(outcome.state))
            if len(kept) == dies_at:
                raise Crash

        try:
            await run_burst(graph, Start(), environment=host.environment, instance_id="i", checkpoint=keep)
        except Crash:
            state = decode_state(kept[-1])
            assert state.sub_status is SubStatus.EXECUTING
            outcome = await run_burst(graph, Continue(), environment=host.environment, state=state)
            assert outcome.state.sub_status is SubStatus.FINISHED
            told.append(list(host.console.written))
        else:
            return told
    raise AssertionError("it never ended")


@pytest.mark.parametrize("strategy", ["ActivityExecuted", "ActivityExecuting"])
async def test_a_process_that_dies_after_a_checkpoint_neither_repeats_nor_forgets(strategy: str) -> None:
    root = flowchart(
        write("a"),
        {**sequence(write("b1"), write("b2")), "id": "b"},
        {
            "id": "c",
            "type": "Elsa.For",
            "end": literal(3),
            "start": literal(1),
            "body": {"id": "t", "type": "Elsa.WriteLine", "text": script("`c${getCurrentValue()}`")},
        },
        {"id": "d", "type": "Elsa.FlowJoin", "mode": literal("WaitAll")},
        write("e"),
        connections=["a>b", "a>c", "b>d", "c>d", "d>e"],
    )
    told = await run_and_crash_everywhere(Host(), loud(strategy, root))
    assert len(told) > 7
    assert {tuple(lines) for lines in told} == {("a", "b1", "c1", "b2", "c2", "c3", "e")}


async def test_a_checkpoint_keeps_what_a_suspension_drops() -> None:
    root = sequence(
        {
            "id": "js",
            "type": "Elsa.RunJavaScript",
            "name": "Js",
            "script": literal("setLost('here'); return 42"),
        },
        {"id": "pause", "type": "Elsa.WriteLine", "text": literal("-")},
        {
            "id": "tell",
            "type": "Elsa.WriteLine",
            "text": script("`${getLost()} ${getOutputFrom('js')} ${getLastResult()}`"),
        },
    )
    told = await run_and_crash_everywhere(
        Host(), loud("ActivityExecuted", root, variables=[variable("Lost", "String", kept=False)])
    )
    assert {tuple(lines) for lines in told} == {("-", "here 42 42")}


async def test_an_activity_answers_before_its_workflow_whether_to_commit() -> None:
    silent = {**write("never"), "customProperties": {"commitStrategyName": "CommitNever"}}
    told = await run_and_crash_everywhere(Host(), loud("ActivityExecuted", sequence(silent, write("b"))))
    all_of_them = await run_and_crash_everywhere(
        Host(), loud("ActivityExecuted", sequence(write("a"), write("b")))
    )
    assert len(told) == len(all_of_them) - 1


async def test_without_a_strategy_there_are_no_checkpoints() -> None:
    assert await run_and_crash_everywhere(Host(), document(sequence(write("a"), write("b")))) == []


async def test_a_checkpoint_keeps_input_that_the_next_burst_would_not_see() -> None:
    host = Host()
    root = sequence(write("a"), {"id": "t", "type": "Elsa.WriteLine", "text": script("getInput('Who')")})
    graph = host.definitions.graph(await host.load(loud("ActivityExecuted", root)))
    states: list[bytes] = []

    async def keep(outcome: Outcome) -> None:
        states.append(encode_state(outcome.state))
        raise Crash

    with pytest.raises(Crash):
        await run_burst(
            graph, Start(input={"Who": "you"}), environment=host.environment, instance_id="i", checkpoint=keep
        )
    host.console.written.clear()
    await run_burst(graph, Continue(), environment=host.environment, state=decode_state(states[0]))
    assert host.console.written[-1] == "you"


async def test_waiting_in_the_middle_of_a_loop_goes_on_identically_in_a_fresh_process() -> None:
    root = {
        "id": "f",
        "type": "Elsa.ParallelForEach",
        "items": script("[1, 2, 3]"),
        "body": sequence(
            event("go", result=captured("got")),
            {"id": "t", "type": "Elsa.WriteLine", "text": script("`${getCurrentValue()} ${getGot()}`")},
            variables=[variable("Got")],
        ),
    }
    one, other = Host(), Host()
    for host in (one, other):
        await host.load(document(root))
    instance = await one.run("test")
    moved = type(instance)(instance.id)
    moved.keep(
        Outcome(state=decode_state(encode_state(instance.state)), records=tuple(instance.records)),
        other.definitions.graph(other.definitions.find("test")),
    )
    other.instances[moved.id] = moved
    for host in (one, other):
        await host.publish_event("go", "x")
        assert host.console.written == ["1 x", "2 x", "3 x"]
    assert encode_state(instance.state) == encode_state(moved.state)


async def test_work_left_behind_by_an_owner_that_completed_still_sees_its_variables() -> None:
    tell = {"id": "tell", "type": "Elsa.WriteLine", "text": script("getInner()")}
    chart = flowchart(
        write("start"), {"id": "end", "type": "Elsa.End"}, tell, connections=["start>end", "start>tell"]
    )
    root = sequence({**chart, "variables": [variable("Inner", "String", "seen", kept=False)]}, write("after"))
    told = await run_and_crash_everywhere(Host(), loud("ActivityExecuted", root))
    assert {tuple(lines) for lines in told} == {("start", "seen", "after")}
