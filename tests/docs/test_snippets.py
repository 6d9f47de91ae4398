"""Every snippet in the documentation is run, and prints what the page says it prints.

| Block | What is done with it |
|---|---|
| `python` | executed, in a namespace of its own; a `text` block right behind it is what it prints |
| `python name.py` | written to the page's folder; compiled |
| `json` | decoded; an activity, which a CloudEvent is not, is validated as well |
| `json name.json` | written to the page's folder; loaded and validated, without errors |
| `console` | lines after `$ ` are run in the page's folder; what follows is what they print |
| `sh` | how to install; each `make` verb exists |
| `mermaid`, `text` | only looked at by people |

A page has one folder, so what it writes is there for its later blocks; so is what it exports. In a `console`
a line `^C` interrupts the command, once it has printed what stands before. Where an export names a
PostgreSQL, one of the tests' own takes its place.
"""

import asyncio
import contextlib
import importlib.util
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from holdfast import load_definition
from holdfast.codec import decode
from holdfast.definitions.validate import Problem
from holdfast.stores.sql.engines import create
from holdfast.stores.sql.migrations import migrate
from holdfast.testing import Host
from tests.docs.console import INTERRUPT, Exchange, difference, exchanges, is_answered
from tests.docs.pages import ROOT, Block, all_pages, blocks_of, prose_of
from tests.stores.test_sql_stores import empty

BIN = Path(sys.executable).parent
SECONDS = 60

_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_INSTALLING = ("git clone ", "cd ", "pip install ")


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", all_pages(), ids=page_name)
def test_every_snippet_of_a_page_works(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    def empty_postgresql() -> str:
        url = str(request.getfixturevalue("postgres_url"))
        asyncio.run(_make_empty(url))
        return url.replace("+asyncpg", "")

    before = dict(os.environ)
    try:
        with _working_in(tmp_path):
            reader = _Reader(page, tmp_path, empty_postgresql)
            for block in blocks_of(page):
                reader.read(block)
            reader.validate_all()
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.mark.parametrize("page", all_pages(), ids=page_name)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    dead = [
        found["target"]
        for found in _LINK.finditer(prose_of(page))
        if not re.match(r"[a-z]+:", found["target"]) and not _exists(page, found["target"])
    ]
    assert not dead, f"{page_name(page)} links to what is not there: {', '.join(dead)}"


class _Reader:
    """Somebody who does what a page says, block by block, in a folder of their own."""

    def __init__(self, page: Path, folder: Path, empty_postgresql: Callable[[], str]) -> None:
        self._page = page
        self._folder = folder
        self._empty_postgresql = empty_postgresql
        self._printed: str | None = None
        self._documents: list[tuple[Block, bytes]] = []
        self._modules: list[Path] = []

    def read(self, block: Block) -> None:
        printed, self._printed = self._printed, None
        match block.kind, bool(block.name):
            case "python", False:
                self._printed = self._execute(block)
            case "python", True:
                compile(block.text, block.name, "exec")
                self._modules.append(self._write(block))
            case "json", False:
                self._check_fragment(block)
            case "json", True:
                self._write(block)
                self._documents.append((block, block.text.encode()))
            case "console", False:
                self._converse(block)
            case "sh", False:
                self._check_installing(block)
            case "text", False:
                if printed is not None and block.follows_directly:
                    said = block.text.splitlines()
                    assert is_answered(said, printed), self._at(block, difference(said, printed))
            case "mermaid", False:
                pass
            case _:
                pytest.fail(self._at(block, f"nobody knows what to do with a block `{block.info}`"))

    def validate_all(self) -> None:
        """All definitions, once everything they may use is known: each other, and the page's activities."""
        own = [made for path in self._modules for made in _activities_in(path)]
        latest = {block.name: text for block, text in self._documents}
        for block, text in self._documents:
            others = [other for name, other in latest.items() if name != block.name]
            self._refuse_errors(block, _problems(text, own, others))

    def _execute(self, block: Block) -> str:
        out = io.StringIO()
        # The line numbers of the page, so that a traceback points into it.
        code = compile("\n" * block.line + block.text, str(self._page), "exec")
        with contextlib.redirect_stdout(out):
            exec(code, {"__name__": "__main__"})
        return out.getvalue()

    def _write(self, block: Block) -> Path:
        path = self._folder / block.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")
        return path

    def _check_fragment(self, block: Block) -> None:
        value = decode(block.text)
        if isinstance(value, dict) and {"type", "id"} <= value.keys() and "specversion" not in value:
            envelope = f'{{"definitionId": "fragment", "root": {block.text}}}'
            self._refuse_errors(block, _problems(envelope.encode()))

    def _converse(self, block: Block) -> None:
        for exchange in exchanges(block.text, block.line + 1):
            if exchange.command.startswith("export "):
                self._export(exchange.command.removeprefix("export "))
                continue
            printed = self._run(exchange)
            expected = [line for line in exchange.answer if line != INTERRUPT]
            if not is_answered(expected, printed):
                pytest.fail(
                    f"{page_name(self._page)}:{exchange.line}: $ {exchange.command}\n"
                    f"{difference(expected, printed)}",
                    pytrace=False,
                )

    def _export(self, assignment: str) -> None:
        name, _, value = shlex.split(assignment)[0].partition("=")
        os.environ[name] = self._empty_postgresql() if value.startswith("postgresql:") else value

    def _run(self, exchange: Exchange) -> str:
        """What it prints until it ends, or is interrupted."""
        with (self._folder / ".printed").open("w+b") as printed:
            running = subprocess.Popen(
                ["bash", "-c", exchange.command],
                cwd=self._folder,
                env=_environment(self._folder),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                if INTERRUPT in exchange.answer:
                    self._await(exchange.answer[: exchange.answer.index(INTERRUPT)], running)
                    time.sleep(1)  # a reader takes a moment, too
                    os.killpg(running.pid, signal.SIGINT)
                running.wait(SECONDS)
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()
        return self._printed_so_far()

    def _await(self, expected: list[str], running: "subprocess.Popen[bytes]") -> None:
        give_up = time.monotonic() + SECONDS
        while not is_answered(expected, self._printed_so_far()):
            if running.poll() is not None or time.monotonic() > give_up:
                return
            time.sleep(0.05)

    def _printed_so_far(self) -> str:
        return (self._folder / ".printed").read_text("utf-8")

    def _check_installing(self, block: Block) -> None:
        verbs = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        for line in block.text.splitlines():
            if line.startswith("make "):
                verb = shlex.split(line)[1]
                assert verb in verbs, self._at(block, f"the Makefile has no verb {verb!r}")
            else:
                assert line.startswith(_INSTALLING), self._at(block, f"this is not how to install: {line}")

    def _refuse_errors(self, block: Block, problems: list[Problem]) -> None:
        errors = [f"{problem} [{problem.code}]" for problem in problems if problem.severity == "error"]
        assert not errors, self._at(block, "\n".join(errors))

    def _at(self, block: Block, what: str) -> str:
        return f"{page_name(self._page)}:{block.line}: {what}"


def _activities_in(path: Path) -> list[Any]:
    """What a file that the page wrote adds to a host; importing a file without any would only run it."""
    if "@activity" not in path.read_text("utf-8"):
        return []
    spec = importlib.util.spec_from_file_location(f"page_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [made for made in vars(module).values() if hasattr(made, "__activity_type__")]


def _problems(text: bytes, own: list[Any] | None = None, others: list[bytes] | None = None) -> list[Problem]:
    """Everything that is wrong with a document, on a host that knows these activities and workflows."""

    async def find() -> list[Problem]:
        host = Host(activities=own or [])
        for other in others or []:
            await host.load(load_definition(other))
        return host.validate(load_definition(text))

    return asyncio.run(find())


async def _make_empty(url: str) -> None:
    database = create(url)
    try:
        await database.write(migrate)
        await database.write(empty)
    finally:
        await database.close()


def _environment(folder: Path) -> dict[str, str]:
    """Our own, without what pytest leaves in it, and with a terminal of eighty columns."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    return kept | {
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(folder),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


@contextlib.contextmanager
def _working_in(folder: Path) -> Generator[None]:
    """In that folder, which can be imported from; what was imported from it is forgotten again."""
    before = set(sys.modules)
    paths = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        sys.path[:] = paths
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def _exists(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    linked = (page.parent / path).resolve() if path else page
    if not linked.exists() or (linked.is_dir() and anchor):
        return False
    return not anchor or anchor in _anchors(linked)


def _anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
