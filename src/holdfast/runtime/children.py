"""What passes between a parent and a child it started: how one begins, and how the other hears of its end."""

from typing import Any

from holdfast.bookmark import Stimulus
from holdfast.codec import read_payload
from holdfast.instance import Status
from holdfast.message import Start, StartChild
from holdfast.runtime.program import Snapshot

REPLY_TO = "Holdfast:ReplyTo"
"""The property in which a child keeps whom to tell when it has ended."""

PARENT_SHARD = "Holdfast:ParentShard"
"""The property in which it keeps where that one lives."""

REFUSED = "Refused"
"""The sub-status a parent is told for a child that never began."""

DELETED = "Deleted"
"""And for one that somebody deleted while it was open."""


def child_start(effect: StartChild, shard: int = 0) -> Start:
    """The message by which a child of a parent in that shard begins."""
    properties: dict[str, Any] = {} if effect.parent_id is None else {"ParentInstanceId": effect.parent_id}
    if effect.reply_to:
        properties |= {"WaitForCompletion": True, REPLY_TO: effect.reply_to, PARENT_SHARD: shard}
    return Start(
        input=effect.input,
        correlation_id=effect.correlation_id,
        properties=properties,
        parent_id=effect.parent_id,
    )


def child_refused(
    instance_id: str, parent_id: str, reply_to: str | None, sub_status: str = REFUSED
) -> Stimulus:
    """What a parent hears of a child that has no state to tell of: never let begin, or deleted."""
    return Stimulus(
        name="child refused",
        exact_key=reply_to,
        instance_id=parent_id,
        input={
            "WorkflowOutput": {},
            "WorkflowInstanceId": instance_id,
            "WorkflowStatus": Status.FINISHED.value,
            "WorkflowSubStatus": sub_status,
        },
    )


def child_ended(state: Snapshot, instance_id: str) -> Stimulus | None:
    """What a child that has ended tells its parent; None while it has not, or when nobody wants to hear."""
    reply_to = state.properties.get(REPLY_TO)
    if state.status is not Status.FINISHED or not reply_to or state.parent_id is None:
        return None
    return Stimulus(
        name="child ended",
        exact_key=reply_to,
        instance_id=state.parent_id,
        input={
            "WorkflowOutput": read_payload(state.output),
            "WorkflowInstanceId": instance_id,
            "WorkflowStatus": state.status.value,
            "WorkflowSubStatus": state.sub_status.value,
        },
    )
