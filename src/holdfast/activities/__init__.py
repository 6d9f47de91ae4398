"""The activities that come with Holdfast, by subject.

Type names, inputs and behaviour are Elsa's where Elsa has the activity; what is ours alone is named
`Holdfast.…`. They are written with nothing but `authoring`, like anybody's, except where a container
must look deeper into its burst. `BUILT_IN` lists them all.
"""

from typing import Any

from holdfast.activities.children import BulkDispatchWorkflows, DispatchWorkflow, ExecuteWorkflow
from holdfast.activities.code import RunCSharp, RunJavaScript, RunPython
from holdfast.activities.composites import Complete, SetOutput, Workflow
from holdfast.activities.control import Container, End, Finish, Fork, If, Parallel, Sequence, Start, Switch
from holdfast.activities.data import (
    Correlate,
    NotFoundActivity,
    RaiseFault,
    ReadLine,
    SetName,
    SetVariable,
    WriteLine,
)
from holdfast.activities.events import Event, PublishEvent, RunTask
from holdfast.activities.flow import FlowDecision, FlowFork, FlowJoin, FlowSwitch
from holdfast.activities.flowchart import Flowchart
from holdfast.activities.loops import Break, For, ForEach, ParallelForEach, While
from holdfast.activities.scopes import Saga, Try
from holdfast.activities.state_machine import StateMachine
from holdfast.activities.timers import Cron, Delay, StartAt, Timer

BUILT_IN: tuple[Any, ...] = (
    BulkDispatchWorkflows,
    DispatchWorkflow,
    ExecuteWorkflow,
    RunCSharp,
    RunJavaScript,
    RunPython,
    Complete,
    SetOutput,
    Workflow,
    Container,
    End,
    Finish,
    Fork,
    If,
    Parallel,
    Sequence,
    Start,
    Switch,
    Correlate,
    NotFoundActivity,
    RaiseFault,
    ReadLine,
    SetName,
    SetVariable,
    WriteLine,
    Event,
    PublishEvent,
    RunTask,
    FlowDecision,
    FlowFork,
    FlowJoin,
    FlowSwitch,
    Flowchart,
    Break,
    For,
    ForEach,
    ParallelForEach,
    While,
    Saga,
    Try,
    StateMachine,
    Cron,
    Delay,
    StartAt,
    Timer,
)

__all__ = [
    "BUILT_IN",
    "Break",
    "BulkDispatchWorkflows",
    "Complete",
    "Container",
    "Correlate",
    "Cron",
    "Delay",
    "DispatchWorkflow",
    "End",
    "Event",
    "ExecuteWorkflow",
    "Finish",
    "FlowDecision",
    "FlowFork",
    "FlowJoin",
    "FlowSwitch",
    "Flowchart",
    "For",
    "ForEach",
    "Fork",
    "If",
    "NotFoundActivity",
    "Parallel",
    "ParallelForEach",
    "PublishEvent",
    "RaiseFault",
    "ReadLine",
    "RunCSharp",
    "RunJavaScript",
    "RunPython",
    "RunTask",
    "Saga",
    "Sequence",
    "SetName",
    "SetOutput",
    "SetVariable",
    "Start",
    "StartAt",
    "StateMachine",
    "Switch",
    "Timer",
    "Try",
    "While",
    "Workflow",
    "WriteLine",
]
