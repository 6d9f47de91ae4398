"""Where a published version can be entered: its triggers, and the schedules of those that time hits."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import msgspec

from holdfast.bookmark import Trigger
from holdfast.codec import is_list, is_object
from holdfast.definitions.graph import Graph
from holdfast.definitions.problems import Problem
from holdfast.engine import Environment, index_triggers
from holdfast.engine.triggers import TriggerInvalid
from holdfast.errors import Invalid
from holdfast.runtime.schedules import renewed, retracted, schedule_of, settings_of
from holdfast.store import Schedule


class Entrances(msgspec.Struct, frozen=True, kw_only=True):
    triggers: tuple[Trigger, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why some of its triggers are not among them."""


def find_entrances(
    graph: Graph,
    environment: Environment,
    *,
    tenant: str,
    shard_of: Callable[[str], int],
    before: Iterable[Schedule] = (),
) -> Entrances:
    """The entrances of a version that is published now, its definition having had these schedules before."""
    try:
        triggers = index_triggers(graph, environment)
    except TriggerInvalid as problem:
        found = Problem(path="$.root", code=problem.code, message=str(problem), blocks_publishing=True)
        return Entrances(schedules=closed(before).schedules, problems=(found,))
    now = environment.clock.now()
    earlier = {schedule.activity_id: schedule for schedule in before}
    rows: dict[str, Schedule] = {}
    problems: list[Problem] = []
    for trigger in triggers:
        if trigger.activity_id in rows:  # an id that is used twice: the first one counts, as everywhere
            continue
        try:
            row = _row(graph, trigger, tenant, shard_of(trigger.activity_id), now)
        except Invalid as problem:
            problems.append(_problem(graph, trigger, problem))
        else:
            if row is not None:
                rows[trigger.activity_id] = renewed(row, earlier.get(trigger.activity_id), now)
    for activity_id, schedule in earlier.items():
        rows.setdefault(activity_id, retracted(schedule))
    return Entrances(triggers=tuple(triggers), schedules=tuple(rows.values()), problems=tuple(problems))


def closed(before: Iterable[Schedule]) -> Entrances:
    """The entrances of a definition that is not published any more."""
    return Entrances(schedules=tuple(map(retracted, before)))


def _row(graph: Graph, trigger: Trigger, tenant: str, shard: int, now: datetime) -> Schedule | None:
    return schedule_of(trigger, settings_of(graph, trigger), tenant=tenant, shard=shard, now=now)


def _problem(graph: Graph, trigger: Trigger, problem: Invalid) -> Problem:
    return Problem(
        path=_path_of(trigger.activity_id, graph.definition.root, "$.root") or "$.root",
        code=problem.code,
        message=f"{trigger.name} cannot be scheduled: {problem}",
        activity_id=trigger.activity_id,
        blocks_publishing=True,
    )


def _path_of(activity_id: str, json: Any, at: str) -> str | None:
    """Where in a document an activity is; None when it is in a workflow that the document only uses."""
    if is_object(json):
        if json.get("id") == activity_id and "type" in json:
            return at
        inside = [(value, f"{at}.{name}") for name, value in json.items()]
    else:
        inside = [(value, f"{at}[{i}]") for i, value in enumerate(json)] if is_list(json) else []
    return next((found for value, path in inside if (found := _path_of(activity_id, value, path))), None)
