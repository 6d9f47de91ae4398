"""Random flowcharts behave as the counting rules say, whatever is drawn.

`model` knows the rules and nothing of ours. A planted mistake in the engine must be found here: the
last tests plant three, one at a time.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast import Activity, ActivityContext, Input, activity
from holdfast.activities.flow_counting import Counting
from holdfast.engine import run_burst
from holdfast.message import Resume, Start
from holdfast.testing import Host
from tests.flowchart.graphs import flowcharts, resumes, to_definition
from tests.flowchart.model import Graph, Outcome, simulate


@activity(type="Test.Decide", outcomes=("True", "False"))
class Decide(Activity):
    """Takes the n-th answer the n-th time it is executed, and the last one ever after."""

    answers: Input[list[bool]]

    def execute(self, context: ActivityContext) -> None:
        asked = context.properties.get(context.activity_id, 0)
        context.properties[context.activity_id] = asked + 1
        context.complete("True" if self.answers[min(asked, len(self.answers) - 1)] else "False")


HOSTS = {mode: Host(activities=[Decide], flowchart_mode=mode) for mode in ("CounterBased", "TokenBased")}


async def execute(graph: Graph, mode: str, picks: list[int]) -> Outcome:
    """What the engine makes of a graph, told in the model's words."""
    host = HOSTS[mode]
    host.instances.clear()
    host.console.written.clear()
    definition = await host.load(to_definition(graph))
    instance = await host.run(definition.definition_id)
    for pick in picks:
        if not instance.bookmarks or instance.status == "Finished":
            break
        picked = instance.bookmarks[pick % len(instance.bookmarks)].activity_id
        await host.resume(instance, next(b for b in instance.bookmarks if b.activity_id == picked))
    return Outcome(
        state=instance.sub_status,
        lines=tuple(host.console.written),
        executed=tuple(i for i in instance.executed() if i != "flowchart"),
        blocked=tuple(bookmark.activity_id for bookmark in instance.bookmarks),
        incidents=tuple((i.activity_id, i.message) for i in instance.incidents),
    )


def told(outcome: Outcome) -> dict[str, Any]:
    """What must agree. After a fault the order in which the rest drains is all that is left to compare."""
    return {
        "state": outcome.state,
        "lines": outcome.lines,
        "executed": outcome.executed,
        "blocked": outcome.blocked if outcome.state == "Suspended" else (),
        "incidents": [(who, what[:40]) for who, what in outcome.incidents],
    }


def agree(graph: Graph, mode: str, picks: list[int]) -> None:
    expected = simulate(graph, token_based=mode == "TokenBased", resumes=picks)
    assert told(asyncio.run(execute(graph, mode, picks))) == told(expected)


slow = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=200
)


@slow
@given(flowcharts(), resumes())
def test_counting_agrees_with_the_model(graph: Graph, picks: list[int]) -> None:
    agree(graph, "CounterBased", picks)


@slow
@given(flowcharts(merge_modes=True), resumes())
def test_tokens_agree_with_the_model(graph: Graph, picks: list[int]) -> None:
    agree(graph, "TokenBased", picks)


@settings(slow, max_examples=100)
@given(flowcharts(), resumes())
def test_a_flowchart_always_ends_or_waits(graph: Graph, picks: list[int]) -> None:
    outcome = asyncio.run(execute(graph, "CounterBased", picks))
    assert outcome.state in ("Finished", "Faulted", "Suspended")


@contextmanager
def wait_all_as_any() -> Iterator[None]:
    """A join that shall wait for all goes on with the first."""
    honest = Counting._mode
    with patch.object(
        Counting, "_mode", lambda self, target: {"WaitAll": "WaitAny"}.get(m := honest(self, target), m)
    ):
        yield


@contextmanager
def no_skip() -> Iterator[None]:
    """A branch that is not taken is not followed to the join behind it."""
    honest = Counting._decide
    with patch.object(Counting, "_decide", lambda self, c: "wait" if (d := honest(self, c)) == "skip" else d):
        yield


@contextmanager
def count_backward() -> Iterator[None]:
    """Coming back over a backward connection is counted as a visit."""
    honest = Counting._leave
    with patch.object(Counting, "_leave", lambda self, child, counts: honest(self, child, True)):
        yield


@pytest.mark.parametrize("mistake", [wait_all_as_any, no_skip, count_backward])
def test_a_planted_mistake_is_found(mistake: Any) -> None:
    @settings(slow, max_examples=2000, phases=[Phase.generate], derandomize=True, database=None)
    @given(flowcharts(), resumes())
    def compare(graph: Graph, picks: list[int]) -> None:
        agree(graph, "CounterBased", picks)

    with mistake(), pytest.raises(AssertionError):
        compare()


@settings(slow, max_examples=100)
@given(flowcharts(), resumes(), st.booleans())
def test_the_same_state_message_and_clock_give_byte_identical_states(
    graph: Graph, picks: list[int], tokens: bool
) -> None:
    from holdfast.engine import decode_state, encode_state

    host = HOSTS["TokenBased" if tokens else "CounterBased"]

    async def twice() -> None:
        definition = await host.load(to_definition(graph))
        compiled = host.definitions.graph(definition)

        async def burst(message: Any, state: bytes | None) -> tuple[bytes, tuple[Any, ...]]:
            outcome = await run_burst(
                compiled,
                message,
                environment=host.environment,
                state=None if state is None else decode_state(state),
                instance_id="i",
            )
            return encode_state(outcome.state), outcome.records

        state, records = await burst(Start(), None)
        assert (state, records) == await burst(Start(), None)
        for pick in picks:
            waiting = decode_state(state).bookmarks
            if not waiting:
                break
            message = Resume(bookmark_id=waiting[pick % len(waiting)].id)
            first = await burst(message, state)
            assert first == await burst(message, state)
            state = first[0]
            assert encode_state(decode_state(state)) == state

    asyncio.run(twice())
