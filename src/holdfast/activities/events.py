"""Waiting for what happens outside, telling others what happened, and handing work out."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from holdfast.authoring import (
    Activity,
    ActivityContext,
    Field,
    Input,
    Output,
    TriggerContext,
    activity,
)
from holdfast.bookmark import Stimulus
from holdfast.message import HandOver, Send

EVENT = "Elsa.Event"
PAYLOAD = "__EventPayloadWorkflowInput"
"""The input under which an event's payload arrives; Elsa's name for it."""

TASK = "Elsa.RunTask"
TASK_RESULT = "RunTaskInput"


def event(
    name: str,
    payload: Any = None,
    *,
    correlation_id: str | None = None,
    instance_id: str | None = None,
    execution_id: str | None = None,
) -> Stimulus:
    """The stimulus by which an event reaches whoever waits for it."""
    return Stimulus(
        name=EVENT,
        payload={"eventName": name},
        input={} if payload is None else {PAYLOAD: payload},
        correlation_id=correlation_id or None,
        instance_id=instance_id,
        execution_id=execution_id,
    )


@activity(type=EVENT, category="Events", kind="Trigger")
class Event(Activity):
    """Waits for an event, or starts the workflow when it happens."""

    event_name: Input[Annotated[str | None, Field("The event to wait for.")]] = None
    result: Output[Any]

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        return [{"eventName": self.event_name}]

    def execute(self, context: ActivityContext) -> None:
        if context.started_here:
            self.happened(context)
        else:
            context.wait(self.happened, payload={"eventName": self.event_name})

    def happened(self, context: ActivityContext) -> None:
        context.set_output("Result", context.input.get(PAYLOAD))


@activity(type="Elsa.PublishEvent", category="Events")
class PublishEvent(Activity):
    """Publishes an event."""

    event_name: Input[Annotated[str | None, Field("The event to publish.")]] = None
    correlation_id: Input[Annotated[str | None, Field("Only for instances with this correlation id.")]] = None
    is_local_event: Input[Annotated[bool, Field("Only for this very instance.")]] = False
    payload: Input[Annotated[Any, Field("What to send along.")]] = None

    def execute(self, context: ActivityContext) -> None:
        context.ask(
            Send(
                stimulus=event(
                    self.event_name or "",
                    self.payload,
                    correlation_id=(self.correlation_id or "").strip() or None,
                    instance_id=context.instance_id if self.is_local_event else None,
                )
            )
        )


@activity(type=TASK, category="Primitives")
class RunTask(Activity):
    """Hands a task to the outside, and waits until it is completed."""

    task_name: Input[Annotated[str | None, Field("What shall be done.")]] = None
    payload: Input[Annotated[Mapping[str, Any] | None, Field("What whoever does it needs.")]] = None
    task_id: Output[str]
    result: Output[Any]

    def execute(self, context: ActivityContext) -> None:
        task_id = context.new_id()
        context.set_output("TaskId", task_id)
        context.wait(self.completed, payload={"taskId": task_id})
        context.ask(HandOver(task_id=task_id, name=self.task_name or "", payload=self.payload))

    def completed(self, context: ActivityContext) -> None:
        context.set_output("Result", context.input.get(TASK_RESULT))


def task_completed(task_id: str, result: Any = None) -> Stimulus:
    """The stimulus by which the outside says that a task is done."""
    return Stimulus(name=TASK, payload={"taskId": task_id}, input={TASK_RESULT: result})
