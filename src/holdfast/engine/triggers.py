"""Where a version can be started: its triggers, with their inputs evaluated without an instance."""

from datetime import datetime

from holdfast.authoring import Activity
from holdfast.bookmark import Trigger, key_of
from holdfast.definitions.graph import Graph
from holdfast.engine.burst import Burst
from holdfast.engine.environment import Environment
from holdfast.engine.frame import Frame
from holdfast.errors import Invalid


class TriggerInvalid(Invalid):
    """A trigger cannot be indexed: its inputs cannot be evaluated without an instance."""

    code = "trigger.invalid"


class _Publishing:
    __slots__ = ("definition_id", "now")

    def __init__(self, definition_id: str, now: datetime) -> None:
        self.definition_id = definition_id
        self.now = now


def index_triggers(graph: Graph, environment: Environment) -> list[Trigger]:
    """The triggers of a version, in the order of its activities. Variables have their defaults."""
    definition = graph.definition
    burst = Burst(graph, environment, "")
    context = _Publishing(definition.definition_id, environment.clock.now())
    found: list[Trigger] = []
    for node in graph.nodes:
        if not node.can_start or node.type.descriptor.kind != "Trigger":
            continue
        chain = [node]
        while chain[-1].parent is not None:
            chain.append(chain[-1].parent)
        frame: Frame | None = None
        for outer in reversed(chain):
            frame = Frame(outer, frame)
            if outer.declares_variables:
                frame.memory = {i: v.fresh() for i, v in outer.variables.items()}
        assert frame is not None
        try:
            activity: Activity = burst.activity(frame)
            payloads = list(activity.triggers(context))
        except Invalid as problem:
            raise TriggerInvalid(f"Activity {node.id} ({node.type_name}): {problem}") from problem
        found += [
            Trigger(
                definition_id=definition.definition_id,
                version_id=definition.id,
                activity_id=node.id,
                name=node.type_name,
                key=key_of(node.type_name, payload),
                payload=payload,
            )
            for payload in payloads
        ]
    return found
