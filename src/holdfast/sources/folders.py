"""A folder of workflows, taken as it is now and whenever it changes.

What changed together is published together, in one transaction. A file that cannot be used is reported
and its last good version stays; so does a definition whose file is deleted, since instances may need it.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from holdfast.definitions.document import Definition
from holdfast.errors import HoldfastError, Invalid, Unavailable
from holdfast.runtime.publishing import Publishing
from holdfast.sources.files import WorkflowFile, looks_like_a_definition, read_file

POLL = 1.0
"""Seconds between two looks."""

Mark = tuple[int, int]
"""When a file was last written, and its size."""


class FolderReport(msgspec.Struct, frozen=True):
    """What a look at a folder came to."""

    taken: tuple[Definition, ...] = ()
    problems: Mapping[Path, str] = {}

    def __bool__(self) -> bool:
        return bool(self.taken or self.problems)


class Folder:
    """The JSON files of one folder, as definitions of one tenant."""

    def __init__(self, path: Path, publishing: Publishing, tenant: str = "") -> None:
        if not path.is_dir():
            raise Invalid(f"There is no folder {path}. Make it, or name another.")
        self.path = path
        self._publishing = publishing
        self._tenant = tenant
        self._seen: dict[Path, Mark] = {}

    async def look(self) -> FolderReport:
        """Take what is new or has changed since the last look."""
        marks = await asyncio.to_thread(_marks, self.path)
        changed = [path for path, mark in marks.items() if self._seen.get(path) != mark]
        self._seen = marks
        problems: dict[Path, str] = {}
        files: list[WorkflowFile] = []
        for path in changed:
            try:
                document = await asyncio.to_thread(read_file, path)
                if looks_like_a_definition(document):
                    file = WorkflowFile(path=path, document=document)
                    file.definition()
                    files.append(file)
            except Invalid as problem:
                problems[path] = str(problem)
        try:
            return FolderReport(tuple(await self._take(files, problems)), problems)
        except Unavailable:
            for path in changed:
                self._seen.pop(path, None)  # at the next look
            raise

    async def _take(self, files: list[WorkflowFile], problems: dict[Path, str]) -> list[Definition]:
        """All together; if they cannot, each that can."""
        if not files:
            return []
        try:
            return await self._publishing.provide(self._tenant, *(f.definition().source for f in files))
        except Unavailable:
            raise
        except HoldfastError as problem:
            if len(files) == 1:
                problems[files[0].path] = str(problem)
                return []
        taken: list[Definition] = []
        for file in files:
            taken += await self._take([file], problems)
        return taken

    async def watch(self, report: Callable[[FolderReport], None]) -> None:
        """Until cancelled: look once a second and say what a look came to, if it came to something."""
        while True:
            await asyncio.sleep(POLL)
            try:
                found = await self.look()
            except (Unavailable, OSError):
                continue
            if found:
                report(found)


def _marks(folder: Path) -> dict[Path, Mark]:
    marks: dict[Path, Mark] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            status = path.stat()
        except OSError:  # gone a moment ago
            continue
        marks[path] = status.st_mtime_ns, status.st_size
    return marks
