"""Which inputs and outputs of an activity the journal leaves out.

Two generations of settings exist, both in `customProperties`: `logPersistenceMode` names a mode per
input and output; `logPersistenceConfig` names a strategy type, or an expression that says the mode when
the activity executes. The nearest setting that does not say *inherit* counts: the input's own, the
activity's default, the workflow's, and last the host's, which is to include.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast.authoring import ActivityDescriptor
from holdfast.codec import is_object
from holdfast.definitions.document import class_name
from holdfast.definitions.reader import member
from holdfast.expression import Scope

INCLUDE, EXCLUDE = "Include", "Exclude"
_MODES = {"Include": INCLUDE, "Exclude": EXCLUDE, 1: INCLUDE, 2: EXCLUDE}

Rule = Callable[[Scope], Any]
"""An expression that says the mode."""


class Unlogged(msgspec.Struct, frozen=True):
    """What records must not show: attributes of inputs and names of outputs."""

    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    input_rules: Mapping[str, Rule] = {}
    output_rules: Mapping[str, Rule] = {}


NOTHING = Unlogged()


def excludes(answer: Any) -> bool:
    """Whether what a rule evaluated to means to leave it out."""
    return isinstance(answer, str | int) and _MODES.get(answer) == EXCLUDE


def unlogged(
    descriptor: ActivityDescriptor,
    custom: Mapping[str, Any],
    workflow: Mapping[str, Any],
    compile_rule: Callable[[Any], Rule],
) -> Unlogged:
    """What the journal leaves out for an activity with these custom properties."""
    default = _default(custom) or _default(workflow)
    if default is None and not _settings(custom) and not any(i.sensitive for i in descriptor.inputs):
        return NOTHING
    inputs = {i.attribute: _own(custom, "inputs", i.json_name) or default for i in descriptor.inputs}
    inputs |= {i.attribute: EXCLUDE for i in descriptor.inputs if i.sensitive}
    outputs = {o.name: _own(custom, "outputs", o.json_name) or default for o in descriptor.outputs}
    return Unlogged(
        inputs=frozenset(name for name, setting in inputs.items() if setting == EXCLUDE),
        outputs=frozenset(name for name, setting in outputs.items() if setting == EXCLUDE),
        input_rules={name: compile_rule(rule) for name, rule in inputs.items() if is_object(rule)},
        output_rules={name: compile_rule(rule) for name, rule in outputs.items() if is_object(rule)},
    )


def _settings(custom: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = (member(custom, "logPersistenceConfig"), member(custom, "logPersistenceMode"))
    return [settings for settings in found if is_object(settings)]


def _default(custom: Mapping[str, Any]) -> Any:
    plain = member(custom, "logPersistenceMode")
    if isinstance(plain, str):
        return _setting(plain)
    return next((m for s in _settings(custom) if (m := _setting(member(s, "default")))), None)


def _own(custom: Mapping[str, Any], group: str, name: str) -> Any:
    for settings in _settings(custom):
        entries = member(settings, group)
        if is_object(entries):
            setting = _setting(member(entries, name))
            if setting is not None:
                return setting
    return None


def _setting(entry: Any) -> Any:
    """`Include`, `Exclude`, the expression that says which, or None for inherit and what we cannot read."""
    if is_object(entry):
        expression = member(entry, "expression")
        if member(entry, "evaluationMode") == "Expression" and is_object(expression):
            return expression
        strategy = member(entry, "strategyType")
        entry = class_name(strategy) if isinstance(strategy, str) else None
    return _MODES.get(entry) if isinstance(entry, str | int) else None
