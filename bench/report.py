"""What was found out, as a table for people and as JSON for later comparisons."""

import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.measure import Figure
from holdfast.clock import SystemClock

NOTE = "Processor time of the best round; rounds take turns; garbage collection is on."
OUR_PACKAGES = ("holdfast", "msgspec", "quickjs-ng", "python-liquid", "simpleeval")


def facts(subject: str, contenders: tuple[str, ...], *, is_quick: bool) -> dict[str, Any]:
    """Where, when and with what it was measured."""
    return {
        "subject": subject,
        "date": SystemClock().now().isoformat(timespec="seconds"),
        "revision": _revision(),
        "quick": is_quick,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": {
            "cores": os.cpu_count(),
            "processor": _processor(),
            "system": platform.platform(terse=True),
            "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        },
        "versions": {name: _version(name) for name in (*OUR_PACKAGES, *contenders)},
    }


def show(console: Console, found: dict[str, Any], figures: list[Figure], note: str = NOTE) -> None:
    """One table, and under it what one has to know to read it."""
    table = Table(title=found["subject"], title_style="bold", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("best", justify="right", no_wrap=True)
    table.add_column("median", justify="right", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("aim", justify="right", style="dim", no_wrap=True)
    table.add_column("", no_wrap=True)
    heading = None
    for figure in figures:
        if figure.section != heading:
            heading = figure.section
            table.add_row()
            table.add_row(f"[bold]{heading}[/]")
        table.add_row(
            f"  {figure.label}",
            written(figure.value),
            "" if figure.typical is None else written(figure.typical),
            "/s" if figure.unit.endswith("/s") else figure.unit,
            _aim(figure),
            {None: "", True: "[green]✓[/]", False: "[yellow]✗[/]"}[figure.is_met],
        )
    console.print(table)
    machine = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items() if number)
    console.print(
        f"\n{found['python']}, {machine['cores']} cores ({machine['processor']}), load {machine['load']}, "
        f"revision {found['revision']}, {versions}.",
        style="dim",
    )
    console.print(note, style="dim")
    if found["quick"]:
        console.print("Measured once, to see that it runs: these figures mean little.", style="yellow")


def keep(folder: Path, found: dict[str, Any], figures: list[Figure]) -> Path:
    """Write `<subject>.json` and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found['subject']}.json"
    document = {
        **found,
        "figures": {f.name: _as_json(f) for f in figures if not f.is_ratio},
        "ratios": {f.name: _as_json(f) for f in figures if f.is_ratio},
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return path


def written(value: float) -> str:
    """Three digits that mean something: 96,300, 8.52, 0.94."""
    if value >= 100_000:
        return f"{round(value, -3):,.0f}"
    if value >= 1_000:
        return f"{round(value, -2):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _aim(figure: Figure) -> str:
    if figure.at_least is not None:
        return f"≥ {figure.at_least:,g}"
    return "" if figure.at_most is None else f"≤ {figure.at_most:,g}"


def _as_json(figure: Figure) -> dict[str, Any]:
    """Kept with the precision that there is, which is not sixteen digits."""
    aims = {"at_least": figure.at_least, "at_most": figure.at_most, "is_met": figure.is_met}
    return {
        "value": float(f"{figure.value:.6g}"),
        **({} if figure.typical is None else {"typical": float(f"{figure.typical:.6g}")}),
        "unit": figure.unit,
        **{name: aim for name, aim in aims.items() if aim is not None},
    }


def _processor() -> str:
    """Linux knows the name that people know; elsewhere Python's word for it has to do."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _revision() -> str | None:
    """The commit that was measured, with a mark when the tree has changed since."""
    command = ("git", "describe", "--always", "--dirty")
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None  # no git here, or not a clone


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
