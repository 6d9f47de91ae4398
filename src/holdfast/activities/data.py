"""Console, variables, and the instance's own name and correlation."""

from collections.abc import Mapping
from typing import Annotated, Any

from holdfast.authoring import (
    Activity,
    ActivityContext,
    Console,
    Fault,
    Field,
    Input,
    Output,
    Property,
    Source,
    activity,
)
from holdfast.codec import is_object, lower_keys


@activity(type="Elsa.WriteLine", category="Console")
class WriteLine(Activity):
    """Writes a line of text to the standard output."""

    text: Input[Annotated[str | None, Field("The text to write.")]] = None

    def execute(self, context: ActivityContext) -> None:
        context.use(Console).write_line(self.text or "")


@activity(type="Elsa.ReadLine", category="Console")
class ReadLine(Activity):
    """Reads a line of text from the standard input."""

    result: Output[str]

    def execute(self, context: ActivityContext) -> None:
        context.set_output("Result", context.use(Console).read_line())


@activity(type="Elsa.SetVariable", category="Primitives")
class SetVariable(Activity):
    """Gives a variable a value."""

    variable: Property[Annotated[Any, Field("The variable to set.", hint="variable-picker")]] = None
    value: Input[Annotated[Any, Field("The value it shall have.")]] = None

    variable_id: str | None

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        reference = source.json.get("variable")
        chosen = lower_keys(reference).get("id") if is_object(reference) else reference
        return {"variable_id": chosen if isinstance(chosen, str) else None}

    def execute(self, context: ActivityContext) -> None:
        if self.variable_id is None:
            raise Fault("No variable is chosen. Choose the variable that shall get the value.")
        context.set_variable_by_id(self.variable_id, self.value)


@activity(type="Elsa.SetName", category="Primitives")
class SetName(Activity):
    """Names the instance."""

    value: Input[Annotated[str | None, Field("The name of the instance.")]] = None

    def execute(self, context: ActivityContext) -> None:
        context.instance_name = self.value


@activity(type="Elsa.Correlate", category="Primitives")
class Correlate(Activity):
    """Gives the instance a correlation id."""

    correlation_id: Input[Annotated[str | None, Field("What ties the instance to something outside.")]] = None

    def execute(self, context: ActivityContext) -> None:
        context.correlation_id = self.correlation_id


@activity(type="Elsa.Fault", category="Primitives")
class RaiseFault(Activity):
    """Faults on purpose."""

    code: Input[Annotated[str | None, Field("What a policy can recognise it by.")]] = None
    category: Input[str | None] = None
    fault_type: Input[Annotated[str | None, Field(display_name="Type")]] = None
    message: Input[Annotated[str | None, Field("What the incident says.", hint="multiline")]] = None

    def execute(self, context: ActivityContext) -> None:
        raise Fault(
            self.message or "The workflow faulted here on purpose; no message was given.",
            fault_code=self.code,
            category=self.category,
        )


@activity(type="Elsa.NotFoundActivity", category="Primitives", is_browsable=False)
class NotFoundActivity(Activity):
    """Stands where a definition names an activity type that this host does not know."""

    missing_type: str
    missing_version: Any

    def execute(self, context: ActivityContext) -> None:
        version = "" if self.missing_version is None else f" version {self.missing_version}"
        raise Fault(
            f"There is no activity type {self.missing_type!r}{version} here. Register it with this host, or "
            f"replace the activity.",
            fault_code="activity.unknown",
        )
