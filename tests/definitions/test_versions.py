"""What drafts, publishing, reverting and deleting make of the versions of one definition."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.definitions import versions
from holdfast.definitions.document import Definition, load_definition
from holdfast.definitions.versions import Versions
from holdfast.testing.clock import NumberedIds
from tests.documents import document, write


def written(text: str = "hello", **members: Any) -> Definition:
    return load_definition(document(write(text), **members))


def numbered(
    number: int, text: str = "hello", *, latest: bool = False, published: bool = False
) -> Definition:
    return written(text, id=f"v{number}", version=number, isLatest=latest, isPublished=published)


def flags(own: Versions) -> dict[int, str]:
    return {
        v.version: ("L" if v.is_latest else "") + ("P" if v.is_published else "")
        for v in sorted(own, key=lambda v: v.version)
    }


def test_the_first_upload_is_version_one_and_keeps_its_own_id() -> None:
    draft = versions.draft_from((), written(id="mine", version=7), NumberedIds())
    assert (draft.version, draft.id, draft.is_latest, draft.is_published) == (1, "mine", True, False)


def test_an_upload_that_names_no_definition_begins_a_new_one() -> None:
    anonymous = load_definition({"root": write("x")})
    assert versions.draft_from((), anonymous, NumberedIds()).definition_id == "i1"


def test_an_upload_changes_the_draft_there_is() -> None:
    own = (numbered(1, published=True), numbered(2, latest=True))
    draft = versions.draft_from(own, written("other", id="elsewhere", version=9), NumberedIds())
    assert (draft.version, draft.id, draft.root["id"]) == (2, "v2", "other")


def test_an_upload_to_a_published_definition_is_a_draft_with_the_next_number() -> None:
    own = (numbered(1), numbered(5, latest=True, published=True))
    draft = versions.draft_from(own, written("other", id="v5"), NumberedIds())
    assert (draft.version, draft.id) == (6, "i1")
    assert flags(versions.put(own, draft)) == {1: "", 5: "P", 6: "L"}


def test_a_draft_of_the_latest_is_the_draft_or_a_copy_of_what_is_published() -> None:
    draft = numbered(2, latest=True)
    assert versions.draft_of_latest((numbered(1, published=True), draft), NumberedIds()) is draft
    copy = versions.draft_of_latest((numbered(3, "three", latest=True, published=True),), NumberedIds())
    assert copy is not None
    assert (copy.version, copy.id, copy.is_published, copy.root["id"]) == (4, "i1", False, "three")
    assert versions.draft_of_latest((), NumberedIds()) is None


def test_publishing_takes_the_place_of_what_was_published() -> None:
    own = (numbered(1, published=True), numbered(2, latest=True))
    assert flags(versions.put(own, versions.published(own[1]))) == {1: "", 2: "LP"}


def test_retracting_leaves_a_draft() -> None:
    own = (numbered(1, latest=True, published=True),)
    after = versions.put(own, versions.retracted(own[0]))
    assert flags(after) == {1: "L"}
    assert versions.find(after, "Draft") is after[0]


def test_reverting_makes_a_new_draft_of_the_old_content() -> None:
    own = (numbered(1, "old"), numbered(2, "new", latest=True, published=True))
    draft = versions.reverted(own, 1, NumberedIds())
    assert draft is not None
    assert (draft.version, draft.id, draft.root["id"]) == (3, "i1", "old")
    assert flags(versions.put(own, draft)) == {1: "", 2: "P", 3: "L"}


def test_reverting_takes_the_place_of_a_draft() -> None:
    own = (numbered(1, "old", published=True), numbered(2, "new", latest=True))
    draft = versions.reverted(own, 1, NumberedIds())
    assert draft is not None
    assert (draft.version, draft.id, draft.root["id"]) == (2, "v2", "old")
    assert versions.reverted(own, 9, NumberedIds()) is None


def test_when_the_latest_is_deleted_the_highest_left_is_the_latest() -> None:
    own = (numbered(1), numbered(2, published=True), numbered(3, latest=True))
    assert flags(versions.without(own, 3)) == {1: "", 2: "LP"}
    assert flags(versions.without(own, 1)) == {2: "P", 3: "L"}
    assert versions.without((own[0],), 1) == ()


def test_a_file_that_says_nothing_of_being_published_is_meant_to_be_used() -> None:
    made = versions.provided(load_definition({"definitionId": "x", "root": write("x")}), NumberedIds())
    assert (made.is_published, made.is_latest) == (True, True)
    draft = load_definition({"definitionId": "x", "isPublished": False, "root": write("x")})
    assert versions.provided(draft, NumberedIds()) is draft


Action = tuple[str, int]

actions = st.lists(
    st.tuples(
        st.sampled_from(["upload", "draft", "publish", "retract", "revert", "delete"]), st.integers(1, 6)
    ),
    max_size=12,
)


@given(actions)
def test_there_is_one_latest_version_and_at_most_one_published_whatever_is_done(done: list[Action]) -> None:
    own: Versions = ()
    ids = NumberedIds()
    for action, number in done:
        result: Definition | None = None
        latest, published = versions.find(own, "Latest"), versions.find(own)
        if action == "upload":
            result = versions.draft_from(own, written(str(number)), ids)
        elif action == "draft":
            result = versions.draft_of_latest(own, ids)
        elif action == "publish":
            result = None if latest is None else versions.published(latest)
        elif action == "retract":
            result = None if published is None else versions.retracted(published)
        elif action == "revert":
            result = versions.reverted(own, number, ids)
        else:
            own = versions.without(own, number)
        if result is not None:
            own = versions.put(own, result)
        assert [v.is_latest for v in own].count(True) == bool(own)
        assert [v.is_published for v in own].count(True) <= 1
        assert len({v.version for v in own}) == len({v.id for v in own}) == len(own)
