"""From placed activities to the JSON of a root: ids given, references checked.

An activity without an id is numbered by its type, in the order of the document: `WriteLine1`,
`WriteLine2`. So the same code gives the same document, and an instance finds its place again in the
next build of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from holdfast.definitions.builder_tree import About, BuilderInvalid, Mention, Placed, Use, listed, suggest
from holdfast.definitions.builder_values import Computed
from holdfast.definitions.graph import RetryPolicy
from holdfast.definitions.reader import Json


def write_root(root: Placed, declared: Iterable[Use]) -> Json:
    """The root activity as JSON. Raises BuilderInvalid."""
    ids = _ids_of(root)
    return _Writing(ids).activity(root, {(use.kind, use.id): use for use in declared})


def _ids_of(root: Placed) -> dict[Placed, str]:
    ids: dict[Placed, str] = {}
    taken: dict[str, Placed] = {}
    everything: dict[Placed, None] = {}
    for placed in _walk(root):
        if placed in everything:
            raise BuilderInvalid(
                f"{placed} stands at two places. An activity has one: place it twice to have two of them."
            )
        everything[placed] = None
        given = placed.said.get("id")
        if given is not None:
            if given in taken:
                raise BuilderInvalid(f"{placed} and {taken[given]} have the same id. Give one another id.")
            ids[placed], taken[given] = given, placed
    numbers: dict[str, int] = {}
    for placed in everything:
        while placed not in ids:
            kind = placed.short_type
            numbers[kind] = numbers.get(kind, 0) + 1
            wanted = f"{kind}{numbers[kind]}"
            if wanted not in taken:
                ids[placed] = wanted
    return ids


def _walk(value: object) -> Iterator[Placed]:
    """Every placed activity in a value, outer ones first."""
    if isinstance(value, Placed):
        yield value
        value = value.members
    if isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from _walk(item)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes | Mention):
        for item in cast("Sequence[Any]", value):
            yield from _walk(item)


_Scope = Mapping[tuple[str, str], Use]


class _Writing:
    def __init__(self, ids: Mapping[Placed, str]) -> None:
        self._ids = ids

    def activity(self, placed: Placed, scope: _Scope) -> Json:
        for use in placed.uses:
            if (use.kind, use.id) not in scope:
                raise _undeclared(placed, use, scope)
        scope = {**scope, **{(use.kind, use.id): use for use in placed.declares}}
        activity_id = self._ids[placed]
        said = placed.said
        own: Json = {"id": activity_id, "name": said.get("name", activity_id), "type": placed.type_name}
        if placed.version is not None:
            own["version"] = placed.version
        if custom := _custom_properties(said):
            own["customProperties"] = custom
        if metadata := _metadata(said):
            own["metadata"] = metadata
        members = {name: self._value(value, scope) for name, value in placed.members.items()}
        if "name" in members and "name" not in said:
            del own["name"]  # the type has an input with that name, and it stands in the same place
        if twice := own.keys() & members.keys():
            raise BuilderInvalid(
                f"{placed} has members of its own called {listed(sorted(twice))}. Rename them."
            )
        return {**own, **members}

    def _value(self, value: Any, scope: _Scope) -> Any:
        if isinstance(value, Placed):
            return self.activity(value, scope)
        if isinstance(value, Mention):
            return self._ids[value.activity]
        if isinstance(value, Computed):
            return cast("Computed[Any]", value).expression
        if isinstance(value, Mapping):
            return {k: self._value(v, scope) for k, v in cast("Mapping[str, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [self._value(item, scope) for item in cast("list[Any]", value)]
        return value


def _undeclared(placed: Placed, use: Use, scope: _Scope) -> BuilderInvalid:
    known = [other.name for kind, _ in scope if kind == use.kind for other in [scope[kind, _]]]
    where = "around it" if use.kind == "variable" else "of this workflow"
    return BuilderInvalid(
        f"{placed} uses the {use.kind} {use.name!r}, which nothing {where} declares. "
        f"{suggest(use.name, known)}Declared: {listed(known)}."
    )


def _custom_properties(said: About) -> Json:
    custom: Json = {}
    if "can_start" in said:
        custom["canStartWorkflow"] = said["can_start"]
    if "run_asynchronously" in said:
        custom["runAsynchronously"] = said["run_asynchronously"]
    if "merge_mode" in said:
        custom["mergeMode"] = said["merge_mode"]
    if "commit_strategy" in said:
        custom["commitStrategyName"] = said["commit_strategy"]
    if "retry" in said:
        retry = said["retry"]
        policy = retry if isinstance(retry, RetryPolicy) else RetryPolicy(attempts=retry)
        custom["retryPolicy"] = {
            "attempts": policy.attempts,
            "delay": policy.delay,
            "factor": policy.factor,
            "longest": policy.longest,
        }
    return {**custom, **said.get("custom", {})}


def _metadata(said: About) -> Json:
    metadata: Json = dict(said.get("metadata", {}))
    if "display_text" in said:
        metadata["displayText"] = said["display_text"]
    if "description" in said:
        metadata["description"] = said["description"]
    return metadata
