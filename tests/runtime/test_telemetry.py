"""What can be seen from outside: figures always, spans with OpenTelemetry, one trace for each instance."""

import asyncio
import logging
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.metrics import _internal
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from holdfast import Holdfast, activity, telemetry
from holdfast.clock import SystemClock
from holdfast.engine import Environment
from holdfast.runtime.spans import TRACE
from holdfast.store import Store
from holdfast.stores.memory import MemoryStore
from tests.documents import document, event, fault, literal, sequence, write
from tests.runtime.operating import become, opened_store, until


def workflow(name: str, *activities: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(sequence(*activities), id=f"{name}-1", definitionId=name, **members)


DELAY = {"id": "delay", "type": "Elsa.Delay", "timeSpan": literal("00:00:00.05")}
ORDER = workflow("order", write("hello"), event("paid"), DELAY, write("thanks"))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with opened_store(request, tmp_path) as store:
        yield store


class Spans:
    """What was exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def of(self, name: str) -> list[ReadableSpan]:
        found = [span for span in self._exporter.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)


# A process has one provider and keeps it; tests put theirs in its place, and take it away again.


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    spans = Spans()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", spans.provider)
    yield spans
    telemetry.turn_off()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    reader = InMemoryMetricReader()
    monkeypatch.setattr(_internal, "_METER_PROVIDER", MeterProvider([reader]))
    monkeypatch.setattr(telemetry, "_meters", {})
    return reader


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


# --- spans --------------------------------------------------------------------------------------------


async def test_one_trace_follows_an_instance_from_node_to_node(store: Store, spans: Spans) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        instance = await holdfast.run("order")
    async with Holdfast(store) as holdfast:
        await holdfast.publish_event("paid")
        await holdfast.result(instance.id, timeout=10)
    (dispatch,) = spans.of("dispatch")
    turns = spans.of("turn")
    assert [span.attributes["holdfast.message"] for span in turns if span.attributes] == [
        "start",
        "resume",
        "resume",
    ]
    assert {trace_of(span) for span in turns} == {trace_of(dispatch)}
    assert parent_of(turns[0]) == id_of(dispatch)
    assert parent_of(turns[2]) == id_of(turns[1])  # the timer was set in that turn


async def test_a_turn_is_linked_to_what_caused_it_from_another_trace(store: Store, spans: Spans) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.publish_event("paid")
        await holdfast.result(instance.id, timeout=10)
    (send,) = spans.of("send")
    first, resumed, last = spans.of("turn")
    assert trace_of(send) != trace_of(first) == trace_of(resumed)
    assert [link.context.span_id for link in resumed.links] == [id_of(send)]
    assert not first.links and not last.links


async def test_a_turn_holds_its_bursts_and_they_their_activities(store: Store, spans: Spans) -> None:
    async with Holdfast(store, definitions=[workflow("short", write("one"), write("two"))]) as holdfast:
        await holdfast.run("short")
        told = await holdfast.metrics()
    (turn,), (burst,) = spans.of("turn"), spans.of("burst")
    assert parent_of(burst) == id_of(turn)
    activities = spans.of("activity")
    assert {parent_of(span) for span in activities} == {id_of(burst)}
    named = [span.attributes["holdfast.activity"] for span in activities if span.attributes]
    assert named[-2:] == ["one", "two"]
    assert 'holdfast_activity_seconds_count{type="Elsa.WriteLine"} 2' in told


async def test_an_activity_that_raises_is_seen_in_its_span(store: Store, spans: Spans) -> None:
    async with Holdfast(store, definitions=[workflow("bad", fault("no money"))]) as holdfast:
        await holdfast.run("bad")
    broken = [span for span in spans.of("activity") if not span.status.is_ok]
    assert [span.attributes["holdfast.activity"] for span in broken if span.attributes] == ["fault"]


async def test_a_child_goes_on_in_the_trace_of_its_parent(store: Store, spans: Spans) -> None:
    child = workflow("child", write("inside"))
    parent = workflow(
        "parent",
        {
            "id": "call",
            "type": "Elsa.DispatchWorkflow",
            "workflowDefinitionId": literal("child"),
            "waitForCompletion": literal(True, "Boolean"),
        },
    )
    async with Holdfast(store, definitions=[child, parent]) as holdfast:
        started = await holdfast.dispatch("parent")
        await holdfast.result(started, timeout=10)
    turns = spans.of("turn")
    assert len(turns) == 3
    assert len({trace_of(span) for span in turns}) == 1
    assert parent_of(turns[1]) == id_of(turns[0])


async def test_work_in_the_background_stays_in_the_trace(store: Store, spans: Spans) -> None:
    @activity(type="Test.Slow", kind="Task")
    async def slow() -> None:
        pass

    slowly = {"id": "slow", "type": "Test.Slow", "customProperties": {"runAsynchronously": True}}
    background = workflow("background", slowly)
    async with Holdfast(store, definitions=[background], activities=[slow]) as holdfast:
        started = await holdfast.dispatch("background")
        await holdfast.result(started, timeout=10)
    (dispatch,) = spans.of("dispatch")
    (done,) = [span for span in spans.of("activity") if "holdfast.definition" in (span.attributes or {})]
    assert {trace_of(span) for span in (*spans.of("turn"), done)} == {trace_of(dispatch)}
    assert parent_of(spans.of("turn")[-1]) == id_of(done)


async def test_turns_do_not_belong_to_the_span_in_which_holdfast_was_begun(
    store: Store, spans: Spans
) -> None:
    async with Holdfast(store, definitions=[ORDER], works=False) as sender:
        telemetry.turn_off()
        instance_id = await sender.dispatch("order")
    with trace.get_tracer("test").start_as_current_span("main") as main:
        async with Holdfast(store) as holdfast:
            await become(holdfast, instance_id, "Suspended")
    (turn,) = spans.of("turn")
    assert turn.parent is None
    assert trace_of(turn) != main.get_span_context().trace_id


async def test_the_state_remembers_the_trace_only_while_there_is_one(store: Store, spans: Spans) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        with_trace = await holdfast.run("order")
        telemetry.turn_off()
        without = await holdfast.run("order")
    (known,) = await store.load([("", with_trace.id)])
    (unknown,) = await store.load([("", without.id)])
    assert TRACE.encode() in (known.state or b"")
    assert TRACE.encode() not in (unknown.state or b"")


# --- without it ---------------------------------------------------------------------------------------


async def test_without_a_provider_nothing_stands_around_activities(store: Store) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        environment: Environment = holdfast.world.environment
        assert environment.around_activity == environment.around_burst == ()
        await holdfast.run("order")
        assert telemetry.tracing is None


def run_alone(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_api_alone_is_not_worth_a_span() -> None:
    code = """
        from holdfast import telemetry
        print(telemetry.turn_on(), telemetry.tracing, telemetry.is_read())
    """
    assert run_alone(code) == "False None False"


def test_it_works_where_opentelemetry_is_not_installed() -> None:
    code = """
        import sys
        sys.modules["opentelemetry"] = None
        from holdfast import telemetry
        print(telemetry.turn_on(), telemetry.trace_now(), telemetry.span("x"))
        import holdfast.application
    """
    assert run_alone(code).startswith("False None <contextlib.nullcontext")


def test_importing_holdfast_does_not_import_opentelemetry() -> None:
    code = """
        import sys, holdfast.application
        print("opentelemetry" in sys.modules)
    """
    assert run_alone(code) == "False"


# --- figures ------------------------------------------------------------------------------------------


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def test_what_became_of_instances_is_counted(store: Store) -> None:
    bad = workflow("bad", fault("no"))
    async with Holdfast(store, definitions=[ORDER, bad]) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.run("bad")
        waiting = await holdfast.run("order")
        await holdfast.cancel(waiting.id)
        await holdfast.result(waiting.id, timeout=10)
        await holdfast.publish_event("paid")
        await holdfast.result(instance.id, timeout=10)
        found = samples(await holdfast.metrics())
    assert {
        name: found.get(f'holdfast_instances_total{{event="{name}"}}', 0)
        for name in ("started", "suspended", "resumed", "completed", "faulted", "cancelled")
    } == {"started": 3, "suspended": 3, "resumed": 2, "completed": 1, "faulted": 1, "cancelled": 1}
    assert found["holdfast_timer_lateness_seconds_count"] == 1
    assert found["holdfast_commit_seconds_count"] == found["holdfast_commit_turns_count"] > 0
    assert found["holdfast_commit_turns_sum"] >= 6
    assert found['holdfast_leases_total{change="taken"}'] >= 64
    assert found["holdfast_shards"] == 64
    assert found["holdfast_inbox_messages"] == 0
    assert found["holdfast_dead_letters_total"] == 0


async def test_a_message_that_finds_nobody_resumes_nothing(store: Store) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        instance = await holdfast.run("order")
        await holdfast.resume(instance.id, "no-such-bookmark", key="k")

        async def is_answered() -> bool:
            return await holdfast.store.answer("", "k") is not None

        await until(is_answered)
        found = samples(await holdfast.metrics())
    assert found['holdfast_instances_total{event="suspended"}'] == 1
    assert 'holdfast_instances_total{event="resumed"}' not in found


async def test_what_waits_is_measured() -> None:
    store = MemoryStore(SystemClock())
    async with Holdfast(store, definitions=[ORDER], works=False) as sender:
        await sender.dispatch_many("order", [{} for _ in range(7)])
        await asyncio.sleep(0.1)
        found = samples(await sender.metrics())
    assert found["holdfast_inbox_messages"] == 7
    assert 0.05 < found["holdfast_inbox_lag_seconds"] < 60
    assert found["holdfast_shards"] == 0


def test_histograms_are_written_the_way_prometheus_adds_them_up() -> None:
    figures = telemetry.Figures()
    for value in (0.0004, 0.002, 0.002, 99.0):
        figures.histogram("commit_seconds").observe(value)
    found = samples(figures.text())
    assert found['holdfast_commit_seconds_bucket{le="0.0005"}'] == 1
    assert found['holdfast_commit_seconds_bucket{le="0.0025"}'] == 3
    assert found['holdfast_commit_seconds_bucket{le="10"}'] == 3
    assert found['holdfast_commit_seconds_bucket{le="+Inf"}'] == found["holdfast_commit_seconds_count"] == 4
    assert found["holdfast_commit_seconds_sum"] == pytest.approx(99.0044)


def test_labels_are_escaped() -> None:
    figures = telemetry.Figures()
    figures.count("relayed", 'a"b\\c\n')
    assert r'holdfast_relayed_total{stream="a\"b\\c\n"} 1' in figures.text()


async def test_opentelemetry_reads_the_same_figures(store: Store, reader: InMemoryMetricReader) -> None:
    async with Holdfast(store, definitions=[ORDER]) as holdfast:
        await holdfast.run("order")

        async def is_measured() -> bool:
            return ("shards", "") in holdfast.world.figures.gauges

        await until(is_measured)
        found = reader.get_metrics_data()
    assert found is not None
    points = {
        metric.name: list(metric.data.data_points)
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert any(dict(p.attributes or {}) == {"event": "started"} for p in points["holdfast.instances"])
    assert points["holdfast.shards"]
    assert points["holdfast.commit_seconds"]


# --- the log ------------------------------------------------------------------------------------------


async def test_a_takeover_is_logged_with_the_leases_and_counted(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await store.join("dead", "{}", timedelta(seconds=30))
    await store.take("dead", ["shard-0", "shard-1"])
    await store.leave("dead")
    with caplog.at_level(logging.WARNING, "holdfast"):
        async with Holdfast(store) as holdfast:

            async def is_taken() -> bool:
                return len(holdfast.node.reader.shards) == 64

            await until(is_taken)
            found = samples(await holdfast.metrics())
    said = [record for record in caplog.records if hasattr(record, "leases")]
    assert {name for record in said for name in record.leases}  # type: ignore[attr-defined]
    assert found["holdfast_takeovers_total"] == 2
