"""What to do when something goes wrong: try and catch, and undoing what was done.

Both hear the fault signal of what they contain and stop it, so that no incident is recorded: the
fault has been dealt with.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from holdfast.activities.flowchart import describe_error
from holdfast.authoring import (
    Activity,
    ActivityContext,
    Child,
    Completed,
    Fault,
    Faulted,
    Field,
    Input,
    Port,
    Property,
    Signal,
    Source,
    activity,
)
from holdfast.codec import is_list, is_object, lower_keys


@activity(type="Holdfast.Try", category="Error handling", outcomes=("Done", "Caught"))
class Try(Activity):
    """Executes its body; when something in it faults, cancels the rest of it and executes `catch`.

    `finally` follows in both cases. What `catch` executes sees the fault as the variable `Error`.
    """

    auto_complete = False
    codes: Input[
        Annotated[list[str], Field("The fault codes to catch; none means all.", hint="multitext")]
    ] = []  # noqa: RUF012  defaults are copied for each execution
    body: Port
    catch: Port
    finally_: Port

    def execute(self, context: ActivityContext) -> None:
        context.state["Phase"] = "body"
        context.schedule(self.body, self.body_done)

    def body_done(self, context: ActivityContext, completed: Completed) -> None:
        self._finally(context, "Done")

    def catch_done(self, context: ActivityContext, completed: Completed) -> None:
        self._finally(context, "Caught")

    def _finally(self, context: ActivityContext, outcome: str) -> None:
        context.state["Phase"] = "finally"
        context.schedule(self.finally_, self.finally_done, tag=outcome)

    def finally_done(self, context: ActivityContext, completed: Completed) -> None:
        context.complete(completed.tag)

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        if not isinstance(signal, Faulted) or context.state.get("Phase") != "body":
            return
        if self.codes and signal.code not in self.codes:
            return
        signal.stop()
        context.state["Phase"] = "catch"
        context.cancel_children()
        context.schedule(self.catch, self.catch_done, variables={"Error": describe_error(signal)})


class SagaStep(msgspec.Struct, frozen=True):
    """Something to do, and how to undo it."""

    action: Child | None
    undo: Child | None


@activity(
    type="Holdfast.Saga", category="Error handling", outcomes=("Done", "Compensated"), is_container=True
)
class Saga(Activity):
    """Executes steps in order; when one faults, undoes those that had completed, last one first.

    `steps` is a list of `{"action": activity, "undo": activity}`. What undoes a step sees the fault as
    the variable `Error`. With `rethrow` the saga itself faults once everything is undone.
    """

    declares_variables = True
    auto_complete = False
    rethrow: Property[bool] = False
    steps: tuple[SagaStep, ...]

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        items = source.json.get("steps")
        steps: list[SagaStep] = []
        for index, item in enumerate(items if is_list(items) else []):
            json = lower_keys(item) if is_object(item) else {}
            at = f"{source.at}.steps[{index}]"
            steps.append(
                SagaStep(
                    source.child(json.get("action"), f"{at}.action"),
                    source.child(json.get("undo"), f"{at}.undo"),
                )
            )
        return {"steps": tuple(steps)}

    def execute(self, context: ActivityContext) -> None:
        self._go_on(context, 0)

    def _go_on(self, context: ActivityContext, index: int) -> None:
        context.state["Done"] = index
        if index == len(self.steps):
            context.complete("Done")
        else:
            context.schedule(self.steps[index].action, self.step_done, tag=index)

    def step_done(self, context: ActivityContext, completed: Completed) -> None:
        self._go_on(context, completed.tag + 1)

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        # A fault while undoing is an incident: a person must see what could not be undone.
        if isinstance(signal, Faulted) and "Error" not in context.state:
            signal.stop()
            context.state["Error"] = describe_error(signal)
            context.cancel_children()
            self._undo(context, context.state["Done"] - 1)

    def _undo(self, context: ActivityContext, index: int) -> None:
        error: dict[str, Any] = context.state["Error"]
        if index < 0:
            if self.rethrow:
                context.fault(Fault(error["message"], fault_code=error["code"]))
            else:
                context.complete("Compensated")
        else:
            context.schedule(self.steps[index].undo, self.undone, tag=index, variables={"Error": error})

    def undone(self, context: ActivityContext, completed: Completed) -> None:
        self._undo(context, completed.tag - 1)
