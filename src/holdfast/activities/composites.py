"""The workflow around a root activity, workflows used as activities, and what ends or feeds them."""

import re
from contextlib import suppress
from typing import Annotated, Any

from holdfast.activities.flowchart import inner
from holdfast.authoring import (
    Activity,
    ActivityContext,
    ActivityDescriptor,
    ActivityType,
    Child,
    CompleteComposite,
    Completed,
    Fault,
    Field,
    Input,
    InputDescriptor,
    OutputDescriptor,
    Signal,
    activity,
)
from holdfast.authoring.activity import spaced
from holdfast.authoring.descriptor import member_name
from holdfast.codec import JsonInvalid, decode, is_list
from holdfast.definitions.document import Definition
from holdfast.engine.context import Context


@activity(type="Elsa.Workflow", category="Workflows", is_browsable=False, is_container=True)
class Workflow(Activity):
    """The invisible activity around a root: it declares the workflow's variables."""

    declares_variables = True
    auto_complete = False
    only_schedules = True
    root: Child

    def execute(self, context: ActivityContext) -> None:
        context.schedule(self.root, self.root_done)

    def root_done(self, context: ActivityContext, completed: Completed) -> None:
        context.complete()

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        if isinstance(signal, CompleteComposite):
            signal.stop()
            inner(context).complete_around(signal)


class WorkflowActivity(Activity):
    """A workflow used as an activity: its inputs and outputs become variables the inside sees."""

    auto_complete = False
    workflow: Child | None = None
    recursive: str = ""

    def execute(self, context: ActivityContext) -> None:
        own = inner(context)
        definition = own.own_definition
        if self.workflow is None:
            raise Fault(f"This workflow uses itself: {self.recursive}. Start it as a child instead.")
        values = {
            parameter.name: getattr(self, _attribute(parameter.name), None) for parameter in definition.inputs
        }
        values |= {parameter.name: None for parameter in definition.outputs if parameter.name not in values}
        own.declare(values)
        context.schedule(self.workflow, self.workflow_done)

    def workflow_done(self, context: ActivityContext, completed: Completed) -> None:
        own = inner(context)
        for parameter in own.own_definition.outputs:
            target = own.output_target(parameter.name)
            value = None if target is None else own.read_bound(target)
            if value is None:
                value = own.read_own(parameter.name)
                if target is not None:
                    own.write_bound(target, value)
            own.record_output(parameter.name, value)
        own.complete_with(completed.outcomes)


def workflow_activity_types(definition: Definition) -> list[ActivityType]:
    """The activity types a definition usable as activity is known by: one per spelling of its name."""
    return [
        ActivityType(_describe(definition, name), WorkflowActivity, definition)
        for name in dict.fromkeys(type_names(definition.name))
    ]


def type_names(name: str) -> list[str]:
    """Type names from a workflow's name, by the rule of newer and of older releases."""
    newer = re.sub(r"(?:[ _-]+|^)([a-zA-Z])", lambda m: m[1].upper(), name)
    older = re.sub(r"(?:^|_| +)(.)", lambda m: m[1].upper(), name)
    return [newer, older]


def _describe(definition: Definition, type_name: str) -> ActivityDescriptor:
    return ActivityDescriptor(
        type_name=type_name,
        version=definition.version,
        category=definition.options.activity_category or "Workflows",
        display_name=definition.name or spaced(type_name),
        description=definition.description,
        inputs=tuple(
            InputDescriptor(
                attribute=_attribute(p.name),
                name=p.name,
                json_name=member_name(p.name),
                type=p.type,
                default=p.type.default,
                display_name=p.display_name,
                description=p.description,
                category=p.category,
                hint=p.hint or "singleline",
            )
            for p in definition.inputs
        ),
        outputs=tuple(
            OutputDescriptor(
                name=p.name,
                json_name=member_name(p.name),
                type=p.type,
                display_name=p.display_name,
                description=p.description,
            )
            for p in definition.outputs
        ),
        outcomes=definition.outcomes or ("Done",),
    )


def _attribute(name: str) -> str:
    """Where an input's value is kept: a name that no method or member of the class can have."""
    return f"input:{name}"


@activity(type="Elsa.Complete", category="Composition", is_terminal=True)
class Complete(Activity):
    """Completes the nearest workflow or workflow-activity around it."""

    outcomes: Input[
        Annotated[Any, Field("The outcomes to complete with.", hint="outcome-picker", syntax="Object")]
    ] = None

    def execute(self, context: ActivityContext) -> None:
        outcomes: Any = self.outcomes
        if isinstance(outcomes, str) and outcomes.lstrip().startswith("["):
            with suppress(JsonInvalid):  # then it is a name that begins with a bracket
                outcomes = decode(outcomes)
        if isinstance(outcomes, str):
            names = (outcomes,)
        elif is_list(outcomes):
            names = tuple(map(str, outcomes))
        else:
            names = ("Done",)
        context.signal(CompleteComposite(names, context.execution_id))


@activity(type="Elsa.SetOutput", category="Composition")
class SetOutput(Activity):
    """Gives an output of the workflow a value."""

    output_name: Input[Annotated[str | None, Field("Which output.", hint="output-picker")]] = None
    output_value: Input[Annotated[Any, Field("Its value.")]] = None

    def execute(self, context: ActivityContext) -> None:
        if not self.output_name:
            raise Fault("No output is named. Choose the output that shall get the value.")
        own: Context = inner(context)
        composite = own.composite_with_output(self.output_name)
        if composite is None:
            own.set_workflow_output(self.output_name, self.output_value)
            return
        target = composite.output_target(self.output_name)
        if target is not None:
            composite.write_bound(target, self.output_value)
        composite.record_output(self.output_name, self.output_value)
        composite.declare({self.output_name: self.output_value})
