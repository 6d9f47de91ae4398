"""What a line of the trace says about an activity: what people call it, what it was given and gave."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rich.text import Text

from holdfast.cli.output import clean, show_value
from holdfast.definitions.document import Definition
from holdfast.definitions.graph import Graph, Node
from holdfast.definitions.reader import member
from holdfast.instance import Record


def title_of(definition: Definition) -> str:
    return clean(definition.name or definition.definition_id)


def label_of(node: Node) -> str:
    """What people call an activity: the designer's text, its name, or its id."""
    metadata: Any = node.json.get("metadata")
    shown = cast("Mapping[str, Any]", metadata).get("displayText") if isinstance(metadata, Mapping) else None
    return clean(shown if isinstance(shown, str) and shown.strip() else node.name or node.id)


def label_in(graph: Graph, activity_id: str) -> str:
    """The same for an activity of which only the id is known."""
    node = graph.find(activity_id)
    return clean(activity_id) if node is None else label_of(node)


def short_type(node: Node) -> str:
    return clean(node.type_name.rpartition(".")[2])


def outcomes_of(record: Record) -> list[str]:
    """The outcomes of a completed activity, unless that is plain `Done`."""
    found: Sequence[Any] = (record.payload or {}).get("Outcomes") or ()
    return [] if tuple(found) == ("Done",) else [str(name) for name in found]


def values_of(
    node: Node, inputs: Mapping[str, Any], outputs: Mapping[str, Any], written: Sequence[str]
) -> Text:
    """Inputs that the author gave, then outputs. What was written to the console stands below anyway."""
    said = Text()
    place, rest = _assigned_place(node, inputs)
    for descriptor in node.type.descriptor.inputs:
        value = rest.get(descriptor.attribute)
        is_written = isinstance(value, str) and value in written
        if value is None or is_written or member(node.json, descriptor.json_name) is None:
            continue
        if place is None:
            said.append(f"{descriptor.json_name} ", "dim")
        else:
            said.append(f"{clean(place)} = ")
        said.append(f"{show_value(value)}  ")
    for name, value in outputs.items():
        if value is not None:
            said.append(f"{name[:1].lower()}{name[1:]} = ", "dim").append(f"{show_value(value)}  ")
    return said


def _assigned_place(node: Node, inputs: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """For activities that give something a value: its name, and what then is left to say."""
    if node.type_name == "Elsa.SetVariable":
        variable: Any = node.fixed.get("variable")
        name = member(cast("Mapping[str, Any]", variable), "name") if isinstance(variable, Mapping) else None
        return (name if isinstance(name, str) else None), inputs
    if node.type_name == "Elsa.SetOutput":
        name = inputs.get("output_name")
        return name, {k: v for k, v in inputs.items() if k != "output_name"}
    return None, inputs
