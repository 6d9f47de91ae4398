"""Whether the connections of a flowchart join activities that exist, and reach them all."""

from collections.abc import Mapping, Sequence

from holdfast.codec import is_list, is_object
from holdfast.definitions.connections import (
    FlowPlan,
    connection_items,
    find_start,
    read_connections,
    read_ends,
)
from holdfast.definitions.evaluators import read_expression
from holdfast.definitions.places import Placed
from holdfast.definitions.problems import Problems
from holdfast.definitions.reader import member, unwrap

_MOST_CONNECTIONS = 1_000
"""Telling backward connections takes time that grows with their square; beyond this we do not ask."""

_CHOSEN = "dynamic-outcomes"
"""The hint of an input that lists outcomes. A script may choose others all the same."""


def check_connections(
    flowchart: Placed, children: Sequence[Placed], problems: Problems, *, counts: bool
) -> None:
    """All connections of one flowchart. `counts`: it follows them by counting visits, not by tokens."""
    connections = flowchart.members.get("connections")
    if connections is not None and not is_object(connections) and not is_list(unwrap(connections)):
        problems.error(
            "connection.shape",
            f"{flowchart.at}.connections",
            "The connections of a flowchart are a list. Write [] when there are none.",
            flowchart.id,
        )
    by_id: dict[str, Placed] = {}
    for child in children:
        by_id.setdefault(child.id, child)
    known: dict[tuple[str, str | None, str], str] = {}
    single = is_object(unwrap(connections))
    for index, item in enumerate(connection_items(connections)):
        at = f"{flowchart.at}.connections" + ("" if single else f"[{index}]")
        ends = read_ends(item)
        if ends is None:
            problems.error(
                "connection.shape",
                at,
                "This connection has no source or no target. Remove it, or write "
                '{"source": {"activity": "a", "port": "Done"}, "target": {"activity": "b"}}.',
                flowchart.id,
            )
            continue
        if ends in known:
            problems.warn(
                "connection.duplicate", at, "The same connection is there already. Remove this one.", ends[0]
            )
            continue
        known[ends] = at
        _check_ends(ends, at, is_object(member(item, "source")), by_id, flowchart, problems)
    ends = read_connections(connections, by_id)
    start = find_start(children, ends)
    _check_reach(start, children, ends, problems)
    if counts and start is not None and len(ends) <= _MOST_CONNECTIONS:
        _check_backward(FlowPlan(by_id, start.id, ends), children, known, problems)


def _check_ends(
    ends: tuple[str, str | None, str],
    at: str,
    nested: bool,
    by_id: Mapping[str, Placed],
    flowchart: Placed,
    problems: Problems,
) -> None:
    source, port, target = ends
    for end, activity_id in (("source", source), ("target", target)):
        if activity_id not in by_id:
            problems.error(
                "connection.dangling",
                f"{at}.{end}.activity" if nested else f"{at}.{end}",
                f"No activity of this flowchart has the id {activity_id!r}, so the connection is ignored. "
                f"{problems.similar(activity_id, by_id)}"
                f"Connect another activity of the same flowchart, or remove the connection.",
                flowchart.id,
            )
    if port is None or source not in by_id:
        return
    outcomes = _outcomes(by_id[source])
    if outcomes is not None and port not in (*outcomes, "Done", "Error"):
        chosen = any(declared.hint == _CHOSEN for declared in by_id[source].type.descriptor.inputs)
        report = problems.warn if chosen else problems.error
        report(
            "connection.port",
            f"{at}.source.port" if nested else f"{at}.sourcePort",
            f"{by_id[source].type_name} {source!r} has no outcome {port!r}, so this connection is never "
            f"followed. {problems.similar(port, outcomes)}"
            f"Its outcomes are {', '.join(outcomes) or 'none'}; Error stands for its faults.",
            source,
        )


def _outcomes(place: Placed) -> list[str] | None:
    """The outcomes of an activity; None when only running it will tell."""
    descriptor = place.type.descriptor
    if not place.is_known:
        return None
    if descriptor.dynamic_outcomes is None:
        return list(descriptor.outcomes)
    members = dict(place.members)
    for declared in descriptor.inputs:
        value = members[declared.json_name] = place.members.get(declared.json_name.lower())
        expression = member(value, "expression") if is_object(value) else value
        if declared.hint == _CHOSEN and read_expression(expression)[0] not in ("Literal", "Object", "Json"):
            return None
    try:
        return descriptor.dynamic_outcomes(members)
    except Exception:  # an author's function, given whatever JSON there is: it may not be up to this
        return None


def _check_reach(
    start: Placed | None,
    children: Sequence[Placed],
    ends: Sequence[tuple[Placed, str | None, Placed]],
    problems: Problems,
) -> None:
    following: dict[Placed, list[Placed]] = {}
    for source, _, target in ends:
        following.setdefault(source, []).append(target)
    waiting = [child for child in children if child is start or child.can_start]
    reached = set(waiting)
    while waiting:
        for child in following.get(waiting.pop(), ()):
            if child not in reached:
                reached.add(child)
                waiting.append(child)
    for child in children:
        if child not in reached and start is not None:
            problems.warn(
                "activity.unreachable",
                child.at,
                f"No connection leads here from {start.id!r}, where the flowchart starts, so this never "
                f"runs. Connect it, or remove it.",
                child.id,
            )


def _check_backward(
    plan: FlowPlan,
    children: Sequence[Placed],
    paths: Mapping[tuple[str, str | None, str], str],
    problems: Problems,
) -> None:
    for child in children:
        for connection in plan.outbound(child):
            if connection.is_backward and not plan.is_valid_backward(connection):
                problems.warn(
                    "connection.backward",
                    paths[child.id, connection.port, connection.target.id],
                    f"This leads back into the middle of a path: {child.id!r} can be reached without "
                    f"passing {connection.target.id!r}, so following it faults. Lead it back to an activity "
                    f"that every path to {child.id!r} passes.",
                    child.id,
                )
