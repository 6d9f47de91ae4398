"""A run as its functions see it, and whoever asks about it, from what was kept."""

from collections.abc import Iterator
from typing import Any

from holdfast.machines.machine import Machine
from holdfast.machines.run import Run
from holdfast.machines.state import KeptRun, Work


def run_of(machine: Machine[Any, Any], state: KeptRun, *, key: str = "", attempt: int = 1) -> Run[Any, Any]:
    """The run as its functions see it, and whoever asks about it. Its object is read anew each time."""
    statuses = machine.built.statuses
    text = bytes(state.object)
    errors = [work.error for work in _open(state) if work.error]
    return Run(
        object=None if text == b"null" else machine.objects.read(text),
        status=statuses(state.at),
        foreign_id=state.correlation_id or "",
        id=state.id,
        tenant=state.tenant,
        key=key,
        attempt=attempt,
        state=state.run_state,
        reason=state.reason,
        error=errors[0] if errors else "",
        passed=tuple(statuses(value) for value in state.passed),
        created_at=state.created_at,
        entered_at=state.entered_at,
        updated_at=state.updated_at,
        finished_at=state.finished_at,
        until=None if state.paused is None else state.paused.until,
    )


def _open(state: KeptRun) -> Iterator[Work]:
    yield from state.queue
    yield from state.retries.values()
