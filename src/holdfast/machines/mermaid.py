"""A machine as a Mermaid state diagram: statuses, what leads from where to where, how runs begin and end."""

from enum import Enum

from holdfast.machines.built import Built
from holdfast.machines.handler import Handler

_WORDS = {"callback": "callback", "timeout": "timeout"}


def draw(name: str, built: Built, direction: str) -> str:
    """The diagram as text. Nodes are numbered, since a status may be called anything."""
    numbers = {status: f"s{number}" for number, status in enumerate(built.statuses, 1)}
    lines = ["---", f"title: {_quoted(name)}", "---", "stateDiagram-v2", f"    direction {direction}"]
    lines += [f"    {numbers[status]}: {status.name}" for status in built.statuses]
    lines.append(f"    [*] --> {numbers[built.start]}")
    for status in built.statuses:
        for handler in [one for one in built.handlers if one.status == status]:
            lines += [
                f"    {numbers[status]} --> {numbers[to]}: {_label(handler)}" for to in _ordered(handler.to)
            ]
    lines += [f"    {numbers[status]} --> [*]" for status in built.statuses if status in built.terminal]
    return "\n".join(lines) + "\n"


def _ordered(statuses: tuple[Enum, ...]) -> tuple[Enum, ...]:
    return tuple(dict.fromkeys(statuses))


def _label(handler: Handler) -> str:
    function = handler.given.function.__name__
    kind = _WORDS.get(handler.given.kind)
    return function if kind is None else f"{function} ({kind})"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
