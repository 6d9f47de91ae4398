"""What a flowchart has counted, carried over to another version of it.

Ids may be called otherwise there. A connection that is new behind an activity that was left already was
not followed, and so was nothing that lies only behind such connections: else a join would wait for it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.activities.flow_plan import FlowPlan, FlowPlans
from holdfast.authoring import Child, Fault


def migrate_flow(
    state: dict[str, Any], plans: FlowPlans, open_inside: Iterable[Child], renamed: Mapping[str, str]
) -> dict[str, Any]:
    """The state of a running flowchart, as one of the version with these plans."""

    def name(activity_id: str) -> str:
        return renamed.get(activity_id, activity_id)

    start = name(state["Start"])
    if not plans.has(start):
        raise Fault(f"The flowchart started at {start!r}, and the other version has no such activity in it.")
    moved = {**state, "Start": start}
    if "Visits" in state:
        moved["Visits"] = {name(one): count for one, count in state["Visits"].items()}
        moved["Connections"] = {
            _renamed(key, renamed): counter for key, counter in state.get("Connections", {}).items()
        }
        _pass_by(plans.from_start(start), moved, {child.id for child in open_inside})
    if "Tokens" in state:
        moved["Tokens"] = [
            {**token, "from": name(token["from"]), "to": name(token["to"])} for token in state["Tokens"]
        ]
    return moved


def _renamed(key: str, renamed: Mapping[str, str]) -> str:
    rest, _, target = key.rpartition(">")
    source, _, port = rest.rpartition(":")
    return f"{renamed.get(source, source)}:{port}>{renamed.get(target, target)}"


def _pass_by(plan: FlowPlan, state: dict[str, Any], is_open: set[str]) -> None:
    """Take as not followed what is new and lies behind what was left already."""
    visits: dict[str, int] = state["Visits"]
    counters: dict[str, list[int]] = state["Connections"]
    changes = True
    while changes:
        changes = False
        for target, inbound in plan.forward.items():
            for connection in inbound:
                left = visits.get(connection.source.id, 0)
                if left and connection.key not in counters:
                    counters[connection.key] = [left, 0]
                    changes = True
            states = [counters.get(connection.key, (0, 0)) for connection in inbound]
            is_new = not visits.get(target.id) and target.id not in is_open
            if is_new and states and all(count and not followed for count, followed in states):
                visits[target.id] = 1
                changes = True
