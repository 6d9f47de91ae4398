"""What the journal shows of an execution's inputs and outputs, where settings leave some of it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.definitions.logging import excludes
from holdfast.engine.scope import FrameScope

if TYPE_CHECKING:
    from holdfast.engine.burst import Burst
    from holdfast.engine.frame import Frame


def shown_inputs(burst: Burst, frame: Frame) -> dict[str, Any] | None:
    """The inputs a record may show."""
    hidden = frame.node.unlogged
    if hidden is None or frame.inputs is None:
        return frame.inputs
    return {
        name: value
        for name, value in frame.inputs.items()
        if name not in hidden.inputs
        and not (name in hidden.input_rules and _is_hidden(burst, frame, hidden.input_rules[name]))
    }


def shows_output(burst: Burst, frame: Frame, name: str) -> bool:
    """Whether a record may show that output."""
    hidden = frame.node.unlogged
    if hidden is None:
        return True
    if name in hidden.output_rules:
        return not _is_hidden(burst, frame, hidden.output_rules[name])
    return name not in hidden.outputs


def _is_hidden(burst: Burst, frame: Frame, rule: Any) -> bool:
    return excludes(rule(FrameScope(burst, frame)))
