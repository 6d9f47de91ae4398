"""A conformance scenario as its `expected.json` writes it down: definitions, cases, steps.

The types are the form. A member, a step or an option that is not written down here, or a value of
the wrong kind, is refused with the place where it stands. What may be expected is in
`corpus_expectation`; performing the steps is `corpus_steps`.
"""

from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType, field

from holdfast.codec import decode
from holdfast.errors import Invalid
from holdfast.testing.corpus_expectation import (
    ConsumersExpectation,
    DocumentExpectation,
    Expectation,
    Form,
    PublishExpectation,
    ResponseExpectation,
    RoundTripExpectation,
    Triggers,
    Version,
)

FILE = "expected.json"
T = TypeVar("T")


class ScenarioInvalid(Invalid):
    code = "scenario.invalid"


# --- steps ----------------------------------------------------------------------------------------


class Step(Form, frozen=True, kw_only=True, tag_field="op"):
    """Something that is done to the host."""

    @property
    def op(self) -> str:
        """What the form calls it."""
        return str(self.__struct_config__.tag)


class Run(Step, frozen=True, kw_only=True, tag="run"):
    definition_id: str
    until: Literal["idle", "end", "finished"]
    version: Version = "Published"
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    correlation_id: str | None = None
    name: str | None = None
    expect: Expectation | None = None


class Where(Form, frozen=True, kw_only=True):
    activity_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class Resume(Step, frozen=True, kw_only=True, tag="resume"):
    bookmark: Where
    input: dict[str, Any] = field(default_factory=dict[str, Any])
    expect: Expectation | None = None


class Cancel(Step, frozen=True, kw_only=True, tag="cancel"):
    expect: Expectation | None = None


class PublishEvent(Step, frozen=True, kw_only=True, tag="publishEvent"):
    event_name: str
    correlation_id: str | None = None
    payload: Any = None


class Publish(Step, frozen=True, kw_only=True, tag="publish"):
    definition_id: str | None = None
    file: str | None = None
    expect: PublishExpectation | None = None

    def __post_init__(self) -> None:
        if (self.definition_id is None) == (self.file is None):
            raise ValueError("`publish` takes either `definitionId` or `file`")


class PublishNewVersion(Step, frozen=True, kw_only=True, tag="publishNewVersion"):
    definition_id: str
    expect: PublishExpectation | None = None


class Import(Step, frozen=True, kw_only=True, tag="import"):
    file: str


class GetDefinition(Step, frozen=True, kw_only=True, tag="getDefinition"):
    definition_id: str | None = None
    version: Version = "Latest"
    id: str | None = None
    expect: DocumentExpectation | None = None

    def __post_init__(self) -> None:
        if (self.definition_id is None) == (self.id is None):
            raise ValueError("`getDefinition` takes either `definitionId` and `version`, or `id`")


class GetSubgraph(Step, frozen=True, kw_only=True, tag="getSubgraph"):
    id: str
    node_id: str
    expect: DocumentExpectation | None = None


class Consumers(Step, frozen=True, kw_only=True, tag="consumers"):
    definition_id: str
    expect: ConsumersExpectation | None = None


class GetTriggers(Step, frozen=True, kw_only=True, tag="triggers"):
    definition_id: str
    expect: Triggers | None = None


class DeleteDefinition(Step, frozen=True, kw_only=True, tag="deleteDefinition"):
    definition_id: str


class ReloadDefinitions(Step, frozen=True, kw_only=True, tag="reloadDefinitions"):
    pass


class RefreshDefinitions(Step, frozen=True, kw_only=True, tag="refreshDefinitions"):
    definition_ids: list[str]


class RoundTripState(Step, frozen=True, kw_only=True, tag="roundTripState"):
    expect: RoundTripExpectation | None = None


class ReadPayload(Step, frozen=True, kw_only=True, tag="readPayload"):
    file: str
    select: str | None = None
    known_types: list[str] = field(default_factory=list[str])


class SetJavascriptFunction(Step, frozen=True, kw_only=True, tag="setJavascriptFunction"):
    name: str
    value: Any


class Http(Step, frozen=True, kw_only=True, tag="http"):
    method: str
    path: str
    json: Any = None
    times: int = 1
    concurrent: bool = False
    expect: ResponseExpectation | None = None


class Api(Step, frozen=True, kw_only=True, tag="api"):
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    json: Any = None
    body: str | None = None
    expect: ResponseExpectation | None = None


class Alter(Step, frozen=True, kw_only=True, tag="alter"):
    alterations: list[dict[str, Any]]
    expect: PublishExpectation | None = None


AnyStep = (
    Run
    | Resume
    | Cancel
    | PublishEvent
    | Publish
    | PublishNewVersion
    | Import
    | GetDefinition
    | GetSubgraph
    | Consumers
    | GetTriggers
    | DeleteDefinition
    | ReloadDefinitions
    | RefreshDefinitions
    | RoundTripState
    | ReadPayload
    | SetJavascriptFunction
    | Http
    | Api
    | Alter
)


# --- the whole ------------------------------------------------------------------------------------


class Options(Form, frozen=True, kw_only=True):
    flowchart_execution_mode: Literal["CounterBased", "TokenBased"] = "CounterBased"
    fail_on_validation_errors: bool = True
    javascript_functions: dict[str, Any] = field(default_factory=dict[str, Any])


class Case(Form, frozen=True, kw_only=True):
    name: str
    steps: list[AnyStep]
    options: Options = Options()
    expect: Expectation = Expectation()
    derived: Expectation = Expectation()
    elsa_test: str | None = None
    notes: str | list[str] | None = None


class Source(Form, frozen=True, kw_only=True):
    """A file of the scenario, and how it enters the system."""

    file: str
    load: Literal["provider", "import", "import-draft", "data"]
    definition_id: str | None = None
    source: str | None = None


class _Envelope(Form, frozen=True, kw_only=True):
    schema_version: Literal[1]
    cases: list[dict[str, Any]]
    definitions: list[Source] = field(default_factory=list[Source])
    requires: list[str] = field(default_factory=list[str])
    id: str | None = None
    title: str | None = None
    origin: Literal["elsa", "translated"] | None = None
    source: dict[str, Any] | None = None
    notes: str | list[str] | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the corpus."""

    folder: Path
    requires: tuple[str, ...]
    definitions: tuple[Source, ...]
    cases: tuple[Any, ...]
    """Each case as it was written: one that is malformed must not take the others with it."""

    @property
    def name(self) -> str:
        return self.folder.name

    def case_name(self, index: int) -> str:
        return str(self.cases[index].get("name") or f"case {index + 1}")

    def case(self, index: int) -> Case:
        """The case, understood. Raises ScenarioInvalid."""
        return _read(self.cases[index], Case)


def read_scenario(folder: Path) -> Scenario:
    """The scenario in a folder. Raises JsonInvalid or ScenarioInvalid."""
    try:
        text = (folder / FILE).read_bytes()
    except OSError as problem:
        raise ScenarioInvalid(f"{FILE} cannot be read: {problem.strerror}") from problem
    envelope = _read(decode(text), _Envelope)
    return Scenario(
        folder=folder,
        requires=tuple(envelope.requires),
        definitions=tuple(envelope.definitions),
        cases=tuple(envelope.cases),
    )


def _read(json: Any, form: type[T]) -> T:
    try:
        return msgspec.convert(json, form)
    except msgspec.ValidationError as problem:
        raise ScenarioInvalid(str(problem)) from problem
