"""Files of instances that were deleted: one line for each, one file for each day, JSON.

A line is on the disk before its instance is deleted. A line that was cut off by a death is not whole, and
its instance was not deleted then: it is written again, so readers pass over it. For the same reason an
instance may be there twice; the last line counts.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from holdfast.runtime.exported import Exported, ExportUnreadable, export, read_export
from holdfast.store import Burial


class Archive:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def file_of(self, day: datetime) -> Path:
        return self._folder / f"instances-{day:%Y-%m-%d}.jsonl"

    def write(self, burials: Iterable[Burial], now: datetime) -> Path:
        """Durable when it returns. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self.file_of(now)
        is_new = not path.exists()
        with path.open("a+b") as file:
            if file.tell() and not _ends_a_line(file.fileno(), file.tell()):
                file.write(b"\n")
            for burial in burials:
                file.write(_line(burial) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _sync_folder(self._folder)
        return path


def _ends_a_line(file: int, size: int) -> bool:
    return os.pread(file, 1, size - 1) == b"\n"


def _sync_folder(folder: Path) -> None:
    """Else a new file may be gone after a power failure, though what is in it was written."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line(burial: Burial) -> bytes:
    found = burial.summary
    return export(
        tenant=found.tenant,
        instance_id=found.instance_id,
        revision=found.revision,
        columns=found.columns,
        state=burial.state,
        journal=burial.journal,
    )


def read_archive(path: Path) -> Iterator[Exported]:
    """The instances in a file, as they were written."""
    with path.open("rb") as file:
        for line in file:
            try:
                yield read_export(line)
            except ExportUnreadable:
                if _is_whole(line):
                    raise


def _is_whole(line: bytes) -> bool:
    """Whether nothing is missing at its end: then it is no trace of a death, but something else."""
    return line.endswith(b"}\n")
