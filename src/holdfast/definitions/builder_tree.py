"""Activities at their places in a workflow that is being written, and the paths between them.

A `Placed` holds the members of its activity as they will stand in the document, with other placed
activities among them. It is never changed: saying more about one gives another. Turning the whole
into a document is `builder_document`; making a `Placed` is `builder_place` and `builder_blocks`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import msgspec

from holdfast.definitions.graph import RetryPolicy
from holdfast.definitions.reader import Json
from holdfast.errors import Invalid

MergeMode = Literal["None", "Stream", "Merge", "Converge", "Cascade", "Race"]

DONE = "Done"
ERROR = "Error"
"""The outcome that every activity has in a flowchart: where its faults go."""


class BuilderInvalid(Invalid):
    """A workflow was written in a way that cannot work. Raised by the line that says so."""

    code = "builder.invalid"


class About(TypedDict, total=False):
    """What can be said about any activity, besides what its type asks for."""

    id: str
    name: str
    display_text: str
    """What the designer shows instead of the name."""
    description: str
    can_start: bool
    """It is a trigger and may start the workflow."""
    run_asynchronously: bool
    merge_mode: MergeMode
    """How a flowchart that passes tokens brings paths together here."""
    commit_strategy: str
    retry: RetryPolicy | int
    """What to do about faults, or simply how often to try in all."""
    custom: Mapping[str, Any]
    """Further custom properties."""
    metadata: Mapping[str, Any]
    """What the designer keeps, such as positions."""


ABOUT = tuple(About.__annotations__)


class Use(NamedTuple):
    """Something declared elsewhere that an activity refers to."""

    kind: Literal["variable", "input", "output"]
    id: str
    name: str


class Path:
    """Activities connected so far. `>>` goes on from its ends; to several at once, it forks."""

    def __init__(
        self,
        starts: "Iterable[Placed]",
        ends: "Iterable[tuple[Placed, str]]",
        links: "Iterable[tuple[Placed, str, Placed]]" = (),
    ) -> None:
        self.starts = tuple(starts)
        self.ends = tuple(ends)
        """Where it goes on: activities, and by which outcome."""
        self.links = tuple(links)

    def __rshift__(self, following: "Path | Sequence[Path]") -> "Path":
        then = _path(following)
        links = [
            (source, source.checked_outcome(outcome), target)
            for source, outcome in self.ends
            for target in then.starts
        ]
        return Path(self.starts, then.ends, (*self.links, *links, *then.links))

    def __rrshift__(self, before: "Sequence[Path]") -> "Path":
        return _path(before) >> self

    def activities(self) -> "Iterator[Placed]":
        """In the order they are mentioned, some more than once."""
        yield from self.starts
        for source, _, target in self.links:
            yield from (source, target)


def _path(given: "Path | Sequence[Path]") -> Path:
    if isinstance(given, Path):
        return given
    paths = [_checked_path(path) for path in given]
    return Path(
        (start for path in paths for start in path.starts),
        (end for path in paths for end in path.ends),
        (link for path in paths for link in path.links),
    )


def _checked_path(given: object) -> Path:
    if not isinstance(given, Path):
        raise BuilderInvalid(f"Only placed activities can be connected, and {given!r} is none. Use place().")
    return given


class Placed(Path):
    """An activity at its place.

    Connect it with `>>` from its outcome Done, or from the one in brackets: `check["True"] >> ship`.
    """

    def __init__(
        self,
        type_name: str,
        members: Json,
        *,
        version: int | None = 1,
        outcomes: tuple[str, ...] | None = (DONE,),
        uses: Iterable[Use] = (),
        declares: Iterable[Use] = (),
        about: About | None = None,
    ) -> None:
        super().__init__((self,), ((self, DONE),))
        self.type_name = type_name
        self.members = members
        """By the names in the document. Other placed activities stand where they are nested."""
        self.version = version
        self.outcomes = outcomes
        """None when nobody here knows the type: then any will do."""
        self.uses = tuple(uses)
        self.declares = tuple(declares)
        self.said: About = {} if about is None else self._checked(about)

    def __getitem__(self, outcome: str) -> Path:
        if not isinstance(outcome, str):  # pyright: ignore[reportUnnecessaryIsInstance]  or it has no end
            raise TypeError(f"{self} is no list: in brackets stands the name of an outcome.")
        return Path((self,), ((self, self.checked_outcome(outcome)),))

    def about(self, **about: Unpack[About]) -> "Placed":
        """The same activity with an id, a name, or whatever else can be said about any of them."""
        return Placed(
            self.type_name,
            self.members,
            version=self.version,
            outcomes=self.outcomes,
            uses=self.uses,
            declares=self.declares,
            about={**self.said, **about},
        )

    def checked_outcome(self, outcome: str) -> str:
        """The outcome, if the activity has it. Raises BuilderInvalid."""
        if self.outcomes is None or outcome in (*self.outcomes, ERROR):
            return outcome
        advice = suggest(outcome, self.outcomes)
        if outcome == DONE and self.outcomes:
            advice = f'Say which way to go on from, such as check["{self.outcomes[0]}"] >> .... '
        raise BuilderInvalid(
            f"{self} has no outcome {outcome!r}. {advice}Its outcomes: {listed(self.outcomes)}."
        )

    def _checked(self, about: About) -> About:
        unknown = next((name for name in about if name not in ABOUT), None)
        if unknown is not None:
            advice = suggest(unknown, ABOUT)
            raise BuilderInvalid(
                f"{self.short_type} has no {unknown!r}. {advice}Any activity has {listed(ABOUT)}."
            )
        try:
            return msgspec.convert(about, About)
        except msgspec.ValidationError as problem:
            raise BuilderInvalid(f"{self.short_type}: {problem}.") from None

    @property
    def short_type(self) -> str:
        return self.type_name.rpartition(".")[2]

    def __str__(self) -> str:
        known = self.said.get("name") or self.said.get("id")
        return f"{self.short_type} {known!r}" if known else self.short_type

    def __repr__(self) -> str:
        return f"<Placed {self}>"


class Mention(NamedTuple):
    """The id of an activity, where it is not nested but spoken of."""

    activity: Placed


Body: TypeAlias = Placed | Sequence[Placed]
"""One activity, or several that are executed one after another."""


def in_sequence(body: Body | None, where: str) -> Placed | None:
    """What a port takes: one activity. Several become a sequence."""
    if body is None or isinstance(body, Placed):
        return body
    activities = nested(body, where)
    return activities[0] if len(activities) == 1 else Placed("Elsa.Sequence", {"activities": activities})


def nested(activities: object, where: str) -> list[Placed]:
    """A list of placed activities, checked. Raises BuilderInvalid."""
    if not isinstance(activities, Iterable) or isinstance(activities, str | Placed):
        raise BuilderInvalid(f"{where} takes a list of placed activities, not {activities!r}.")
    found: list[Placed] = []
    for activity in activities:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(activity, Placed):
            shown = "a path: make it a flowchart() first" if isinstance(activity, Path) else f"{activity!r}"
            raise BuilderInvalid(f"{where} takes placed activities, and this is {shown}.")
        found.append(activity)
    return found


def suggest(wanted: str, known: Iterable[str]) -> str:
    near = get_close_matches(wanted.lower(), {k.lower(): k for k in known}, n=1, cutoff=0.5)
    return f"Did you mean {next(k for k in known if k.lower() == near[0])!r}? " if near else ""


def listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
