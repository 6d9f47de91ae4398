"""Random flowcharts, for Hypothesis: what people draw, and what they draw by mistake.

`flowcharts` yields graphs for the model; `to_definition` is the same flowchart as JSON for the engine.
Every graph comes to an end in both algorithms: each cycle has a decision in it that answers True a few
times and then False for good, and only its True leads back. How a flowchart runs is not known here.
"""

import json
from typing import Any

from hypothesis import strategies as st

from tests.flowchart.model import Activity, Connection, Graph, Kind

JOIN_MODES = ("WaitAny", "WaitAll", "WaitAllActive")
MERGE_MODES = ("None", "Stream", "Merge", "Converge", "Cascade", "Race")
ROUNDS = 3  # at most so often does one decision send the flow back


def resumes() -> st.SearchStrategy[list[int]]:
    """Which of the blocked waits ends next, and next, and next."""
    return st.lists(st.integers(0, 3), max_size=8)


@st.composite
def flowcharts(draw: st.DrawFn, *, merge_modes: bool = False) -> Graph:
    """Two to twelve activities. `merge_modes`: some say how tokens merge, which counters ignore."""
    size = draw(st.integers(2, 12))
    loose = min(draw(st.sampled_from([0, 0, 0, 0, 1, 2])), size - 2)
    sketch = _Sketch(draw)
    if size > 4 and not loose and draw(st.integers(0, 4)) == 4:
        sketch.add_nested_loops()
    while len(sketch.kinds) < size - loose:
        sketch.add_connected()
    for _ in range(draw(st.integers(0, 3))):
        sketch.add_loop(may_reach_start=not loose)
    for _ in range(loose):
        sketch.add_loose()
    return sketch.graph(merge_modes=merge_modes)


class _Sketch:
    """A flowchart being drawn. Activities are numbered; forward connections lead to higher numbers."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.kinds: list[Kind] = []
        self.branches: list[tuple[str, ...]] = []
        self.connections: list[tuple[int, str, int]] = []
        self.dominators: list[set[int]] = []  # which activities are on every way there, itself included
        self.loops: set[int] = set()  # decisions that lead back

    def add_connected(self) -> None:
        place = len(self.kinds)
        sources = self._sources(place) if place else []
        kinds: list[Kind] = ["write", "write", "decision", "decision", "fork", "join"]
        if sources:
            kinds.append("wait")
        if len(sources) > 1:
            kinds.extend(("join", "join", "join"))
        self._add(self.draw(st.sampled_from(kinds)))
        for source in sources:
            self._connect(source, place)
        on_every_way = [i for i in range(place) if all(i in self.dominators[source] for source in sources)]
        self.dominators.append({place, *on_every_way})

    def _sources(self, place: int) -> list[int]:
        """Mostly the one before, or a fork or decision that has a port to spare; often several."""
        leaving = [source for source, _, _ in self.connections]
        parting = [i for i in range(place) if self.kinds[i] in ("fork", "decision")]
        spare = [i for i in parting if leaving.count(i) < 2]
        first = self.draw(st.sampled_from([place - 1, place - 1, *spare, *range(place)]))
        more = self.draw(st.lists(st.sampled_from(range(place)), max_size=2, unique=True))
        return [first, *(i for i in more if i != first or i in parting)]

    def add_loop(self, *, may_reach_start: bool) -> None:
        """A decision leads back: to where every way to it came by, or now and then to anywhere before."""
        decisions = [i for i, kind in enumerate(self.kinds) if kind == "decision"]
        well = [(i, target) for i in decisions for target in self.dominators[i]]
        badly = [(i, target) for i in decisions for target in range(i) if target not in self.dominators[i]]
        pairs = self.draw(st.sampled_from([well, well, badly or well]))
        pairs = [(source, target) for source, target in pairs if target or may_reach_start]
        if pairs:
            self._lead_back(*self.draw(st.sampled_from(pairs)))

    def add_nested_loops(self) -> None:
        """Rare by chance, and only a loop around a loop tells a visit from a visit backward."""
        kinds: list[Kind] = ["write", "write", "decision", "decision"]
        for place, kind in enumerate(kinds):
            self._add(kind)
            self.dominators.append(set(range(place + 1)))
        self.connections += [(0, "Done", 1), (1, "Done", 2), (2, "False", 3)]
        self._lead_back(2, 1)
        self._lead_back(3, 0)

    def _lead_back(self, decision: int, target: int) -> None:
        self.loops.add(decision)
        self.connections.append((decision, "True", target))

    def add_loose(self) -> None:
        """Connected to nothing, or only by a way out: nobody comes there."""
        place = len(self.kinds)
        self._add(self.draw(st.sampled_from(["write", "decision", "fork", "wait", "join"])))
        if self.draw(st.booleans()):
            self._connect(place, self.draw(st.integers(1, place - 1)))

    def _add(self, kind: Kind) -> None:
        count = self.draw(st.integers(1, 3)) if kind == "fork" else 0
        self.kinds.append(kind)
        self.branches.append(("a", "b", "c")[:count])

    def _connect(self, source: int, target: int) -> None:
        ports = {"decision": ("True", "False"), "fork": self.branches[source]}
        offered = ports.get(self.kinds[source], ("Done",))
        used = {port for s, port, _ in self.connections if s == source}
        spare = [port for port in offered if port not in used]
        # Twice the spare ones: a port without a connection ends its branch, and a dead branch is dull.
        self.connections.append((source, self.draw(st.sampled_from([*spare, *spare, *offered])), target))

    def graph(self, *, merge_modes: bool) -> Graph:
        activities = tuple(self._activity(place, merge_modes) for place in range(len(self.kinds)))
        drawn = [Connection(activities[s].id, port, activities[t].id) for s, port, t in self.connections]
        return Graph(activities, tuple(self.draw(st.permutations(drawn))))

    def _activity(self, place: int, merge_modes: bool) -> Activity:
        kind = self.kinds[place]
        answers: list[bool] = []
        if kind == "decision":
            answers = self.draw(st.lists(st.booleans(), min_size=1, max_size=2 * ROUNDS))
        if place in self.loops:
            answers = [answer and answers[:i].count(True) < ROUNDS for i, answer in enumerate(answers)]
        return Activity(
            id=f"{kind}{place}",
            kind=kind,
            answers=tuple(answers),
            final=kind == "decision" and place not in self.loops and self.draw(st.booleans()),
            branches=self.branches[place],
            mode=self.draw(st.sampled_from(JOIN_MODES)) if kind == "join" else "WaitAny",
            merge=self.draw(st.sampled_from(MERGE_MODES)) if merge_modes and kind != "join" else "Stream",
        )


def to_definition(graph: Graph) -> dict[str, Any]:
    """The flowchart as an Elsa definition. A decision is a `Test.Decide`, which whoever runs it registers:
    its n-th execution completes with the n-th of its `answers`, and with the last one ever after."""
    return {
        "id": "random-1",
        "definitionId": "random",
        "name": "Random",
        "version": 1,
        "toolVersion": "3.6.0.0",
        "isLatest": True,
        "isPublished": True,
        "variables": [],
        "inputs": [],
        "outputs": [],
        "outcomes": [],
        "customProperties": {},
        "options": {},
        "root": {
            "id": "flowchart",
            "type": "Elsa.Flowchart",
            "version": 1,
            "activities": [_activity_json(activity) for activity in graph.activities],
            "connections": [
                {
                    "source": {"activity": connection.source, "port": connection.port},
                    "target": {"activity": connection.target, "port": "In"},
                }
                for connection in graph.connections
            ],
        },
    }


def _activity_json(activity: Activity) -> dict[str, Any]:
    match activity.kind:
        case "write":
            type_name, inputs = "Elsa.WriteLine", {"text": _input("String", "Literal", activity.id)}
        case "decision":
            answers = json.dumps([*activity.answers, activity.final])
            type_name, inputs = "Test.Decide", {"answers": _input("Boolean[]", "Object", answers)}
        case "fork":
            branches = json.dumps(activity.branches)
            type_name, inputs = "Elsa.FlowFork", {"branches": _input("String[]", "Object", branches)}
        case "join":
            type_name, inputs = "Elsa.FlowJoin", {"mode": _input("FlowJoinMode", "Literal", activity.mode)}
        case "wait":
            type_name, inputs = "Elsa.Event", {"eventName": _input("String", "Literal", activity.id)}
    properties = {} if activity.merge == "Stream" else {"mergeMode": activity.merge}
    return {"id": activity.id, "type": type_name, "version": 1, "customProperties": properties, **inputs}


def _input(type_name: str, expression_type: str, value: str) -> dict[str, Any]:
    return {"typeName": type_name, "expression": {"type": expression_type, "value": value}}
