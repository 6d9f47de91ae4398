"""What a case expects of its instance and of the whole host, compared with what there is.

One function per key of `corpus_expectation.Expectation`, in the order of that form.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from holdfast.codec import decode, read_payload
from holdfast.errors import HoldfastError
from holdfast.local.hosted import HostedInstance
from holdfast.testing import corpus_expectation as form
from holdfast.testing.corpus_compare import (
    Failure,
    Failures,
    compare,
    compare_activities,
    compare_complaints,
    compare_members,
    compare_paths,
    compare_triggers,
    compare_waiting,
)
from holdfast.testing.corpus_steps import Stage, StepFailed
from holdfast.testing.corpus_values import ABSENT, as_json, is_equal


def match_expectation(stage: Stage, expect: form.Expectation, at: str) -> Failures:
    for field in msgspec.structs.fields(expect):
        expected = getattr(expect, field.name)
        if expected is UNSET:
            continue
        key = f"{at}.{field.encode_name}"
        try:
            yield from MATCHERS[field.name](key, stage, expected)
        except HoldfastError as problem:
            yield Failure(key=key, problem=str(problem))


def _status(key: str, stage: Stage, expected: str) -> Failures:
    yield from compare(key, stage.instance.status, expected)


def _sub_status(key: str, stage: Stage, expected: str) -> Failures:
    yield from compare(key, stage.instance.sub_status, expected)


def _lines(key: str, stage: Stage, lines: form.Lines) -> Failures:
    written = stage.host.console.written
    counts = Counter(written)
    kept = {
        "equals": lines.equals is UNSET or written == lines.equals,
        "unordered": lines.unordered is UNSET or counts == Counter(lines.unordered),
        "contains": lines.contains is UNSET or counts.keys() >= set(lines.contains),
        "excludes": lines.excludes is UNSET or counts.keys().isdisjoint(lines.excludes),
        "containsAny": lines.contains_any is UNSET or all(counts.keys() & set(g) for g in lines.contains_any),
        "count": lines.count is UNSET or len(written) == lines.count,
        "counts": lines.counts is UNSET or all(counts[line] == n for line, n in lines.counts.items()),
        "first": lines.first is UNSET or written[:1] == [lines.first],
        "last": lines.last is UNSET or written[-1:] == [lines.last],
        "anyOf": lines.any_of is UNSET or written in lines.any_of,
    }
    expected = msgspec.to_builtins(lines)
    for name, is_kept in kept.items():
        if not is_kept:
            yield Failure(key=f"{key}.{name}", expected=expected[name], actual=list(written))


def _outputs(key: str, stage: Stage, expected: Mapping[str, Any]) -> Failures:
    yield from compare_members(key, stage.instance.output, expected)


def _variables(key: str, stage: Stage, expected: Mapping[str, Any]) -> Failures:
    yield from compare_members(key, stage.instance.variables, expected)


def _bookmarks(key: str, stage: Stage, expected: list[form.Waiting]) -> Failures:
    yield from compare_waiting(key, stage.instance.bookmarks, expected)


def _incidents(key: str, stage: Stage, expected: list[form.Complaint]) -> Failures:
    yield from compare_complaints(key, stage.instance.incidents, expected)


def _journal(key: str, stage: Stage, expected: list[form.JournalCount]) -> Failures:
    instance = stage.instance
    counts = Counter(
        (graph.nodes[record.node].id, record.event)
        for record, graph in zip(instance.records, instance.graphs, strict=True)
    )
    for entry in expected:
        at = f"{key}.{entry.activity_id}.{entry.event_name}"
        yield from compare(at, counts[entry.activity_id, entry.event_name], entry.count)


def _activities(key: str, stage: Stage, expected: Mapping[str, str]) -> Failures:
    yield from compare_members(
        key, {r.activity_id: r.status for r in stage.instance.activity_records()}, expected
    )


def _not_executed(key: str, stage: Stage, expected: list[str]) -> Failures:
    begun = [activity_id for activity_id in stage.instance.executed() if activity_id in expected]
    if begun:
        yield Failure(key=key, expected=expected, actual=begun)


def _activity_outcomes(key: str, stage: Stage, expected: Mapping[str, list[str]]) -> Failures:
    completed = {
        record.activity_id: list(record.outcomes)
        for record in stage.instance.activity_records()
        if record.status == "Completed"
    }
    for activity_id, outcomes in expected.items():
        found = completed.get(activity_id, ABSENT)
        if found != outcomes and not (found == [] and outcomes == ["Done"]):
            yield Failure(key=f"{key}.{activity_id}", expected=outcomes, actual=found)


def _fault_counts(key: str, stage: Stage, expected: Mapping[str, int]) -> Failures:
    yield from compare_members(
        key, {r.activity_id: r.faults for r in stage.instance.activity_records()}, expected
    )


def _activity_records(key: str, stage: Stage, expected: list[form.RecordKeys]) -> Failures:
    records = stage.instance.activity_records()
    for index, entry in enumerate(expected):
        found = [
            record
            for record in records
            if entry.activity_id in (UNSET, record.activity_id)
            and entry.activity_name in (UNSET, record.activity_name)
        ]
        if not found:
            yield Failure(key=f"{key}[{index}]", expected=msgspec.to_builtins(entry))
        keys = form.Keys() if entry.activity_state is UNSET else entry.activity_state
        outputs = form.OutputKeys() if entry.outputs is UNSET else entry.outputs
        for record in found:
            at = f"{key}[{index}].activityState"
            if keys.has_key is not UNSET and keys.has_key not in record.inputs:
                yield Failure(key=f"{at}.hasKey", expected=keys.has_key, actual=sorted(record.inputs))
            if keys.lacks_key is not UNSET and keys.lacks_key in record.inputs:
                yield Failure(key=f"{at}.lacksKey", expected=keys.lacks_key, actual=sorted(record.inputs))
            if outputs.has_keys is not UNSET and not set(outputs.has_keys) <= record.outputs.keys():
                at = f"{key}[{index}].outputs.hasKeys"
                yield Failure(key=at, expected=outputs.has_keys, actual=sorted(record.outputs))


def _instance(key: str, stage: Stage, expected: form.InstanceMembers) -> Failures:
    state = stage.instance.state
    yield from compare(f"{key}.name", state.name, expected.name)
    yield from compare(f"{key}.correlationId", state.correlation_id, expected.correlation_id)
    yield from compare(f"{key}.version", state.version, expected.version)


def _instances(key: str, stage: Stage, expected: list[form.InstanceCount]) -> Failures:
    yield from _count_instances(key, stage, _begun(stage), expected)


def _child_instances(key: str, stage: Stage, expected: list[form.InstanceCount]) -> Failures:
    parent = stage.instance.id
    children = [i for i in _begun(stage) if i.state.parent_id == parent]
    yield from _count_instances(key, stage, children, expected)


def _count_instances(
    key: str, stage: Stage, instances: list[HostedInstance], expected: list[form.InstanceCount]
) -> Failures:
    for index, entry in enumerate(expected):
        found = [instance for instance in instances if _is_meant(instance, entry)]
        is_enough = bool(found) if entry.count is UNSET else len(found) == entry.count
        if not is_enough:
            yield Failure(
                key=f"{key}[{index}]",
                expected=msgspec.to_builtins(entry),
                actual=[_summary(instance) for instance in instances],
            )
        if entry.properties is not UNSET:
            for instance in found:
                properties = read_payload(instance.state.properties)
                wanted = {
                    name: stage.instance.id if value == "$instanceId" else value
                    for name, value in entry.properties.items()
                }
                yield from compare_members(f"{key}[{index}].properties", properties, wanted)


def _is_meant(instance: HostedInstance, entry: form.InstanceCount) -> bool:
    state = instance.state
    return (
        entry.definition_id in (UNSET, state.definition_id)
        and entry.correlation_id in (UNSET, state.correlation_id)
        and entry.status in (UNSET, state.status.value)
        and entry.sub_status in (UNSET, state.sub_status.value)
        and (entry.outputs is UNSET or not list(compare_members("", instance.output, entry.outputs)))
    )


def _summary(instance: HostedInstance) -> dict[str, Any]:
    state = instance.state
    return {
        "definitionId": state.definition_id,
        "correlationId": state.correlation_id,
        "subStatus": state.sub_status.value,
        "outputs": as_json(instance.output),
    }


def _faulted_instances(key: str, stage: Stage, expected: form.FaultedCount) -> Failures:
    states = [instance.state for instance in _begun(stage)]
    found = [s for s in states if s.definition_id in expected.definition_ids and s.sub_status == "Faulted"]
    yield from compare(f"{key}.count", len(found), expected.count)


def _triggers(key: str, stage: Stage, expected: list[form.Waiting] | form.Triggers) -> Failures:
    found = stage.triggers_of(stage.definition_id)
    if isinstance(expected, form.Triggers):
        yield from compare_triggers(expected, found, key)
    else:
        yield from compare_waiting(key, found, expected)


def _definitions(key: str, stage: Stage, expected: list[form.DefinitionMembers]) -> Failures:
    for index, entry in enumerate(expected):
        at = f"{key}[{index}]"
        found = stage.host.definitions.find(entry.definition_id, entry.version)
        yield from compare(f"{at}.number", found.version, entry.number)
        if entry.activities is not UNSET:
            yield from compare_activities(f"{at}.activities", found.source, entry.activities)


def _equals_json_file(key: str, stage: Stage, file: str) -> Failures:
    actual = as_json(_payload(stage))
    expected: Any = decode(stage.read(file))
    # The type of the outermost object is the reader's to know, not a member of the value.
    if isinstance(expected, dict) and isinstance(actual, dict) and "_type" not in actual:
        expected = {name: v for name, v in cast("dict[str, Any]", expected).items() if name != "_type"}
    if not is_equal(actual, expected):
        yield Failure(key=key, expected=expected, actual=actual)


def _json_path(key: str, stage: Stage, expected: Mapping[str, Any]) -> Failures:
    yield from compare_paths(key, _payload(stage), expected)


def _payload(stage: Stage) -> Any:
    if stage.payload is ABSENT:
        raise StepFailed("there is nothing to compare: no step of this case has read a payload")
    return stage.payload


MATCHERS: dict[str, Callable[[str, Stage, Any], Failures]] = {
    "status": _status,
    "sub_status": _sub_status,
    "lines": _lines,
    "outputs": _outputs,
    "variables": _variables,
    "bookmarks": _bookmarks,
    "incidents": _incidents,
    "journal": _journal,
    "activities": _activities,
    "not_executed": _not_executed,
    "activity_outcomes": _activity_outcomes,
    "fault_counts": _fault_counts,
    "activity_records": _activity_records,
    "instance": _instance,
    "instances": _instances,
    "child_instances": _child_instances,
    "faulted_instances": _faulted_instances,
    "triggers": _triggers,
    "definitions": _definitions,
    "equals_json_file": _equals_json_file,
    "json_path": _json_path,
}


def _begun(stage: Stage) -> list[HostedInstance]:
    return [instance for instance in stage.host.instances.values() if instance.records]
