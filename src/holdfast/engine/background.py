"""Executing one activity outside its burst.

The burst left a bookmark and the effect `DoInBackground`. Whoever carries it out calls `do_in_background`
with the state as it was kept, and sends what it returns back to that bookmark.
"""

from typing import Any

from holdfast.bookmark import Bookmark
from holdfast.definitions.graph import Graph
from holdfast.engine.context import Context
from holdfast.engine.environment import Environment
from holdfast.engine.state import thaw
from holdfast.errors import Invalid, NotFound
from holdfast.instance import State
from holdfast.message import DoInBackground, Resume

OUTCOME = "BackgroundOutcome"
"""The input under which the outcome comes back to the burst."""


async def do_in_background(
    graph: Graph, state: State, effect: DoInBackground, environment: Environment
) -> Resume:
    """Execute the activity and say how it went, as the message that goes on with the instance.

    Raises NotFound when its execution is over, because somebody cancelled it.
    """
    burst = thaw(state, graph, environment)
    frame = burst.frames.get(effect.execution)
    if frame is None:
        raise NotFound(
            f"Execution {effect.execution} of instance {state.id} is over; nobody waits for its outcome."
        )
    context = BackgroundContext(burst, frame)
    try:
        pending = burst.activity(frame).execute(context)
        if pending is not None:
            await pending
    except Exception as error:  # an activity may raise anything; it becomes a fault
        context.captured = {
            "fault": str(error) or type(error).__name__,
            "code": getattr(error, "fault_code", None)
            or getattr(error, "code", None)
            or type(error).__name__,
        }
    return Resume(bookmark_id=effect.bookmark_id, input={OUTCOME: context.captured})


class BackgroundContext(Context):
    """A context that writes nothing down but what to write down later."""

    __slots__ = ("captured",)

    def __init__(self, burst: Any, frame: Any) -> None:
        super().__init__(burst, frame)
        self.captured: dict[str, Any] = {}

    def set_output(self, name: str, value: Any) -> None:
        self.captured.setdefault("outputs", {})[name] = value

    def log(self, name: str, value: Any) -> None:
        self.captured.setdefault("log", {})[name] = value

    def complete(self, *outcomes: str) -> None:
        self.captured["outcomes"] = list(outcomes) or None

    def schedule(self, *_: Any, **__: Any) -> None:
        raise Invalid("An activity that executes in the background cannot schedule others.")

    def wait(self, *_: Any, **__: Any) -> Bookmark:
        raise Invalid("An activity that executes in the background cannot wait; let another one wait.")
