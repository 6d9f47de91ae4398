"""What happens when an execution raises.

In this order: the activity's own retry policy, then the fault signal, which any container around it
may stop and deal with, then an incident and what the workflow's incident strategy makes of it.
"""

from __future__ import annotations

import traceback
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.authoring import Faulted
from holdfast.engine.frame import FAULTED, RUNNING
from holdfast.errors import HoldfastError
from holdfast.instance import Incident, SubStatus

if TYPE_CHECKING:
    from holdfast.definitions.graph import Node
    from holdfast.engine.burst import Burst
    from holdfast.engine.frame import Frame

RETRY = "Holdfast.Retry"
"""The name of bookmarks at which an execution waits to be tried again."""


class BurstTooLong(HoldfastError):
    """A burst executed so many activities without waiting that it is taken for an endless loop."""

    code = "burst.too_long"


def handle_fault(burst: Burst, frame: Frame, error: BaseException) -> None:
    """Retry it, let an ancestor handle it, or record an incident."""
    node = frame.node
    if frame.number not in burst.frames:  # its owner raised on hearing of its completion
        burst.frames[frame.number] = frame
        if frame.parent is not None:
            frame.parent.children = {**(frame.parent.children or {}), frame.number: frame}
    frame.status = FAULTED
    burst.record("Faulted", frame, _told(error))
    if node.retry is not None and frame.attempt < node.retry.attempts:
        _retry_later(burst, frame, node.retry.wait_before(frame.attempt + 1))
        return
    ancestors: list[Frame] = []
    counted: Frame | None = frame
    while counted is not None:
        counted.faults += 1
        ancestors.append(counted)
        counted = counted.parent
    signal = Faulted(error, node, frame.number)
    try:
        burst.signal(frame, signal)
    except Exception as second:  # a handler that raises has not handled anything
        error = second
    else:
        if signal.stopped:
            for counted in ancestors:
                counted.faults -= 1
            return
    add_incident(burst, frame, error)


def add_incident(burst: Burst, frame: Frame, error: BaseException) -> None:
    """Record it, and end the instance unless its strategy is to go on."""
    burst.incidents.append(
        Incident(
            activity_id=frame.node.id,
            node_id=frame.node.path,
            activity_type=frame.node.type_name,
            execution=frame.number,
            message=_told(error),
            at=burst.clock.now(),
            code=getattr(error, "fault_code", None) or getattr(error, "code", None),
            exception_type=type(error).__name__,
            details="".join(traceback.format_exception(error)[-6:])[-4000:],
        )
    )
    if burst.incident_strategy != "ContinueWithIncidentsStrategy" and burst.ended is None:
        burst.ended = SubStatus.FAULTED


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _retry_later(burst: Burst, frame: Frame, seconds: float) -> None:
    """Wait durably, then execute again under the same number and idempotency key."""
    if frame.children:
        for child in list(frame.children.values()):
            burst.cancel(child)
    if frame.queued:
        burst.withdraw(frame)
    if frame.bookmarks:
        burst.remove_bookmarks(frame)
    frame.attempt += 1
    frame.status = RUNNING
    frame.state = None
    burst.bookmark(frame, name=RETRY, due=burst.clock.now() + timedelta(seconds=seconds), private=True)
    burst.record("Suspended", frame)


def give_up(burst: Burst, node: Node, begun: int) -> None:
    """Stop a burst that will not end by itself."""
    burst.queue.clear()
    error = BurstTooLong(
        f"{begun} activities were executed without a single wait, the last one {node.id!r}: this looks like "
        f"a loop that never ends. Let the loop wait or end, or raise the limit."
    )
    add_incident(burst, burst.frames[min(burst.frames)], error)
    burst.ended = SubStatus.FAULTED
