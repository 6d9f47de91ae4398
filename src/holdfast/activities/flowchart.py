"""The flowchart: activities, connections between their outcomes, and two ways to follow them.

What a flowchart is made of is worked out once, in `flow_plan`. `Counting` follows connections by
counting visits: a path not taken is visited as well, *not followed*, so that joins know it is out of
the game. `Tokens` follows them by passing tokens, with a merge mode per activity. Counting is the
default; an instance asks for tokens by its property `Flowchart:ExecutionMode`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.activities.flow import JoinReached
from holdfast.activities.flow_counting import Counting
from holdfast.activities.flow_migration import migrate_flow
from holdfast.activities.flow_plan import FlowPlan, FlowPlans
from holdfast.activities.flow_tokens import Tokens
from holdfast.authoring import (
    Activity,
    ActivityContext,
    Canceled,
    Child,
    Completed,
    Faulted,
    Ports,
    ScheduleChild,
    Signal,
    Source,
    activity,
)
from holdfast.engine.context import Context

ERROR = "Error"
"""Connect this outcome of any activity, and its faults are followed there instead of reported."""


@activity(type="Elsa.Flowchart", category="Workflows", is_container=True)
class Flowchart(Activity):
    """Executes activities along the connections between them."""

    declares_variables = True
    auto_complete = False
    only_schedules = True
    activities: Ports
    plans: FlowPlans
    follower: Counting | Tokens | None = None
    is_following = False

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        return {"plans": FlowPlans(source.port("activities"), source.json.get("connections"))}

    def execute(self, context: ActivityContext) -> None:
        start = self.plans.start(inner(context).trigger)
        if start is None:
            context.complete()
            return
        context.state["Start"] = start.id
        context.schedule(start, self.child_done)

    def child_done(self, context: ActivityContext, completed: Completed) -> None:
        if completed.child.is_terminal:
            context.complete()
            return
        follow = self._follow(context)
        self.is_following = True
        try:
            follow.completed(completed)
        finally:
            self.is_following = False
        follow.complete_if_idle()

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        match signal:
            case Canceled():
                follow = self._follow(context)
                follow.canceled(signal)
                if not self.is_following:  # else whoever cancels is about to schedule something
                    follow.complete_if_idle()
            case Faulted():
                self._take_error_path(context, signal)
            case JoinReached():
                plan = self._plan(context)
                join = plan.find(signal.activity_id)
                if join is not None:
                    signal.stop()
                    self.is_following = True
                    try:
                        context.cancel_children(plan.ancestors(join))
                    finally:
                        self.is_following = False
            case ScheduleChild():
                if signal.child in self.activities:
                    context.schedule(signal.child, self.child_done)
                    signal.stop()
            case _:
                pass

    @classmethod
    def migrated(
        cls,
        state: dict[str, Any],
        target: Mapping[str, Any],
        open_inside: Iterable[Child],
        renamed: Mapping[str, str],
    ) -> dict[str, Any]:
        return migrate_flow(state, target["plans"], open_inside, renamed)

    def _take_error_path(self, context: ActivityContext, signal: Faulted) -> None:
        found = inner(context).own_child(signal.execution)
        if found is None:
            return
        child, execution = found
        if any(c.port == ERROR for c in self._plan(context).outbound(child)):
            signal.stop()
            context.declare({ERROR: describe_error(signal)})
            context.recover(execution, ERROR)

    def _plan(self, context: ActivityContext) -> FlowPlan:
        return self.plans.from_start(context.state["Start"])

    def _follow(self, context: ActivityContext) -> Counting | Tokens:
        """Made once per burst: what it keeps between completions is in the state."""
        if self.follower is None:
            own, plan = inner(context), self._plan(context)
            follower = Tokens if own.flowchart_mode == "TokenBased" else Counting
            self.follower = follower(own, plan, self.child_done)
        return self.follower


def inner(context: ActivityContext) -> Context:
    """The engine's own context, for containers that look deeper than most authors need to."""
    assert isinstance(context, Context)
    return context


def describe_error(signal: Faulted) -> dict[str, Any]:
    """What an error path sees of the fault."""
    child: Child = signal.child
    return {
        "message": str(signal.error) or type(signal.error).__name__,
        "code": signal.code,
        "type": type(signal.error).__name__,
        "activityId": child.id,
    }
