"""What authors implement: activities, and the context an activity sees while it executes.

`activity` turns a function or a class into an activity type; `Input`, `Output`, `Port`, `Ports` and
`Property` say what a class's members are; `ActivityContext` is all an activity can ask for. The
engine implements the context and calls activities; it knows nothing about any of them.
"""

from holdfast.authoring.activity import Activity, activity, activity_type
from holdfast.authoring.context import (
    ActivityContext,
    BreakLoop,
    Canceled,
    Child,
    Children,
    ChildResult,
    CompleteComposite,
    Completed,
    Console,
    Fault,
    Faulted,
    ScheduleChild,
    Signal,
    Source,
    TriggerContext,
)
from holdfast.authoring.descriptor import (
    ActivityDescriptor,
    ActivityType,
    InputDescriptor,
    OutputDescriptor,
    PortDescriptor,
)
from holdfast.authoring.field import Field, Input, Output, Port, Ports, Property
from holdfast.authoring.registry import ActivityTypes, DuplicateActivityType

__all__ = [
    "Activity",
    "ActivityContext",
    "ActivityDescriptor",
    "ActivityType",
    "ActivityTypes",
    "BreakLoop",
    "Canceled",
    "Child",
    "ChildResult",
    "Children",
    "CompleteComposite",
    "Completed",
    "Console",
    "DuplicateActivityType",
    "Fault",
    "Faulted",
    "Field",
    "Input",
    "InputDescriptor",
    "Output",
    "OutputDescriptor",
    "Port",
    "PortDescriptor",
    "Ports",
    "Property",
    "ScheduleChild",
    "Signal",
    "Source",
    "TriggerContext",
    "activity",
    "activity_type",
]
