"""The rules of versions: what drafts, publishing, retracting and deleting make of one definition.

All versions of a definition are a tuple. A rule looks at them and says which one version comes of it;
`put` takes that one in and keeps the promises between them: one is the latest, at most one is published.
The rules are Elsa's. Keeping versions somewhere is the work of `runtime.publishing` and `local.catalogue`.
"""

from collections.abc import Sequence

from holdfast.clock import Ids
from holdfast.definitions.document import Definition
from holdfast.definitions.problems import Problem
from holdfast.definitions.reader import member
from holdfast.errors import Invalid, NotFound

Versions = tuple[Definition, ...]


class DefinitionNotFound(NotFound):
    """No definition has that id here, or it has no such version."""

    code = "definition.not_found"


class NotPublished(Invalid):
    """Publishing was refused; `problems` says why."""

    code = "definition.not_published"

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("Not published: " + "; ".join(str(problem) for problem in problems))
        self.problems = problems


def put(versions: Sequence[Definition], definition: Definition) -> Versions:
    """Take in a version, in the place of the one with its number. It alone is what its flags say."""
    others = [v for v in versions if v.version != definition.version]
    if definition.is_latest:
        others = [v.with_members(isLatest=False) if v.is_latest else v for v in others]
    if definition.is_published:
        others = [v.with_members(isPublished=False) if v.is_published else v for v in others]
    return (*others, definition)


def find(versions: Sequence[Definition], version: str | int = "Published") -> Definition | None:
    """One version: `Published`, `Draft`, a number, or else the latest."""
    highest = sorted(versions, key=lambda v: v.version, reverse=True)
    if isinstance(version, int):
        return next((v for v in versions if v.version == version), None)
    if version == "Published":
        return next((v for v in highest if v.is_published), None)
    if version == "Draft":
        return next((v for v in highest if v.is_latest and not v.is_published), None)
    return next((v for v in highest if v.is_latest), None) or next(iter(highest), None)


def draft_from(versions: Sequence[Definition], uploaded: Definition, ids: Ids) -> Definition:
    """What an upload becomes: the draft there is, with this content, or one with the next number."""
    definition_id = versions[0].definition_id if versions else uploaded.definition_id or ids.new()
    draft = find(versions, "Draft")
    if draft is not None:
        number, version_id = draft.version, draft.id
    else:
        number = _next_number(versions)
        given = member(uploaded.source, "id")
        version_id = given if not versions and isinstance(given, str) and given else ids.new()
    return uploaded.with_members(
        definitionId=definition_id, id=version_id, version=number, isLatest=True, isPublished=False
    )


def draft_of_latest(versions: Sequence[Definition], ids: Ids) -> Definition | None:
    """The draft there is, or a copy of the latest version with the next number; None of nothing."""
    latest = find(versions, "Latest")
    if latest is None or not latest.is_published:
        return latest
    return _copied(versions, latest, ids)


def reverted(versions: Sequence[Definition], number: int, ids: Ids) -> Definition | None:
    """An older version as the draft: in the place of the one there is, or with the next number."""
    older = find(versions, number)
    if older is None:
        return None
    draft = find(versions, "Draft")
    if draft is None:
        return _copied(versions, older, ids)
    return older.with_members(id=draft.id, version=draft.version, isLatest=True, isPublished=False)


def published(definition: Definition) -> Definition:
    """The version as the one that new instances run."""
    return definition.with_members(isPublished=True, isLatest=True)


def retracted(definition: Definition) -> Definition:
    return definition.with_members(isPublished=False)


def provided(definition: Definition, ids: Ids) -> Definition:
    """A version as a folder or package brings it: ids, number and flags as they are written.

    Written by hand, a file says nothing of being published; then it is meant to be used.
    """
    if not definition.definition_id:
        definition = definition.with_members(definitionId=ids.new())
    if member(definition.source, "isPublished") is None and member(definition.source, "isLatest") is None:
        definition = published(definition)
    return definition


def without(versions: Sequence[Definition], number: int) -> Versions:
    """The versions after one of them was deleted. When that was the latest, the highest left is."""
    left = tuple(v for v in versions if v.version != number)
    highest = max(left, key=lambda v: v.version, default=None)
    if highest is None or any(v.is_latest for v in left):
        return left
    return put(left, highest.with_members(isLatest=True))


def _copied(versions: Sequence[Definition], original: Definition, ids: Ids) -> Definition:
    return original.with_members(
        id=ids.new(), version=_next_number(versions), isLatest=True, isPublished=False
    )


def _next_number(versions: Sequence[Definition]) -> int:
    return max((v.version for v in versions), default=0) + 1
