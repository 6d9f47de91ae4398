"""`holdfast validate`: everything that is wrong with definitions, before anybody runs them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.group import FAILED, common_options
from holdfast.cli.options import activities_option, json_option, with_option
from holdfast.cli.output import Settings, clean, console, count, wrap

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.cli.files import Surroundings, WorkflowFile
    from holdfast.definitions.validate import Problem


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@with_option
@activities_option
@json_option
@common_options
@click.pass_obj
def validate(
    settings: Settings,
    files: tuple[Path, ...],
    companions: tuple[Path, ...],
    modules: tuple[str, ...],
    as_json: bool,
) -> int:
    """Say everything that is wrong with definitions.

    A folder means all JSON files in it. Files that are given together may use each other. Ends with 1
    when there are errors; warnings alone are fine.
    """
    from holdfast.cli.files import FileUnusable, expand, gather, read_workflow
    from holdfast.cli.report import to_json
    from holdfast.definitions.validate import Problem

    workflows: list[WorkflowFile] = []
    found: dict[Path, list[Problem]] = {}
    for path in expand(files):
        try:
            workflows.append(read_workflow(path))
            found[path] = []
        except FileUnusable as problem:
            found[path] = [Problem(path="$", code=problem.code, message=str(problem))]
    around = gather(workflows, companions, modules)
    for workflow in workflows:
        found[workflow.path] = check(workflow, around)
    if as_json:
        click.echo(to_json(_as_document(found)))
    else:
        print_problems(console(settings), found)
    return FAILED if _count(found, "error") else 0


def check(workflow: "WorkflowFile", around: "Surroundings") -> "list[Problem]":
    """All problems of one file, in those surroundings."""
    from holdfast.definitions.validate import validate_source

    return validate_source(workflow.document, around.types, around.plugins.expressions)


def print_problems(out: "Console", found: "Mapping[Path, Sequence[Problem]]") -> None:
    """Grouped by file, each with its place, its code and what to do; then how many there are."""
    from rich.text import Text

    for path, problems in found.items():
        symbol, color = ("✓", "green")
        if problems:
            symbol, color = ("✗", "red") if any(p.severity == "error" for p in problems) else ("●", "yellow")
        out.print(Text.assemble((f"{symbol} ", color), (clean(str(path)), "bold")), soft_wrap=True)
        for problem in problems:
            color = "red" if problem.severity == "error" else "yellow"
            head = Text.assemble(
                (f"  {problem.severity} ", color), clean(problem.path), (f"  {problem.code}", "dim")
            )
            out.print(head, soft_wrap=True)
            out.print(Text("    " + wrap(problem.message, out.width, 4)), soft_wrap=True)
    counts = [count(len(found), "file"), count(_count(found, "error"), "error")]
    counts.append(count(_count(found, "warning"), "warning"))
    out.print(Text(", ".join(counts), "bold"))


def _count(found: "Mapping[Path, Sequence[Problem]]", severity: str) -> int:
    return sum(problem.severity == severity for problems in found.values() for problem in problems)


def _as_document(found: "Mapping[Path, Sequence[Problem]]") -> dict[str, object]:
    return {
        "files": [
            {
                "file": str(path),
                "problems": [
                    {
                        "path": p.path,
                        "code": p.code,
                        "message": p.message,
                        "severity": p.severity,
                        "activityId": p.activity_id,
                    }
                    for p in problems
                ],
            }
            for path, problems in found.items()
        ],
        "errors": _count(found, "error"),
        "warnings": _count(found, "warning"),
    }
