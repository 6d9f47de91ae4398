"""Runs a folder of conformance scenarios: `python -m holdfast.testing.corpus DIR`.

Each folder with an `expected.json` is a scenario: definitions, and cases that say what is done and
what must come of it. Every case is played on a fresh host, the local one and the durable runtime.
Differences are told line by line, a scenario that needs a feature neither has is skipped, and the last
lines count cases, one for each host. The form of a scenario is `corpus_scenario`.
"""

import argparse
import asyncio
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from holdfast.errors import HoldfastError, Invalid, NotFound
from holdfast.testing.corpus_check import check_case, check_step
from holdfast.testing.corpus_compare import Failure
from holdfast.testing.corpus_scenario import FILE, Scenario, read_scenario
from holdfast.testing.corpus_steps import NewHost, Stage, durable_host, local_host, perform
from holdfast.testing.corpus_values import SHOWN

PROVIDED = frozenset({"javascript", "liquid", "events", "dispatch", "scheduling", "alterations"})
"""Features of the hosts beyond the engine itself."""

HOSTS: Mapping[str, NewHost] = {"local host": local_host, "durable runtime": durable_host}


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


async def play(scenario: Scenario, index: int, new_host: NewHost = local_host) -> list[Failure]:
    """Play one case on a fresh host; what it did not keep, and nothing when it passed."""
    at = "form"
    failures: list[Failure] = []
    try:
        case = scenario.case(index)
        at = "definitions"
        async with new_host(case.options) as host:
            stage = Stage(scenario.folder, case.options, host)
            await stage.load(scenario.definitions)
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

    def __init__(self, hosts: Iterable[str], *, verbose: bool, is_terminal: bool) -> None:
        self.tallies = {host: Tally() for host in hosts}
        self._verbose = verbose
        self._is_terminal = is_terminal

    @property
    def is_good(self) -> bool:
        return all(tally.is_good for tally in self.tallies.values())

    def begin(self, scenario: str, number: int, of: int) -> None:
        if self._is_terminal:
            sys.stdout.write(f"\r\x1b[K{number}/{of} {scenario}")
            sys.stdout.flush()

    def skip(self, scenario: Scenario, missing: list[str]) -> None:
        for tally in self.tallies.values():
            tally.skipped += len(scenario.cases)
        self._tell(f"SKIP {scenario.name}: needs {', '.join(missing)}")

    def refuse(self, scenario: str, problem: str) -> None:
        """A scenario that cannot be played at all."""
        for tally in self.tallies.values():
            tally.failed += 1
        self._tell(f"FAIL {scenario}: {Failure(key=FILE, problem=problem).tell()}")

    def take(self, host: str, place: str, failures: Iterable[Failure]) -> None:
        tally, told = self.tallies[host], list(failures)
        if told:
            tally.failed += 1
        else:
            tally.passed += 1
            if self._verbose:
                self._tell(f"PASS {place} on the {host}")
        for failure in told:
            self._tell(f"FAIL {place} on the {host}: {failure.tell(None if self._verbose else SHOWN)}")
            if self._verbose and failure.trace:
                self._tell(failure.trace.rstrip())

    def end(self) -> None:
        for host, tally in self.tallies.items():
            self._tell(f"{tally} on the {host}")

    def _tell(self, line: str) -> None:
        if self._is_terminal:
            sys.stdout.write("\r\x1b[K")
        print(line)


async def run_corpus(folders: list[Path], hosts: Iterable[str], report: Report) -> None:
    """Play every case of these scenarios on each of these hosts."""
    for number, folder in enumerate(folders, start=1):
        report.begin(folder.name, number, len(folders))
        try:
            scenario = read_scenario(folder)
        except Invalid as problem:
            report.refuse(folder.name, str(problem))
            continue
        missing = missing_features(scenario)
        if missing:
            report.skip(scenario, missing)
            continue
        for index in range(len(scenario.cases)):
            for host in hosts:
                place = f"{scenario.name} / {scenario.case_name(index)}"
                report.take(host, place, await play(scenario, index, HOSTS[host]))
    report.end()


def main(arguments: list[str] | None = None) -> int:
    """The command line; what comes back is the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.testing.corpus", description="Run a folder of conformance scenarios."
    )
    parser.add_argument("corpus", metavar="DIR", type=Path, help=f"holds scenarios: folders with {FILE}")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help="run these scenarios only")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--local", action="store_true", help="play them on the local host only")
    which.add_argument("--durable", action="store_true", help="play them on the durable runtime only")
    parser.add_argument("--verbose", action="store_true", help="tell of passed cases too, cut no values")
    given = parser.parse_args(arguments)
    try:
        folders = _choose(given.corpus, given.only)
    except NotFound as problem:
        print(problem, file=sys.stderr)
        return 2
    left_out = {"durable runtime"} if given.local else {"local host"} if given.durable else set[str]()
    hosts = [host for host in HOSTS if host not in left_out]
    report = Report(hosts, verbose=given.verbose, is_terminal=sys.stdout.isatty())
    asyncio.run(run_corpus(folders, hosts, report))
    return 0 if report.is_good else 1


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
