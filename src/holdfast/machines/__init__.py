"""Typed status machines: workflows as Python code, one function for each status.

`machine` is what authors write with, `built` what a machine comes to when it is checked, `burst` and
`interpreter` how a run of it is driven, `state` how a run is kept. Nothing here knows a store; what the
runtime asks of a machine is `runtime.coded`.
"""

from holdfast.machines.handler import MachineInvalid
from holdfast.machines.machine import Machine
from holdfast.machines.options import Options
from holdfast.machines.results import Again, Cancel, GiveUp, Pause, Retry, Skip
from holdfast.machines.run import Run, RunState

__all__ = [
    "Again",
    "Cancel",
    "GiveUp",
    "Machine",
    "MachineInvalid",
    "Options",
    "Pause",
    "Retry",
    "Run",
    "RunState",
    "Skip",
]
