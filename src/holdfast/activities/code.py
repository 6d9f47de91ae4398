"""Scripts as activities: their value is the result, and they may choose their outcomes."""

from typing import Annotated, Any

from holdfast.activities.flow import literal_texts
from holdfast.activities.flowchart import inner
from holdfast.authoring import Activity, ActivityContext, Fault, Field, Input, Output, activity


def _possible_outcomes(json: Any) -> list[str]:
    return literal_texts(json, "possibleOutcomes") or ["Done"]


class Script(Activity):
    """What the script activities share."""

    language: str
    outcomes_of = staticmethod(_possible_outcomes)
    possible_outcomes: Input[
        Annotated[list[str] | None, Field("The outcomes it may choose.", hint="dynamic-outcomes")]
    ] = None
    result: Output[Any]

    def run(self, context: ActivityContext, script: str | None) -> None:
        if not script or not script.strip():
            return
        expression = inner(context).compile(self.language, script)
        value, outcomes = context.evaluate_script(expression)
        if value is not None:
            context.set_output("Result", value)
        context.complete(*outcomes or ("Done",))


def _script(syntax: str) -> Any:
    return Field("The script to run.", hint="code-editor", syntax=syntax)


@activity(type="Elsa.RunJavaScript", category="Scripting", display_name="Run JavaScript")
class RunJavaScript(Script):
    """Runs a JavaScript script."""

    language = "JavaScript"
    script: Input[Annotated[str | None, _script("JavaScript")]] = None

    def execute(self, context: ActivityContext) -> None:
        self.run(context, self.script)


@activity(type="Elsa.RunPython", category="Scripting")
class RunPython(Script):
    """Runs one Python expression."""

    language = "Python"
    script: Input[Annotated[str | None, _script("Python")]] = None

    def execute(self, context: ActivityContext) -> None:
        self.run(context, self.script)


@activity(type="Elsa.RunCSharp", category="Scripting", display_name="Run C#", is_browsable=False)
class RunCSharp(Script):
    """Stands where a definition runs a C# script, which cannot run here."""

    language = "CSharp"
    script: Input[Annotated[str | None, _script("CSharp")]] = None

    def execute(self, context: ActivityContext) -> None:
        raise Fault(
            "C# scripts cannot run here. Rewrite it as a RunJavaScript or RunPython activity.",
            fault_code="expression.foreign",
        )
