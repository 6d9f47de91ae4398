"""Loops, and the way out of them.

Each iteration runs the body as a new execution with variables of its own. A loop stops the break
signal of its body and completes when that body has ended.
"""

from collections.abc import Iterable
from typing import Annotated, Any, cast

from holdfast.authoring import (
    Activity,
    ActivityContext,
    BreakLoop,
    CompleteComposite,
    Completed,
    Fault,
    Field,
    Input,
    Output,
    Port,
    Signal,
    activity,
)


class Loop(Activity):
    """What For, ForEach and While share: the body, and breaking out of it."""

    auto_complete = False
    body: Port

    def body_done(self, context: ActivityContext, completed: Completed) -> None:
        if "Breaking" in context.state:
            context.complete()
        else:
            self.iterate(context)

    def iterate(self, context: ActivityContext) -> None:
        """Schedule the body once more, or complete."""
        raise NotImplementedError

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        if isinstance(signal, BreakLoop):
            context.state["Breaking"] = True
            signal.stop()
        elif isinstance(signal, CompleteComposite):
            signal.cancels.add(context.execution_id)


@activity(type="Elsa.For", category="Looping")
class For(Loop):
    """Counts from one number to another, executing its body each time."""

    start: Input[Annotated[int, Field("The first value.", type_name="Int32")]] = 0
    end: Input[Annotated[int, Field("The last value.", type_name="Int32")]] = 0
    step: Input[Annotated[int, Field("Added each time; negative counts down.", type_name="Int32")]] = 1
    outer_bound_inclusive: Input[Annotated[bool, Field("Whether the end counts as well.")]] = True
    current_value: Output[int]

    def execute(self, context: ActivityContext) -> None:
        context.state["Next"] = self.start
        self.iterate(context)

    def iterate(self, context: ActivityContext) -> None:
        value: int = context.state["Next"]
        ahead = self.end - value if self.step >= 0 else value - self.end
        if self.body is None or ahead < 0 or (ahead == 0 and not self.outer_bound_inclusive):
            context.complete()
            return
        context.state["Next"] = value + self.step
        context.set_output("CurrentValue", value)
        context.schedule(self.body, self.body_done, variables={"CurrentValue": value})


@activity(type="Elsa.ForEach", category="Looping")
class ForEach(Loop):
    """Executes its body for each item, one after another."""

    items: Input[
        Annotated[list[Any] | None, Field("What to go through.", type_name="ICollection<Object>")]
    ] = None
    current_value: Output[Any]

    def execute(self, context: ActivityContext) -> None:
        if self.items is None:
            raise Fault("There are no items to go through: the input 'Items' is null.")
        context.state["Next"] = 0
        self.iterate(context)

    def iterate(self, context: ActivityContext) -> None:
        index: int = context.state["Next"]
        items = self.items or []
        if self.body is None or index >= len(items):
            context.complete()
            return
        context.state["Next"] = index + 1
        context.set_output("CurrentValue", items[index])
        context.schedule(
            self.body, self.body_done, variables={"CurrentValue": items[index], "CurrentIndex": index}
        )


@activity(type="Elsa.While", category="Looping")
class While(Loop):
    """Executes its body for as long as a condition is true."""

    condition: Input[Annotated[bool, Field("Asked before each time.", on_demand=True)]] = False

    def execute(self, context: ActivityContext) -> None:
        self.iterate(context)

    def iterate(self, context: ActivityContext) -> None:
        if self.body is None or not context.evaluate("condition"):
            context.complete()
        else:
            context.schedule(self.body, self.body_done)


@activity(type="Elsa.ParallelForEach", category="Looping")
class ParallelForEach(Activity):
    """Executes its body for all items side by side, and completes after the last."""

    auto_complete = False
    items: Input[Annotated[Any, Field("What to go through.")]] = None
    body: Port

    def execute(self, context: ActivityContext) -> None:
        items = enumerable(self.items)
        context.state["Open"] = len(items)
        if not items or self.body is None:
            context.complete()
            return
        for index, item in enumerate(items):
            context.schedule(
                self.body, self.body_done, variables={"CurrentValue": item, "CurrentIndex": index}
            )

    def body_done(self, context: ActivityContext, completed: Completed) -> None:
        context.state["Open"] -= 1
        if context.state["Open"] == 0:
            context.complete()


def enumerable(value: Any) -> list[Any]:
    """The items of something that has items. Text and objects have none, whatever they contain."""
    return list(cast("Iterable[Any]", value)) if isinstance(value, list | tuple | set) else []


@activity(type="Elsa.Break", category="Looping", is_terminal=True)
class Break(Activity):
    """Leaves the nearest loop."""

    def execute(self, context: ActivityContext) -> None:
        context.signal(BreakLoop())
