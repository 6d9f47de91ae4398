"""Whether inputs, outputs and expressions of an activity can work.

Every expression is compiled, every literal converted, every variable looked up in its scope. What
an activity looks like is `check_activities`; the rules by which these values are evaluated later
are `evaluators`.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from holdfast.authoring import InputDescriptor, OutputDescriptor
from holdfast.codec import (
    ConversionFailed,
    NotEncodable,
    Type,
    decode,
    encode_text,
    is_list,
    is_object,
    lower_keys,
)
from holdfast.cron import Cron, CronInvalid
from holdfast.definitions.document import Definition
from holdfast.definitions.evaluators import FOREIGN, Expressions, read_expression
from holdfast.definitions.places import Placed
from holdfast.definitions.problems import Problems
from holdfast.definitions.reader import member
from holdfast.errors import Invalid

_BUILT_IN = ("Literal", "Object", "Variable", "Input")


class ValueChecks:
    def __init__(self, definition: Definition, expressions: Expressions, problems: Problems) -> None:
        self._inputs = {p.name.lower(): p.name for p in definition.inputs}
        self._outputs = {p.name for p in definition.outputs}
        self._languages = expressions.languages
        self._problems = problems
        self._objections: dict[tuple[str, str], str] = {}

    def input(self, value: Any, descriptor: InputDescriptor, place: Placed) -> None:
        """An input that is an expression, as it stands in an activity."""
        at = f"{place.at}.{descriptor.json_name}"
        expression, where = value, at
        if is_object(value):
            wrapper = lower_keys(value)
            expression, where = wrapper.get("expression"), f"{at}.expression"
            if expression is not None and "typename" not in wrapper:
                self._problems.warn(
                    "input.untyped",
                    at,
                    f"The input {descriptor.name} has no typeName and counts as not given. "
                    f'Add "typeName": "{descriptor.type.name}".',
                    place.id,
                )
                expression = None
        kind, literal = read_expression(expression)
        if descriptor.required and kind == "Literal" and literal in (None, ""):
            self._problems.error(
                "input.required",
                at,
                f"The input {descriptor.name} of {place.type_name} has no value. Give it one.",
                place.id,
            )
        elif expression is not None:
            self.expression(expression, descriptor.type, where, place)
            is_text = kind == "Literal" and isinstance(literal, str) and bool(literal.strip())
            if is_text and descriptor.syntax not in _BUILT_IN:  # the value is a script itself
                self._script(descriptor.syntax, literal, where, place)

    def plain(self, value: Any, descriptor: InputDescriptor, place: Placed) -> None:
        """An input that is ordinary JSON."""
        at = f"{place.at}.{descriptor.json_name}"
        if value is not None:
            self._convert(value, descriptor.type, at, place)
        elif descriptor.required:
            self._problems.error(
                "input.required",
                at,
                f"{place.type_name} needs {descriptor.json_name}, which is missing. Add it.",
                place.id,
            )

    def output(self, value: Any, descriptor: OutputDescriptor, place: Placed) -> None:
        """An output and the variable it is captured in."""
        reference = member(value, "memoryReference") if is_object(value) else None
        target = member(reference, "id") if is_object(reference) else None
        if not isinstance(target, str) or not target or target in place.names or target in self._outputs:
            return
        self._problems.warn(
            "output.unbound",
            f"{place.at}.{descriptor.json_name}.memoryReference.id",
            f"The output {descriptor.name} goes to {target!r}, which is neither a variable in scope nor an "
            f"output of the workflow, so its value is lost. {self._nearest(target, place, self._outputs)}"
            f"Declare it, or choose another.",
            place.id,
        )

    def expression(self, json: Any, target: Type, at: str, place: Placed) -> None:
        """`{type, value}`, or a bare literal."""
        kind, value = read_expression(json)
        if kind == "Literal":
            self._convert(_text(value) if is_object(value) or is_list(value) else value, target, at, place)
        elif kind in ("Object", "Json"):
            self._object(_text(value), target, at, place)
        elif kind == "Variable":
            self._variable(value, at, place)
        elif kind == "Input":
            self._input_reference(value, at, place)
        elif kind in self._languages or kind in FOREIGN:
            self._script(kind, _text(value), at, place)
        else:
            self._problems.warn(
                "expression.unknown",
                at,
                f"There is no expression type {kind!r} here, so this evaluates to null. "
                f"{self._problems.similar(kind, (*_BUILT_IN, *self._languages))}"
                f"Use one of {', '.join((*_BUILT_IN, *self._languages))}.",
                place.id,
            )

    def reference(self, variable_id: str, at: str, place: Placed) -> None:
        """A variable by its id, which must be in scope."""
        if variable_id in place.names:
            return
        report = self._problems.warn if place.names.is_open else self._problems.error
        report(
            "variable.unknown",
            at,
            f"No variable with the id {variable_id!r} is in scope here. "
            f"{self._nearest(variable_id, place)}Declare it on the workflow or on a container around this "
            f"activity, or choose another.",
            place.id,
        )

    def cron(self, value: Any, place: Placed) -> None:
        """The expression of a cron trigger, where it is written down rather than computed."""
        expression = member(value, "expression") if is_object(value) else value
        kind, text = read_expression(expression)
        if kind not in ("Literal", "Object", "Json"):
            return
        at = f"{place.at}.cronExpression"
        if text is None or (isinstance(text, str) and not text.strip()):
            self._problems.error(
                "cron.missing",
                at,
                "There is no cron expression, so this never comes true. Write one, such as "
                "0 0 12 * * * for every day at noon.",
                place.id,
            )
            return
        try:
            Cron(_text(text))
        except CronInvalid as problem:
            where = f"{at}.expression" if is_object(value) else at
            self._problems.error(
                "cron.invalid", where, f"Error when parsing cron expression: {problem}", place.id
            )

    def _convert(self, value: Any, target: Type, at: str, place: Placed) -> None:
        try:
            target.convert_strictly(value)
        except ConversionFailed as problem:
            self._problems.error(
                "value.conversion",
                at,
                f"{problem} Correct the value, or compute it with another expression type.",
                place.id,
            )

    def _object(self, text: str, target: Type, at: str, place: Placed) -> None:
        if target.is_object or target.is_text or not text.strip():
            return
        try:
            parsed = decode(text)
        except Invalid as problem:
            self._problems.error(
                "expression.json",
                at,
                f"An Object expression is JSON text, and this is none: {problem}",
                place.id,
            )
        else:
            self._convert(parsed, target, at, place)

    def _variable(self, value: Any, at: str, place: Placed) -> None:
        wanted = _referred(value, "id")
        if wanted is None:
            self._problems.warn(
                "expression.reference",
                at,
                "This Variable expression names no variable and evaluates to null. "
                'Give it a value such as {"id": "the id of a variable"}.',
                place.id,
            )
        else:
            self.reference(wanted, at, place)

    def _input_reference(self, value: Any, at: str, place: Placed) -> None:
        wanted = _referred(value, "name")
        if wanted is None:
            self._problems.warn(
                "expression.reference",
                at,
                "This Input expression names no input and evaluates to null. "
                'Give it a value such as {"name": "the name of an input"}.',
                place.id,
            )
        elif wanted.lower() not in self._inputs:
            self._problems.warn(
                "input.undeclared",
                at,
                f"The workflow declares no input {wanted!r}. "
                f"{self._problems.similar(wanted, self._inputs.values())}"
                f"Declare it, so that callers know of it.",
                place.id,
            )

    def _script(self, kind: str, text: str, at: str, place: Placed) -> None:
        language = self._languages.get(kind)
        if language is None:
            reason = FOREIGN.get(kind, f"This host has no language {kind}.")
            self._problems.warn("expression.foreign", at, f"{reason} It faults when it is reached.", place.id)
            return
        objection = self._objections.get((kind, text))
        if objection is None:
            objection = ""
            try:
                language.compile(text)
            except Invalid as problem:
                objection = str(problem)
            self._objections[kind, text] = objection
        if objection:
            self._problems.error(
                "expression.invalid",
                at,
                f"This is not {language.display_name}: {objection.rstrip('.')}. Correct the expression.",
                place.id,
            )

    def _nearest(self, wanted: str, place: Placed, others: Iterable[str] = ()) -> str:
        by_name = place.names.named(wanted)
        if by_name is not None:
            return f"The variable of that name has the id {by_name!r}: refer to it by its id. "
        return self._problems.similar(wanted, chain(place.names.variables, others))


def _text(value: Any) -> str:
    """Text as it is, anything else as JSON."""
    try:
        return value if isinstance(value, str) else "" if value is None else encode_text(value)
    except NotEncodable:  # not from JSON: somebody put it together in Python
        return repr(value)


def _referred(value: Any, name: str) -> str | None:
    """The id or name in a reference, which may be an object or that object as text."""
    if isinstance(value, str):
        try:
            value = decode(value)
        except Invalid:
            return None
    found = member(value, name) if is_object(value) else None
    return found if isinstance(found, str) and found else None
