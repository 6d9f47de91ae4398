"""The command `holdfast`: one module per command, and what they share.

`--version` and `--help` import click and nothing heavier. Engine, languages and rich are imported by
the commands that need them, when they need them.
"""

import click

from holdfast.cli.activities import activities
from holdfast.cli.check import validate
from holdfast.cli.completion import completion
from holdfast.cli.deadletters import deadletters
from holdfast.cli.doctor import doctor
from holdfast.cli.draw import mermaid
from holdfast.cli.group import Commands, common_options, version_option
from holdfast.cli.instances import instances
from holdfast.cli.machines import machines
from holdfast.cli.migrate import migrate
from holdfast.cli.nodes import nodes
from holdfast.cli.run import run
from holdfast.cli.worker import worker

__all__ = ["cli", "main"]


@click.group(cls=Commands, invoke_without_command=True)
@version_option
@common_options
@click.pass_context
def cli(context: click.Context) -> None:
    """Durable workflows: run, check, draw and operate them from the command line."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


cli.add_section("Workflows", run, validate, mermaid, machines)
cli.add_section("Operation", worker, instances, deadletters, nodes, doctor)
cli.add_section("Reference", activities)
cli.add_section("Set-up", migrate, completion)


def main() -> None:
    """The console script."""
    cli(prog_name="holdfast")
