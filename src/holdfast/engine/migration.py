"""Moving an instance to another version of its definition: where everything that is open goes.

A state names activities by id, so it fits another version as far as that one has the same activities in
the same containers, or somebody says what they are called now. What an execution keeps for itself is the
business of its activity: one that remembers positions or ids of what it contains has a `migrated`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.authoring import Child
from holdfast.definitions.compiler import WORKFLOW
from holdfast.definitions.graph import Graph, Node
from holdfast.errors import Invalid
from holdfast.instance import OpenFrame, State, Transient


class CannotMigrate(Invalid):
    """Something that is open has no place in the other version."""

    code = "migration.impossible"

    def __init__(self, version: int, problems: Sequence[str]) -> None:
        super().__init__(f"It cannot go on as version {version}: {' '.join(problems)}")
        self.problems = tuple(problems)


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """What moving an instance would come to. Nothing has been moved."""

    problems: tuple[str, ...] = ()
    """Why it cannot be done: what is open and has no place in the other version."""
    lost: tuple[str, ...] = ()
    """Variables that the other version does not declare, whose values go."""

    @property
    def is_possible(self) -> bool:
        return not self.problems


def plan_migration(
    state: State, present: Graph, target: Graph, activities: Mapping[str, str] | None = None
) -> Migration:
    """What would become of an instance, without doing it."""
    moves = _Moves(present, target, activities or {})
    lost: list[str] = []
    for frame in state.frames:
        node = moves.place_of(frame.node)
        if node is not None:
            declared = present.node(frame.node).variables
            lost += [
                declared[name].name if name in declared else name
                for name in frame.variables
                if name not in node.variables and name not in frame.dynamic
            ]
    for work in () if state.transient is None else state.transient.work:
        moves.place_of(work.node)
    return Migration(problems=tuple(moves.problems), lost=tuple(lost))


def migrate_state(state: State, present: Graph, target: Graph, activities: Mapping[str, str]) -> State:
    """The state as one of the target version. Raises CannotMigrate."""
    moves = _Moves(present, target, activities)
    open_under: dict[int | None, list[Node]] = {}
    placed: list[tuple[OpenFrame, Node]] = []
    for frame in state.frames:
        node = moves.place_of(frame.node)
        if node is not None:
            placed.append((frame, node))
            open_under.setdefault(frame.parent, []).append(node)
    transient = state.transient
    if transient is not None:
        transient = _moved_transient(transient, moves, open_under)
    if moves.problems:
        raise CannotMigrate(target.definition.version, moves.problems)
    nodes = {frame.number: node for frame, node in placed}
    return msgspec.structs.replace(
        state,
        definition_id=target.definition.definition_id,
        version_id=target.definition.id,
        version=target.definition.version,
        frames=tuple(
            msgspec.structs.replace(
                frame,
                node=node.ref,
                state=_moved_state(frame, node, open_under.get(frame.number, []), activities),
            )
            for frame, node in placed
        ),
        bookmarks=tuple(
            msgspec.structs.replace(b, activity_id=nodes[b.execution].id) if b.execution in nodes else b
            for b in state.bookmarks
        ),
        incidents=tuple(
            msgspec.structs.replace(i, activity_id=nodes[i.execution].id, node_id=nodes[i.execution].path)
            if i.execution in nodes
            else i
            for i in state.incidents
        ),
        transient=transient,
    )


def _moved_transient(transient: Transient, moves: "_Moves", open_under: dict[Any, list[Node]]) -> Transient:
    work = list(transient.work)
    for number, one in enumerate(work):
        node = moves.place_of(one.node)
        if node is not None:
            work[number] = msgspec.structs.replace(one, node=node.ref)
            if one.execution is None:
                open_under.setdefault(one.owner, []).append(node)
    return msgspec.structs.replace(
        transient,
        work=tuple(work),
        outputs=tuple((n, moves.renamed(a), name, value) for n, a, name, value in transient.outputs),
    )


def _moved_state(
    frame: OpenFrame, node: Node, open_inside: Sequence[Child], activities: Mapping[str, str]
) -> Mapping[str, Any]:
    migrated = getattr(node.implementation, "migrated", None)
    if migrated is None or not frame.state:
        return frame.state
    return migrated(dict(frame.state), node.fixed, open_inside, activities)


class _Moves:
    """From nodes of the present version to those of the target, and what has no place there."""

    def __init__(self, present: Graph, target: Graph, activities: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self._present = present
        self._target = target
        self._activities = activities
        self._by_id: dict[str, list[Node]] = {}
        for node in target.nodes:
            self._by_id.setdefault(node.id, []).append(node)
        self._asked: dict[str, Node | None] = {}
        for old in activities:
            if all(node.id != old for node in present.nodes):
                self.problems.append(
                    f"Activity {old!r} is to be renamed, and version {present.definition.version} has none."
                )

    def renamed(self, activity_id: str) -> str:
        return self._activities.get(activity_id, activity_id)

    def place_of(self, ref: str) -> Node | None:
        """None, with a problem noted, when there is none."""
        if ref not in self._asked:
            self._asked[ref] = self._find(self._present.node(ref))
        return self._asked[ref]

    def _find(self, node: Node) -> Node | None:
        if node.parent is None:
            return self._target.root
        around = self.place_of(node.parent.ref)
        if around is None:
            return None  # told about its container already
        if node.type_name == WORKFLOW:  # the invisible one behind a workflow-activity
            return around.fixed.get("workflow")
        wanted = self.renamed(node.id)
        found = self._by_id.get(wanted, [])
        here = [one for one in found if one.parent is around]
        old, new = self._present.definition.version, self._target.definition.version
        if not found:
            self.problems.append(f"Activity {node.id!r} is open, and version {new} has no {wanted!r}.")
        elif not here:
            self.problems.append(
                f"Activity {node.id!r} is open inside {node.parent.id!r}, and {wanted!r} is inside "
                f"{getattr(found[0].parent, 'id', None)!r} in version {new}."
            )
        elif here[0].type_name != node.type_name:
            self.problems.append(
                f"Activity {node.id!r} is a {node.type_name} in version {old}, and {wanted!r} a "
                f"{here[0].type_name} in version {new}."
            )
        else:
            return here[0]
        return None
