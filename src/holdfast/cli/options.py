"""Options that several commands have."""

from pathlib import Path

import click

with_option = click.option(
    "--with",
    "companions",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Another workflow it may use, or a folder of them.",
)

activities_option = click.option(
    "--activities",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A Python module or file with activities of your own.",
)

machines_option = click.option(
    "--machines",
    multiple=True,
    metavar="MODULE",
    help="A Python module or file with machines of your own.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
