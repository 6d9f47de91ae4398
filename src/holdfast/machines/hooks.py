"""The machine that calls the hooks of another: one run for each call, which tries until it succeeds."""

from enum import IntEnum
from functools import lru_cache
from inspect import isawaitable
from typing import Any, Literal

import msgspec

from holdfast.machines.draft import HOOKS
from holdfast.machines.machine import Machine
from holdfast.machines.options import Options
from holdfast.machines.results import GiveUp
from holdfast.machines.run import Run
from holdfast.machines.state import decode_run
from holdfast.machines.view import run_of


class HookStatus(IntEnum):
    CALLING = 1
    CALLED = 2


class HookCall(msgspec.Struct, kw_only=True):
    """Which hook, and the run as it was when it was due. The run goes when the call has succeeded."""

    event: str
    hook: str
    run: str = ""


@lru_cache(maxsize=1_000)
def hook_machine(machine: Machine[Any, Any]) -> Machine[HookCall, HookStatus] | None:
    """None when it has no hooks."""
    if not machine.hooks:
        return None
    calls = Machine(
        f"{machine.name}{HOOKS}",
        object=HookCall,
        status=HookStatus,
        defaults=Options(pause_after=None),
        unique=False,
    )

    @calls.step(HookStatus.CALLING)
    async def call_hook(call: Run[HookCall, HookStatus]) -> Literal[HookStatus.CALLED]:
        hooks = machine.hooks.get(call.object.event, ())
        hook = next((one for one in hooks if one.__name__ == call.object.hook), None)
        if hook is None:
            raise GiveUp(f"{machine.name!r} has no hook {call.object.hook!r} for {call.object.event}.")
        result = hook(run_of(machine, decode_run(call.object.run.encode()), key=call.id))
        if isawaitable(result):
            await result
        call.object.run = ""
        return HookStatus.CALLED

    return calls
