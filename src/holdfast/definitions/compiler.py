"""From a document to a graph: types resolved, inputs compiled, nested activities unfolded.

Compiling never fails on what an author may have left unfinished: an unknown activity becomes a
placeholder that faults when it is reached, an unreadable input one that faults when it is
evaluated. `validate` is where an author hears about all of it beforehand.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from holdfast.authoring import ActivityType, ActivityTypes, Child
from holdfast.authoring.activity import Activity
from holdfast.authoring.descriptor import find_member
from holdfast.codec import OBJECT, Type, encode, find_type, is_object, parse_timespan
from holdfast.definitions.document import Definition, container_variable
from holdfast.definitions.evaluators import Constant, Expressions
from holdfast.definitions.graph import Binding, DynamicInput, Evaluator, Graph, Node, RetryPolicy
from holdfast.definitions.logging import NOTHING, unlogged
from holdfast.definitions.reader import DefinitionInvalid, Json, Reader, member, unwrap
from holdfast.errors import HoldfastError, Invalid

MOST_NODES = 20_000
"""Workflow-activities unfold where they are used: a few that use each other twice make thousands."""

DEEPEST = 100
"""Levels of nesting, workflow-activities unfolded. A chain of those has no other limit than our stack."""

WORKFLOW = "Elsa.Workflow"
NOT_FOUND = "Elsa.NotFoundActivity"


def compile_definition(definition: Definition, types: ActivityTypes, expressions: Expressions) -> Graph:
    """The graph of one version, against the types and languages of this host."""
    return _Compiler(types, expressions).compile(definition)


class _Compiler:
    def __init__(self, types: ActivityTypes, expressions: Expressions) -> None:
        self._types = types
        self._expressions = expressions
        self._nodes: list[Node] = []
        self._depths: dict[Node | None, int] = {None: 0}
        self._unfolding: list[str] = []
        self._counters: dict[str, int] = {}

    def compile(self, definition: Definition) -> Graph:
        self._workflow(definition, None, "Workflow1")
        return Graph(definition, self._nodes)

    def _workflow(self, definition: Definition, parent: Node | None, activity_id: str) -> Node:
        """The invisible node around a root activity."""
        kind = self._known(WORKFLOW)
        path = activity_id if parent is None else f"{parent.path}:{activity_id}"
        node = self._add(Node(kind, activity_id, path, parent))
        node.definition = definition
        node.variables = {v.id: v for v in definition.variables}
        self._finish(node)
        root = self._activity(_without_host_marks(definition.root), node, "$.root", definition)
        node.fixed = {"root": root}
        return node

    def _activity(self, json: Any, parent: Node, at: str, definition: Definition) -> Node:
        if not isinstance(json, dict):
            raise DefinitionInvalid(at, "an activity is a JSON object with at least a `type`")
        members = {key.lower(): value for key, value in cast("Json", json).items()}
        kind = self._resolve(members, at)
        activity_id = self._id(members, kind, at)
        node = self._add(Node(kind, activity_id, f"{parent.path}:{activity_id}", parent))
        node.json = cast("Json", json)
        name = members.get("name")
        node.name = name if isinstance(name, str) else None
        if kind.name == NOT_FOUND:
            node.constants = {
                "missing_type": str(members.get("type")),
                "missing_version": members.get("version"),
            }
        self._custom_properties(node, members, at, definition)
        self._variables(node, members, at)
        self._inputs(node, members, at)
        self._outputs(node, members)
        source = _Source(self, node, members, at, definition)
        for port in kind.descriptor.ports:
            value = unwrap(members.get(port.json_name.lower()))
            where = f"{at}.{port.json_name}"
            if port.many:
                items = cast("list[Any]", value) if isinstance(value, list) else []
                nested = [source.child(item, f"{where}[{i}]") for i, item in enumerate(items)]
                node.fixed[port.attribute] = tuple(child for child in nested if child is not None)
            else:
                node.fixed[port.attribute] = source.child(value, where)
        if kind.definition is not None:
            self._unfold(node, kind.definition, at)
        self._finish(node)
        try:
            node.fixed.update(kind.implementation.prepare(source))
        except HoldfastError:
            raise
        except Exception as problem:  # an author's code: whatever it raises, readers want to know where
            raise DefinitionInvalid(at, f"{kind.name} cannot be prepared: {problem!r}") from problem
        return node

    def _finish(self, node: Node) -> None:
        made: type[Activity] = node.implementation
        node.declares_variables = made.declares_variables or bool(node.variables)
        node.receives = made.receive is not Activity.receive
        node.checks = made.can_execute is not Activity.can_execute
        node.auto_complete = made.auto_complete
        described = node.type.descriptor
        node.must_choose = (
            bool(described.outcomes)
            and "Done" not in described.outcomes
            and described.dynamic_outcomes is None
            and described.kind != "Job"
        )
        node.variable_ids = {v.name: v.id for v in reversed(node.variables.values())}

    def _add(self, node: Node) -> Node:
        if len(self._nodes) >= MOST_NODES:
            raise DefinitionInvalid("$", f"more than {MOST_NODES} activities, workflow-activities unfolded")
        depth = self._depths[node] = self._depths[node.parent] + 1
        if depth > DEEPEST:
            raise DefinitionInvalid("$", f"more than {DEEPEST} levels deep, workflow-activities unfolded")
        self._nodes.append(node)
        return node

    def _unfold(self, node: Node, definition: Definition, at: str) -> None:
        """Put the workflow behind a workflow-activity inside it."""
        node.definition = definition
        if definition.id in self._unfolding:
            node.fixed["recursive"] = " → ".join([*self._unfolding, definition.id])
            return
        self._unfolding.append(definition.id)
        try:
            node.fixed["workflow"] = self._workflow(definition, node, self._next_id("Workflow"))
        except DefinitionInvalid as problem:
            if problem.path == "$":  # about the whole of it, not about a place in that workflow
                raise
            raise DefinitionInvalid(at, f"workflow {definition.definition_id}: {problem}") from problem
        finally:
            self._unfolding.pop()

    def _resolve(self, members: Mapping[str, Any], at: str) -> ActivityType:
        type_name = members.get("type")
        version = members.get("version")
        if not isinstance(type_name, str):
            raise DefinitionInvalid(f"{at}.type", "the activity has no type; every activity needs one")
        found = self._types.find(type_name, version if isinstance(version, int) else None)
        version_id = members.get("workflowdefinitionversionid")
        if isinstance(version_id, str):
            found = self._types.find_workflow(version_id=version_id) or found
        elif found is None and isinstance(members.get("workflowdefinitionid"), str):
            found = self._types.find_workflow(definition_id=members["workflowdefinitionid"])
        return found or self._known(NOT_FOUND)

    def _known(self, type_name: str) -> ActivityType:
        found = self._types.find(type_name)
        if found is None:
            raise Invalid(f"This host has no {type_name}: give it the built-in activities first.")
        return found

    def _id(self, members: Mapping[str, Any], kind: ActivityType, at: str) -> str:
        given = members.get("id")
        if isinstance(given, str) and given:
            return given
        takes_id = any(i.json_name == "_id" for i in kind.descriptor.inputs)
        if given is not None and not isinstance(given, str) and not takes_id:
            raise DefinitionInvalid(f"{at}.id", "an activity's id is text")
        return self._next_id(kind.name.rpartition(".")[2])

    def _next_id(self, short_name: str) -> str:
        number = self._counters.get(short_name, 1 if short_name == "Workflow" else 0) + 1
        self._counters[short_name] = number
        return f"{short_name}{number}"

    def _custom_properties(
        self, node: Node, members: Mapping[str, Any], at: str, definition: Definition
    ) -> None:
        reader = Reader({k: v for k, v in members.items() if k == "customproperties"}, at)
        custom = reader.object("customProperties")
        node.can_start = bool(custom.get("canStartWorkflow") or members.get("canstartworkflow"))
        kind = node.type.descriptor.kind
        asked = custom.get("runAsynchronously") or members.get("runasynchronously")
        node.is_background = kind == "Job" or (kind == "Task" and asked is True)
        mode = custom.get("mergeMode")
        node.merge_mode = mode if isinstance(mode, str) else None
        strategy = custom.get("commitStrategyName")
        node.commit_strategy = strategy if isinstance(strategy, str) and strategy else None
        node.retry = read_retry_policy(custom.get("retryPolicy"), f"{at}.customProperties.retryPolicy")
        hidden = unlogged(
            node.type.descriptor,
            custom.json,
            definition.custom_properties,
            lambda rule: self.expression(rule, OBJECT, f"{at}.customProperties"),
        )
        node.unlogged = None if hidden is NOTHING else hidden
        node.unkept_inputs = frozenset(i.attribute for i in node.type.descriptor.inputs if i.sensitive)

    def _variables(self, node: Node, members: Mapping[str, Any], at: str) -> None:
        if not node.implementation.declares_variables:
            return
        items = unwrap(members.get("variables"))
        if isinstance(items, list):
            declared = [
                container_variable(cast("Json", item), f"{at}.variables[{i}]")
                for i, item in enumerate(cast("list[Any]", items))
                if isinstance(item, dict)
            ]
            node.variables = {v.id: v for v in declared}

    def _inputs(self, node: Node, members: Mapping[str, Any], at: str) -> None:
        dynamic: list[DynamicInput] = []
        for descriptor in node.type.descriptor.inputs:
            value = find_member(members, descriptor.json_name)
            if not descriptor.wrapped:
                plain = descriptor.default_value() if value is None else descriptor.type.convert(value)
                node.fixed[descriptor.attribute] = plain
                continue
            made = self._expressions.input(value, descriptor, f"{at}.{descriptor.json_name}")
            if descriptor.on_demand:
                node.on_demand[descriptor.attribute] = made.always if isinstance(made, Constant) else made
            elif isinstance(made, Constant):
                node.constants[descriptor.attribute] = made.value
            else:
                dynamic.append(DynamicInput(descriptor.attribute, descriptor.name, made))
        node.dynamic = tuple(dynamic)

    def _outputs(self, node: Node, members: Mapping[str, Any]) -> None:
        for output in node.type.descriptor.outputs:
            target = _memory_reference(find_member(members, output.json_name))
            node.outputs[output.name] = Binding(output.name, output.type, target)

    def expression(self, json: Any, target: Type, at: str) -> Evaluator:
        made = self._expressions.expression(json, target, at)
        return made.always if isinstance(made, Constant) else made

    def child(self, json: Any, parent: Node, at: str, definition: Definition) -> Node | None:
        return None if json is None else self._activity(json, parent, at, definition)


class _Source:
    """What `Activity.prepare` sees."""

    __slots__ = ("_compiler", "_definition", "_node", "at", "json")

    def __init__(
        self, compiler: _Compiler, node: Node, members: Json, at: str, definition: Definition
    ) -> None:
        self._compiler = compiler
        self._node = node
        self._definition = definition
        self.json: Mapping[str, Any] = members
        self.at = at

    def child(self, json: Any, at: str) -> Child | None:
        return self._compiler.child(json, self._node, at, self._definition)

    def port(self, attribute: str) -> Any:
        return self._node.fixed[attribute]

    def expression(self, json: Any, target: Any, at: str) -> Callable[[Any], Any]:
        kind = target if isinstance(target, Type) else cast("Type", find_type(target))
        return self._compiler.expression(json, kind, at)


def _memory_reference(value: Any) -> str | None:
    reference = member(value, "memoryReference") if is_object(value) else None
    found = member(reference, "id") if is_object(reference) else None
    return found if isinstance(found, str) and found else None


def read_retry_policy(value: Any, at: str) -> RetryPolicy | None:
    """The policy in an activity's custom properties; None when there is none."""
    if not isinstance(value, dict):
        return None
    reader = Reader(cast("Json", value), at)

    def seconds(name: str, default: float) -> float:
        text = reader.get(name)
        if text is None:
            return default
        return float(text) if isinstance(text, int | float) else parse_timespan(str(text)).total_seconds()

    try:
        return RetryPolicy(
            attempts=max(1, reader.whole("attempts", 3)),
            delay=seconds("delay", 1.0),
            factor=float(reader.get("factor") or 2.0),
            longest=seconds("longest", 300.0),
        )
    except DefinitionInvalid:
        raise
    except (ValueError, TypeError, OverflowError, Invalid) as problem:
        raise DefinitionInvalid(
            at, f"a retry policy is {{attempts, delay, factor, longest}}: {problem}"
        ) from None


def _without_host_marks(root: Mapping[str, Any]) -> Any:
    """The root without `_type` members and list wrappers; most documents have none, and are not copied."""
    marks = (b'"_type"', b'"$values"')
    text = encode(root)
    return _stripped(root) if any(mark in text for mark in marks) else root


def _stripped(value: Any) -> Any:
    """Without the `_type` members and list wrappers that some hosts leave in activities."""
    if isinstance(value, dict):
        value = unwrap(value)
    if isinstance(value, dict):
        return {k: _stripped(v) for k, v in cast("Json", value).items() if k != "_type"}
    return [_stripped(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
