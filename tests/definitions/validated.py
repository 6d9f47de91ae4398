"""What tests of `validate` share: some activities to check, and how to say what was found."""

from typing import Annotated, Any

from holdfast.activities.composites import workflow_activity_types
from holdfast.assembly import load_plugins
from holdfast.authoring import (
    Activity,
    ActivityContext,
    ActivityTypes,
    Field,
    Input,
    Port,
    Property,
    Source,
    activity,
)
from holdfast.definitions.document import load_definition
from holdfast.definitions.validate import Problem, validate
from tests.documents import document


@activity(type="Test.Greet")
def greet(who: str, times: int = 1) -> str:
    """Greets somebody."""
    return who * times


@activity(type="Test.Named")
def named(name: int) -> int:
    """Has an input that is called like a member of every activity."""
    return name


@activity(type="Test.Shape")
class Shape(Activity):
    """Has plain properties, one of them required."""

    sides: Property[int]
    colour: Property[str | None] = None


@activity(type="Test.Around")
class Around(Activity):
    """A container that may give its body variables nobody has heard of."""

    note: Input[Annotated[str | None, Field("")]] = None
    body: Port

    def execute(self, context: ActivityContext) -> None:
        context.schedule(self.body, variables={"Surprise": 1})


@activity(type="Test.Picky")
class Picky(Activity):
    @classmethod
    def prepare(cls, source: Source) -> dict[str, Any]:
        return {"sides": int(source.json["sides"])}


PLUGINS = load_plugins([greet, named, Shape, Around, Picky], installed=False)


def validated(source: dict[str, Any], types: ActivityTypes = PLUGINS.activities) -> list[Problem]:
    return validate(load_definition(source), types, PLUGINS.expressions)


def root(json: dict[str, Any], **members: Any) -> list[Problem]:
    return validated(document(json, **members))


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [f"{p.code} {p}" for p in problems]
    return problems[0]


def expect(problem: Problem, told: str, *advice: str) -> None:
    """The problem is the one told: `severity code path [of activity] [blocks]`, and its message advises."""
    who = f" of {problem.activity_id}" if problem.activity_id else ""
    blocks = " blocks" if problem.blocks_publishing else ""
    assert f"{problem.severity} {problem.code} {problem.path}{who}{blocks}" == told
    assert problem.message.endswith(".")
    for words in advice:
        assert words in problem.message


def types_of(*documents: dict[str, Any]) -> ActivityTypes:
    types = PLUGINS.activities.copy()
    for source in documents:
        for kind in workflow_activity_types(load_definition(source)):
            types.replace(kind)
    return types
