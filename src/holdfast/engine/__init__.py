"""Executes one burst of one instance, in memory, with no I/O of its own.

`interpreter` is the way in: one message, one burst, one outcome. `burst` is the loop and its rules,
`faults` what happens when an activity raises, `commits` when a checkpoint is due. `frame` is what one
execution of an activity is while it is open; `context` what the activity sees of it, `scope` what its
expressions see. `state` freezes a burst into a value and thaws it again; `environment` is what a host
lends to its bursts; `triggers` where a version can be started; `background` an activity outside its
burst.
"""

from holdfast.engine.burst import Burst
from holdfast.engine.environment import Environment, Limits
from holdfast.engine.faults import BurstTooLong
from holdfast.engine.interpreter import Outcome, run_burst
from holdfast.engine.state import StateUnreadable, decode_state, encode_state
from holdfast.engine.triggers import index_triggers

__all__ = [
    "Burst",
    "BurstTooLong",
    "Environment",
    "Limits",
    "Outcome",
    "StateUnreadable",
    "decode_state",
    "encode_state",
    "index_triggers",
    "run_burst",
]
