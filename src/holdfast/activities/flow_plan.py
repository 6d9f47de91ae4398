"""The plans of one flowchart, each worked out once per version and start.

What connections mean is `definitions.connections`; following them is `flow_counting` and `flow_tokens`.
"""

from typing import Any

from holdfast.authoring import Child
from holdfast.definitions.connections import Connection, FlowPlan, find_start, read_connections

__all__ = ["Connection", "FlowPlan", "FlowPlans"]


class FlowPlans:
    """The activities and connections of one flowchart, and its plans by start."""

    def __init__(self, activities: tuple[Any, ...], connections: Any) -> None:
        self._activities = activities
        self._by_id: dict[str, Any] = {}
        for child in activities:
            self._by_id.setdefault(child.id, child)
        self._ends = read_connections(connections, self._by_id)
        self._plans: dict[str, FlowPlan] = {}

    def start(self, trigger: str | None) -> Child | None:
        """Where to begin: the trigger that was hit, else where the flowchart starts by itself."""
        if trigger is not None and trigger in self._by_id:
            return self._by_id[trigger]
        return find_start(self._activities, self._ends)

    def has(self, activity_id: str) -> bool:
        return activity_id in self._by_id

    def from_start(self, start_id: str) -> FlowPlan:
        plan = self._plans.get(start_id)
        if plan is None:
            plan = self._plans[start_id] = FlowPlan(self._by_id, start_id, self._ends)
        return plan
