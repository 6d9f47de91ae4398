"""A machine, as the runtime drives it: the Program of typed code."""

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from inspect import isawaitable
from typing import Any
from urllib.parse import quote

import msgspec

from holdfast.codec import decode
from holdfast.engine import Environment
from holdfast.engine.alterations import Altered
from holdfast.errors import Invalid
from holdfast.machines.burst import Burst, Outcome
from holdfast.machines.hooks import hook_machine
from holdfast.machines.interpreter import Identity, drive
from holdfast.machines.machine import Machine
from holdfast.machines.state import KeptRun, decode_run, encode_run
from holdfast.message import Alter, DoInBackground, Message, Resume
from holdfast.runtime.program import Checkpoint, Program, Stoppable
from holdfast.store import Activation

VERSION = "machine:"
"""How the ids of the versions of machines begin; what follows is the name."""

_LONGEST_KEY = 200


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """What an alteration of a run comes to."""

    state: KeptRun
    altered: tuple[Altered, ...]
    records: tuple[Any, ...] = ()
    effects: tuple[Any, ...] = ()
    applied: bool = False


class Coded:
    """One machine. It holds nothing of a run, so all of them share it.

    Its code is its version: what runs is what is deployed, and runs go on under whatever that is. So there
    is one version, and statuses are kept by their values.
    """

    background = "Machine.Background"
    version = 1

    def __init__(self, machine: Machine[Any, Any]) -> None:
        self.machine = machine.check()
        self._built = machine.built

    @property
    def definition_id(self) -> str:
        return self.machine.name

    @property
    def version_id(self) -> str:
        return f"{VERSION}{self.machine.name}"

    def activity(self, node: int) -> tuple[str, str]:
        handler = self._built.named(node)
        if handler is None:
            return self.machine.name, "machine"
        return handler.given.function.__name__, handler.given.kind

    def decode(self, state: bytes) -> KeptRun:
        return decode_run(state)

    def encode(self, state: KeptRun) -> bytes:
        return encode_run(state)

    def variables(self, state: KeptRun) -> dict[str, Any]:
        return {
            "status": self._built.statuses(state.at).name,
            "state": state.run_state.name,
            "reason": state.reason,
            "object": decode(bytes(state.object)),
        }

    async def burst(
        self,
        message: Message,
        *,
        environment: Environment,
        state: KeptRun | None,
        instance_id: str,
        tenant: str,
        checkpoint: Checkpoint,
        on_begin: Callable[[Stoppable], None],
    ) -> Outcome | Refusal:
        if isinstance(message, Alter) and state is not None:
            text = "A run of a machine is changed by its steps, and paused, resumed and cancelled as a whole."
            return Refusal(state=state, altered=tuple(Altered(False, text) for _ in message.alterations))

        def begin(burst: Burst) -> None:
            on_begin(burst)

        return await drive(
            self.machine,
            message,
            clock=environment.clock,
            identity=Identity(
                id=instance_id,
                tenant=tenant,
                definition_id=self.definition_id,
                version_id=self.version_id,
                version=self.version,
            ),
            state=state,
            checkpoint=checkpoint,
            on_begin=begin,
        )

    async def attempt(self, state: KeptRun, task: DoInBackground, environment: Environment) -> Resume:
        raise Invalid(f"The machine {self.machine.name!r} has no work outside its turns.")

    def guards(self, correlation_id: str | None) -> tuple[Activation, ...]:
        """One unfinished run per foreign id: the row decides, also between two that come together."""
        if correlation_id is None or not self.machine.is_unique:
            return ()
        key = f"machine:{quote(self.machine.name, safe='')}:{correlation_id}"
        if len(key) > _LONGEST_KEY or not key.isascii():
            key = f"machine:{sha256(key.encode()).hexdigest()}"
        return (Activation(key=key, looks=False),)

    async def admits(self, condition: str, nominal: datetime) -> bool:
        """Whether an occurrence of a schedule shall start a run. Raises what the condition raises."""
        function = self.machine.conditions.get(condition)
        if function is None:
            raise Invalid(
                f"The machine {self.machine.name!r} has no condition {condition!r} any more. Decorate it "
                f"with `@machine.condition`, or schedule without it."
            )
        result = function(nominal)
        return bool(await result if isawaitable(result) else result)


def programs_of(machine: Machine[Any, Any]) -> list[Program]:
    """The machine, and the one that calls its hooks, if it has some."""
    calls = hook_machine(machine)
    return [Coded(machine)] if calls is None else [Coded(machine), Coded(calls)]
