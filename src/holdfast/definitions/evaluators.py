"""Inputs and expressions of a definition, compiled to constants or to functions of a scope.

Literal, Object, Variable and Input are understood here; every other expression type is a `Language`
the host registered. A constant is converted once, when the version is compiled.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from holdfast.authoring import InputDescriptor
from holdfast.codec import Type, decode, encode
from holdfast.definitions.reader import Json, member
from holdfast.errors import Invalid
from holdfast.expression import Expression, ExpressionFailed, Language, Scope

Evaluator = Callable[[Scope], Any]

FOREIGN = {
    "CSharp": "C# expressions cannot run here. Rewrite it as JavaScript, Liquid or Python.",
    "Secret": "This host keeps no secrets, so a Secret expression has no value.",
    "Delegate": "A Delegate expression exists only in code. Give it another expression type.",
}
"""Expression types we know of and cannot evaluate; reaching one faults the activity."""


class Constant:
    """An expression that needs no scope."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def always(self, scope: Scope) -> Any:
        return self.value


class Expressions:
    """The expression languages of a host, and how definitions spell expressions."""

    def __init__(self, languages: Iterable[Language] = ()) -> None:
        self.languages: dict[str, Language] = {}
        for language in languages:
            self.add(language)

    def add(self, language: Language) -> None:
        self.languages[language.name] = language

    def input(self, value: Any, descriptor: InputDescriptor, at: str) -> Constant | Evaluator:
        """An input as it stands in an activity. Null, or an object without `typeName`, is no input.

        What evaluates to nothing gets the declared default, and faults where the activity needs a value.
        """
        made = self._written(value, descriptor, at)
        if not descriptor.required and descriptor.default is None:
            return made
        if isinstance(made, Constant):
            return _failing(_missing(descriptor)) if made.value is None else made
        return _filled(made, descriptor)

    def _written(self, value: Any, descriptor: InputDescriptor, at: str) -> Constant | Evaluator:
        if value is None:
            return self._default(descriptor)
        if not isinstance(value, dict):
            return self._literal(value, descriptor.type)
        wrapper = cast("Json", value)
        if not any(key.lower() == "typename" for key in wrapper):
            return self._default(descriptor)
        expression = member(wrapper, "expression")
        if expression is None:
            return self._default(descriptor)
        return self.expression(expression, descriptor.type, at)

    def _default(self, descriptor: InputDescriptor) -> Constant | Evaluator:
        if descriptor.required:
            return Constant(None)
        if isinstance(descriptor.default, list | dict | set):
            return lambda scope: descriptor.default_value()
        return Constant(descriptor.default)

    def expression(self, json: Any, target: Type, at: str) -> Constant | Evaluator:
        """`{type, value}`. An unknown type evaluates to null, as in Elsa; `validate` warns of it."""
        kind, value = read_expression(json)
        if kind == "Literal":
            return self._literal(value, target)
        if kind in ("Object", "Json"):
            return self._object(value, target)
        if kind == "Variable":
            name = _reference(value, "id")
            if name is None:
                return Constant(target.default)
            return _converted(lambda scope: scope.get_variable_by_id(name), target)
        if kind == "Input":
            name = _reference(value, "name")
            if name is None:
                return Constant(target.default)
            return _converted(lambda scope: scope.get_input(name), target)
        language = self.languages.get(kind)
        if language is not None:
            text = value if isinstance(value, str) else "" if value is None else encode(value).decode()
            return Script(language, text, None if target.is_object else target.convert, at)
        if kind in FOREIGN:
            return _failing(f"{FOREIGN[kind]} (at {at})")
        return Constant(target.default)

    def _literal(self, value: Any, target: Type) -> Constant | Evaluator:
        if isinstance(value, dict | list):
            value = encode(value).decode()
        try:
            converted = target.convert(value)
        except Invalid as problem:
            return _failing(str(problem))
        if isinstance(converted, list | dict | set):
            return lambda scope: target.convert(value)
        return Constant(converted)

    def _object(self, value: Any, target: Type) -> Constant | Evaluator:
        """JSON text, parsed into the target type; against `Object` it stays text, as in Elsa."""
        text = value if isinstance(value, str) else "" if value is None else encode(value).decode()
        if not text.strip():
            return Constant(target.default)
        if target.is_object or target.is_text:
            return Constant(text)

        def parse(scope: Scope) -> Any:
            return target.convert(decode(text))

        try:
            once = target.convert(decode(text))
        except Invalid as problem:
            return _failing(str(problem))
        return parse if isinstance(once, list | dict | set) else Constant(once)


class Script:
    """An expression in one of the host's languages, compiled when it is first evaluated."""

    __slots__ = ("_compiled", "_convert", "at", "language", "source")

    def __init__(
        self, language: Language, source: str, convert: Callable[[Any], Any] | None, at: str
    ) -> None:
        self.language = language
        self.source = source
        self.at = at
        self._convert = convert
        self._compiled: Expression | None = None

    def __call__(self, scope: Scope) -> Any:
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = self.language.compile(self.source)
        value = compiled(scope)
        return value if self._convert is None else self._convert(value)


def read_expression(json: Any) -> tuple[str, Any]:
    """Type and value of `{type, value}`; anything else is a literal."""
    if not isinstance(json, dict):
        return "Literal", json
    expression = cast("Json", json)
    kind = member(expression, "type")
    return (kind if isinstance(kind, str) and kind else "Literal"), member(expression, "value")


def _reference(value: Any, name: str) -> str | None:
    """The id or name in a reference, which may be an object or that object as text."""
    if isinstance(value, str):
        try:
            value = decode(value)
        except Invalid:
            return None
    if not isinstance(value, Mapping):
        return None
    found = member(cast("Json", value), name)
    return found if isinstance(found, str) and found else None


def _filled(made: Evaluator, descriptor: InputDescriptor) -> Evaluator:
    def evaluate(scope: Scope) -> Any:
        value = made(scope)
        if value is not None:
            return value
        if descriptor.required:
            raise ExpressionFailed(_missing(descriptor))
        return descriptor.default_value()

    return evaluate


def _missing(descriptor: InputDescriptor) -> str:
    return f"it has no value, and the activity needs one. Give {descriptor.display_name!r} a value."


def _converted(read: Evaluator, target: Type) -> Evaluator:
    if target.is_object:
        return read
    convert = target.convert
    return lambda scope: convert(read(scope))


def _failing(reason: str) -> Evaluator:
    def fail(scope: Scope) -> Any:
        raise ExpressionFailed(reason)

    return fail
