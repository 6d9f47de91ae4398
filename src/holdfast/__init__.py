"""Holdfast: durable workflows. What is in `__all__` is public and follows semantic versioning.

Names load on first use, so that `import holdfast` is quick whatever the package grows to contain.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast.application import Holdfast
    from holdfast.authoring import (
        Activity,
        ActivityContext,
        Completed,
        Fault,
        Field,
        Input,
        Output,
        Port,
        Ports,
        Property,
        Signal,
        TriggerContext,
        activity,
    )
    from holdfast.bookmark import Bookmark, Stimulus
    from holdfast.clock import Clock, Ids
    from holdfast.definitions.builder import (
        Workflow,
        case,
        choice,
        decision,
        flowchart,
        for_,
        for_each,
        fork,
        if_,
        js,
        liquid,
        parallel,
        place,
        plain,
        python,
        saga,
        sequence,
        switch,
        try_,
        variable,
        while_,
    )
    from holdfast.definitions.document import Definition, load_definition
    from holdfast.errors import Conflict, Denied, HoldfastError, Invalid, NotFound, Unavailable
    from holdfast.machines import (
        Again,
        Cancel,
        GiveUp,
        Machine,
        Options,
        Pause,
        Retry,
        Run,
        RunState,
        Skip,
    )
    from holdfast.runtime.lifecycle import EventType, LifecycleEvent
    from holdfast.runtime.listeners import EventStream
    from holdfast.runtime.run_callbacks import Answer
    from holdfast.runtime.runs import RunEnded, RunInProgress, Runs

_HOMES = {
    "holdfast.application": "Holdfast",
    "holdfast.authoring": (
        "Activity ActivityContext Completed Fault Field Input Output Port Ports Property Signal"
        " TriggerContext activity"
    ),
    "holdfast.bookmark": "Bookmark Stimulus",
    "holdfast.clock": "Clock Ids",
    "holdfast.definitions.builder": (
        "Workflow case choice decision flowchart for_ for_each fork if_ js liquid parallel place"
        " plain python saga sequence switch try_ variable while_"
    ),
    "holdfast.definitions.document": "Definition load_definition",
    "holdfast.errors": "Conflict Denied HoldfastError Invalid NotFound Unavailable",
    "holdfast.runtime.lifecycle": "EventType LifecycleEvent",
    "holdfast.runtime.listeners": "EventStream",
    "holdfast.machines": "Again Cancel GiveUp Machine Options Pause Retry Run RunState Skip",
    "holdfast.runtime.run_callbacks": "Answer",
    "holdfast.runtime.runs": "RunEnded RunInProgress Runs",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Activity",
    "ActivityContext",
    "Again",
    "Answer",
    "Bookmark",
    "Cancel",
    "Clock",
    "Completed",
    "Conflict",
    "Definition",
    "Denied",
    "EventStream",
    "EventType",
    "Fault",
    "Field",
    "GiveUp",
    "Holdfast",
    "HoldfastError",
    "Ids",
    "Input",
    "Invalid",
    "LifecycleEvent",
    "Machine",
    "NotFound",
    "Options",
    "Output",
    "Pause",
    "Port",
    "Ports",
    "Property",
    "Retry",
    "Run",
    "RunEnded",
    "RunInProgress",
    "RunState",
    "Runs",
    "Signal",
    "Skip",
    "Stimulus",
    "TriggerContext",
    "Unavailable",
    "Workflow",
    "activity",
    "case",
    "choice",
    "decision",
    "flowchart",
    "for_",
    "for_each",
    "fork",
    "if_",
    "js",
    "liquid",
    "load_definition",
    "parallel",
    "place",
    "plain",
    "python",
    "saga",
    "sequence",
    "switch",
    "try_",
    "variable",
    "while_",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found
