"""A drawn state machine: states with entry and exit, transitions with triggers."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from holdfast.authoring import (
    Activity,
    ActivityContext,
    Child,
    Completed,
    Field,
    Property,
    Source,
    activity,
)
from holdfast.codec import is_list, is_object, lower_keys


class DrawnState(msgspec.Struct, frozen=True):
    name: str
    entry: Child | None
    exit: Child | None


class Transition(msgspec.Struct, frozen=True):
    index: int
    begin: str
    end: str
    trigger: Child | None
    condition: Callable[[Any], Any] | None
    action: Child | None


@activity(type="Elsa.StateMachine", category="Workflows", is_container=True)
class StateMachine(Activity):
    """Moves from state to state as triggers are hit."""

    auto_complete = False
    initial_state: Property[Annotated[str | None, Field("Where it begins.")]] = None
    current_state: Property[str | None] = None
    states: Mapping[str, DrawnState]
    transitions: tuple[Transition, ...]

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        states: dict[str, DrawnState] = {}
        for index, json in _objects(source.json.get("states")):
            at = f"{source.at}.states[{index}]"
            name = str(json.get("name") or "")
            states[name] = DrawnState(
                name,
                source.child(json.get("entry"), f"{at}.entry"),
                source.child(json.get("exit"), f"{at}.exit"),
            )
        transitions: list[Transition] = []
        for index, json in _objects(source.json.get("transitions")):
            at = f"{source.at}.transitions[{index}]"
            condition = json.get("condition")
            if is_object(condition) and "expression" in condition:
                condition = condition["expression"]
            transitions.append(
                Transition(
                    index,
                    str(json.get("from") or ""),
                    str(json.get("to") or ""),
                    source.child(json.get("trigger"), f"{at}.trigger"),
                    None if condition is None else source.expression(condition, "Boolean", f"{at}.condition"),
                    source.child(json.get("action"), f"{at}.action"),
                )
            )
        return {"states": states, "transitions": tuple(transitions)}

    def execute(self, context: ActivityContext) -> None:
        start = self.current_state or self.initial_state
        if start is None or start not in self.states:
            context.complete()
            return
        self._enter(context, start)

    def _enter(self, context: ActivityContext, name: str) -> None:
        context.state["CurrentState"] = name
        context.schedule(self.states[name].entry, self.entered, tag=name)

    def entered(self, context: ActivityContext, completed: Completed) -> None:
        if completed.tag != context.state["CurrentState"]:
            return
        outbound = self._outbound(completed.tag)
        for transition in outbound:
            context.schedule(transition.trigger, self.triggered, tag=transition.index)
        if not outbound:
            context.complete()

    def _outbound(self, name: str) -> list[Transition]:
        return [t for t in self.transitions if t.begin == name and t.trigger and t.end in self.states]

    def _transition(self, completed: Completed) -> Transition:
        index: int = completed.tag
        return self.transitions[index]

    def triggered(self, context: ActivityContext, completed: Completed) -> None:
        transition = self._transition(completed)
        if transition.begin != context.state["CurrentState"] or "Leaving" in context.state:
            return
        if transition.condition is not None and not context.evaluate(transition.condition):
            context.schedule(transition.trigger, self.triggered, tag=transition.index)
            return
        competing = [t.trigger for t in self._outbound(transition.begin) if t.trigger is not None]
        context.withdraw(competing)
        context.cancel_children(competing)
        context.state["Leaving"] = True
        context.schedule(transition.action, self.acted, tag=transition.index)

    def acted(self, context: ActivityContext, completed: Completed) -> None:
        transition = self._transition(completed)
        context.schedule(self.states[transition.begin].exit, self.left, tag=transition.index)

    def left(self, context: ActivityContext, completed: Completed) -> None:
        context.state.pop("Leaving", None)
        self._enter(context, self._transition(completed).end)


def _objects(items: Any) -> list[tuple[int, dict[str, Any]]]:
    found = enumerate(items if is_list(items) else [])
    return [(index, lower_keys(item)) for index, item in found if is_object(item)]
