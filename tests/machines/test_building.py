"""A machine that does not hold together is refused before a run begins, with the name of the function."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, IntEnum, StrEnum
from typing import Any, Literal, Union

import pytest

from holdfast import Again, Cancel, Machine, Options, Pause, Run, Skip
from holdfast.machines import MachineInvalid


class Status(IntEnum):
    FIRST = 1
    SECOND = 2
    LAST = 3


class Other(IntEnum):
    FIRST = 1


@dataclass
class Thing:
    name: str = ""


Of = Run[Thing, Status]
Step = Callable[[Of], Any]


def machine_of(*steps: tuple[Status, Step], **more: Any) -> Machine[Thing, Status]:
    machine = Machine("things", object=Thing, status=Status, **more)
    for status, function in steps:
        machine.step(status)(function)
    return machine


async def to_second(run: Of) -> Literal[Status.SECOND]:
    return Status.SECOND


async def to_last(run: Of) -> Literal[Status.LAST]:
    return Status.LAST


def test_the_graph_is_read_from_the_annotations() -> None:
    async def anywhere(run: Of) -> Literal[Status.SECOND] | Union[Literal[Status.LAST], Pause, Skip]:  # noqa: UP007
        return Status.LAST

    machine = machine_of((Status.FIRST, anywhere), (Status.SECOND, to_last))
    machine.timeout(Status.FIRST, after=timedelta(1))(to_second)
    built = machine.check().built
    assert built.steps[Status.FIRST].to == (Status.SECOND, Status.LAST)
    assert built.steps[Status.FIRST].controls == {Pause, Skip}
    assert built.terminal == {Status.LAST}
    assert machine.start is Status.FIRST


def test_to_says_what_annotations_cannot() -> None:
    def choose(run: Of) -> Status:
        return Status.LAST

    machine = Machine("things", object=Thing, status=Status)
    machine.step(Status.FIRST, to=[Status.SECOND, Status.LAST])(choose)
    machine.step(Status.SECOND)(to_last)
    assert machine.check().built.steps[Status.FIRST].to == (Status.SECOND, Status.LAST)


def test_a_loop_back_to_the_first_status_is_ordinary() -> None:
    async def again(run: Of) -> Literal[Status.FIRST, Status.SECOND]:
        return Status.FIRST

    async def back(run: Of) -> Literal[Status.FIRST, Status.LAST]:
        return Status.LAST

    assert machine_of((Status.FIRST, again), (Status.SECOND, back)).check().start is Status.FIRST


def test_start_says_where_runs_begin() -> None:
    machine = machine_of((Status.SECOND, to_last), (Status.FIRST, to_second), start=Status.FIRST)
    assert machine.check().start is Status.FIRST


def test_several_starts_are_all_reachable() -> None:
    machine = machine_of(
        (Status.FIRST, to_last), (Status.SECOND, to_last), start=(Status.FIRST, Status.SECOND)
    )
    assert machine.check().start is Status.FIRST


def refused(machine: Machine[Any, Any], *words: str) -> None:
    with pytest.raises(MachineInvalid) as told:
        machine.check()
    for word in words:
        assert word in str(told.value)


def test_a_machine_without_steps_is_refused() -> None:
    refused(machine_of(), "'things' has no steps")


def test_two_steps_for_one_status_are_refused_with_both_names() -> None:
    with pytest.raises(MachineInvalid, match="'to_second' and 'to_last'"):
        machine_of((Status.FIRST, to_second), (Status.FIRST, to_last))


def test_two_callbacks_of_one_name_are_refused() -> None:
    machine = machine_of((Status.SECOND, to_last), start=Status.FIRST)
    machine.callback(Status.FIRST)(to_second)
    machine.callback(Status.FIRST)(to_last)
    refused(machine, "two callbacks called ''", "'to_second' and 'to_last'", "`name=`")


def test_a_status_nothing_leads_to_is_refused_with_its_functions() -> None:
    refused(
        machine_of((Status.FIRST, to_last), (Status.SECOND, to_last)),
        "Nothing leads to Status.SECOND",
        "'to_last', are never called",
        "start=",
    )
    refused(machine_of((Status.FIRST, to_last)), "Nothing leads to Status.SECOND", "remove it from Status")


def test_a_machine_that_never_ends_is_refused() -> None:
    async def round_and_round(run: Of) -> Literal[Status.FIRST]:
        return Status.FIRST

    refused(
        machine_of((Status.FIRST, to_second), (Status.SECOND, to_last), (Status.LAST, round_and_round)),
        "no terminal status",
        "round_and_round",
    )


def test_a_machine_that_begins_at_its_end_is_refused() -> None:
    steps = ((Status.FIRST, to_second), (Status.SECOND, to_last))
    refused(machine_of(*steps, start=Status.LAST), "begins in Status.LAST, which has no step")


def test_a_status_of_another_enum_is_refused() -> None:
    async def astray(run: Of) -> Literal[Other.FIRST]:
        return Other.FIRST

    refused(
        machine_of((Status.FIRST, astray)),
        "'test_a_status_of_another_enum_is_refused.<locals>.astray'",
        "Other.FIRST",
    )
    refused(machine_of((Other.FIRST, to_last)), "to_last", "declared for Other.FIRST")  # type: ignore[arg-type]


async def says_nothing(run: Of):  # type: ignore[no-untyped-def]
    return Status.LAST


async def says_any(run: Of) -> Status:
    return Status.LAST


async def says_number(run: Of) -> int:
    return 3


async def says_none(run: Of) -> Literal[Status.LAST] | None:
    return None


async def says_text(run: Of) -> Literal["LAST"]:
    return "LAST"


async def says_unknown(run: Of) -> "Literal[Nowhere.AT_ALL]":  # type: ignore[name-defined]  # noqa: F821
    return Status.LAST


async def takes_two(run: Of, more: int) -> Literal[Status.LAST]:
    return Status.LAST


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (says_nothing, "does not say where it leads. Annotate"),
        (says_any, "returns any Status. Say which"),
        (says_number, "returns int, which is no status"),
        (says_none, "returns NoneType"),
        (says_text, "leads to 'LAST', which is not among Status: FIRST, SECOND, LAST"),
        (says_unknown, "cannot be read: name 'Nowhere' is not defined"),
        (takes_two, "takes one argument, the run; it has 2"),
    ],
)
def test_wrong_annotations_are_refused_with_the_name_of_the_function(function: Step, words: str) -> None:
    refused(machine_of((Status.FIRST, function)), f"'{function.__name__}'", words)


def test_a_step_that_could_wait_for_nothing_is_refused() -> None:
    async def skips(run: Of) -> Literal[Status.SECOND] | Skip:
        return Skip()

    machine = machine_of((Status.FIRST, skips), (Status.SECOND, to_last))
    refused(machine, "skips", "may return Skip, but Status.FIRST has no callback or timeout")
    machine.timeout(Status.FIRST, after=timedelta(1))(to_last)
    machine.check()


def test_a_status_that_cannot_be_left_is_refused() -> None:
    async def stays(run: Of) -> Again | Pause:
        return Again()

    async def may_end(run: Of) -> Again | Cancel:
        return Again()

    steps = ((Status.FIRST, to_second), (Status.SECOND, stays))
    refused(machine_of(*steps, start=(Status.FIRST, Status.SECOND)), "Nothing leads to Status.LAST")

    async def either(run: Of) -> Literal[Status.SECOND, Status.LAST]:
        return Status.LAST

    refused(
        machine_of((Status.FIRST, either), (Status.SECOND, stays)),
        "No function of Status.SECOND leads",
        "stays",
    )
    machine_of((Status.FIRST, either), (Status.SECOND, may_end)).check()


def test_statuses_are_kept_by_values_that_have_json() -> None:
    class Odd(Enum):
        A = (1, 2)

    class Text(StrEnum):
        A = "a"
        B = "b"

    async def step(run: Run[Thing, Text]) -> Literal[Text.B]:
        return Text.B

    odd = Machine("odd", object=Thing, status=Odd)
    odd.step(Odd.A)(lambda run: Odd.A)
    refused(odd, "Odd.A has the value (1, 2)", "IntEnum or a StrEnum")
    text = Machine("text", object=Thing, status=Text)
    text.step(Text.A)(step)
    text.check()


@pytest.mark.parametrize("kind", [int, dict, list[int], "Thing"])
def test_an_object_is_a_dataclass_a_struct_or_a_model(kind: Any) -> None:
    with pytest.raises(MachineInvalid, match="dataclass, a msgspec Struct or a pydantic model"):
        Machine("wrong", object=kind, status=Status)


def test_an_object_that_has_no_json_is_refused_when_it_is_checked() -> None:
    @dataclass
    class Holder:
        what: Callable[[], None]

    machine = Machine("holder", object=Holder, status=Status)
    machine.step(Status.FIRST)(to_second)  # type: ignore[arg-type]
    machine.step(Status.SECOND)(to_last)  # type: ignore[arg-type]
    refused(machine, "Holder, the object of the machine 'holder', has no JSON")


def test_wrong_options_name_the_function() -> None:
    refused(machine_of((Status.FIRST, to_last), defaults=Options(pause_after=-1)), "to_last", "pause_after")


def test_a_machine_is_drawn_with_its_beginning_and_its_ends() -> None:
    machine = machine_of((Status.FIRST, to_second), (Status.SECOND, to_last))
    machine.timeout(Status.FIRST, after=timedelta(1))(to_last)
    assert machine.mermaid(direction="TB") == (
        "---\n"
        'title: "things"\n'
        "---\n"
        "stateDiagram-v2\n"
        "    direction TB\n"
        "    s1: FIRST\n"
        "    s2: SECOND\n"
        "    s3: LAST\n"
        "    [*] --> s1\n"
        "    s1 --> s2: to_second\n"
        "    s1 --> s3: to_last (timeout)\n"
        "    s2 --> s3: to_last\n"
        "    s3 --> [*]\n"
    )
