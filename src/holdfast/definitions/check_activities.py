"""Whether the activities of a definition are what their types expect, from the root inwards.

The walk goes where compiling goes, and by the same road: ports by their descriptors, everything
else by letting `Activity.prepare` ask for its nested activities and expressions. Below an activity
of unknown type it looks for whatever resembles an activity, so that one gap does not hide the rest.
"""

from collections import ChainMap, deque
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.authoring import ActivityType, ActivityTypes
from holdfast.authoring.descriptor import find_member
from holdfast.codec import OBJECT, Type, find_type, is_list, is_object, lower_keys
from holdfast.definitions.check_connections import check_connections
from holdfast.definitions.check_options import check_custom_properties
from holdfast.definitions.check_values import ValueChecks
from holdfast.definitions.check_variables import check_variables
from holdfast.definitions.document import Definition
from holdfast.definitions.evaluators import Expressions
from holdfast.definitions.places import STAND_IN, Names, Placed
from holdfast.definitions.problems import Problems
from holdfast.definitions.reader import Json, member, unwrap

_GIVEN: Mapping[str, tuple[str, ...]] = {
    "Elsa.For": ("CurrentValue",),
    "Elsa.ForEach": ("CurrentValue", "CurrentIndex"),
    "Elsa.ParallelForEach": ("CurrentValue", "CurrentIndex"),
    "Elsa.BulkDispatchWorkflows": ("ChildInstanceId",),
    "Elsa.Flowchart": ("Error",),
    "Holdfast.Try": ("Error",),
    "Holdfast.Saga": ("Error",),
}
"""Variables that an activity gives to what is nested in it, without declaring them."""

_NOT_NESTED = frozenset({"customproperties", "metadata", "variables", "connections"})


class ActivityChecks:
    def __init__(
        self, definition: Definition, types: ActivityTypes, expressions: Expressions, problems: Problems
    ) -> None:
        self._definition = definition
        self._types = types
        self._problems = problems
        self.values = ValueChecks(definition, expressions, problems)
        self.paths: dict[str, str] = {}
        """Where each activity stands, by id."""
        self._unnamed: dict[str, int] = {}
        self._counts = definition.custom_properties.get("Flowchart:ExecutionMode") != "TokenBased"

    def check(self) -> None:
        definition = self._definition
        declared = {v.id: v.name for v in definition.variables}
        usable = definition.options.usable_as_activity
        if usable:  # whoever uses it as an activity sees its inputs and outputs as variables inside
            declared |= {p.name: p.name for p in (*definition.inputs, *definition.outputs)}
        self.activity(definition.root, "$.root", Names(ChainMap(declared), is_open=usable))

    def activity(self, json: Any, at: str, names: Names) -> Placed | None:
        """One activity and all that is in it; None when it is none."""
        json = unwrap(json)
        if not is_object(json):
            self._problems.error(
                "activity.shape",
                at,
                'An activity is a JSON object with at least a type, such as {"type": "Elsa.WriteLine"}. '
                "Write one here, or remove this.",
            )
            return None
        members = {name: unwrap(value) for name, value in lower_keys(json).items()}
        place = self._place(members, at, names)
        check_custom_properties(place, self._problems)
        if not place.is_known:
            self._look_inside(place)
            return place
        descriptor = place.type.descriptor
        for declared in descriptor.inputs:
            check = self.values.input if declared.wrapped else self.values.plain
            check(find_member(members, declared.json_name), declared, place)
        for output in descriptor.outputs:
            self.values.output(find_member(members, output.json_name), output, place)
        self._check_undeclared(json, place)
        if place.type.name == "Elsa.SetVariable":
            self._check_variable_to_set(place)
        elif place.type.name == "Elsa.Cron":
            self.values.cron(members.get("cronexpression"), place)
        self._check_nested(place)
        return place

    def _place(self, members: Json, at: str, names: Names) -> Placed:
        kind = self._resolve(members)
        activity_id = members.get("id")
        if isinstance(activity_id, str) and activity_id:
            self._check_id(activity_id, at)
        else:
            takes_id = kind is not None and any(i.json_name == "_id" for i in kind.descriptor.inputs)
            if activity_id is not None and not isinstance(activity_id, str) and not takes_id:
                self._problems.error(
                    "activity.shape",
                    f"{at}.id",
                    "An activity's id is text. Put it in quotes, or leave it out.",
                )
            activity_id = self._next_id(STAND_IN if kind is None else kind)
        type_name = members.get("type")
        if not isinstance(type_name, str) or not type_name:
            type_name = ""
            if kind is None:
                self._problems.error(
                    "activity.untyped",
                    f"{at}.type",
                    'The activity has no type. Say which it is, such as "type": "Elsa.WriteLine".',
                    activity_id,
                )
        elif kind is None:
            self._problems.error(
                "activity.unknown",
                f"{at}.type",
                f"There is no activity type {type_name!r} here, so this faults when it is reached. "
                f"{self._problems.similar(type_name, self._types.names())}"
                f"Register it with this host, publish the workflow it stands for, or replace the activity.",
                activity_id,
            )
        name, custom = members.get("name"), members.get("customproperties")
        starts = member(custom, "canStartWorkflow") if is_object(custom) else None
        variables: dict[str, str] = {}
        if kind is not None and kind.implementation.declares_variables:
            variables = check_variables(members, at, self._problems, activity_id)
        return Placed(
            id=activity_id,
            name=name if isinstance(name, str) else None,
            type=STAND_IN if kind is None else kind,
            type_name=type_name,
            at=at,
            members=members,
            names=names.within(variables),
            can_start=bool(starts or members.get("canstartworkflow")),
        )

    def _resolve(self, members: Json) -> ActivityType | None:
        """As the compiler does: by type and version, but a workflow's own ids count for more."""
        type_name, version = members.get("type"), members.get("version")
        if not isinstance(type_name, str):
            return None
        found = self._types.find(type_name, version if isinstance(version, int) else None)
        version_id, definition_id = (
            members.get("workflowdefinitionversionid"),
            members.get("workflowdefinitionid"),
        )
        if isinstance(version_id, str):
            return self._types.find_workflow(version_id=version_id) or found
        if found is None and isinstance(definition_id, str):
            return self._types.find_workflow(definition_id=definition_id)
        return found

    def _check_id(self, activity_id: str, at: str) -> None:
        first = self.paths.setdefault(activity_id, at)
        if first != at:
            self._problems.error(
                "activity.same_id",
                f"{at}.id",
                f"The id {activity_id!r} belongs to the activity at {first} already. "
                f"Give each activity an id of its own.",
                activity_id,
            )

    def _next_id(self, kind: ActivityType) -> str:
        short_name = kind.name.rpartition(".")[2]
        self._unnamed[short_name] = self._unnamed.get(short_name, 0) + 1
        return f"{short_name}{self._unnamed[short_name]}"

    def _check_undeclared(self, json: Json, place: Placed) -> None:
        descriptor = place.type.descriptor
        declared = {d.json_name.lower() for d in (*descriptor.inputs, *descriptor.outputs, *descriptor.ports)}
        for name, value in json.items():
            is_declared = name.lower() in declared or f"_{name.lower()}" in declared
            if is_declared or not is_object(value) or member(value, "expression") is None:
                continue
            self._problems.warn(
                "input.unknown",
                f"{place.at}.{name}",
                f"{place.type_name} has no input {name!r}, so this is ignored. "
                f"{self._problems.similar(name, (i.json_name for i in descriptor.inputs))}"
                f"Rename it, or remove it.",
                place.id,
            )

    def _check_variable_to_set(self, place: Placed) -> None:
        reference = place.members.get("variable")
        wanted = member(reference, "id") if is_object(reference) else reference
        if isinstance(wanted, str) and wanted:
            at = f"{place.at}.variable.id" if is_object(reference) else f"{place.at}.variable"
            self.values.reference(wanted, at, place)
        else:
            self._problems.error(
                "variable.missing",
                f"{place.at}.variable",
                "No variable is chosen, so this faults when it is reached. Choose the variable to set: "
                '"variable": {"id": "its id"}.',
                place.id,
            )

    def _check_nested(self, place: Placed) -> None:
        kind = place.type
        given = {name: name for name in _GIVEN.get(kind.name, ())}
        inside = place.names.within(given, is_open=not kind.name.startswith(("Elsa.", "Holdfast.")))
        source = _Source(self, place, inside)
        for port in kind.descriptor.ports:
            value, where = place.members.get(port.json_name.lower()), f"{place.at}.{port.json_name}"
            if not port.many:
                source.ports[port.attribute] = source.child(value, where)
                continue
            if value is not None and not is_list(value):
                self._problems.error(
                    "activity.shape",
                    where,
                    f"The {port.json_name} of {place.type_name} are a list of activities. Put them in [ ].",
                    place.id,
                )
            items = value if is_list(value) else []
            nested = [source.child(item, f"{where}[{index}]") for index, item in enumerate(items)]
            source.ports[port.attribute] = tuple(child for child in nested if child is not None)
        try:
            kind.implementation.prepare(source)
        except Exception as problem:  # an author's code, given whatever JSON there is
            self._problems.error(
                "definition.invalid",
                place.at,
                f"{kind.name} cannot be prepared: {problem!r}. Correct the activity.",
                place.id,
            )
        if kind.name == "Elsa.Flowchart":
            check_connections(place, source.ports["activities"], self._problems, counts=self._counts)

    def _look_inside(self, place: Placed) -> None:
        """What is nested in an activity that we know nothing about."""
        names = place.names.within({}, is_open=True)
        waiting = deque((f"{place.at}.{n}", v) for n, v in place.members.items() if n not in _NOT_NESTED)
        while waiting:
            at, wrapped = waiting.popleft()
            value = unwrap(wrapped)
            if is_list(value):
                waiting += [(f"{at}[{index}]", item) for index, item in enumerate(value)]
            elif is_object(value):
                inner = lower_keys(value)
                if isinstance(inner.get("type"), str) and "id" in inner:
                    self.activity(value, at, names)
                elif "typename" in inner and inner.get("expression") is not None:
                    self.values.expression(inner["expression"], OBJECT, f"{at}.expression", place)
                else:
                    waiting += [(f"{at}.{name}", item) for name, item in inner.items()]


class _Source:
    """What `Activity.prepare` sees while an activity is checked: it asks, and we look."""

    def __init__(self, checks: ActivityChecks, place: Placed, inside: Names) -> None:
        self._checks = checks
        self._place = place
        self._inside = inside
        self.ports: dict[str, Any] = {}
        self.json: Mapping[str, Any] = place.members
        self.at = place.at

    def child(self, json: Any, at: str) -> Placed | None:
        return None if json is None else self._checks.activity(json, at, self._inside)

    def port(self, attribute: str) -> Any:
        return self.ports[attribute]

    def expression(self, json: Any, target: Any, at: str) -> Callable[[Any], Any]:
        kind = target if isinstance(target, Type) else find_type(target) or OBJECT
        self._checks.values.expression(json, kind, at, self._place)
        return lambda scope: None
