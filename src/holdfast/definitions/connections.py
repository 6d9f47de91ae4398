"""A flowchart's connections: how definitions write them, and what they mean from where it starts.

Breadth-first from the start, in the order the connections are written, an edge that would close a
cycle over the edges accepted so far leads *backward*; the others lead *forward*. Joins look at
forward edges only. The flowchart follows these plans, and `validate` looks at them beforehand.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from holdfast.authoring import Child
from holdfast.definitions.reader import Reader, unwrap


class Connection:
    """From an outcome of one activity to another activity."""

    __slots__ = ("is_backward", "key", "port", "source", "target")

    def __init__(self, source: Child, port: str | None, target: Child) -> None:
        self.source = source
        self.port = port
        self.target = target
        self.is_backward = False
        self.key = f"{source.id}:{port or ''}>{target.id}"
        """Its name in states."""


class FlowPlan:
    """The activities and connections of one flowchart, seen from one start."""

    def __init__(
        self, by_id: Mapping[str, Any], start_id: str, ends: list[tuple[Any, str | None, Any]]
    ) -> None:
        self._by_id = by_id
        self.start: Any = by_id.get(start_id)
        self._outbound: dict[Any, list[Connection]] = {}
        for source, port, target in ends:
            self._outbound.setdefault(source, []).append(Connection(source, port, target))
        self.inbound: dict[Any, list[Connection]] = {}
        """All connections that lead to an activity."""
        self.forward: dict[Any, list[Connection]] = {}
        """Those that lead forward, from the start."""
        self._ancestors: dict[Any, frozenset[Any]] = {}
        self._valid: dict[Connection, bool] = {}
        for connections in self._outbound.values():
            for connection in connections:
                self.inbound.setdefault(connection.target, []).append(connection)
        self._classify()

    def _classify(self) -> None:
        accepted: dict[Any, list[Any]] = {}
        waiting = deque([self.start])
        seen = {self.start}
        while waiting:
            source = waiting.popleft()
            for connection in self._outbound.get(source, ()):
                target = connection.target
                if _leads(accepted, target, source):
                    connection.is_backward = True
                    continue
                accepted.setdefault(source, []).append(target)
                self.forward.setdefault(target, []).append(connection)
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)

    def find(self, activity_id: str) -> Any:
        return self._by_id.get(activity_id)

    def outbound(self, child: Any) -> list[Connection]:
        return self._outbound.get(child, [])

    def is_reachable(self, child: Any) -> bool:
        return child is self.start or child in self.forward

    def ancestors(self, child: Any) -> frozenset[Any]:
        """Everything a forward path from the start to here passes, this one excluded."""
        found = self._ancestors.get(child)
        if found is None:
            reached: set[Any] = set()
            waiting = [child]
            while waiting:
                for connection in self.forward.get(waiting.pop(), ()):
                    if connection.source not in reached:
                        reached.add(connection.source)
                        waiting.append(connection.source)
            found = self._ancestors[child] = frozenset(reached - {child})
        return found

    def is_valid_backward(self, connection: Connection) -> bool:
        """Whether every forward path from its source back to the start passes its target."""
        known = self._valid.get(connection)
        if known is None:
            known = self._valid[connection] = not self._avoids(connection.source, connection.target)
        return known

    def _avoids(self, child: Any, target: Any) -> bool:
        """Whether some way back from `child` reaches the start without passing `target`."""
        waiting, seen = [child], {child}
        while waiting:
            here = waiting.pop()
            if here is target:
                continue
            if here is self.start:
                return True
            for connection in self.forward.get(here, ()):
                if connection.source not in seen:
                    seen.add(connection.source)
                    waiting.append(connection.source)
        return False


def _leads(accepted: Mapping[Any, list[Any]], begin: Any, end: Any) -> bool:
    """Whether accepted edges lead from one activity to another, or they are the same."""
    if begin is end:
        return True
    waiting, seen = [begin], {begin}
    while waiting:
        for following in accepted.get(waiting.pop(), ()):
            if following is end:
                return True
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False


def find_start(activities: Sequence[Any], ends: Iterable[tuple[Any, str | None, Any]]) -> Any:
    """Where to begin: a Start, a possible trigger, what leads the rest, the first; None when empty."""
    targets = {target.id for _, _, target in ends}
    candidates = (
        *(child for child in activities if child.type.descriptor.is_start),
        *(child for child in activities if child.can_start),
        *(child for child in activities if child.id not in targets),
        *activities,
    )
    return candidates[0] if candidates else None


def read_connections(connections: Any, by_id: Mapping[str, Any]) -> list[tuple[Any, str | None, Any]]:
    """In the order written, each once; those with an unknown end are left out."""
    found: dict[tuple[str, str | None, str], tuple[Any, str | None, Any]] = {}
    for item in connection_items(connections):
        ends = read_ends(item)
        if ends is None:
            continue
        source, port, target = ends
        if source in by_id and target in by_id:
            found.setdefault((source, port, target), (by_id[source], port, by_id[target]))
    return list(found.values())


def connection_items(connections: Any) -> list[Any]:
    """The connections as written: a list, a list in a wrapper, or a single one."""
    items = unwrap(connections)
    if isinstance(items, dict):
        return [items]
    return cast("list[Any]", items) if isinstance(items, list) else []


def read_ends(item: Any) -> tuple[str, str | None, str] | None:
    """Source id, source port and target id of a connection in either of its two shapes."""
    if not isinstance(item, dict):
        return None
    reader = Reader(cast("dict[str, Any]", item), "")
    source, target = reader.get("source"), reader.get("target")
    if isinstance(source, dict) and isinstance(target, dict):
        begin, end = Reader(cast("dict[str, Any]", source), ""), Reader(cast("dict[str, Any]", target), "")
        source, port, target = begin.get("activity"), begin.get("port"), end.get("activity")
    else:
        port = reader.get("sourcePort")
    if not isinstance(source, str) or not isinstance(target, str):
        return None
    return source, port if isinstance(port, str) and port else None, target
