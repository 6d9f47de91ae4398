"""Whether the options of a workflow, and of single activities, are ones we know."""

from collections.abc import Mapping
from typing import Any

from holdfast.codec import is_object
from holdfast.definitions.compiler import read_retry_policy
from holdfast.definitions.document import class_name
from holdfast.definitions.places import Placed
from holdfast.definitions.problems import Problems
from holdfast.definitions.reader import DefinitionInvalid, Reader, member

_STRATEGIES: Mapping[str, tuple[str, ...]] = {
    "activationStrategyType": (
        "AllowAlwaysStrategy",
        "SingletonStrategy",
        "CorrelationStrategy",
        "CorrelatedSingletonStrategy",
    ),
    "incidentStrategyType": ("FaultStrategy", "ContinueWithIncidentsStrategy"),
    "options.commitStrategyName": (
        "WorkflowExecuting",
        "WorkflowExecuted",
        "ActivityExecuting",
        "ActivityExecuted",
        "Periodic",
    ),
    "commitStrategyName": ("CommitAlways", "CommitNever", "Executing", "Executed"),
    "mergeMode": ("None", "Stream", "Merge", "Converge", "Cascade", "Race"),
}
"""The names that an option may have; those of an activity's custom properties among them."""


def check_options(options: Reader, problems: Problems) -> None:
    """The options of a workflow."""
    for name in ("activationStrategyType", "incidentStrategyType"):
        _check_strategy(class_name(options.text(name)), name, f"{options.path}.{name}", problems)
    name = "commitStrategyName"
    _check_strategy(options.text(name), f"options.{name}", f"{options.path}.{name}", problems)


def check_custom_properties(place: Placed, problems: Problems) -> None:
    """Those members of an activity's custom properties that mean something to us."""
    custom, at = place.members.get("customproperties"), f"{place.at}.customProperties"
    if custom is None:
        return
    if not is_object(custom):
        problems.error(
            "activity.shape", at, "The custom properties are a JSON object. Write {} for none.", place.id
        )
        return
    for name in ("mergeMode", "commitStrategyName"):
        _check_strategy(member(custom, name), name, f"{at}.{name}", problems, place.id)
    policy = member(custom, "retryPolicy")
    if policy is None:
        return
    where, reason = f"{at}.retryPolicy", "" if is_object(policy) else "it is no object"
    try:
        read_retry_policy(policy, where)
    except DefinitionInvalid as problem:
        where, reason = problem.path, problem.problem
    if reason:
        problems.error(
            "retry.invalid",
            where,
            f"The retry policy cannot be used: {reason}. Write it like "
            f'{{"attempts": 3, "delay": "00:00:01", "factor": 2, "longest": "00:05:00"}}.',
            place.id,
        )


def _check_strategy(
    chosen: Any, option: str, path: str, problems: Problems, activity_id: str | None = None
) -> None:
    """One of a few names; none, or an empty one, is the default."""
    known = _STRATEGIES[option]
    if chosen in (None, "") or chosen in known:
        return
    problems.warn(
        "option.unknown",
        path,
        f"{chosen!r} is not known here and counts as not given. {problems.similar(str(chosen), known)}"
        f"Use one of {', '.join(known)}, or leave it out.",
        activity_id,
    )
