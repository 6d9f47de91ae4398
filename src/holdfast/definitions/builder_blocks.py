"""What gives a workflow its shape: sequences, choices, loops, paths, and what to do about faults.

Each is a function that returns one placed activity, ready to stand in another. Everything else that
happens in a workflow is put there with `place`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Unpack

from holdfast.codec import BOOLEAN, INT32, Type, find_type
from holdfast.definitions.builder_tree import (
    DONE,
    About,
    Body,
    BuilderInvalid,
    Mention,
    Path,
    Placed,
    Use,
    in_sequence,
    nested,
)
from holdfast.definitions.builder_values import (
    Value,
    VariableHandle,
    captured,
    uses_of,
    write_expression,
    write_input,
)
from holdfast.definitions.reader import Json

Variables = Iterable[VariableHandle[Any]]
SwitchMode = Literal["MatchFirst", "MatchAny"]


def sequence(*activities: Placed, variables: Variables = (), **about: Unpack[About]) -> Placed:
    """One after another."""
    return _container("Elsa.Sequence", {"activities": nested(activities, "sequence")}, variables, about)


def parallel(*activities: Placed, variables: Variables = (), **about: Unpack[About]) -> Placed:
    """Side by side, until the last has completed."""
    return _container("Elsa.Parallel", {"activities": nested(activities, "parallel")}, variables, about)


def fork(
    *branches: Placed, join: Literal["WaitAll", "WaitAny"] = "WaitAll", **about: Unpack[About]
) -> Placed:
    """Side by side, until all branches have completed, or the first."""
    return _container("Elsa.Fork", {"branches": nested(branches, "fork"), "joinMode": join}, (), about)


def flowchart(*paths: Path, variables: Variables = (), **about: Unpack[About]) -> Placed:
    """Activities along their connections, beginning with the one that is mentioned first.

    flowchart(
        start >> check,
        check["True"] >> ship >> done,
        check["False"] >> (refund, apologise) >> done,
    )
    """
    activities = list(dict.fromkeys(a for path in paths for a in path.activities()))
    links = list(dict.fromkeys(link for path in paths for link in path.links))
    led_to = {target for _, _, target in links}
    starts = [a for a in activities if a.said.get("can_start") or a.type_name == "Elsa.Start"]
    if not starts and led_to.issuperset(activities[:1]) and not led_to.issuperset(activities):
        # The engine would begin with an activity that nothing leads to.
        first = Placed("Elsa.Start", {})
        activities, links = [first, *activities], [(first, DONE, activities[0]), *links]
    connections = [
        {
            "source": {"activity": Mention(source), "port": outcome},
            "target": {"activity": Mention(target), "port": "In"},
        }
        for source, outcome, target in links
    ]
    members: Json = {"activities": activities, "connections": connections}
    return _container("Elsa.Flowchart", members, variables, about)


def if_(
    condition: Value[bool],
    *,
    then: Body | None = None,
    else_: Body | None = None,
    result: VariableHandle[bool] | None = None,
    **about: Unpack[About],
) -> Placed:
    """One of two branches."""
    members: Json = {
        "condition": write_input(condition, BOOLEAN, "if_.condition"),
        "then": in_sequence(then, "if_.then"),
        "else": in_sequence(else_, "if_.else_"),
    }
    if result is not None:
        members["result"] = captured(result, BOOLEAN.name)
    return Placed("Elsa.If", members, uses=[*uses_of(condition), *uses_of(result)], about=about)


class Case(NamedTuple):
    label: str
    condition: Value[bool]
    body: Sequence[Placed]


def case(label: str, condition: Value[bool], *body: Placed) -> Case:
    """One case of `switch`, with what to do; or of `choice`, where its label is an outcome."""
    return Case(label, condition, nested(body, f"case {label!r}"))


def switch(
    *cases: Case, default: Body | None = None, mode: SwitchMode = "MatchFirst", **about: Unpack[About]
) -> Placed:
    """The first branch whose condition is true, or all of these, or the default."""
    members: Json = {
        "cases": _cases(cases, with_bodies=True),
        "default": in_sequence(default, "switch.default"),
        "mode": write_input(mode, find_type("SwitchMode"), "switch.mode"),
    }
    return Placed("Elsa.Switch", members, uses=_uses(c.condition for c in cases), about=about)


def decision(condition: Value[bool], **about: Unpack[About]) -> Placed:
    """In a flowchart: two ways on, `True` and `False`."""
    members = {"condition": write_input(condition, BOOLEAN, "decision.condition")}
    return Placed(
        "Elsa.FlowDecision", members, outcomes=("True", "False"), uses=uses_of(condition), about=about
    )


def choice(*cases: Case, mode: SwitchMode = "MatchFirst", **about: Unpack[About]) -> Placed:
    """In a flowchart: a way on for each case, by its label, and `Default`."""
    for one in cases:
        if one.body:
            raise BuilderInvalid(
                f"Case {one.label!r} has activities. In a flowchart, connect its outcome to them."
            )
    members = {
        "cases": _cases(cases, with_bodies=False),
        "mode": write_input(mode, find_type("SwitchMode"), "choice.mode"),
    }
    outcomes = (*(c.label for c in cases), "Default")
    uses = _uses(c.condition for c in cases)
    return Placed("Elsa.FlowSwitch", members, outcomes=outcomes, uses=uses, about=about)


def while_(condition: Value[bool], *body: Placed, **about: Unpack[About]) -> Placed:
    """Again and again, for as long as the condition is true."""
    return _loop("While", {"condition": (condition, BOOLEAN)}, body, about)


def for_(
    start: Value[int],
    end: Value[int],
    *body: Placed,
    step: Value[int] = 1,
    inclusive: Value[bool] = True,
    **about: Unpack[About],
) -> Placed:
    """From one number to another. The body has the variable `CurrentValue`."""
    values: dict[str, tuple[object, Type | None]] = {
        "start": (start, INT32),
        "end": (end, INT32),
        "step": (step, INT32),
        "outerBoundInclusive": (inclusive, BOOLEAN),
    }
    return _loop("For", values, body, about)


def for_each(
    items: Value[Sequence[Any]], *body: Placed, at_once: bool = False, **about: Unpack[About]
) -> Placed:
    """For each item, one after another or all at once. The body has `CurrentValue` and `CurrentIndex`."""
    if at_once:
        return _loop("ParallelForEach", {"items": (items, find_type("Object"))}, body, about)
    return _loop("ForEach", {"items": (items, find_type("ICollection<Object>"))}, body, about)


def try_(
    *body: Placed,
    catch: Body | None = None,
    finally_: Body | None = None,
    codes: Sequence[str] = (),
    **about: Unpack[About],
) -> Placed:
    """The body; should it fault, `catch` instead, with the variable `Error`; `finally_` in any case."""
    members: Json = {
        "body": in_sequence(body, "try_"),
        "catch": in_sequence(catch, "try_.catch"),
        "finally": in_sequence(finally_, "try_.finally_"),
        "codes": write_input(list(codes), find_type("String[]"), "try_.codes"),
    }
    return Placed("Holdfast.Try", members, outcomes=(DONE, "Caught"), about=about)


def saga(
    *steps: Placed | tuple[Placed, Placed],
    rethrow: bool = False,
    variables: Variables = (),
    **about: Unpack[About],
) -> Placed:
    """In order; should one fault, what was done is undone: `saga((book, cancel), (pay, refund), ship)`."""
    written: list[Json] = []
    for step in steps:
        action, *undo = nested((step,) if isinstance(step, Placed) else step, "saga")
        written.append({"action": action, "undo": undo[0] if undo else None})
    members: Json = {"steps": written, "rethrow": rethrow}
    return _container("Holdfast.Saga", members, variables, about, outcomes=(DONE, "Compensated"))


def _container(
    type_name: str, members: Json, variables: Variables, about: About, outcomes: tuple[str, ...] = (DONE,)
) -> Placed:
    declared = list(variables)
    if declared:
        members["variables"] = [handle.declaration(in_workflow=False) for handle in declared]
    declares = [handle.declared for handle in declared]
    return Placed(type_name, members, outcomes=outcomes, declares=declares, about=about)


def _loop(
    short_type: str, values: dict[str, tuple[object, Type | None]], body: Sequence[Placed], about: About
) -> Placed:
    members: Json = {
        name: write_input(value, kind, f"{short_type}.{name}") for name, (value, kind) in values.items()
    }
    members["body"] = in_sequence(body, short_type) if body else None
    return Placed(f"Elsa.{short_type}", members, uses=_uses(v for v, _ in values.values()), about=about)


def _cases(cases: Iterable[Case], *, with_bodies: bool) -> list[Json]:
    return [
        {
            "label": one.label,
            "condition": write_expression(one.condition, BOOLEAN, f"case {one.label!r}"),
            **({"activity": in_sequence(one.body, one.label) if one.body else None} if with_bodies else {}),
        }
        for one in cases
    ]


def _uses(values: Iterable[object]) -> list[Use]:
    return [use for value in values for use in uses_of(value)]
