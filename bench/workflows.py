"""The workflows that are measured, as definitions, and a host too small to be noticed.

Everything runs with the journal on: a record when an activity starts and one when it completes, with
its inputs and the time. The console drops what it is given, so that no terminal is measured.
"""

from typing import Any

from holdfast.assembly import load_plugins
from holdfast.authoring import Activity, ActivityContext, Console, activity
from holdfast.clock import SystemClock
from holdfast.definitions.compiler import compile_definition
from holdfast.definitions.document import load_definition
from holdfast.definitions.graph import Graph
from holdfast.engine import Environment, Outcome, run_burst
from holdfast.message import Start

Json = dict[str, Any]

KEPT = "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core"


class Deaf:
    """A console that drops what is written to it."""

    def write_line(self, text: str) -> None:
        pass

    def read_line(self) -> str:
        return ""


@activity(type="Bench.Count")
class Count(Activity):
    """Says in the variable `again` whether the loop shall go round again, without any script."""

    def execute(self, context: ActivityContext) -> None:
        left = context.properties["left"] = context.properties["left"] - 1
        context.set_variable("again", left > 0)


class Bench:
    """Compiles definitions and runs bursts, and nothing else."""

    def __init__(self) -> None:
        self.console = Deaf()
        self.clock = SystemClock()
        self._plugins = load_plugins([Count], installed=False)
        self.environment = Environment(
            clock=self.clock,
            services={Console: self.console},
            expressions=self._plugins.expressions.languages,
        )

    def compile(self, document: Json) -> Graph:
        return compile_definition(
            load_definition(document), self._plugins.activities, self._plugins.expressions
        )

    async def start(self, graph: Graph, **properties: Any) -> Outcome:
        return await run_burst(
            graph, Start(properties=properties), environment=self.environment, instance_id="i"
        )


def definition(root: Json, **members: Any) -> Json:
    return {"id": "bench-1", "definitionId": "bench", "version": 1, "root": root, **members}


def literal(value: Any, type_name: str = "Object") -> Json:
    return {"typeName": type_name, "expression": {"type": "Literal", "value": value}}


def script(language: str, source: str, type_name: str = "Object") -> Json:
    return {"typeName": type_name, "expression": {"type": language, "value": source}}


def variable(name: str, type_name: str, value: Any) -> Json:
    return {
        "id": name, "name": name, "typeName": type_name, "value": value, "storageDriverTypeName": KEPT
    }  # fmt: skip


def connection(source: str, target: str, port: str = "Done") -> Json:
    return {"source": {"activity": source, "port": port}, "target": {"activity": target, "port": "In"}}


def write_line(number: int) -> Json:
    return {"id": f"w{number}", "type": "Elsa.WriteLine", "text": literal("x", "String")}


def set_total(number: int, value: Json) -> Json:
    return {"id": f"s{number}", "type": "Elsa.SetVariable", "variable": {"id": "Total"}, "value": value}


def sequence(*activities: Json, activity_id: str = "sequence") -> Json:
    return {"id": activity_id, "type": "Elsa.Sequence", "activities": list(activities)}


def flowchart(activities: list[Json], connections: list[Json]) -> Json:
    return {"id": "chart", "type": "Elsa.Flowchart", "activities": activities, "connections": connections}


def line(length: int) -> Json:
    """A Sequence of so many simple activities."""
    return definition(sequence(*map(write_line, range(length))))


def chain(length: int) -> Json:
    """A Flowchart of so many simple activities, each connected to the next."""
    return definition(
        flowchart(
            [write_line(number) for number in range(length)],
            [connection(f"w{number}", f"w{number + 1}") for number in range(length - 1)],
        )
    )


def backward_loop() -> Json:
    """Two activities, the second a decision that leads back to the first. Runs `left` rounds."""
    again = {"typeName": "Boolean", "expression": {"type": "Variable", "value": {"id": "again"}}}
    decision = {"id": "decision", "type": "Elsa.FlowDecision", "condition": again}
    return definition(
        flowchart(
            [{"id": "count", "type": "Bench.Count"}, decision],
            [connection("count", "decision"), connection("decision", "count", "True")],
        ),
        variables=[variable("again", "Boolean", True)],
    )


def scripted_loop(rounds: int) -> Json:
    """The same loop as an author writes it: both activities have a JavaScript expression."""
    condition = script("JavaScript", f"getTotal() < {rounds}", "Boolean")
    decision = {"id": "decision", "type": "Elsa.FlowDecision", "condition": condition}
    return definition(
        flowchart(
            [set_total(1, script("JavaScript", "getTotal() + 1")), decision],
            [connection("s1", "decision"), connection("decision", "s1", "True")],
        ),
        variables=[variable("Total", "Int32", 0)],
    )


def for_around_flowchart(rounds: int) -> Json:
    """A For whose body is a Flowchart of three simple activities: four executions in each round."""
    body = flowchart(list(map(write_line, (1, 2, 3))), [connection("w1", "w2"), connection("w2", "w3")])
    return definition(
        {"id": "for", "type": "Elsa.For", "start": literal(1), "end": literal(rounds), "body": body}
    )


def set_variables(length: int, value: Any) -> Json:
    """A Sequence of activities that set a variable to `value(number)`."""
    return definition(
        sequence(*(set_total(number, value(number)) for number in range(length))),
        variables=[variable("Total", "Int32", 0)],
    )


def waiting(events: int) -> Json:
    """An instance with a few variables that waits for so many events."""
    waits = [
        {"id": f"e{number}", "type": "Elsa.Event", "eventName": literal(f"paid-{number}", "String")}
        for number in range(events)
    ]
    parallel = {"id": "parallel", "type": "Elsa.Parallel", "activities": waits}
    return definition(
        sequence(write_line(0), parallel, write_line(1)),
        variables=[
            variable("Total", "Int32", 42),
            variable("Customer", "String", "Ada Lovelace"),
            variable("Lines", "Object", [{"sku": "A-1", "amount": 2}, {"sku": "B-7", "amount": 1}]),
        ],
    )


def office(size: int) -> Json:
    """A definition as people draw them: of each four activities one has a script and one a decision."""
    activities: list[Json] = []
    connections: list[Json] = []
    for number in range(0, size, 4):
        activities += [
            write_line(number),
            set_total(number, script("JavaScript", f"getTotal() + {number}")),
            {
                "id": f"d{number}",
                "type": "Elsa.FlowDecision",
                "condition": script("JavaScript", f"getTotal() > {number}", "Boolean"),
            },
            write_line(number + 1),
        ]
        connections += [
            connection(f"w{number}", f"s{number}"),
            connection(f"s{number}", f"d{number}"),
            connection(f"d{number}", f"w{number + 1}", "True"),
            connection(f"d{number}", f"w{number + 4}", "False"),
            connection(f"w{number + 1}", f"w{number + 4}"),
        ]
    return definition(flowchart(activities, connections), variables=[variable("Total", "Int32", 0)])
