"""`holdfast mermaid`: a definition as a diagram."""

from pathlib import Path

import click

from holdfast.cli.group import common_options
from holdfast.cli.options import activities_option, with_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file."
)
@with_option
@activities_option
@common_options
def mermaid(file: Path, output: Path | None, companions: tuple[Path, ...], modules: tuple[str, ...]) -> None:
    """Draw a definition as a Mermaid diagram.

    Paste it into a Markdown file between ```mermaid and ```, and GitHub and most editors show it.
    """
    from holdfast.cli.files import FileUnusable, gather, read_workflow
    from holdfast.definitions.mermaid import draw

    workflow = read_workflow(file)
    around = gather([workflow], companions, modules)
    diagram = draw(workflow.definition(), around.types)
    if not diagram.endswith("\n"):
        diagram += "\n"
    if output is None:
        click.echo(diagram, nl=False)
        return
    try:
        output.write_text(diagram, encoding="utf-8")
    except OSError as problem:
        raise FileUnusable(f"{output} cannot be written: {problem.strerror}.") from None
