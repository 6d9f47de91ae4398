"""Starting other workflows, and hearing how they ended.

A child's end comes back as the input of the parent's bookmark: `WorkflowInstanceId`, `WorkflowStatus`,
`WorkflowSubStatus` and `WorkflowOutput`, whichever activity started it.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from holdfast.activities.loops import enumerable
from holdfast.authoring import (
    Activity,
    ActivityContext,
    Children,
    Completed,
    Fault,
    Field,
    Input,
    Output,
    Port,
    activity,
)
from holdfast.bookmark import key_of
from holdfast.codec import is_object
from holdfast.message import StartChild

EXECUTE = "Elsa.ExecuteWorkflow"

_WORKFLOW = Field("The workflow to start.", hint="workflow-definition-picker")


class StartsChildren(Activity):
    """What the activities that start children share."""

    def start(
        self,
        context: ActivityContext,
        definition_id: str | None,
        given: Mapping[str, Any],
        correlation_id: str | None,
        reply_to: str | None,
        instance_id: str,
    ) -> None:
        context.ask(
            StartChild(
                instance_id=instance_id,
                definition_id=definition_id or "",
                parent_id=context.instance_id,
                input={**given, "ParentInstanceId": context.instance_id},
                correlation_id=(correlation_id or "").strip() or None,
                reply_to=reply_to,
            )
        )

    async def check_published(self, context: ActivityContext, definition_id: str | None) -> None:
        if not definition_id or not await context.use(Children).is_published(definition_id):
            raise Fault(
                f"No published workflow has the definition id {definition_id!r}. Publish it, or choose "
                f"another.",
                fault_code="definition.not_found",
            )


@activity(type="Elsa.DispatchWorkflow", category="Composition")
class DispatchWorkflow(StartsChildren):
    """Starts another workflow in the background."""

    workflow_definition_id: Input[Annotated[str | None, _WORKFLOW]] = None
    correlation_id: Input[str | None] = None
    input: Input[Annotated[dict[str, Any] | None, Field("What it is given.")]] = None
    wait_for_completion: Input[Annotated[bool, Field("Whether to wait until it has ended.")]] = False
    start_new_trace: Input[bool] = False
    channel_name: Input[str | None] = None
    result: Output[Any]

    async def execute(self, context: ActivityContext) -> None:
        await self.check_published(context, self.workflow_definition_id)
        child_id = context.new_id()
        reply_to = None
        if self.wait_for_completion:
            reply_to = context.wait(self.ended, payload={"childInstanceId": child_id}).key
        self.start(
            context, self.workflow_definition_id, self.input or {}, self.correlation_id, reply_to, child_id
        )

    def ended(self, context: ActivityContext) -> None:
        context.set_output("Result", context.input.get("WorkflowOutput"))


@activity(type=EXECUTE, category="Composition", kind="Task")
class ExecuteWorkflow(StartsChildren):
    """Executes another workflow here and now."""

    workflow_definition_id: Input[Annotated[str | None, _WORKFLOW]] = None
    correlation_id: Input[str | None] = None
    input: Input[Annotated[dict[str, Any] | None, Field("What it is given.")]] = None
    wait_for_completion: Input[Annotated[bool, Field("Whether to wait until it has ended.")]] = False
    result: Output[Any]

    async def execute(self, context: ActivityContext) -> None:
        await self.check_published(context, self.workflow_definition_id)
        child_id = context.new_id()
        payload = {"childInstanceId": child_id}
        child = await context.use(Children).execute(
            definition_id=self.workflow_definition_id or "",
            instance_id=child_id,
            parent_id=context.instance_id,
            input={**(self.input or {}), "ParentInstanceId": context.instance_id},
            correlation_id=(self.correlation_id or "").strip() or None,
            reply_to=key_of(EXECUTE, payload) if self.wait_for_completion else None,
        )
        if self.wait_for_completion and child.status != "Finished":
            context.wait(self.ended, payload=payload)
            return
        context.set_output(
            "Result",
            {
                "workflowInstanceId": child.instance_id,
                "status": child.status,
                "subStatus": child.sub_status,
                "output": dict(child.output),
            },
        )

    def ended(self, context: ActivityContext) -> None:
        given = context.input
        context.set_output(
            "Result",
            {
                "workflowInstanceId": given.get("WorkflowInstanceId"),
                "status": given.get("WorkflowStatus"),
                "subStatus": given.get("WorkflowSubStatus"),
                "output": given.get("WorkflowOutput"),
            },
        )


@activity(
    type="Elsa.BulkDispatchWorkflows",
    category="Composition",
    kind="Task",
    outcomes=("Completed", "Canceled", "Done"),
)
class BulkDispatchWorkflows(StartsChildren):
    """Starts another workflow once for each item."""

    auto_complete = False
    workflow_definition_id: Input[Annotated[str | None, _WORKFLOW]] = None
    items: Input[Annotated[Any, Field("What to start one for each of.")]] = None
    default_item_input_key: Input[Annotated[str, Field("The input an item arrives as.")]] = "Item"
    correlation_id_function: Input[
        Annotated[str | None, Field("The correlation id of each, from the item.", on_demand=True)]
    ] = None
    input: Input[Annotated[dict[str, Any] | None, Field("What each of them is given as well.")]] = None
    wait_for_completion: Input[Annotated[bool, Field("Whether to wait until all have ended.")]] = True
    start_new_trace: Input[bool] = False
    channel_name: Input[str | None] = None
    child_completed: Port
    child_faulted: Port

    async def execute(self, context: ActivityContext) -> None:
        await self.check_published(context, self.workflow_definition_id)
        items = enumerable(self.items)
        waits = self.wait_for_completion and bool(items)
        reply_to = None
        if waits:
            context.state["Open"] = len(items)
            payload = {"parentInstanceId": context.instance_id, "execution": context.execution_id}
            reply_to = context.wait(self.child_ended, payload=payload, burns=False).key
        for item in items:
            arguments = {"Item": item, "item": item}
            correlation_id = context.evaluate("correlation_id_function", arguments)
            own = item if is_object(item) else {self.default_item_input_key: item}
            given = {**(self.input or {}), **own}
            self.start(
                context, self.workflow_definition_id, given, correlation_id, reply_to, context.new_id()
            )
        if not waits:
            context.complete()

    def child_ended(self, context: ActivityContext) -> None:
        faulted = context.input.get("WorkflowSubStatus") == "Faulted"
        port = self.child_faulted if faulted else self.child_completed
        context.schedule(
            port,
            self.heard,
            variables={"ChildInstanceId": context.input.get("WorkflowInstanceId")},
        )

    def heard(self, context: ActivityContext, completed: Completed) -> None:
        context.state["Open"] -= 1
        if context.state["Open"] == 0:
            context.complete("Completed", "Done")
