"""`python -m bench [SUBJECT ...]`: measure, show, keep."""

import asyncio
import cProfile
import importlib
import pkgutil
import pstats
from pathlib import Path
from types import ModuleType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import bench
from bench import report
from bench.measure import FULL, QUICK, THOROUGH, Effort, Stopwatch

OUT = Path(__file__).parent / "out"


def subjects() -> dict[str, ModuleType]:
    """Modules of this package that have figures, by name."""
    modules = {
        found.name: importlib.import_module(f"bench.{found.name}")
        for found in pkgutil.iter_modules(bench.__path__)
        if found.name != "__main__"
    }
    return {name: module for name, module in modules.items() if hasattr(module, "figures")}


@click.command()
@click.argument("names", nargs=-1, metavar="[SUBJECT]...")
@click.option("--quick", is_flag=True, help="Measure once, only to see that everything runs.")
@click.option("--full", is_flag=True, help="Fill tables with a million rows where there are some else.")
@click.option("--profile", "is_profile", is_flag=True, help="Show where the time goes instead.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=OUT,
    show_default=True,
    help="The folder for the JSON.",
)
def main(names: tuple[str, ...], quick: bool, full: bool, is_profile: bool, out: Path) -> None:
    """Measure how fast Holdfast is: all subjects, or the named ones."""
    known = subjects()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"There is no subject {unknown[0]!r}. There are: {', '.join(known)}.")
    for name in names or known:
        if is_profile:
            _profile(name, known[name])
        else:
            _measure(name, known[name], QUICK if quick else FULL if full else THOROUGH, out)


def _measure(name: str, subject: ModuleType, effort: Effort, out: Path) -> None:
    found = report.facts(name, getattr(subject, "CONTENDERS", ()), is_quick=effort is QUICK)
    # Drawn only between samples: a thread that draws by itself would be measured along.
    with Progress(
        TextColumn(name),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    ) as progress:
        task = progress.add_task("getting ready", total=None)

        def tell(done: int, total: int) -> None:
            description = "measuring" if total else "warming up"
            progress.update(task, completed=done, total=total or None, description=description, refresh=True)

        figures = asyncio.run(subject.figures(Stopwatch(effort, tell)))
    console = Console()
    report.show(console, found, figures, getattr(subject, "NOTE", report.NOTE))
    console.print(f"Kept in {report.keep(out, found, figures)}", style="dim", soft_wrap=True)


def _profile(name: str, subject: ModuleType) -> None:
    if not hasattr(subject, "profiled"):
        raise click.UsageError(f"{name} has nothing to profile: give it a function `profiled`.")
    call = subject.profiled()
    profiler = cProfile.Profile()
    profiler.enable()
    asyncio.run(call())
    profiler.disable()
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)


main()
