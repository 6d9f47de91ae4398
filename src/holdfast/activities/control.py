"""Containers that run their children in order or side by side, and the simple choices."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from holdfast.authoring import (
    Activity,
    ActivityContext,
    BreakLoop,
    Child,
    Completed,
    Fault,
    Field,
    Input,
    Output,
    Port,
    Ports,
    Property,
    ScheduleChild,
    Signal,
    Source,
    activity,
)
from holdfast.codec import is_list, is_object, lower_keys
from holdfast.engine.context import Context


@activity(type="Elsa.Sequence", category="Workflows", is_container=True)
class Sequence(Activity):
    """Executes its activities one after another."""

    declares_variables = True
    auto_complete = False
    only_schedules = True
    activities: Ports

    def execute(self, context: ActivityContext) -> None:
        if self.activities:
            context.state["Next"] = 1
            context.schedule(self.activities[0], self.child_done)
        else:
            context.complete()

    def child_done(self, context: ActivityContext, completed: Completed) -> None:
        state = context.state
        position: int = state["Next"]
        if position >= len(self.activities) or completed.child.is_terminal or "Breaking" in state:
            context.complete()
            return
        state["Next"] = position + 1
        context.schedule(self.activities[position], self.child_done)

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        if isinstance(signal, BreakLoop):
            context.state["Breaking"] = True
        elif isinstance(signal, ScheduleChild) and signal.child in self.activities:
            assert isinstance(context, Context)
            if not context.is_idle():
                raise Fault("A sequence executes one activity at a time. Cancel the one it executes first.")
            context.state["Next"] = self.activities.index(signal.child) + 1
            context.schedule(signal.child, self.child_done)
            signal.stop()

    @classmethod
    def migrated(
        cls,
        state: dict[str, Any],
        target: Mapping[str, Any],
        open_inside: Iterable[Child],
        renamed: Mapping[str, str],
    ) -> dict[str, Any]:
        """Where it stands is where the activity it executes stands now."""
        for child in open_inside:
            state["Next"] = target["activities"].index(child) + 1
        return state


@activity(type="Elsa.Parallel", category="Workflows", is_container=True)
class Parallel(Activity):
    """Executes its activities side by side, and completes after the last."""

    declares_variables = True
    auto_complete = False
    only_schedules = True
    activities: Ports

    def execute(self, context: ActivityContext) -> None:
        context.state["Open"] = len(self.activities)
        for child in self.activities:
            context.schedule(child, self.child_done)
        if not self.activities:
            context.complete()

    def child_done(self, context: ActivityContext, completed: Completed) -> None:
        context.state["Open"] -= 1
        if context.state["Open"] == 0:
            context.complete()

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        if isinstance(signal, ScheduleChild) and signal.child in self.activities:
            context.state["Open"] += 1
            context.schedule(signal.child, self.child_done)
            signal.stop()


@activity(type="Elsa.Fork", category="Branching", is_container=True)
class Fork(Activity):
    """Executes its branches side by side, and joins them: all of them, or the first."""

    auto_complete = False
    branches: Ports
    join_mode: Property[Literal["WaitAll", "WaitAny"]] = "WaitAll"

    def execute(self, context: ActivityContext) -> None:
        context.state["Open"] = len(self.branches)
        for branch in self.branches:
            context.schedule(branch, self.branch_done)
        if not self.branches:
            context.complete()

    def branch_done(self, context: ActivityContext, completed: Completed) -> None:
        state = context.state
        state["Open"] -= 1
        if state["Open"] == 0 or self.join_mode == "WaitAny" or "Breaking" in state:
            context.complete()

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        if isinstance(signal, BreakLoop):
            context.state["Breaking"] = True
        elif isinstance(signal, ScheduleChild) and signal.child in self.branches:
            context.state["Open"] += 1
            context.schedule(signal.child, self.branch_done)
            signal.stop()


@activity(type="Elsa.FlowNode", category="Workflows", display_name="Container", is_container=True)
class Container(Activity):
    """Executes its body."""

    body: Port

    def execute(self, context: ActivityContext) -> None:
        context.schedule(self.body)


@activity(type="Elsa.If", category="Branching")
class If(Activity):
    """Executes one of two branches."""

    condition: Input[Annotated[bool, Field("What decides.")]] = False
    then: Port
    else_: Port
    result: Output[bool]

    def execute(self, context: ActivityContext) -> None:
        context.set_output("Result", self.condition)
        context.schedule(self.then if self.condition else self.else_, self.branch_done)

    def branch_done(self, context: ActivityContext, completed: Completed) -> None:
        context.complete()


class Case(msgspec.Struct, frozen=True):
    """One case of a Switch or FlowSwitch."""

    label: str
    condition: Callable[[Any], Any]
    child: Child | None = None


def read_cases(source: Source) -> tuple[Case, ...]:
    """The `cases` of a Switch or FlowSwitch; a condition is a bare expression, not an input."""
    items = source.json.get("cases")
    cases: list[Case] = []
    for index, item in enumerate(items if is_list(items) else []):
        if is_object(item):
            members = lower_keys(item)
            at = f"{source.at}.cases[{index}]"
            cases.append(
                Case(
                    label=str(members.get("label") or ""),
                    condition=source.expression(members.get("condition"), "Boolean", f"{at}.condition"),
                    child=source.child(members.get("activity"), f"{at}.activity"),
                )
            )
    return tuple(cases)


def matching(context: ActivityContext, cases: tuple[Case, ...], mode: str) -> list[Case]:
    """Every condition is evaluated, in order, whether or not an earlier one was true."""
    matched = [case for case in cases if context.evaluate(case.condition)]
    return matched[:1] if mode == "MatchFirst" else matched


@activity(type="Elsa.Switch", category="Branching", is_container=True)
class Switch(Activity):
    """Executes the branches whose conditions are true, or the default branch."""

    auto_complete = False
    cases: tuple[Case, ...]
    mode: Input[Literal["MatchFirst", "MatchAny"]] = "MatchFirst"
    default: Port

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        return {"cases": read_cases(source)}

    def execute(self, context: ActivityContext) -> None:
        matched = matching(context, self.cases, self.mode)
        chosen = [case.child for case in matched] if matched else [self.default]
        scheduled = [child for child in chosen if child is not None]
        context.state["Open"] = len(scheduled)
        for child in scheduled:
            context.schedule(child, self.branch_done)
        if not scheduled:
            context.complete()

    def branch_done(self, context: ActivityContext, completed: Completed) -> None:
        context.state["Open"] -= 1
        if context.state["Open"] == 0:
            context.complete()


@activity(type="Elsa.Start", category="Flow", is_start=True)
class Start(Activity):
    """Marks where a flowchart begins."""

    def execute(self, context: ActivityContext) -> None:
        """Nothing to do."""


@activity(type="Elsa.End", category="Flow", is_terminal=True)
class End(Activity):
    """Ends the flowchart or sequence around it."""

    def execute(self, context: ActivityContext) -> None:
        """Being terminal is all it does."""


@activity(type="Elsa.Finish", category="Primitives", is_terminal=True)
class Finish(Activity):
    """Ends the whole instance as finished."""

    def execute(self, context: ActivityContext) -> None:
        context.finish()
