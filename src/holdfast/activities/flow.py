"""Activities made for flowcharts: they decide by their outcomes which connections are followed."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from holdfast.activities.control import Case, matching, read_cases
from holdfast.authoring import Activity, ActivityContext, Field, Input, Signal, Source, activity
from holdfast.codec import decode, is_list, is_object
from holdfast.errors import Invalid


@activity(type="Elsa.FlowDecision", category="Branching", display_name="Decision", outcomes=("True", "False"))
class FlowDecision(Activity):
    """Takes the path `True` or the path `False`."""

    condition: Input[Annotated[bool, Field("What decides.")]] = False

    def execute(self, context: ActivityContext) -> None:
        context.complete("True" if self.condition else "False")


def _labels(json: Any) -> list[str]:
    cases = json.get("cases")
    labels = [str(case.get("label")) for case in cases if is_object(case)] if is_list(cases) else []
    return [*labels, "Default"]


@activity(type="Elsa.FlowSwitch", category="Branching", display_name="Switch (flow)", outcomes=("Default",))
class FlowSwitch(Activity):
    """Takes the paths whose conditions are true, or the path `Default`."""

    outcomes_of = staticmethod(_labels)
    cases: tuple[Case, ...]
    mode: Input[Literal["MatchFirst", "MatchAny"]] = "MatchFirst"

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        return {"cases": read_cases(source)}

    def execute(self, context: ActivityContext) -> None:
        labels = [case.label for case in matching(context, self.cases, self.mode)]
        context.complete(*labels or ("Default",))


def literal_texts(json: Any, name: str) -> list[str]:
    """The texts of a list input, where it is written down rather than computed."""
    try:
        value = json[name]["expression"]["value"]
        items = decode(value) if isinstance(value, str) else value
    except (KeyError, TypeError, Invalid):
        return []
    return [item for item in items if isinstance(item, str)] if is_list(items) else []


def _branches(json: Any) -> list[str]:
    return literal_texts(json, "branches") or ["Done"]


@activity(type="Elsa.FlowFork", category="Branching", display_name="Fork (flow)", outcomes=())
class FlowFork(Activity):
    """Takes all of its paths."""

    outcomes_of = staticmethod(_branches)
    branches: Input[Annotated[list[str] | None, Field("The paths.", hint="dynamic-outcomes")]] = None

    def execute(self, context: ActivityContext) -> None:
        context.complete(*self.branches or ("Done",))


class JoinReached(Signal):
    """A join executes: the flowchart cancels what is still open on the way to it."""

    __slots__ = ("activity_id",)

    def __init__(self, activity_id: str) -> None:
        super().__init__()
        self.activity_id = activity_id


@activity(type="Elsa.FlowJoin", category="Branching", display_name="Join")
class FlowJoin(Activity):
    """Brings paths together. The flowchart around it does the joining."""

    mode: Input[
        Annotated[
            Literal["WaitAny", "WaitAll", "WaitAllActive"],
            Field(
                "Whether to go on with the first path, with all, or with all that are taken.",
                type_name="FlowJoinMode",
            ),
        ]
    ] = "WaitAny"

    def execute(self, context: ActivityContext) -> None:
        # A branch that was only queued when the join was decided may have begun to wait meanwhile.
        context.signal(JoinReached(context.activity_id))
