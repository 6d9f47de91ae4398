"""A definition as its author wrote it, and a typed view of the members we use.

The JSON is the document of record: unknown members, their order and their spelling survive loading
and saving, because saving writes the very object that was loaded. The typed view is read from it
once, by Elsa's rules: member names in any case, missing means default, legacy places included.
"""

import copy
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.codec import OBJECT, Type, decode, encode, find_type, is_list, is_object
from holdfast.definitions.reader import DefinitionInvalid, Json, Reader, kind_of
from holdfast.errors import Invalid


class Variable(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A named place for a value, declared by a workflow or a container."""

    id: str
    name: str
    type: Type
    default: Any = None
    is_given: bool = False
    """The author wrote a default; else it is only what the type has for nothing."""
    is_kept: bool = False
    """It has a storage driver: it survives a wait. Without one it is back at its default after."""

    def fresh(self) -> Any:
        """The default for one more scope. Mutable ones are copied."""
        default = self.default
        return copy.deepcopy(default) if is_list(default) or is_object(default) else default


class Parameter(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A declared input or output of a workflow."""

    name: str
    type: Type
    display_name: str
    description: str = ""
    category: str | None = None
    hint: str | None = None
    is_kept: bool = False


class Options(msgspec.Struct, frozen=True, kw_only=True):
    usable_as_activity: bool = False
    auto_update_consumers: bool = False
    activity_category: str | None = None
    activation_strategy: str | None = None
    incident_strategy: str | None = None
    commit_strategy: str | None = None


class Definition(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One version of a workflow."""

    id: str
    """Of this version."""
    definition_id: str
    """Shared by all versions."""
    version: int
    name: str
    description: str
    tool_version: str | None
    variables: tuple[Variable, ...]
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    outcomes: tuple[str, ...]
    options: Options
    custom_properties: Mapping[str, Any]
    is_latest: bool
    is_published: bool
    is_readonly: bool
    is_system: bool
    root: Mapping[str, Any]
    dropped: tuple[tuple[str, str], ...]
    """Variables that were left out because their type is unknown: path and reason."""
    source: Json
    """The document of record."""

    @property
    def is_modern(self) -> bool:
        """Written by tooling of version 3 or later: scripts reach outputs by activity name."""
        major = (self.tool_version or "").partition(".")[0]
        return major.isdecimal() and len(major) < 10 and int(major) >= 3

    @property
    def content_hash(self) -> str:
        """Equal for documents that run alike: publishing or dating one does not change it."""
        relevant = {k: v for k, v in self.source.items() if k.lower() not in _IRRELEVANT}
        return sha256(encode(_sorted(relevant))).hexdigest()

    def save(self) -> bytes:
        """The document, member for member as it came."""
        return encode(self.source)

    def with_members(self, **members: Any) -> "Definition":
        """The same with some members of the envelope changed, in place, where the author had them."""
        source = dict(self.source)
        spelled = {key.lower(): key for key in source}
        for name, value in members.items():
            source[spelled.get(name.lower(), name)] = value
        return load_definition(source)


_IRRELEVANT = frozenset({"islatest", "ispublished", "createdat", "links", "$schema", "version", "id"})


def load_definition(source: bytes | str | Mapping[str, Any]) -> Definition:
    """Read a document. Raises JsonInvalid or DefinitionInvalid; unknown activities are no error."""
    document = decode(source) if isinstance(source, bytes | str) else dict(source)
    if not is_object(document):
        raise DefinitionInvalid("$", f"a definition is a JSON object, this is {kind_of(document)}")
    envelope = Reader(document, "$")
    definition_id = envelope.text("definitionId") or envelope.text("id") or ""
    version = envelope.whole("version", 1)
    dropped: list[tuple[str, str]] = []
    root = envelope.get("root")
    if root is None:
        root = {"type": "Elsa.Sequence"}
    if not is_object(root):
        raise DefinitionInvalid("$.root", f"the root is an activity, a JSON object; this is {kind_of(root)}")
    return Definition(
        id=envelope.text("id") or f"{definition_id}-{version}",
        definition_id=definition_id,
        version=version,
        name=envelope.text("name") or "",
        description=envelope.text("description") or "",
        tool_version=envelope.text("toolVersion"),
        variables=tuple(
            v for r in envelope.objects("variables") if (v := _workflow_variable(r, dropped)) is not None
        ),
        inputs=tuple(map(_parameter, envelope.objects("inputs"))),
        outputs=tuple(map(_parameter, envelope.objects("outputs"))),
        outcomes=tuple(envelope.texts("outcomes")),
        options=_options(envelope),
        custom_properties=envelope.object("customProperties").json,
        is_latest=envelope.flag("isLatest"),
        is_published=envelope.flag("isPublished"),
        is_readonly=envelope.flag("isReadonly"),
        is_system=envelope.flag("isSystem"),
        root=root,
        dropped=tuple(dropped),
        source=document,
    )


def _options(envelope: Reader) -> Options:
    options = envelope.object("options")
    usable = options.get("usableAsActivity")
    return Options(
        usable_as_activity=bool(envelope.get("usableAsActivity") if usable is None else usable),
        auto_update_consumers=options.flag("autoUpdateConsumingWorkflows"),
        activity_category=options.text("activityCategory"),
        activation_strategy=class_name(options.text("activationStrategyType")),
        incident_strategy=class_name(options.text("incidentStrategyType")),
        commit_strategy=options.text("commitStrategyName"),
    )


def _workflow_variable(reader: Reader, dropped: list[tuple[str, str]]) -> Variable | None:
    name = reader.text("name") or ""
    alias = reader.text("typeName") or "Object"
    kind = find_type(f"{alias}[]" if reader.flag("isArray") else alias)
    if kind is None:
        dropped.append((reader.path, f"variable {name!r} has the unknown type {alias!r} and is left out"))
        return None
    return _variable(reader, name, kind)


def container_variable(json: Json, path: str) -> Variable:
    """A variable that a Sequence, Flowchart or Parallel declares. An unknown type means any."""
    reader = Reader(json, path)
    kind = find_type(reader.text("typeName")) or OBJECT
    return _variable(reader, reader.text("name") or "", kind)


def _variable(reader: Reader, name: str, kind: Type) -> Variable:
    value = reader.get("value")
    if isinstance(value, bool):
        value = str(value)
    elif isinstance(value, int | float) or ((is_object(value) or is_list(value)) and not kind.is_object):
        value = encode(value).decode()
    try:
        default = kind.default if value is None or value == "" else kind.convert(value)
    except Invalid:
        default = kind.default
    return Variable(
        id=reader.text("id") or variable_id(name),
        name=name,
        type=kind,
        default=default,
        is_given=value is not None and value != "",
        is_kept=_is_kept(reader.text("storageDriverTypeName")),
    )


def variable_id(name: str) -> str:
    """The id of a variable that has only a name, as Elsa derives it."""
    return f"{name[:1].lower()}{name[1:]}Variable"


def _parameter(reader: Reader) -> Parameter:
    name = reader.text("name") or ""
    return Parameter(
        name=name,
        type=find_type(reader.text("type")) or OBJECT,
        display_name=reader.text("displayName") or name,
        description=reader.text("description") or "",
        category=reader.text("category"),
        hint=reader.text("uiHint"),
        is_kept=_is_kept(reader.text("storageDriverType") or reader.text("storageDriverTypeName")),
    )


def _is_kept(driver: str | None) -> bool:
    name = class_name(driver) or ""
    return name in ("WorkflowInstanceStorageDriver", "WorkflowStorageDriver")


def class_name(type_name: str | None) -> str | None:
    """`Elsa.Workflows.IncidentStrategies.FaultStrategy, Elsa.Workflows.Core` to `FaultStrategy`."""
    if not type_name:
        return None
    return type_name.partition(",")[0].strip().rpartition(".")[2] or None


def _sorted(value: Any) -> Any:
    if is_object(value):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if is_list(value) else value
