"""`holdfast doctor`: what is not as it should be in a database, and what to do about it."""

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.database import database_option, opened
from holdfast.cli.group import FAILED, common_options
from holdfast.cli.options import activities_option, json_option
from holdfast.cli.output import Settings, clean, console, count, show_span, wrap

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.runtime.doctor import Examination

SHOWN = 5


@click.command()
@click.option("--tenant", "tenants", multiple=True, metavar="ID", help="Compare its schedules, too.")
@activities_option
@database_option
@json_option
@common_options
@click.pass_obj
def doctor(
    settings: Settings, tenants: tuple[str, ...], modules: tuple[str, ...], address: str, as_json: bool
) -> int:
    """Look for what is wrong, and say what to do.

    Instances that wait without a cause, rows that were left behind, schedules that differ from what is
    published, work that is late or that nobody does, dead letters, and a database that cannot clean up.
    Nothing is changed. Ends with 1 when something was found.
    """
    import asyncio

    from holdfast.cli.report import to_json

    found = asyncio.run(_examine(address, ("", *tenants), modules))
    if as_json:
        click.echo(to_json(_document(found)))
    else:
        _print(console(settings), found)
    return FAILED if found.findings else 0


async def _examine(address: str, tenants: tuple[str, ...], modules: tuple[str, ...]) -> "Examination":
    from holdfast.activities.composites import workflow_activity_types
    from holdfast.assembly import load_plugins
    from holdfast.cli.files import import_activities
    from holdfast.clock import SystemClock
    from holdfast.runtime.doctor import Doctor
    from holdfast.runtime.library import Library

    plugins = load_plugins(import_activities(modules))
    async with opened(address) as store:
        library = Library(store, plugins, workflow_activity_types)
        return await Doctor(store, library, plugins, SystemClock()).examine(dict.fromkeys(tenants))


def _print(out: "Console", found: "Examination") -> None:
    from rich.text import Text

    for finding in found.findings:
        out.print(
            Text.assemble(("✗ ", "red"), (clean(finding.what), "bold"), (f"  {finding.code}", "dim")),
            soft_wrap=True,
        )
        if finding.about:
            names = ", ".join(finding.about[:SHOWN])
            more = len(finding.about) - SHOWN
            said = f"{names} and {more} more" if more > 0 else names
            out.print(Text("  " + wrap(said, out.width, 2), "dim"), soft_wrap=True)
        out.print(Text("  " + wrap(finding.advice, out.width, 2)), soft_wrap=True)
    if not found.findings:
        out.print(Text.assemble(("✓ ", "green"), ("Everything is as it should be.", "bold")))
    lag = f", the oldest for {show_span(found.lag)}" if found.waiting else ""
    working = f"{count(found.nodes, 'node')} at work, {count(found.waiting, 'message')} waiting{lag}"
    findings = f"{count(len(found.findings), 'finding')}. " if found.findings else ""
    out.print(Text(f"{findings}{working}.", "dim"))


def _document(found: "Examination") -> dict[str, Any]:
    return {
        "findings": [
            {"code": f.code, "what": f.what, "advice": f.advice, "about": list(f.about)}
            for f in found.findings
        ],
        "waiting": found.waiting,
        "lagSeconds": round(found.lag.total_seconds(), 3),
        "nodes": found.nodes,
    }
