"""The engine: activities, bursts and expressions per second, and whether size changes them.

Nothing is stored anywhere: what a store costs is another subject. Contenders run in the same rounds.
"""

import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

from bench import workflows
from bench.contenders import bare, spiff
from bench.measure import Case, Figure, Section, Stopwatch, Timing
from bench.workflows import Bench, script
from holdfast.engine import Outcome, decode_state, encode_state, run_burst
from holdfast.engine.burst import Burst
from holdfast.engine.frame import Frame
from holdfast.engine.scope import FrameScope
from holdfast.engine.state import thaw
from holdfast.expressions.javascript import JavaScript
from holdfast.expressions.liquid import Liquid
from holdfast.expressions.python import Python
from holdfast.message import Resume

LANGUAGES = {"JavaScript": JavaScript, "Liquid": Liquid, "Python": Python}

CONTENDERS = (spiff.PACKAGE,)

SIZES = (10, 100, 1_000, 10_000)
COMPARED = SIZES[:3]
"""Where SpiffWorkflow is measured too: 1,000 take it a second, and it looks ahead by recursion."""
ROUNDS = 1_000
MANY = 1_000
"""How many expressions, or activities with one, make a call."""

SCRIPTS = {
    "javascript": script("JavaScript", "getTotal() + 1"),
    "liquid": script("Liquid", "{{ Variables.Total | plus: 1 }}"),
    "python": script("Python", "variables.Total + 1"),
}
NAMES = {"javascript": "JavaScript", "liquid": "Liquid", "python": "Python"}


async def figures(stopwatch: Stopwatch) -> list[Figure]:
    bench = Bench()
    cases = [
        *_simple(bench),
        *_contenders(bench),
        *_loops(bench),
        *_bursts(bench),
        *await _waiting(bench, "waiting", 1),
        *await _waiting(bench, "waiting_100", 100),
        *_expressions(bench),
        *_definitions(bench),
    ]
    timings = await stopwatch.time(cases)
    sections = (
        _show_activities(timings),
        _show_sizes(timings),
        _show_ratios(timings),
        await _show_bursts(bench, timings),
        _show_expressions(timings),
        _show_definitions(timings),
    )
    return [figure for section in sections for figure in section.figures]


def profiled() -> Callable[[], Awaitable[Any]]:
    """What `--profile` looks into: a Sequence of 1,000 simple activities, many times."""
    bench = Bench()
    graph = bench.compile(workflows.line(1_000))

    async def call() -> None:
        for _ in range(50):
            await bench.start(graph)

    return call


# --- what is timed --------------------------------------------------------------------------------


def _simple(bench: Bench) -> list[Case]:
    return [
        _burst(bench, f"{name}_{size}", document(size), size)
        for name, document in (("sequence", workflows.line), ("flowchart", workflows.chain))
        for size in SIZES
    ]


def _burst(bench: Bench, name: str, document: Any, activities: int, **properties: Any) -> Case:
    """Run a whole instance, again and again. Its containers are not counted as activities."""
    graph = bench.compile(document)

    async def call() -> Outcome:
        return await bench.start(graph, **properties)

    def is_right(outcome: Outcome) -> bool:
        return outcome.state.sub_status == "Finished" and len(outcome.records) >= 2 * activities

    return Case(name=name, call=call, operations=activities, is_right=is_right)


def _contenders(bench: Bench) -> list[Case]:
    def floor(size: int) -> Case:
        return Case(
            name=f"bare_{size}",
            call=lambda: bare.run(size, bench.console, bench.clock),
            operations=size,
            is_right=lambda records: len(records) == 2 * size,
        )

    def other(size: int) -> Case:
        spec = spiff.line(size, bench.console)

        async def call() -> Any:
            return spiff.run(spec)

        def is_right(workflow: Any) -> bool:
            return workflow.is_completed() and len(workflow.tasks) == size + 1

        return Case(name=f"spiff_{size}", call=call, operations=size, is_right=is_right)

    return [*map(floor, SIZES), *map(other, COMPARED)]


def _loops(bench: Bench) -> list[Case]:
    return [
        _burst(bench, "backward_loop", workflows.backward_loop(), 2 * ROUNDS, left=ROUNDS),
        _burst(bench, "scripted_loop", workflows.scripted_loop(ROUNDS), 2 * ROUNDS),
        _burst(bench, "for_loop", workflows.for_around_flowchart(ROUNDS), 4 * ROUNDS),
    ]


def _bursts(bench: Bench) -> list[Case]:
    graph = bench.compile(workflows.line(3))

    async def call() -> bytes:
        return encode_state((await bench.start(graph)).state)

    return [Case(name="burst_of_3", call=call, is_right=lambda text: b"Finished" in text)]


async def _waiting(bench: Bench, name: str, events: int) -> list[Case]:
    """An instance that waits: writing it down, reading it, waking it, and one whole turn of it."""
    graph = bench.compile(workflows.waiting(events))
    state = (await bench.start(graph)).state
    text = encode_state(state)
    message = Resume(bookmark_id=state.bookmarks[-1].id)

    async def turn() -> bytes:
        outcome = await run_burst(graph, message, environment=bench.environment, state=decode_state(text))
        return encode_state(outcome.state) if outcome.applied else b""

    return [
        Case(name=f"{name}_encode", call=_async(lambda: encode_state(state))),
        Case(name=f"{name}_decode", call=_async(lambda: decode_state(text))),
        Case(
            name=f"{name}_thaw",
            call=_async(lambda: thaw(state, graph, bench.environment)),
            is_right=lambda burst: len(burst.bookmarks) == events,
        ),
        Case(name=f"{name}_turn", call=turn),
    ]


def _async(function: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    async def call() -> Any:
        return function()

    return call


def _expressions(bench: Bench) -> list[Case]:
    """Each language by itself, then as the input of activities in a burst."""
    by_itself = [
        made(bench, name, value["expression"])
        for made in (_evaluated, _compiled)
        for name, value in SCRIPTS.items()
    ]
    values: dict[str, Callable[[int], Any]] = {
        "literal": lambda number: workflows.literal(number + 1),
        **{name: (lambda number, value=value: value) for name, value in SCRIPTS.items()},
        # Real definitions rarely say the same thing a thousand times.
        "javascript_distinct": lambda number: script("JavaScript", f"getTotal() + {number} - {number - 1}"),
    }
    in_bursts = [
        _burst(bench, f"set_variable_{name}", workflows.set_variables(MANY, value), MANY)
        for name, value in values.items()
    ]
    return by_itself + in_bursts


def _evaluated(bench: Bench, name: str, expression: dict[str, str]) -> Case:
    graph = bench.compile(workflows.set_variables(1, lambda number: workflows.literal(0)))
    frame = Frame(graph.root, None)
    frame.memory = {"Total": 41}
    scope = FrameScope(Burst(graph, bench.environment, "i"), frame)
    compiled = bench.environment.expressions[expression["type"]].compile(expression["value"])

    async def call() -> Any:
        for _ in range(MANY):
            value = compiled(scope)
        return value

    return Case(name=name, call=call, operations=MANY, is_right=lambda value: str(value) == "42")


def _compiled(_: Bench, name: str, expression: dict[str, str]) -> Case:
    """What each script costs once: the language itself, which does not remember what it compiled before."""
    language = LANGUAGES[expression["type"]]()

    async def call() -> Any:
        for _ in range(100):
            compiled = language.compile(expression["value"])
        return compiled

    return Case(name=f"{name}_compile", call=call, operations=100, is_right=callable)


def _definitions(bench: Bench) -> list[Case]:
    def compiled(name: str, document: Any) -> Case:
        call = _async(lambda: bench.compile(document))
        return Case(name=name, call=call, is_right=lambda graph: len(graph.nodes) == 502)

    return [
        compiled("compile_sequence_500", workflows.line(500)),
        compiled("compile_flowchart_500", workflows.office(500)),
    ]


# --- what is shown --------------------------------------------------------------------------------


def _show_activities(timings: dict[str, Timing]) -> Section:
    section = Section("Activities per second")
    shown = {
        "sequence_1000": "Sequence of 1,000",
        "flowchart_1000": "Flowchart, 1,000 in a chain",
        "backward_loop": "Flowchart, 1,000 times back",
        "for_loop": "For 1,000 times around a flowchart",
    }
    for name, label in shown.items():
        section.rate(f"{name}_per_second", label, timings[name], "activities", at_least=100_000)
    label = "Flowchart, 1,000 times back, JavaScript"
    section.rate("scripted_loop_per_second", label, timings["scripted_loop"], "activities")
    return section


def _show_sizes(timings: dict[str, Timing]) -> Section:
    section = Section("One activity, by how many there are")
    rows = {
        "sequence": ("Sequence", SIZES),
        "flowchart": ("Flowchart", SIZES),
        "bare": ("Bare asyncio", SIZES),
        "spiff": ("SpiffWorkflow", COMPARED),
    }
    for name, (label, sizes) in rows.items():
        for size in sizes:
            section.duration(f"{name}_{size}", f"{label}, {size:,}", timings[f"{name}_{size}"])
    return section


def _show_ratios(timings: dict[str, Timing]) -> Section:
    section = Section("Side by side")
    for size in COMPARED:
        aim = {"at_least": 20.0} if size == 100 else {}
        section.ratio(
            f"faster_than_spiff_{size}",
            f"Faster than SpiffWorkflow, {size:,}",
            timings[f"spiff_{size}"],
            timings[f"sequence_{size}"],
            **aim,
        )
    for size in SIZES:
        section.ratio(
            f"slower_than_bare_{size}",
            f"Slower than bare asyncio, {size:,}",
            timings[f"sequence_{size}"],
            timings[f"bare_{size}"],
        )
    for name, label in (("sequence", "Sequence"), ("flowchart", "Flowchart")):
        section.ratio(
            f"flat_{name}",
            f"{label}: 10,000 to 100",
            timings[f"{name}_{SIZES[-1]}"],
            timings[f"{name}_100"],
            at_most=1.3,
        )
    return section


async def _show_bursts(bench: Bench, timings: dict[str, Timing]) -> Section:
    section = Section("Bursts and states")
    section.rate("burst_of_3_per_second", "Three activities, state encoded", timings["burst_of_3"], "bursts")
    for name, label in (("waiting", "Waits for 1"), ("waiting_100", "Waits for 100")):
        events = 100 if name.endswith("100") else 1
        for what in ("encode", "decode", "thaw", "turn"):
            text = "decode, burst, encode" if what == "turn" else what
            section.duration(f"{name}_{what}", f"{label}: {text}", timings[f"{name}_{what}"])
        state = (await bench.start(bench.compile(workflows.waiting(events)))).state
        section.amount(f"{name}_bytes", f"{label}: state", len(encode_state(state)), "bytes")
    section.amount("activity_bytes", "Journal of one activity, in memory", await _memory(bench), "bytes")
    return section


async def _memory(bench: Bench) -> float:
    """What the two records of a simple activity keep in memory while the burst lasts."""
    graph = bench.compile(workflows.line(1_000))
    await bench.start(graph)
    gc.collect()
    tracemalloc.start()
    try:
        records = (await bench.start(graph)).records
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / (len(records) / 2)
    finally:
        tracemalloc.stop()


def _show_expressions(timings: dict[str, Timing]) -> Section:
    section = Section("Expressions")
    for name, label in NAMES.items():
        section.rate(f"{name}_per_second", f"{label} by itself", timings[name], "expressions")
    for name, label in NAMES.items():
        section.duration(f"{name}_compile", f"{label}, compiling", timings[f"{name}_compile"])
    section.duration("set_variable_literal", "SetVariable, a literal", timings["set_variable_literal"])
    for name, label in NAMES.items():
        section.duration(f"set_variable_{name}", f"SetVariable, {label}", timings[f"set_variable_{name}"])
    section.duration(
        "set_variable_javascript_distinct",
        "SetVariable, 1,000 different scripts",
        timings["set_variable_javascript_distinct"],
    )
    return section


def _show_definitions(timings: dict[str, Timing]) -> Section:
    section = Section("Definitions")
    section.duration(
        "compile_sequence_500", "Compile a Sequence of 500", timings["compile_sequence_500"], "ms"
    )
    section.duration(
        "compile_flowchart_500",
        "Compile a Flowchart of 500",
        timings["compile_flowchart_500"],
        "ms",
    )
    return section
