"""What passes between a parent and a child it started: how one begins, and how the other hears of its end."""

from typing import Any

from holdfast.bookmark import Stimulus
from holdfast.codec import read_payload
from holdfast.instance import State, Status
from holdfast.message import Start, StartChild

REPLY_TO = "Holdfast:ReplyTo"
"""The property in which a child keeps whom to tell when it has ended."""

REFUSED = "Refused"
"""The sub-status a parent is told for a child that never began."""


def child_start(effect: StartChild) -> Start:
    """The message by which a child begins."""
    properties: dict[str, Any] = {"ParentInstanceId": effect.parent_id}
    if effect.reply_to:
        properties |= {"WaitForCompletion": True, REPLY_TO: effect.reply_to}
    return Start(
        input=effect.input,
        correlation_id=effect.correlation_id,
        properties=properties,
        parent_id=effect.parent_id,
    )


def child_refused(effect: StartChild) -> Stimulus:
    """What a parent hears when an activation strategy did not let its child begin."""
    return Stimulus(
        name="child refused",
        exact_key=effect.reply_to,
        instance_id=effect.parent_id,
        input={
            "WorkflowOutput": {},
            "WorkflowInstanceId": effect.instance_id,
            "WorkflowStatus": Status.FINISHED.value,
            "WorkflowSubStatus": REFUSED,
        },
    )


def child_ended(state: State) -> Stimulus | None:
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
            "WorkflowInstanceId": state.id,
            "WorkflowStatus": state.status.value,
            "WorkflowSubStatus": state.sub_status.value,
        },
    )
