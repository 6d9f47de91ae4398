"""A definition as a picture: Mermaid text that GitHub, editors and the docs can draw.

It is drawn from the document alone, so that a draft with unknown activities has a picture too. A
container with an order of its own is a subgraph; any other activity is a shape, and dotted lines lead
from it to what is nested in it, wherever in its members that may be. Text from the author is escaped
in `mermaid_text`. The same document always gives the same text.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from holdfast.authoring import ActivityTypes
from holdfast.codec import is_list, is_object
from holdfast.definitions.connections import connection_items, read_ends
from holdfast.definitions.document import Definition
from holdfast.definitions.mermaid_text import Names, caption, escape
from holdfast.definitions.reader import Json, member, unwrap

_DECISIONS = frozenset({"Elsa.If", "Elsa.Switch", "Elsa.FlowDecision", "Elsa.FlowSwitch"})
_LOOPS = frozenset({"Elsa.For", "Elsa.ForEach", "Elsa.While", "Elsa.ParallelForEach"})

# What a type would tell us, for those that were not given.
_TRIGGERS = frozenset({"Elsa.Event", "Elsa.Timer", "Elsa.Cron", "Elsa.StartAt", "Elsa.HttpEndpoint"})
_TERMINALS = frozenset({"Elsa.Break", "Elsa.Complete", "Elsa.End", "Elsa.Finish"})

# Members in which no activity is nested, although what they hold may look like one.
_OPAQUE = frozenset({"customproperties", "metadata", "variable", "variables", "expression", "connections"})


def draw(definition: Definition, types: ActivityTypes | None = None) -> str:
    """A Mermaid flowchart. The types, where known, tell triggers and workflow-activities apart."""
    return _Drawing(types).workflow(definition.root)


class _Shape(msgspec.Struct, frozen=True):
    """An activity on the drawing."""

    name: str
    """Of the node or subgraph, unique on the drawing."""
    id: str
    type: str
    json: Json
    is_terminal: bool
    can_start: bool


class _Line(msgspec.Struct, frozen=True):
    source: str
    target: str
    label: str = ""
    is_dotted: bool = False

    def __str__(self) -> str:
        arrow = "-.->" if self.is_dotted else "-->"
        label = f'|"{escape(self.label)}"|' if self.label.strip() else ""
        return f"{self.source} {arrow}{label} {self.target}"


class _Inside(msgspec.Struct, frozen=True):
    """What a container drew: where it begins, and after what it has ended."""

    first: str | None = None
    last: tuple[str, ...] = ()


class _Drawing:
    def __init__(self, types: ActivityTypes | None) -> None:
        self._types = types
        self._names = Names()
        self._lines: list[str] = []
        self._depth = 1
        self._containers = {
            "Elsa.Sequence": self._sequence,
            "Elsa.Flowchart": self._flowchart,
            "Elsa.Parallel": self._parallel,
            "Elsa.Fork": self._parallel,
            "Elsa.StateMachine": self._state_machine,
            "Holdfast.Saga": self._saga,
        }

    def workflow(self, root: Mapping[str, Any]) -> str:
        if member(root, "type") in ("Elsa.Sequence", "Elsa.Flowchart"):  # the drawing is its box
            shape = self._shape(dict(root))
            inside = self._containers[shape.type](shape)
        else:
            name = self._activity(dict(root)).name
            inside = _Inside(name, (name,))
        start, end = self._names.new("start"), self._names.new("finish")
        lines = [f'{start}(("start"))', *self._lines, f'{end}((("end")))']
        lines.append(str(_Line(start, inside.first or end)))
        lines += [str(_Line(last, end)) for last in inside.last]
        return "\n".join(["flowchart TD", *(line if line[0] == " " else f"    {line}" for line in lines), ""])

    def _write(self, line: object) -> None:
        self._lines.append(f"{'    ' * self._depth}{line}")

    def _connect(self, lines: Iterable[_Line]) -> None:
        for line in dict.fromkeys(lines):
            self._write(line)

    def _activity(self, json: Json) -> _Shape:
        shape = self._shape(json)
        container = self._containers.get(shape.type)
        if container is not None and next(_nested(json), None) is not None:
            title = caption(json, between=" ")  # on one line: Mermaid leaves no room for two
            self._write(f'subgraph {shape.name}["{title}"]')
            self._depth += 1
            self._write("direction TB")
            container(shape)
            self._depth -= 1
            self._write("end")
            return shape
        opening, closing = self._brackets(shape)
        self._write(f'{shape.name}{opening}"{caption(json)}"{closing}')
        self._attach(shape.name, _nested(json))
        return shape

    def _attach(self, name: str, nested: Iterable[tuple[str, Json]]) -> None:
        """Draw what belongs to a shape, and dotted lines to it."""
        self._connect(
            [_Line(name, self._activity(json).name, label, is_dotted=True) for label, json in nested]
        )

    def _shape(self, json: Json) -> _Shape:
        type_name = str(member(json, "type") or "")
        custom = member(json, "customProperties")
        starts = member(custom, "canStartWorkflow") if is_object(custom) else None
        activity_id = member(json, "id")
        if not isinstance(activity_id, str) or not activity_id:
            activity_id = self._names.number(type_name.rpartition(".")[2])
        found = None if self._types is None else self._types.find(type_name)
        return _Shape(
            name=self._names.new(activity_id),
            id=activity_id,
            type=type_name,
            json=json,
            is_terminal=type_name in _TERMINALS if found is None else found.descriptor.is_terminal,
            can_start=bool(starts or member(json, "canStartWorkflow")),
        )

    def _brackets(self, shape: _Shape) -> tuple[str, str]:
        known = None if self._types is None else self._types.find(shape.type)
        if shape.type in _DECISIONS:
            return "{", "}"
        if shape.type in _LOOPS:
            return "{{", "}}"
        uses = (member(shape.json, "workflowDefinitionId"), member(shape.json, "workflowDefinitionVersionId"))
        if (known is not None and known.definition is not None) or any(isinstance(use, str) for use in uses):
            return "[[", "]]"
        is_trigger = shape.type in _TRIGGERS if known is None else known.descriptor.kind == "Trigger"
        return ("([", "])") if is_trigger or (known is None and shape.can_start) else ("[", "]")

    # --- containers -------------------------------------------------------------------------------

    def _sequence(self, shape: _Shape) -> _Inside:
        children = [self._activity(json) for json in _activities(member(shape.json, "activities"))]
        self._connect(
            _Line(one.name, following.name) for one, following in pairwise(children) if not one.is_terminal
        )
        return _Inside(children[0].name, (children[-1].name,)) if children else _Inside()

    def _parallel(self, shape: _Shape) -> _Inside:
        for _, json in _nested(shape.json):
            self._activity(json)
        return _Inside()

    def _flowchart(self, shape: _Shape) -> _Inside:
        start = self._names.new(f"{shape.name}_start") if self._depth > 1 else None
        if start is not None:
            self._write(f'{start}((" "))')
        children = [self._activity(json) for json in _activities(member(shape.json, "activities"))]
        by_id = {child.id: child.name for child in reversed(children)}
        written = map(read_ends, connection_items(member(shape.json, "connections")))
        ends = [end for end in written if end is not None and end[0] in by_id and end[2] in by_id]
        targets = {target for _, _, target in ends}
        candidates = (
            *(child for child in children if child.type == "Elsa.Start"),
            *(child for child in children if child.can_start),
            *(child for child in children if child.id not in targets),
            *children,
        )
        if not candidates:
            return _Inside()
        first = candidates[0].name
        lines = [
            _Line(by_id[source], by_id[target], "" if port in (None, "Done") else port)
            for source, port, target in ends
        ]
        self._connect(lines if start is None else [_Line(start, first), *lines])
        sources = {source for source, _, _ in ends}
        return _Inside(first, tuple(child.name for child in children if child.id not in sources))

    def _saga(self, shape: _Shape) -> _Inside:
        actions: list[str] = []
        for step in _objects(member(shape.json, "steps")):
            action, undo = (next(_activities([member(step, name)]), None) for name in ("action", "undo"))
            if action is not None:
                actions.append(self._activity(action).name)
            if undo is not None and action is not None:
                self._attach(actions[-1], [("undo", undo)])
            elif undo is not None:
                self._activity(undo)
        self._connect(_Line(*pair) for pair in pairwise(actions))
        return _Inside()

    def _state_machine(self, shape: _Shape) -> _Inside:
        """States are rounded. A way from one to the next leads over its trigger and its action."""
        start = self._names.new(f"{shape.name}_start")
        self._write(f'{start}((" "))')
        states: dict[str, str] = {}
        for state in _objects(member(shape.json, "states")):
            title = str(member(state, "name") or "")
            name = states[title] = self._names.new(f"{shape.name}_{title}")
            self._write(f'{name}("{escape(str(member(state, "displayName") or title))}")')
            self._attach(name, _nested(state))
        lines: list[_Line] = []
        initial = states.get(str(member(shape.json, "initialState") or ""))
        if initial is not None:
            lines.append(_Line(start, initial))
        for transition in _objects(member(shape.json, "transitions")):
            steps = [json for key in ("trigger", "action") for json in _activities([member(transition, key)])]
            way = [self._activity(json).name for json in steps]
            ends = [states.get(str(member(transition, key) or "")) for key in ("from", "to")]
            way = [name for name in (ends[0], *way, ends[1]) if name is not None]
            label = str(member(transition, "displayName") or member(transition, "name") or "")
            for source, target in pairwise(way):
                lines.append(_Line(source, target, label))
                label = ""
        self._connect(lines)
        return _Inside()


# --- reading the document -------------------------------------------------------------------------


def _nested(json: Json) -> Iterator[tuple[str, Json]]:
    """The activities in an activity's members, each with the way there as a label."""
    for key, value in json.items():
        yield from _found(value, key)


def _found(value: Any, label: str) -> Iterator[tuple[str, Json]]:
    value = unwrap(value)
    if is_list(value):
        for number, item in enumerate(value, start=1):
            yield from _found(item, f"{label} {number}" if len(value) > 1 else label)
    elif is_object(value) and label.rpartition(" ")[2].lower() not in _OPAQUE:
        if _is_activity(value):
            yield label, value
        elif member(value, "typeName") is None:
            titles = (member(value, key) for key in ("label", "name", "statusCode"))
            title = next((str(title) for title in titles if title), label)
            for key, item in value.items():
                yield from _found(item, title if key.lower() == "activity" else f"{title} {key}")


def _is_activity(json: Json) -> bool:
    """An expression has a `type` as well, but only a `value` besides."""
    kind = member(json, "type")
    names = {key.lower() for key in json}
    return isinstance(kind, str) and not names <= {"type", "value"} and ("id" in names or "." in kind)


def _objects(value: Any) -> list[Json]:
    items: Any = unwrap(value)
    return [item for item in (items if is_list(items) else [items]) if is_object(item)]


def _activities(value: Any) -> Iterator[Json]:
    return (json for json in _objects(value) if isinstance(member(json, "type"), str))
