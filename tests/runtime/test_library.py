"""Programs are found, compiled once, and compiled again only when something about them has changed."""

import asyncio
from typing import Any

import pytest

from holdfast.definitions.compiler import compile_definition
from holdfast.definitions.document import load_definition
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.engine import Environment
from holdfast.instance import Status
from holdfast.message import Start
from holdfast.runtime.drawn import Drawn
from holdfast.runtime.library import Library, ProgramExists
from holdfast.store import Activation
from holdfast.testing.clock import ManualClock
from tests.documents import document, literal, sequence, write
from tests.runtime.definition_stores import PLUGINS, Desk, desk

__all__ = ["desk"]

GREETER = {"options": {"usableAsActivity": True}, "name": "Greeter"}


def greeter(text: str, **members: Any) -> dict[str, Any]:
    return document(write(text), definitionId="greeter", id="g1", **{**GREETER, **members})


def user(kind: str = "Greeter", **members: Any) -> dict[str, Any]:
    return document(sequence({"id": "g", "type": kind, **members}), definitionId="user", id="u1")


def drawn(root: dict[str, Any] | None = None, **members: Any) -> Drawn:
    definition = load_definition(document(root or write("x"), **members))
    return Drawn(compile_definition(definition, PLUGINS.activities, PLUGINS.expressions))


def texts(program: Any) -> set[str]:
    """What the activities of a program write."""
    return {node.constants["text"] for node in program.graph.nodes if "text" in node.constants}


async def test_a_published_version_is_found_by_its_definition_and_by_its_own_id(desk: Desk) -> None:
    made = await desk.publish(document(write("x")))
    program = await desk.library.published("acme", "test")
    assert (program.definition_id, program.version, program.version_id) == ("test", 1, made.id)
    assert await desk.library.find("acme", made.id) is program


async def test_what_is_not_there_is_not_found_and_no_tenant_sees_another(desk: Desk) -> None:
    made = await desk.publish(document(write("x")))
    with pytest.raises(DefinitionNotFound):
        await desk.library.published("globex", "test")
    with pytest.raises(DefinitionNotFound):
        await desk.library.find("globex", made.id)


async def test_a_draft_is_found_by_its_id_only(desk: Desk) -> None:
    draft = await desk.publishing.import_draft("acme", document(write("x")))
    assert (await desk.library.find("acme", draft.id)).version_id == draft.id
    with pytest.raises(DefinitionNotFound):
        await desk.library.published("acme", "test")


async def test_what_was_compiled_is_not_asked_for_again(desk: Desk) -> None:
    await desk.publish(document(write("x")))
    first = await desk.library.published("acme", "test")
    desk.counted.calls.clear()
    assert await desk.library.published("acme", "test") is first
    assert await desk.library.find("acme", first.version_id) is first
    assert desk.counted.calls == []


async def test_many_who_ask_at_once_share_one_compilation(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await desk.publish(document(write("x")))
    compiled: list[str] = []
    compile_really = Library.compile

    def counting(library: Library, definition: Any, types: Any) -> Any:
        compiled.append(definition.id)
        return compile_really(library, definition, types)

    monkeypatch.setattr(Library, "compile", counting)
    desk.counted.calls.clear()
    asked = [desk.library.published("acme", "test") for _ in range(20)]
    asked += [desk.library.find("acme", made.id) for _ in range(20)]
    found = await asyncio.gather(*asked)
    assert compiled == [made.id]
    assert len({id(program) for program in found}) == 1
    assert desk.counted.calls.count("published") == 1


async def test_one_who_gives_up_does_not_leave_the_others_waiting(desk: Desk) -> None:
    made = await desk.publish(document(write("x")))
    loop = asyncio.get_running_loop()
    begun = loop.create_future()

    async def never() -> None:
        begun.set_result(None)
        await loop.create_future()

    desk.counted.before["version"] = never
    async with asyncio.TaskGroup() as group:
        first = group.create_task(desk.library.find("acme", made.id))
        await begun
        second = group.create_task(desk.library.find("acme", made.id))
        await asyncio.sleep(0)
        first.cancel()
    assert second.result().version_id == made.id


async def test_a_newly_published_version_is_what_the_next_start_runs(desk: Desk) -> None:
    await desk.publish(document(write("old")))
    assert texts(await desk.library.published("acme", "test")) == {"old"}
    await desk.publish(document(write("new")))
    assert texts(await desk.library.published("acme", "test")) == {"new"}


async def test_after_a_change_elsewhere_only_what_changed_is_compiled_again(desk: Desk) -> None:
    await desk.publish(document(write("x")))
    first = await desk.library.published("acme", "test")
    await desk.publish(document(write("y"), definitionId="other", id="o1"))
    desk.library.forget()
    assert await desk.library.published("acme", "test") is first


async def test_a_draft_that_changed_in_place_is_compiled_again(desk: Desk) -> None:
    draft = await desk.publishing.import_draft("acme", document(write("old")))
    assert texts(await desk.library.find("acme", draft.id)) == {"old"}
    again = await desk.publishing.import_draft("acme", document(write("new")))
    assert again.id == draft.id
    assert texts(await desk.library.find("acme", draft.id)) == {"new"}


async def test_a_workflow_is_an_activity_of_its_own_tenant_only(desk: Desk) -> None:
    await desk.publish(greeter("hello"))
    for tenant in ("acme", "globex"):
        await desk.publish(user(), tenant)
    assert texts(await desk.library.published("acme", "user")) == {"hello"}
    assert texts(await desk.library.published("globex", "user")) == set()


async def test_a_workflow_that_uses_another_is_compiled_again_when_that_one_changes(desk: Desk) -> None:
    await desk.publish(user())
    unknown = await desk.library.published("acme", "user")
    await desk.publish(greeter("hello"))
    first = await desk.library.published("acme", "user")
    await desk.publish(greeter("good day"))
    second = await desk.library.published("acme", "user")
    assert [texts(p) for p in (unknown, first, second)] == [set(), {"hello"}, {"good day"}]


async def test_what_was_just_brought_is_an_activity_at_once(desk: Desk) -> None:
    await desk.publishing.provide("acme", user())
    await desk.publishing.provide("acme", greeter("hello"))
    assert texts(await desk.library.published("acme", "user")) == {"hello"}


async def test_a_workflow_activity_is_the_version_that_its_id_names(desk: Desk) -> None:
    published = await desk.publish(greeter("published"))
    draft = await desk.publishing.import_draft("acme", greeter("draft"))
    for made, text in ((published, "published"), (draft, "draft")):
        await desk.publish(user(workflowDefinitionVersionId=made.id))
        assert texts(await desk.library.published("acme", "user")) == {text}


async def test_no_workflow_takes_the_place_of_an_activity_of_the_host(desk: Desk) -> None:
    await desk.publish(greeter("hijacked", name="Elsa.WriteLine"))
    await desk.publish(document(write("honest")))
    assert texts(await desk.library.published("acme", "test")) == {"honest"}


async def test_the_versions_used_last_are_kept_and_no_more(desk: Desk) -> None:
    library = Library(desk.counted, PLUGINS, lambda _: [], most=2)
    for name in "abc":
        await desk.publish(document(write(name), definitionId=name, id=f"{name}1"))
    a = await library.find("acme", "a1")
    await library.find("acme", "b1")
    assert await library.find("acme", "a1") is a
    await library.find("acme", "c1")
    assert await library.find("acme", "a1") is a
    desk.counted.calls.clear()
    await library.find("acme", "b1")
    assert "version" in desk.counted.calls


async def test_a_program_of_code_is_there_for_every_tenant_and_its_highest_version_is_published(
    desk: Desk,
) -> None:
    one, three, two = (drawn(id=f"m{n}", version=n, definitionId="machine") for n in (1, 3, 2))
    for program in (one, three, two):
        desk.library.add(program)
    assert await desk.library.published("anybody", "machine") is three
    assert await desk.library.find("acme", "m1") is one
    with pytest.raises(ProgramExists):
        desk.library.add(drawn(id="m2", version=9))
    with pytest.raises(ProgramExists):
        desk.library.add(drawn(id="m33", version=3, definitionId="machine"))


async def test_a_drawn_program_takes_a_burst_and_its_state_survives() -> None:
    program = drawn(sequence({"id": "d", "type": "Elsa.Delay", "timeSpan": literal("01:00:00")}))
    begun: list[Any] = []

    async def checkpoint(_: Any) -> None: ...

    outcome = await program.burst(
        Start(),
        environment=Environment(clock=ManualClock()),
        state=None,
        instance_id="i1",
        tenant="acme",
        checkpoint=checkpoint,
        on_begin=begun.append,
    )
    state = program.decode(program.encode(outcome.state))
    assert (state.tenant, state.status, len(state.bookmarks)) == ("acme", Status.RUNNING, 1)
    assert len(begun) == 1


# --- activation strategies ------------------------------------------------------------------------


def guarded(strategy: str | None, definition_id: str = "orders") -> Drawn:
    kind = None if strategy is None else f"Elsa.Workflows.ActivationStrategies.{strategy}, Elsa"
    return drawn(definitionId=definition_id, options={"activationStrategyType": kind})


def test_most_definitions_may_have_any_number_of_instances() -> None:
    assert [guarded(s).guards("c") for s in (None, "AllowAlwaysStrategy", "Unheard")] == [(), (), ()]


def test_a_singleton_looks_at_all_instances_of_its_definition() -> None:
    (guard,) = guarded("SingletonStrategy").guards("c")
    assert guard == Activation(key="singleton:orders", definition_id="orders")


def test_a_correlated_singleton_looks_at_those_with_its_correlation() -> None:
    (guard,) = guarded("CorrelatedSingletonStrategy").guards("c")
    assert guard == Activation(key="correlated:orders:c", definition_id="orders", correlation_id="c")


def test_a_correlation_is_unique_among_all_definitions() -> None:
    (guard,) = guarded("CorrelationStrategy").guards("c")
    assert guard == Activation(key="correlation:c", correlation_id="c")


@pytest.mark.parametrize("strategy", ["CorrelatedSingletonStrategy", "CorrelationStrategy"])
def test_without_a_correlation_only_starts_without_one_are_in_the_way(strategy: str) -> None:
    (guard,) = guarded(strategy).guards(None)
    assert not guard.looks
    assert guard.key != guarded(strategy).guards("c")[0].key


def test_no_two_meanings_share_a_key_and_none_is_too_long() -> None:
    strategy = "CorrelatedSingletonStrategy"
    pairs = [("a:b", "c"), ("a", "b:c"), ("a", None), ("a" * 190, "c" * 190), ("a" * 190, "d" * 190)]
    keys = [guarded(strategy, definition).guards(about)[0].key for definition, about in pairs]
    assert len(set(keys)) == len(keys)
    assert max(map(len, keys)) <= 200
