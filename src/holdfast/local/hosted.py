"""One instance on a local host, and what a person or a test wants to ask of it.

Its state is kept as it would be stored, so that every question is answered from what survives a wait.
"""

from typing import Any

from holdfast.bookmark import Bookmark
from holdfast.codec import read_payload
from holdfast.definitions.compiler import WORKFLOW
from holdfast.definitions.graph import Graph
from holdfast.engine import Outcome, decode_state, encode_state
from holdfast.instance import Incident, Record, State
from holdfast.local.records import ActivityRecord, fold_records


class HostedInstance:
    """One instance in memory, with its journal."""

    def __init__(self, instance_id: str) -> None:
        self.id = instance_id
        self._encoded = b""
        self.records: list[Record] = []
        self.graphs: list[Graph] = []
        """The graph each record's node index refers to, by record."""
        self.started = True
        """False when an activation strategy refused to start it."""

    @property
    def state(self) -> State:
        return decode_state(self._encoded)

    def keep(self, outcome: Outcome, graph: Graph) -> None:
        self._encoded = encode_state(outcome.state)
        self.records += outcome.records
        self.graphs += [graph] * len(outcome.records)

    @property
    def status(self) -> str:
        return self.state.status.value

    @property
    def sub_status(self) -> str:
        return self.state.sub_status.value

    @property
    def bookmarks(self) -> list[Bookmark]:
        return list(self.state.bookmarks)

    @property
    def incidents(self) -> list[Incident]:
        return list(self.state.incidents)

    @property
    def output(self) -> dict[str, Any]:
        return dict(read_payload(self.state.output))

    @property
    def variables(self) -> dict[str, Any]:
        """The workflow's variables by name, as they were kept."""
        root = self.state.frames[0]
        names = {v.id: v.name for v in self.graphs[-1].definition.variables} | dict(root.dynamic)
        return {names.get(i, i): read_payload(value) for i, value in root.variables.items()}

    def executed(self) -> list[str]:
        """Ids of activities in the order they began, invisible workflow nodes left out."""
        return [
            graph.nodes[record.node].id
            for record, graph in zip(self.records, self.graphs, strict=True)
            if record.event == "Started" and graph.nodes[record.node].type_name != WORKFLOW
        ]

    def activity_records(self) -> list[ActivityRecord]:
        """What became of each execution, in the order in which they began."""
        return fold_records(zip(self.records, self.graphs, strict=True), self.state)

    def activity_status(self, activity_id: str) -> str | None:
        """The status of an activity, of the last time it was executed."""
        found = [r.status.value for r in self.activity_records() if r.activity_id == activity_id]
        return found[-1] if found else None

    def export(self) -> bytes:
        """The state as it would be stored."""
        return self._encoded

    def restore(self, exported: bytes) -> None:
        """Go on from a state that was exported. Raises StateUnreadable."""
        self._encoded = encode_state(decode_state(exported))
