"""Whether what stands around the root of a definition makes sense: variables, parameters, options."""

from collections.abc import Iterator
from typing import Any

from holdfast.authoring import ActivityTypes
from holdfast.codec import find_type, is_list, is_object
from holdfast.definitions.check_options import check_options
from holdfast.definitions.check_variables import KNOWN_TYPES, check_variables
from holdfast.definitions.document import Definition
from holdfast.definitions.problems import Problems
from holdfast.definitions.reader import Reader

WAITING = frozenset({"Elsa.Delay", "Elsa.RunTask"})
"""Activities that wait without being triggers."""

DRIVER = "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core"


def check_envelope(definition: Definition, types: ActivityTypes, problems: Problems) -> None:
    """Everything but the root. The document has been loaded, so its members have the right shapes."""
    envelope = Reader(definition.source, "$")
    check_variables({"variables": envelope.get("variables")}, "$", problems)
    for path, reason in definition.dropped:
        problems.warn("variable.type", f"{path}.typeName", f"The {reason}. {KNOWN_TYPES}")
    for name in ("inputs", "outputs"):
        _check_parameters(envelope, name, problems)
    _check_kept(definition, envelope, types, problems)
    check_options(envelope.object("options"), problems)
    if envelope.get("root") is None:
        problems.warn(
            "root.missing",
            "$.root",
            "There is no root activity, so nothing will happen. Is this a definition? Give it a `root`.",
        )


def _check_kept(definition: Definition, envelope: Reader, types: ActivityTypes, problems: Problems) -> None:
    """A variable that is not kept is a trap in a workflow that waits."""
    waits = next(_waiting(definition.root, types), None)
    if waits is None:
        return
    for reader in envelope.objects("variables"):
        name = reader.text("name") or ""
        if any(v.name == name and not v.is_kept for v in definition.variables):
            problems.warn(
                "variable.unkept",
                reader.path,
                f"Variable {name!r} has no storage driver, so it is back at its default after a wait, and "
                f"this workflow can wait (at {waits!r}). To keep it, give it the `storageDriverTypeName` "
                f"`{DRIVER}`.",
            )


def _waiting(json: Any, types: ActivityTypes) -> Iterator[str]:
    """Ids of activities that can wait, at any depth."""
    if is_object(json):
        kind = json.get("type")
        if isinstance(kind, str):
            known = types.find(kind)
            starts = json.get("customProperties")
            begins = is_object(starts) and starts.get("canStartWorkflow") is True
            if kind in WAITING or (known is not None and known.descriptor.kind == "Trigger" and not begins):
                yield str(json.get("id") or kind)
        for member in json.values():
            yield from _waiting(member, types)
    elif is_list(json):
        for item in json:
            yield from _waiting(item, types)


def _check_parameters(envelope: Reader, name: str, problems: Problems) -> None:
    seen: set[str] = set()
    for reader in envelope.objects(name):
        parameter, alias = reader.text("name") or "", reader.text("type")
        if parameter and parameter.lower() in seen:
            problems.error(
                "parameter.duplicate",
                f"{reader.path}.name",
                f"{parameter!r} is declared twice among the {name}; names differ by more than their case. "
                f"Remove or rename one.",
            )
        seen.add(parameter.lower())
        if alias and find_type(alias) is None:
            problems.warn(
                "parameter.type",
                f"{reader.path}.type",
                f"There is no type {alias!r}, so {parameter!r} takes any value. {KNOWN_TYPES}",
            )
