"""`holdfast activities`: which activity types there are, and what each takes and gives."""

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import common_options
from holdfast.cli.options import activities_option, json_option
from holdfast.cli.output import Settings, clean, console, print_rows, show_value

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.authoring import ActivityDescriptor


@click.command()
@click.argument("name", required=False)
@activities_option
@json_option
@common_options
@click.pass_obj
def activities(settings: Settings, name: str | None, modules: tuple[str, ...], as_json: bool) -> None:
    """List the activity types, or show one of them.

    NAME is a type name, with or without what stands before its last dot.
    """
    from holdfast.assembly import load_plugins
    from holdfast.cli.files import import_activities
    from holdfast.cli.report import to_json

    plugins = load_plugins(import_activities(modules))
    known = [kind.descriptor for kind in plugins.activities]
    if name is not None:
        found = _find(known, name)
        if as_json:
            click.echo(to_json(_as_document(found)))
        else:
            _print_one(console(settings), found)
        return
    shown = sorted((d for d in known if d.is_browsable), key=lambda d: (d.category, d.type_name))
    if as_json:
        click.echo(to_json([_as_document(descriptor) for descriptor in shown]))
    else:
        _print_all(console(settings), shown)


def _find(known: "list[ActivityDescriptor]", name: str) -> "ActivityDescriptor":
    """By its full name, or by the last part of it, in any case."""
    from difflib import get_close_matches

    from holdfast.errors import NotFound

    wanted = name.lower()
    for names in ("full", "last"):
        for descriptor in known:
            full = descriptor.type_name.lower()
            if wanted == (full if names == "full" else full.rpartition(".")[2]):
                return descriptor
    short = {d.type_name.rpartition(".")[2].lower(): d.type_name for d in known}
    close = [short[match] for match in get_close_matches(wanted.rpartition(".")[2], short, 3)]
    hint = f"Did you mean {' or '.join(close)}?" if close else "`holdfast activities` lists them all."
    raise NotFound(f"There is no activity type {name!r}. {hint}")


def _print_all(out: "Console", descriptors: "list[ActivityDescriptor]") -> None:
    from rich.text import Text

    width = max((len(d.type_name) for d in descriptors), default=0)
    for category in dict.fromkeys(d.category for d in descriptors):
        out.print(Text(clean(category), "bold"))
        own = [d for d in descriptors if d.category == category]
        print_rows(out, [(f"{clean(d.type_name):<{width}}", d.description) for d in own], ("cyan", "dim"))
        out.print()
    out.print(Text("holdfast activities NAME shows one of them.", "dim"))


def _print_one(out: "Console", descriptor: "ActivityDescriptor") -> None:
    from rich.text import Text

    about = f"version {descriptor.version} · {descriptor.category} · {descriptor.kind}"
    out.print(Text.assemble((clean(descriptor.type_name), "bold cyan"), (f"  {clean(about)}", "dim")))
    if descriptor.description:
        out.print(Text(clean(descriptor.description)))
    inputs = [
        (i.json_name, i.type.name, _sentence(i.description, "" if i.required else _default(i.default)))
        for i in descriptor.inputs
    ]
    outputs = [(o.json_name, o.type.name, o.description) for o in descriptor.outputs]
    ports = [(p.json_name, "a list of activities" if p.many else "one activity") for p in descriptor.ports]
    for title, rows in (("Inputs", inputs), ("Outputs", outputs), ("Nested activities", ports)):
        if rows:
            out.print(Text(f"\n{title}", "bold"))
            print_rows(out, rows, ("cyan", "", "dim"))
    outcomes = ", ".join(descriptor.outcomes) or "none of its own"
    if descriptor.dynamic_outcomes is not None:
        outcomes = "those its definition names"
    out.print(Text("\nOutcomes", "bold"))
    out.print(Text(f"  {outcomes}"))


def _sentence(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _default(value: Any) -> str:
    return "" if value is None else f"Default {show_value(value)}."


def _as_document(descriptor: "ActivityDescriptor") -> dict[str, Any]:
    return {
        "type": descriptor.type_name,
        "version": descriptor.version,
        "category": descriptor.category,
        "displayName": descriptor.display_name,
        "description": descriptor.description,
        "kind": descriptor.kind,
        "inputs": [
            {
                "name": i.json_name,
                "type": i.type.name,
                "default": i.default,
                "required": i.required,
                "description": i.description,
            }
            for i in descriptor.inputs
        ],
        "outputs": [
            {"name": o.json_name, "type": o.type.name, "description": o.description}
            for o in descriptor.outputs
        ],
        "outcomes": list(descriptor.outcomes),
        "ports": [{"name": p.json_name, "many": p.many} for p in descriptor.ports],
    }
