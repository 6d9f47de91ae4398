"""Values in a workflow that is being written: plain ones, expressions, and handles of what is declared.

A plain Python value becomes a literal, a list or dict a JSON literal, both checked against the type
they are meant for. What must be computed is a `Computed`: a script, or the handle of a variable or
workflow input. A handle carries its Python type, so that a type checker knows what fits.
"""

from decimal import Decimal
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

from holdfast.codec import OBJECT, Type, decode, encode_bare, find_type, type_of
from holdfast.definitions.builder_tree import BuilderInvalid, Path, Placed, Use
from holdfast.definitions.document import variable_id
from holdfast.definitions.reader import Json
from holdfast.errors import Invalid

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

KEPT = "Elsa.Workflows.WorkflowInstanceStorageDriver, Elsa.Workflows.Core"


class Reference:
    """Something that may refer to what is declared elsewhere, and may be where an output is kept."""

    def __init__(self, use: Use | None = None, target: str | None = None) -> None:
        self.uses = () if use is None else (use,)
        self.target = target
        """How outputs name it; None where nothing can be kept."""


class Computed(Reference, Generic[T_co]):
    """A value that is computed whenever an activity that has it as input executes."""

    def __init__(
        self, language: str, value: Any, use: Use | None = None, *, target: str | None = None
    ) -> None:
        super().__init__(use, target)
        self.expression: Json = {"type": language, "value": value}

    def __repr__(self) -> str:
        return f"<{self.expression['type']} {self.expression['value']!r}>"


Value: TypeAlias = T | Computed[T]
"""A value, or what computes one."""


def js(source: str) -> Computed[Any]:
    """A JavaScript expression: `js("getAmount() > 10")`."""
    return Computed("JavaScript", source)


def liquid(template: str) -> Computed[Any]:
    """A Liquid template: `liquid("Dear {{ Variables.Name }}")`."""
    return Computed("Liquid", template)


def python(source: str) -> Computed[Any]:
    """A Python expression, of the safe subset that definitions may use."""
    return Computed("Python", source)


class Plain:
    """A member that stands in the document as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value


def plain(value: Any) -> Plain:
    """For members that are neither inputs nor ports, such as a state machine's `states`.

    Lists and dicts may hold placed activities and expressions.
    """
    return Plain(value)


class VariableHandle(Computed[T]):
    """A variable, declared by a workflow or a container. As an input it means its value."""

    def __init__(self, name: str, kind: object, default: Any, *, kept: bool, id: str | None) -> None:  # noqa: A002
        self.name = name
        self.id = id or variable_id(name)
        self.type_name = alias_of(kind)
        self._value = _default(default, self.type_name, f"variable {name!r}")
        self._driver = KEPT if kept else None
        self.declared = Use("variable", self.id, name)
        super().__init__("Variable", self.reference, self.declared, target=self.id)

    def set(self, value: Value[T]) -> Placed:
        """An activity that gives the variable a value."""
        uses = [self.declared, *uses_of(value)]
        members = {"variable": self.reference, "value": write_input(value, OBJECT, f"{self.name}.set")}
        return Placed("Elsa.SetVariable", members, uses=uses)

    @property
    def reference(self) -> Json:
        """How activities name it."""
        return {"id": self.id, "name": self.name, "typeName": self.type_name}

    def declaration(self, *, in_workflow: bool) -> Json:
        """As it stands in the `variables` of a workflow, or of a container."""
        is_array = in_workflow and self.type_name.endswith("[]")
        return {
            "id": self.id,
            "name": self.name,
            "typeName": self.type_name.removesuffix("[]") if is_array else self.type_name,
            **({"isArray": is_array} if in_workflow else {}),
            "value": self._value,
            "storageDriverTypeName": self._driver,
        }


@overload
def variable(
    name: str, kind: type[T], default: T | None = None, *, kept: bool = True, id: str | None = None
) -> VariableHandle[T]: ...
@overload
def variable(
    name: str, kind: object = object, default: Any = None, *, kept: bool = True, id: str | None = None
) -> VariableHandle[Any]: ...
def variable(
    name: str,
    kind: Any = object,
    default: Any = None,
    *,
    kept: bool = True,
    id: str | None = None,  # noqa: A002  every declared thing has one
) -> VariableHandle[Any]:
    """A variable for a container to declare: `sequence(..., variables=[count])`."""
    return VariableHandle(name, kind, default, kept=kept, id=id)


class InputHandle(Computed[T_co]):
    """An input of the workflow. As an input of an activity it means its value."""

    def __init__(self, declaration: Json) -> None:
        self.name: str = declaration["name"]
        self.declaration = declaration
        self.declared = Use("input", self.name, self.name)
        super().__init__("Input", {"name": self.name, "type": declaration["type"]}, self.declared)


class OutputHandle(Reference, Generic[T]):
    """An output of the workflow. An activity's output can be captured in it."""

    def __init__(self, declaration: Json) -> None:
        self.name: str = declaration["name"]
        self.declaration = declaration
        self.declared = Use("output", self.name, self.name)
        super().__init__(self.declared, self.name)

    def set(self, value: Value[T]) -> Placed:
        """An activity that gives the output a value."""
        members = {
            "outputName": write_input(self.name, find_type("String"), "output"),
            "outputValue": write_input(value, OBJECT, f"{self.name}.set"),
        }
        return Placed("Elsa.SetOutput", members, uses=[self.declared, *uses_of(value)])


def uses_of(value: object) -> tuple[Use, ...]:
    """What a value refers to."""
    return value.uses if isinstance(value, Reference) else ()


def captured(target: Reference, type_name: str) -> Json:
    """An output as it stands in an activity."""
    return {"typeName": type_name, "memoryReference": {"id": target.target}}


def write_input(value: object, kind: Type | None, where: str) -> Json:
    """An input as it stands in an activity. Without a type, the value says what it is."""
    name = kind.name if kind is not None else type_of(type(value)).name
    return {"typeName": name, "expression": write_expression(value, kind, where)}


def write_expression(value: object, kind: Type | None, where: str) -> Json:
    """`{type, value}`. Raises BuilderInvalid for values that do not fit the type."""
    if isinstance(value, Computed):
        return dict(cast("Computed[Any]", value).expression)
    literal = write_literal(value, kind, where)
    if not isinstance(literal, dict | list):
        return {"type": "Literal", "value": literal}
    text = encode_bare(literal).decode()
    if kind is not None and kind.is_object:
        # An Object expression for an input of any type is its text, as in Elsa; a script's value is not.
        return {"type": "JavaScript", "value": f"({text})"}
    return {"type": "Object", "value": text}


def write_literal(value: object, kind: Type | None, where: str) -> Any:
    """A value as JSON has it. Raises BuilderInvalid where it does not fit the type."""
    if isinstance(value, Path | Plain | Reference):
        raise BuilderInvalid(f"{where} takes a value or an expression, not {value!r}.")
    try:
        literal = str(value) if isinstance(value, Decimal) else decode(encode_bare(value))
        if kind is not None:
            kind.convert_strictly(literal)
    except Invalid as problem:
        raise BuilderInvalid(f"{where}: {problem}") from None
    return literal


def alias_of(kind: object) -> str:
    """The name that definitions have for a Python type; what they cannot name is `Object`."""
    if isinstance(kind, str):
        found = find_type(kind)
        if found is None:
            raise BuilderInvalid(f"There is no type {kind!r}. Use a Python type, or a name such as 'Int32'.")
        return found.name
    name = type_of(kind).name
    return name if find_type(name) is not None else OBJECT.name


def _default(default: object, type_name: str, where: str) -> Any:
    """Defaults are text in a definition, except lists and dicts for a variable of any type."""
    if default is None:
        return None
    literal = write_literal(default, find_type(type_name), where)
    if isinstance(literal, str) or (isinstance(literal, dict | list) and type_name == OBJECT.name):
        return cast("Any", literal)
    return str(literal) if isinstance(literal, bool) else encode_bare(literal).decode()
