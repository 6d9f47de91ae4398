"""Runs a folder of conformance scenarios: `python -m holdfast.testing.corpus DIR`.

Each folder with an `expected.json` is a scenario: definitions, and cases that say what is done and
what must come of it. Every case is played on a fresh in-memory host. Differences are told line by
line, a scenario that needs a feature this host has not is skipped, and the last line counts cases.
The form of a scenario is `corpus_scenario`.
"""

import argparse
import asyncio
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import msgspec

from holdfast.errors import HoldfastError, Invalid, NotFound
from holdfast.testing.corpus_check import check_case, check_step
from holdfast.testing.corpus_compare import Failure
from holdfast.testing.corpus_scenario import FILE, Scenario, read_scenario
from holdfast.testing.corpus_steps import Stage, perform
from holdfast.testing.corpus_values import SHOWN

PROVIDED = frozenset({"javascript", "liquid", "events", "dispatch", "scheduling"})
"""Features of the in-memory host beyond the engine itself."""


class Tally(msgspec.Struct):
    """How many cases came out which way."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def is_good(self) -> bool:
        return self.passed > 0 and self.failed == 0

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def find_scenarios(corpus: Path) -> list[Path]:
    """The folders of a corpus that hold a scenario, by name."""
    return sorted(path.parent for path in corpus.glob(f"*/{FILE}"))


def missing_features(scenario: Scenario) -> list[str]:
    return [feature for feature in scenario.requires if feature not in PROVIDED]


async def play(scenario: Scenario, index: int) -> list[Failure]:
    """Play one case on a fresh host; what it did not keep, and nothing when it passed."""
    at = "form"
    failures: list[Failure] = []
    try:
        case = scenario.case(index)
        at = "definitions"
        stage = Stage(scenario.folder, case.options)
        stage.load(scenario.definitions)
        for number, step in enumerate(case.steps):
            at = f"steps[{number}] {step.op}"
            result = await perform(stage, step)
            failures += [_placed(failure, at) for failure in check_step(stage, step, result)]
        at = "expect"
        failures += check_case(stage, case)
    except HoldfastError as problem:
        failures.append(Failure(key=at, problem=str(problem)))
    except Exception as problem:  # one case that breaks the host must not take the others with it
        trace = traceback.format_exc()
        failures.append(Failure(key=at, problem=f"{type(problem).__name__}: {problem}", trace=trace))
    return failures


def _placed(failure: Failure, at: str) -> Failure:
    return msgspec.structs.replace(failure, key=f"{at} {failure.key}")


class Report:
    """Tells how a run goes: on a terminal also where it is."""

    def __init__(self, *, verbose: bool, is_terminal: bool) -> None:
        self.tally = Tally()
        self._verbose = verbose
        self._is_terminal = is_terminal

    def begin(self, scenario: str, number: int, of: int) -> None:
        if self._is_terminal:
            sys.stdout.write(f"\r\x1b[K{number}/{of} {scenario}")
            sys.stdout.flush()

    def skip(self, scenario: Scenario, missing: list[str]) -> None:
        self.tally.skipped += len(scenario.cases)
        self._tell(f"SKIP {scenario.name}: needs {', '.join(missing)}")

    def take(self, scenario: str, case: str | None, failures: Iterable[Failure]) -> None:
        place = scenario if case is None else f"{scenario} / {case}"
        told = list(failures)
        if told:
            self.tally.failed += 1
        else:
            self.tally.passed += 1
            if self._verbose:
                self._tell(f"PASS {place}")
        for failure in told:
            self._tell(f"FAIL {place}: {failure.tell(None if self._verbose else SHOWN)}")
            if self._verbose and failure.trace:
                self._tell(failure.trace.rstrip())

    def end(self) -> None:
        self._tell(str(self.tally))

    def _tell(self, line: str) -> None:
        if self._is_terminal:
            sys.stdout.write("\r\x1b[K")
        print(line)


async def run_corpus(folders: list[Path], report: Report) -> Tally:
    """Play every case of these scenarios."""
    for number, folder in enumerate(folders, start=1):
        report.begin(folder.name, number, len(folders))
        try:
            scenario = read_scenario(folder)
        except Invalid as problem:
            report.take(folder.name, None, [Failure(key=FILE, problem=str(problem))])
            continue
        missing = missing_features(scenario)
        if missing:
            report.skip(scenario, missing)
            continue
        for index in range(len(scenario.cases)):
            report.take(scenario.name, scenario.case_name(index), await play(scenario, index))
    report.end()
    return report.tally


def main(arguments: list[str] | None = None) -> int:
    """The command line; what comes back is the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.testing.corpus", description="Run a folder of conformance scenarios."
    )
    parser.add_argument("corpus", metavar="DIR", type=Path, help=f"holds scenarios: folders with {FILE}")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help="run these scenarios only")
    parser.add_argument("--verbose", action="store_true", help="tell of passed cases too, cut no values")
    given = parser.parse_args(arguments)
    try:
        folders = _choose(given.corpus, given.only)
    except NotFound as problem:
        print(problem, file=sys.stderr)
        return 2
    report = Report(verbose=given.verbose, is_terminal=sys.stdout.isatty())
    return 0 if asyncio.run(run_corpus(folders, report)).is_good else 1


def _choose(corpus: Path, only: list[str]) -> list[Path]:
    if not corpus.is_dir():
        raise NotFound(f"There is no folder {corpus}.")
    folders = find_scenarios(corpus)
    if not folders:
        raise NotFound(f"{corpus} holds no scenario: no folder in it has a file {FILE}.")
    unknown = sorted(set(only) - {folder.name for folder in folders})
    if unknown:
        raise NotFound(f"{corpus} holds no scenario named {', '.join(unknown)}.")
    return [folder for folder in folders if not only or folder.name in only]


if __name__ == "__main__":
    sys.exit(main())
