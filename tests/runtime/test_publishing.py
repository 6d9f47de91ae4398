"""Definitions come into the store, go out of it, and open to the outside while they are published."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.bookmark import key_of
from holdfast.commit import Birth, Columns, Envelope
from holdfast.definitions.versions import DefinitionNotFound, NotPublished
from holdfast.errors import Conflict
from holdfast.instance import SubStatus
from holdfast.runtime.publishing import TRIES, DefinitionInUse
from holdfast.runtime.schedules import steps
from holdfast.store import Admission, Cursor, EditionChanged, Firing, Schedule
from tests.documents import document, event, literal, sequence, write
from tests.runtime.definition_stores import Desk, desk

__all__ = ["desk"]

BORN = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
STARTS: dict[str, Any] = {"canStartWorkflow": True}


def hourly(expression: str = "0 0 * * * *", activity_id: str = "c", **settings: Any) -> dict[str, Any]:
    custom = {**STARTS, "holdfast": settings} if settings else STARTS
    cron = {
        "id": activity_id,
        "type": "Elsa.Cron",
        "cronExpression": literal(expression),
        "customProperties": custom,
    }
    return document(sequence(cron, write("tick")))


def on_event(name: str, **members: Any) -> dict[str, Any]:
    return document(sequence(event(name, customProperties=STARTS)), **members)


async def waiting_for(desk: Desk, name: str) -> list[str]:
    """The ids of the versions that an event would start."""
    triggers, _ = await desk.store.find("acme", key_of("Elsa.Event", {"eventName": name}))
    return [trigger.version_id for trigger in triggers]


async def numbers(desk: Desk, definition_id: str = "test") -> dict[int, str]:
    headers = [h for h in await desk.store.headers("acme") if h.definition_id == definition_id]
    return {h.version: ("L" if h.is_latest else "") + ("P" if h.is_published else "") for h in headers}


async def only_schedule(desk: Desk) -> Schedule:
    (found,) = await desk.store.schedules("acme", "test")
    return found


async def fire(desk: Desk) -> None:
    """Let go whatever is due, as somebody does who owns the schedule's shard."""
    for schedule in await desk.store.due_schedules([5], desk.clock.now(), 10):
        present = schedule
        for step in steps(schedule, desk.clock.now()):
            firing = Firing(schedule=present, nominal=step.nominal, start=None, then=step.then)
            assert await desk.store.fire(firing) is not None
            (present,) = await desk.store.schedules("acme", "test")


async def begin(desk: Desk, version_id: str, version: int = 1) -> None:
    """An open instance of a version."""
    columns = Columns(
        definition_id="test",
        version_id=version_id,
        version=version,
        sub_status=SubStatus.PENDING,
        created_at=BORN,
        updated_at=BORN,
    )
    birth = Birth(instance_id=f"i-{version_id}", shard=0, columns=columns)
    start = Envelope(tenant="acme", instance_id=f"i-{version_id}", shard=0, kind="start")
    await desk.store.admit([Admission(message=start, birth=birth)])


# --- drafts ---------------------------------------------------------------------------------------


async def test_an_upload_is_a_draft_that_nothing_starts(desk: Desk) -> None:
    draft = await desk.publishing.import_draft("acme", on_event("paid"))
    assert (draft.version, draft.is_published) == (1, False)
    assert await numbers(desk) == {1: "L"}
    assert await waiting_for(desk, "paid") == []


async def test_what_is_kept_is_the_document_member_for_member(desk: Desk) -> None:
    made = await desk.publish(document(write("x"), unheardOf={"b": 1, "a": [2.50]}))
    stored = await desk.store.version("acme", made.id)
    assert stored is not None
    assert stored.document == made.save()
    assert stored.header.created_at == desk.clock.now()
    assert b'"unheardOf":{"b":1,"a":[2.5' in stored.document


async def test_the_same_upload_again_changes_nothing(desk: Desk) -> None:
    first = await desk.publish(document(write("x")))
    desk.counted.calls.clear()
    again = await desk.publish(document(write("x"), version=7, isPublished=False))
    assert (again.id, again.version) == (first.id, 1)
    assert "publish" not in desk.counted.calls
    assert await numbers(desk) == {1: "LP"}


async def test_a_copy_under_another_definition_id_gets_a_version_id_of_its_own(desk: Desk) -> None:
    first = await desk.publish(document(write("x")))
    copy = await desk.publishing.import_draft("acme", document(write("x"), definitionId="copy"))
    assert copy.id != first.id


async def test_a_draft_is_saved_under_the_id_it_is_saved_to(desk: Desk) -> None:
    await desk.publish(document(write("x")))
    draft = await desk.publishing.save_draft("acme", "test", document(write("y"), definitionId="elsewhere"))
    assert (draft.definition_id, draft.version) == ("test", 2)
    with pytest.raises(DefinitionNotFound):
        await desk.publishing.save_draft("acme", "nowhere", document(write("y")))


async def test_a_draft_of_what_is_published_is_made_once(desk: Desk) -> None:
    await desk.publish(document(write("x")))
    draft = await desk.publishing.draft("acme", "test")
    again = await desk.publishing.draft("acme", "test")
    assert (draft.version, again.id) == (2, draft.id)
    assert await numbers(desk) == {1: "P", 2: "L"}


async def test_reverting_brings_old_content_back_as_a_draft(desk: Desk) -> None:
    await desk.publish(document(write("old")))
    await desk.publish(document(write("new")))
    draft = await desk.publishing.revert("acme", "test", 1)
    assert (draft.version, draft.root["id"]) == (3, "old")
    assert await numbers(desk) == {1: "", 2: "P", 3: "L"}
    with pytest.raises(DefinitionNotFound):
        await desk.publishing.revert("acme", "test", 9)


# --- publishing -----------------------------------------------------------------------------------


async def test_publishing_moves_the_triggers_to_the_new_version(desk: Desk) -> None:
    first = await desk.publish(on_event("paid"))
    assert await waiting_for(desk, "paid") == [first.id]
    second = await desk.publish(on_event("sent"))
    assert await waiting_for(desk, "paid") == []
    assert await waiting_for(desk, "sent") == [second.id]
    assert await numbers(desk) == {1: "", 2: "LP"}


async def test_publishing_without_a_draft_changes_nothing(desk: Desk) -> None:
    first = await desk.publish(hourly())
    before = await only_schedule(desk)
    desk.clock.advance(10 * HOUR)
    assert (await desk.publishing.publish("acme", "test")).id == first.id
    assert await only_schedule(desk) == before
    with pytest.raises(DefinitionNotFound):
        await desk.publishing.publish("acme", "nowhere")


@pytest.mark.parametrize(
    ("source", "code", "path"),
    [
        (hourly("every hour"), "cron.invalid", "$.root.activities[0].cronExpression.expression"),
        (hourly(timeZone="Europe/Viena"), "schedule.invalid", "$.root.activities[0]"),
        (hourly(overlap="maybe"), "schedule.invalid", "$.root.activities[0]"),
        (document({"id": "x"}), "activity.untyped", "$.root.type"),
    ],
)
async def test_what_cannot_run_is_not_published_and_says_where_it_is_wrong(
    desk: Desk, source: dict[str, Any], code: str, path: str
) -> None:
    with pytest.raises(NotPublished) as refused:
        await desk.publish(source)
    assert [(p.code, p.path) for p in refused.value.problems] == [(code, path)]
    assert await numbers(desk) == {1: "L"}


async def test_problems_can_be_ignored_and_then_the_broken_trigger_never_fires(desk: Desk) -> None:
    await desk.publishing.import_draft("acme", hourly(timeZone="Europe/Viena"))
    made = await desk.publishing.publish("acme", "test", ignore_problems=True)
    assert made.is_published
    assert await desk.store.schedules("acme") == []


async def test_somebody_who_was_faster_is_not_overwritten(desk: Desk) -> None:
    await desk.publish(document(write("first")))
    other = Desk(desk.store, "other")

    async def be_faster() -> None:
        await other.publish(document(write("second")))

    desk.counted.before["publish"] = be_faster
    third = await desk.publishing.import_draft("acme", document(write("third")))
    assert third.version == 3
    assert await numbers(desk) == {1: "", 2: "P", 3: "L"}


async def test_a_schedule_that_fires_while_its_definition_is_published_does_not_fire_again(
    desk: Desk,
) -> None:
    await desk.publish(hourly())
    desk.clock.advance(HOUR)
    await desk.publishing.import_draft("acme", hourly(missed="skip"))

    async def fire_meanwhile() -> None:
        await fire(desk)

    desk.counted.before["publish"] = fire_meanwhile
    made = await desk.publishing.publish("acme", "test")
    schedule = await only_schedule(desk)
    assert schedule.version_id == made.id
    assert schedule.cursor == Cursor(next_at=BORN + 2 * HOUR, last_at=BORN + HOUR)


async def test_who_is_always_too_late_is_told_so(desk: Desk) -> None:
    await desk.publish(document(write("0")))
    other = Desk(desk.store, "other")
    count = 0

    async def be_faster() -> None:
        nonlocal count
        count += 1
        await other.publish(document(write(str(count))))
        desk.counted.before["publish"] = be_faster

    desk.counted.before["publish"] = be_faster
    with pytest.raises(EditionChanged):
        await desk.publishing.draft("acme", "test")
    assert count == TRIES


# --- schedules ------------------------------------------------------------------------------------


async def test_a_schedule_knows_where_it_is_kept_and_when_it_is_due(desk: Desk) -> None:
    made = await desk.publish(hourly(timeZone="Europe/Vienna", overlap="queue"))
    schedule = await only_schedule(desk)
    assert (schedule.shard, schedule.version_id, schedule.zone) == (5, made.id, "Europe/Vienna")
    assert schedule.cursor == Cursor(next_at=BORN + HOUR)


async def test_publishing_an_unchanged_schedule_keeps_its_place(desk: Desk) -> None:
    await desk.publish(hourly())
    desk.clock.advance(HOUR + timedelta(seconds=1))
    await fire(desk)
    before = await only_schedule(desk)
    desk.clock.advance(5 * HOUR)
    changed = hourly()
    changed["root"]["activities"].append(write("more"))
    made = await desk.publish(changed)
    schedule = await only_schedule(desk)
    assert schedule.version_id == made.id
    assert (schedule.cursor, schedule.spec) == (before.cursor, before.spec)


async def test_a_changed_schedule_begins_anew_after_now(desk: Desk) -> None:
    await desk.publish(hourly())
    desk.clock.advance(5 * HOUR)
    await desk.publish(hourly("0 30 * * * *"))
    assert (await only_schedule(desk)).cursor.next_at == BORN + 5.5 * HOUR


async def test_neither_retracting_nor_removing_a_trigger_lets_it_fire_again(desk: Desk) -> None:
    await desk.publish(hourly())
    desk.clock.advance(HOUR)
    await fire(desk)
    await desk.publishing.retract("acme", "test")
    assert (await only_schedule(desk)).cursor == Cursor(next_at=None, last_at=BORN + HOUR)
    await desk.publishing.publish("acme", "test")
    assert (await only_schedule(desk)).cursor == Cursor(next_at=BORN + 2 * HOUR, last_at=BORN + HOUR)
    await desk.publish(document(write("no trigger")))
    assert (await only_schedule(desk)).cursor == Cursor(next_at=None, last_at=BORN + HOUR)
    await desk.publish(hourly())
    assert (await only_schedule(desk)).cursor == Cursor(next_at=BORN + 2 * HOUR, last_at=BORN + HOUR)


async def test_refreshing_evaluates_triggers_again_and_keeps_their_place(desk: Desk) -> None:
    await desk.publish(hourly())
    before = await only_schedule(desk)
    desk.clock.advance(3 * HOUR)
    await desk.publishing.refresh("acme", "test")
    assert await only_schedule(desk) == before


# --- retracting and deleting ----------------------------------------------------------------------


async def test_what_is_retracted_starts_no_more(desk: Desk) -> None:
    await desk.publish(on_event("paid"))
    left = await desk.publishing.retract("acme", "test")
    assert (left.version, left.is_published) == (1, False)
    assert await waiting_for(desk, "paid") == []
    with pytest.raises(DefinitionNotFound):
        await desk.publishing.retract("acme", "test")
    with pytest.raises(DefinitionNotFound):
        await desk.library.published("acme", "test")


async def test_a_deleted_definition_leaves_nothing(desk: Desk) -> None:
    await desk.publish(hourly())
    await desk.publish(on_event("paid"))
    await desk.publishing.delete("acme", "test")
    assert await desk.store.headers("acme") == []
    assert await desk.store.schedules("acme") == []
    assert await waiting_for(desk, "paid") == []
    with pytest.raises(DefinitionNotFound):
        await desk.publishing.delete("acme", "test")


async def test_deleting_the_published_version_closes_its_entrances(desk: Desk) -> None:
    await desk.publish(on_event("old"))
    await desk.publish(on_event("paid"))
    await desk.publishing.delete("acme", "test", 2)
    assert await numbers(desk) == {1: "L"}
    assert await waiting_for(desk, "paid") == []


async def test_deleting_an_old_version_leaves_the_published_one_as_it_is(desk: Desk) -> None:
    await desk.publish(on_event("old"))
    second = await desk.publish(on_event("paid"))
    await desk.publishing.delete("acme", "test", 1)
    assert await numbers(desk) == {2: "LP"}
    assert await waiting_for(desk, "paid") == [second.id]


async def test_what_open_instances_need_is_not_deleted_unless_they_are_given_up(desk: Desk) -> None:
    first = await desk.publish(document(write("x")))
    await desk.publish(document(write("y")))
    await begin(desk, first.id)
    with pytest.raises(DefinitionInUse) as refused:
        await desk.publishing.delete("acme", "test")
    assert "1 open instances" in str(refused.value)
    assert isinstance(refused.value, Conflict)
    with pytest.raises(DefinitionInUse):
        await desk.publishing.delete("acme", "test", 1)
    await desk.publishing.delete("acme", "test", 2)
    await desk.publishing.delete("acme", "test", cascade=True)
    assert await numbers(desk) == {}


# --- consumers ------------------------------------------------------------------------------------

USABLE = {"usableAsActivity": True, "autoUpdateConsumingWorkflows": True}


def part(text: str, **options: Any) -> dict[str, Any]:
    members = {"definitionId": "part", "id": "p1", "name": "Part", "options": {**USABLE, **options}}
    return document(write(text), **members)


def whole(definition_id: str = "test") -> dict[str, Any]:
    uses = {"id": "u", "type": "Part", "version": 1, "workflowDefinitionId": "part"}
    start = event("go", customProperties=STARTS)
    return document(
        sequence(start, {**uses, "workflowDefinitionVersionId": "p1"}),
        definitionId=definition_id,
        id=f"{definition_id}1",
    )


async def test_consumers_follow_a_new_version_in_the_same_transaction(desk: Desk) -> None:
    await desk.publish(part("one"))
    await desk.publish(whole())
    await desk.publishing.import_draft("acme", whole("drafted"))
    await desk.publish(document(write("Part of nothing"), definitionId="bystander", id="b1"))
    await desk.publishing.import_draft("acme", part("two"))
    desk.counted.calls.clear()
    published = await desk.publishing.publish("acme", "part")
    assert desk.counted.calls.count("publish") == 1
    assert await numbers(desk) == {1: "", 2: "LP"}
    assert await numbers(desk, "drafted") == {1: "L"}
    assert await numbers(desk, "bystander") == {1: "LP"}
    program = await desk.library.published("acme", "test")
    uses = program.graph.find("u").json  # type: ignore[attr-defined]  # a drawn one
    assert (uses["version"], uses["workflowDefinitionVersionId"]) == (2, published.id)
    assert await waiting_for(desk, "go") == [program.version_id]


async def test_a_trigger_inside_a_new_version_starts_its_consumers_too(desk: Desk) -> None:
    await desk.publish(part("one"))
    await desk.publish(whole())
    inside = part("two")
    inside["root"] = sequence(event("inside", customProperties=STARTS))
    await desk.publish(inside)
    assert len(await waiting_for(desk, "inside")) == 2


async def test_what_another_node_brought_a_moment_ago_counts(desk: Desk) -> None:
    await desk.publish(part("one"))
    await desk.publish(whole())
    await desk.library.published("acme", "test")
    inside = part("two")
    inside["root"] = sequence(event("inside", customProperties=STARTS))
    await Desk(desk.store, "other").publishing.import_draft("acme", inside)
    await desk.publishing.publish("acme", "part")
    assert len(await waiting_for(desk, "inside")) == 2


async def test_consumers_stay_where_they_are_when_nobody_asked_for_them_to_follow(desk: Desk) -> None:
    await desk.publish(part("one"))
    await desk.publish(whole())
    await desk.publish(part("two", autoUpdateConsumingWorkflows=False))
    assert await numbers(desk) == {1: "LP"}


async def test_a_consumer_that_would_be_broken_stays_as_it_is_and_keeps_nobody_from_publishing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.definitions.compiler.MOST_NODES", 50)
    await desk.publish(part("one"))
    consumer = whole()
    consumer["root"]["activities"] *= 2
    await desk.publish(consumer)
    large = part("two")
    large["root"] = sequence(*(write(f"w{n}") for n in range(30)))
    made = await desk.publish(large)
    assert made.version == 2
    assert await numbers(desk) == {1: "LP"}


# --- what folders bring ---------------------------------------------------------------------------


async def test_a_file_is_published_unless_it_says_otherwise(desk: Desk) -> None:
    plain = {"definitionId": "plain", "root": sequence(event("go", customProperties=STARTS))}
    draft = {"definitionId": "draft", "isPublished": False, "isLatest": True, "root": write("x")}
    made = await desk.publishing.provide("acme", plain, draft)
    assert [d.is_published for d in made] == [True, False]
    assert await numbers(desk, "plain") == {1: "LP"}
    assert await numbers(desk, "draft") == {1: "L"}
    assert await waiting_for(desk, "go") == [made[0].id]


async def test_the_same_files_again_change_nothing(desk: Desk) -> None:
    files = [{"definitionId": "plain", "root": write("x")}, hourly()]
    await desk.publishing.provide("acme", *files)
    before = await only_schedule(desk)
    desk.counted.calls.clear()
    desk.clock.advance(5 * HOUR)
    again = await desk.publishing.provide("acme", *files)
    assert [d.version for d in again] == [1, 1]
    assert "publish" not in desk.counted.calls
    assert await only_schedule(desk) == before


async def test_what_an_operator_retracted_stays_retracted_until_the_file_changes(desk: Desk) -> None:
    file = {"definitionId": "test", "root": write("x")}
    await desk.publishing.provide("acme", file)
    await desk.publishing.retract("acme", "test")
    await desk.publishing.provide("acme", file)
    assert await numbers(desk) == {1: "L"}
    await desk.publishing.provide("acme", {**file, "root": write("y")})
    assert await numbers(desk) == {1: "", 2: "LP"}


async def test_a_changed_file_without_a_number_is_the_next_version(desk: Desk) -> None:
    for text in ("one", "two", "one"):
        await desk.publishing.provide("acme", {"definitionId": "test", "root": write(text)})
    assert await numbers(desk) == {1: "", 2: "", 3: "LP"}


async def test_a_file_with_a_number_is_that_version(desk: Desk) -> None:
    await desk.publishing.provide("acme", document(write("two"), id="t2", version=2))
    await desk.publishing.provide("acme", document(write("one"), id="t1", version=1, isPublished=False))
    assert await numbers(desk) == {1: "", 2: "LP"}
    await desk.publishing.provide("acme", document(write("more"), id="t2", version=2))
    assert await numbers(desk) == {1: "", 2: "LP"}


async def test_files_may_use_each_other_in_any_order(desk: Desk) -> None:
    inner = document(
        sequence(event("go", customProperties=STARTS)), definitionId="part", id="p1", name="Part"
    )
    inner["options"] = {"usableAsActivity": True}
    outer = whole()
    del outer["root"]["activities"][0]
    await desk.publishing.provide("acme", outer, inner)
    assert sorted(await waiting_for(desk, "go")) == ["p1", "test1"]


async def test_a_file_that_is_not_published_any_more_starts_no_more(desk: Desk) -> None:
    await desk.publishing.provide("acme", on_event("paid"))
    await desk.publishing.provide("acme", on_event("paid", isPublished=False, description="a draft again"))
    assert await numbers(desk) == {1: "L"}
    assert await waiting_for(desk, "paid") == []


async def test_of_files_that_come_together_none_is_taken_when_one_cannot_be(desk: Desk) -> None:
    with pytest.raises(NotPublished):
        await desk.publishing.provide("acme", on_event("paid", definitionId="a", id="a1"), hourly("never"))
    assert await desk.store.headers("acme") == []
