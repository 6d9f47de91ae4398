"""`holdfast machines`: the machines of Python modules, and their runs in a database."""

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.database import database_option, opened, tenant_option
from holdfast.cli.group import common_options
from holdfast.cli.options import json_option
from holdfast.cli.output import Settings, clean, console, count, print_rows, print_table, show_span

if TYPE_CHECKING:
    from holdfast.machines.machine import Machine

_modules = click.argument("modules", nargs=-1, required=True, metavar="MODULE...")


@click.group()
def machines() -> None:
    """See the machines of Python modules, and their runs."""


@machines.command("list")
@_modules
@json_option
@common_options
@click.pass_obj
def list_machines(settings: Settings, modules: tuple[str, ...], as_json: bool) -> None:
    """List the machines of modules or Python files, and check them."""
    from holdfast.cli.report import to_json

    found = _found(modules)
    if as_json:
        click.echo(to_json({"machines": [_document(machine) for machine in found]}))
        return
    rows = [
        (
            clean(machine.name),
            machine.object.__name__,
            " ".join(status.name for status in machine.built.statuses),
        )
        for machine in found
    ]
    print_rows(console(settings), rows, ("cyan", "", "dim"))


@machines.command()
@_modules
@click.option("--machine", "name", metavar="NAME", help="This one of several.")
@click.option(
    "--direction",
    type=click.Choice(("LR", "TB", "RL", "BT")),
    default="LR",
    show_default=True,
    help="Where it runs to.",
)
@common_options
def draw(modules: tuple[str, ...], name: str | None, direction: Any) -> None:
    """Draw a machine as a Mermaid diagram."""
    from holdfast.errors import NotFound

    found = [machine for machine in _found(modules) if name in (None, machine.name)]
    if len(found) != 1:
        names = ", ".join(machine.name for machine in _found(modules))
        raise NotFound(f"{len(found)} machines match. There are: {names}. Name one with --machine.")
    click.echo(found[0].mermaid(direction=direction), nl=False)


@machines.command()
@click.argument("name", metavar="MACHINE")
@click.option("--foreign-id", metavar="ID", help="Of this foreign id.")
@click.option("--search", metavar="TEXT", help="With this in an id, a foreign id or a status.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many at most.")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def runs(
    settings: Settings,
    name: str,
    foreign_id: str | None,
    search: str | None,
    limit: int,
    address: str,
    tenant: str,
    as_json: bool,
) -> None:
    """List the runs of a machine, the newest first. Its code is not needed."""
    import asyncio

    wanted = {"definition_ids": (name,), "correlation_id": foreign_id, "search": search, "tenant": tenant}
    asyncio.run(_list_runs(settings, address, wanted, limit, as_json))


async def _list_runs(
    settings: Settings, address: str, wanted: dict[str, Any], limit: int, as_json: bool
) -> None:
    from rich.text import Text

    from holdfast.cli.report import to_json
    from holdfast.clock import SystemClock
    from holdfast.machines.state import decode_run
    from holdfast.store import InstanceFilter

    async with opened(address) as store:
        page = await store.instances(InstanceFilter(**wanted), limit=limit)
        keys = [(one.tenant, one.instance_id) for one in page.items]
        loaded = {one.instance_id: one for one in (await store.load(keys) if keys else ())}
    now, rows = SystemClock().now(), list[dict[str, Any]]()
    for one in page.items:
        found = loaded.get(one.instance_id)
        state = None if found is None or found.state is None else decode_run(found.state)
        rows.append(
            {
                "id": one.instance_id,
                "foreignId": one.columns.correlation_id or "",
                "status": (one.columns.name or "").removesuffix(" (paused)"),
                "state": "INITIATED" if state is None else state.run_state.name,
                "ageSeconds": round((now - one.columns.created_at).total_seconds(), 3),
                "reason": "" if state is None else state.reason,
            }
        )
    if as_json:
        click.echo(to_json({"runs": rows, "total": page.total}))
        return
    out = console(settings)
    if rows:
        print_table(
            out,
            ("ID", "FOREIGN ID", "STATUS", "STATE", "AGE", "REASON"),
            [
                (
                    row["id"],
                    clean(row["foreignId"]),
                    clean(row["status"]),
                    row["state"],
                    show_span(now - one.columns.created_at),
                    clean(row["reason"]),
                )
                for row, one in zip(rows, page.items, strict=True)
            ],
            ("cyan", "", "bold", "", "dim", "dim"),
        )
    out.print(Text(f"{len(rows)} of {count(page.total, 'run')}.", "dim"))


def _found(modules: tuple[str, ...]) -> list["Machine[Any, Any]"]:
    from holdfast.cli.files import import_machines

    return [machine.check() for machine in import_machines(modules)]


def _document(machine: "Machine[Any, Any]") -> dict[str, Any]:
    built = machine.built
    return {
        "name": machine.name,
        "object": machine.object.__name__,
        "start": built.start.name,
        "statuses": [
            {"name": status.name, "value": status.value, "isTerminal": status in built.terminal}
            for status in built.statuses
        ],
        "functions": [
            {
                "name": handler.given.function.__name__,
                "kind": handler.given.kind,
                "status": handler.status.name,
                "to": [status.name for status in handler.to],
            }
            for handler in built.handlers
        ],
    }
