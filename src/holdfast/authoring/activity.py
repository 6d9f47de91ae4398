"""`@activity`: from a plain function or an annotated class to an activity type.

The signature gives the inputs, the return type the output, the docstring the description. Nothing
is registered by decorating: a host is given the activities it should know.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin, get_type_hints, overload

import msgspec

from holdfast.authoring.context import ActivityContext, Child, Signal, Source, TriggerContext
from holdfast.authoring.descriptor import (
    ActivityDescriptor,
    ActivityType,
    InputDescriptor,
    Kind,
    OutputDescriptor,
    PortDescriptor,
    member_name,
)
from holdfast.authoring.field import Field, Role
from holdfast.codec import Type, find_type, type_of
from holdfast.errors import Invalid

C = TypeVar("C", bound=Callable[..., Any])

MARK = "__activity_type__"
"""The attribute in which something decorated keeps its type."""


class ActivityInvalid(Invalid):
    """An activity was written in a way that cannot work. Raised when it is decorated."""

    code = "activity.invalid"


class Activity:
    """One element of a definition. Subclass it, annotate its members, decorate it with `@activity`.

    A new object is made for each execution; its inputs, ports and properties are attributes by the
    time `execute` is called. What must survive a wait belongs into `context.state`.
    """

    auto_complete: ClassVar[bool] = True
    """Complete by itself as soon as it waits for nothing and nobody."""
    only_schedules: ClassVar[bool] = False
    """Executing it does no more than schedule others: commit strategies have nothing to keep before those."""
    declares_variables: ClassVar[bool] = False
    """A variable container: its `variables` are declared anew at each execution."""
    outcomes_of: ClassVar[Callable[[Any], list[str]] | None] = None
    """From an activity's JSON to its outcomes, where these depend on it."""

    def execute(self, context: ActivityContext) -> Any:
        """Do the work. May be `async`; what it raises becomes a fault."""
        raise NotImplementedError(type(self).__name__)

    def can_execute(self, context: ActivityContext) -> bool:
        """False leaves the activity pending: it is not executed, and its container waits."""
        return True

    def receive(self, context: ActivityContext, signal: Signal) -> None:
        """Hear a signal from this activity or a descendant."""

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        """For triggers: the payloads under which a stimulus starts an instance here."""
        return ()

    @classmethod
    def prepare(cls, source: Source) -> Mapping[str, Any]:
        """Further attributes, made once when the definition is compiled."""
        return {}


@overload
def activity(made: C, /) -> C: ...
@overload
def activity(
    *,
    type: str | None = None,
    version: int = 1,
    category: str = "Custom",
    display_name: str | None = None,
    description: str | None = None,
    kind: Kind = "Action",
    outcomes: tuple[str, ...] = ("Done",),
    is_terminal: bool = False,
    is_start: bool = False,
    is_container: bool = False,
    is_browsable: bool = True,
) -> Callable[[C], C]: ...
def activity(made: Any = None, /, **about: Any) -> Any:
    """Make an activity of a function (sync or async) or of an `Activity` subclass.

    A function's parameters are its inputs; one called `context` is given the `ActivityContext`. What
    it returns becomes the output `result`.
    """

    def decorate(made: Any) -> Any:
        implementation = made if inspect.isclass(made) else _class_around(made)
        if not issubclass(implementation, Activity):
            raise ActivityInvalid(
                f"@activity was put on {made.__qualname__}, which is a class but no Activity. "
                f"Write `class {made.__name__}(Activity):` and give it an `execute` method."
            )
        setattr(made, MARK, ActivityType(_describe(implementation, made, about), implementation))
        return made

    return decorate if made is None else decorate(made)


def activity_type(made: Any) -> ActivityType:
    """The type behind something that was decorated with `@activity`."""
    found = made if isinstance(made, ActivityType) else getattr(made, MARK, None)
    if not isinstance(found, ActivityType):
        raise ActivityInvalid(f"{made!r} is not an activity. Decorate it with @activity from holdfast.")
    return found


def _class_around(function: Callable[..., Any]) -> type[Activity]:
    """The class form of a function: `execute` calls it with the inputs as arguments."""
    hints = get_type_hints(function, include_extras=True)
    annotations: dict[str, Any] = {}
    members: dict[str, Any] = {"__doc__": function.__doc__, "__module__": function.__module__}
    wants_context = False
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ActivityInvalid(
                f"Activity {function.__qualname__} takes *{parameter.name}. Inputs need names: list them."
            )
        if parameter.name == "context":
            wants_context = True
            continue
        names.append(parameter.name)
        annotations[parameter.name] = Annotated[hints.get(parameter.name, Any), Role.INPUT]
        if parameter.default is not parameter.empty:
            members[parameter.name] = parameter.default
    returns = hints.get("return", Any)
    if returns is not type(None):
        annotations["result"] = Annotated[returns, Role.OUTPUT]

    def execute(self: Any, context: ActivityContext) -> Any:
        arguments = {name: getattr(self, name) for name in names}
        if wants_context:
            arguments["context"] = context
        returned = function(**arguments)
        if inspect.isawaitable(returned):
            return _keep_awaited(context, returned, keeps_result)
        if keeps_result:
            context.set_output("result", returned)
        return None

    keeps_result = "result" in annotations
    members |= {"__annotations__": annotations, "execute": execute}
    return type(function.__name__, (Activity,), members)


async def _keep_awaited(context: ActivityContext, returned: Any, keeps_result: bool) -> None:
    result = await returned
    if keeps_result:
        context.set_output("result", result)


def _describe(implementation: type[Activity], made: Any, about: Mapping[str, Any]) -> ActivityDescriptor:
    summary, parameters = _read_docstring(made.__doc__)
    inputs: list[InputDescriptor] = []
    outputs: list[OutputDescriptor] = []
    ports: list[PortDescriptor] = []
    hints = get_type_hints(
        implementation, localns={"Child": Child, "Sequence": Sequence}, include_extras=True
    )
    for attribute, hint in hints.items():
        if get_origin(hint) is not Annotated:
            continue
        annotation, *metadata = get_args(hint)
        role = next((m for m in metadata if isinstance(m, Role)), None)
        field = next((m for m in metadata if isinstance(m, Field)), Field())
        if role is None:
            continue
        if attribute == "type":
            raise ActivityInvalid(
                f"Activity {made.__qualname__} has a member called `type`, which in a definition names the "
                f"activity's type. Call it something else, such as `kind`."
            )
        if not field.description and attribute in parameters:
            field = msgspec.structs.replace(field, description=parameters[attribute])
        name = pascal_case(attribute)
        if role in (Role.INPUT, Role.PROPERTY):
            inputs.append(_input(implementation, attribute, annotation, field, role))
        elif role is Role.OUTPUT:
            outputs.append(
                OutputDescriptor(
                    name=name,
                    json_name=member_name(pascal_case(attribute)),
                    type=_type(annotation, field),
                    display_name=field.display_name or spaced(name),
                    description=field.description,
                )
            )
        else:
            ports.append(
                PortDescriptor(
                    name=name,
                    json_name=member_name(pascal_case(attribute)),
                    attribute=attribute,
                    display_name=field.display_name or spaced(name),
                    type="Embedded",
                    many=role is Role.PORTS,
                )
            )
    type_name = about.get("type") or pascal_case(made.__name__)
    return ActivityDescriptor(
        type_name=type_name,
        version=about.get("version", 1),
        category=about.get("category", "Custom"),
        display_name=about.get("display_name") or spaced(type_name.rpartition(".")[2]),
        description=about.get("description") or summary,
        kind=about.get("kind", "Action"),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        outcomes=about.get("outcomes", ("Done",)),
        ports=tuple(ports),
        is_container=about.get("is_container", bool(ports)),
        is_start=about.get("is_start", False),
        is_terminal=about.get("is_terminal", False),
        is_browsable=about.get("is_browsable", True),
        dynamic_outcomes=implementation.outcomes_of,
    )


def _input(
    owner: type[Activity], attribute: str, annotation: Any, field: Field, role: Role
) -> InputDescriptor:
    name = pascal_case(attribute)
    kind = _type(annotation, field)
    missing = not hasattr(owner, attribute)
    options = field.options or _choices(annotation)
    return InputDescriptor(
        attribute=attribute,
        name=name,
        json_name=member_name(pascal_case(attribute)),
        type=kind,
        default=kind.default if missing else getattr(owner, attribute),
        required=missing and not _accepts_none(annotation),
        display_name=field.display_name or spaced(name),
        description=field.description,
        category=field.category,
        hint=field.hint or _hint(kind, options),
        options=options,
        syntax=field.syntax,
        on_demand=field.on_demand,
        sensitive=field.sensitive,
        wrapped=role is Role.INPUT,
    )


def _type(annotation: Any, field: Field) -> Type:
    return (field.type_name and find_type(field.type_name)) or type_of(annotation)


def _accepts_none(annotation: Any) -> bool:
    return annotation in (Any, object, None) or type(None) in get_args(annotation)


def _choices(annotation: Any) -> tuple[Any, ...]:
    """What a `Literal` or an Enum offers, also where it is optional."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(member.value for member in annotation)
    for part in get_args(annotation) if type(None) in get_args(annotation) else ():
        if part is not type(None):
            return _choices(part)
    return ()


def _hint(kind: Type, options: tuple[Any, ...]) -> str:
    if options:
        return "dropdown"
    if kind.name in ("Boolean", "Boolean?"):
        return "checkbox"
    if kind.name.endswith("[]") or kind.name.startswith(("List<", "ICollection<", "IEnumerable<")):
        return "multitext"
    return "json-editor" if kind.is_structured and not kind.is_object else "singleline"


def _read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The first paragraph, and what an `Args:` section says about each parameter."""
    if not text:
        return "", {}
    text = inspect.cleandoc(text)
    summary = " ".join(text.partition("\n\n")[0].split())
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", text, re.MULTILINE)
    if section is None:
        return summary, {}
    entries = re.findall(r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.*(?:\n\s{8,}\S.*)*)", section[1], re.MULTILINE)
    return summary, {name: " ".join(words.split()) for name, words in entries}


def pascal_case(name: str) -> str:
    """`correlation_id` to `CorrelationId`; a trailing underscore (`else_`) is only there for Python."""
    return "".join(part[:1].upper() + part[1:] for part in name.rstrip("_").split("_"))


def camel_case(name: str) -> str:
    pascal = pascal_case(name)
    return pascal[:1].lower() + pascal[1:]


def spaced(name: str) -> str:
    """`WriteLine` to `Write Line`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
