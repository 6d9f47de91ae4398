"""`name=value` on the command line, and what becomes of the value."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from holdfast.codec import ConversionFailed, JsonInvalid, Type, decode
from holdfast.definitions.document import Definition


def split_pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"{option} takes name=value, not {text!r}.")
    return name.strip(), value


def read_value(text: str) -> Any:
    """JSON where it is valid JSON, else the text itself."""
    try:
        return decode(text)
    except JsonInvalid:
        return text


def read_event(text: str) -> tuple[str, Any]:
    """`name`, or `name=payload`."""
    if "=" not in text and text.strip():
        return text, None
    name, value = split_pair(text, "--event")
    return name, read_value(value)


def read_inputs(definition: Definition, pairs: Iterable[str], json_text: str | None) -> dict[str, Any]:
    """The workflow's input. A declared type converts, and then text needs no quotes, whatever it says."""
    types = {p.name.lower(): (p.name, p.type) for p in definition.inputs}
    inputs: dict[str, Any] = {}
    if json_text is not None:
        given = _read_object(json_text, "--input-json")
        for name, value in given.items():
            inputs |= _declared(types, name, lambda _, value=value: value, "--input-json")
    for pair in pairs:
        name, text = split_pair(pair, "--input")
        inputs |= _declared(types, name, lambda kind, text=text: _read_as(kind, text), "--input")
    return inputs


def read_variables(definition: Definition, pairs: Iterable[str]) -> dict[str, Any]:
    """Workflow variables by name. A name that the workflow has not declared is refused."""
    types = {v.name.lower(): (v.name, v.type) for v in definition.variables}
    variables: dict[str, Any] = {}
    for pair in pairs:
        name, text = split_pair(pair, "--variable")
        if name.lower() not in types:
            known = ", ".join(v.name for v in definition.variables) or "none"
            raise click.UsageError(f"The workflow has no variable {name!r}. Its variables: {known}.")
        variables |= _declared(types, name, lambda kind, text=text: _read_as(kind, text), "--variable")
    return variables


def undeclared(definition: Definition, inputs: Mapping[str, Any]) -> list[str]:
    """Inputs that were given to a workflow that declares inputs, but not these: often a slip."""
    known = {p.name.lower() for p in definition.inputs}
    return [name for name in inputs if known and name.lower() not in known]


def _read_as(kind: Type | None, text: str) -> Any:
    return text if kind is not None and kind.is_text else read_value(text)


def _read_object(text: str, option: str) -> dict[str, Any]:
    try:
        value = decode(text)
    except JsonInvalid as problem:
        raise click.UsageError(f"{option}: {problem}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f'{option} takes a JSON object, such as \'{{"name": "Ada"}}\'.')
    return value  # pyright: ignore[reportUnknownVariableType]  # JSON


def _declared(
    types: Mapping[str, tuple[str, Type]], name: str, read: Callable[[Type | None], Any], option: str
) -> dict[str, Any]:
    """The value under the name the workflow declares, as the type it declares."""
    spelled, kind = types.get(name.lower(), (name, None))
    value = read(kind)
    if kind is None:
        return {spelled: value}
    try:
        return {spelled: kind.convert_strictly(value)}
    except ConversionFailed as problem:
        raise click.UsageError(f"{option} {spelled}: {problem}") from None
