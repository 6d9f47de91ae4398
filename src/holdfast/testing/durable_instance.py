"""One instance of a durable test host: what a test wants to ask of it, answered from what is stored."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from holdfast.activities.events import TASK
from holdfast.codec import decode_payload, read_payload
from holdfast.commit import Columns, Segment
from holdfast.definitions.graph import Graph
from holdfast.instance import Record
from holdfast.local.hosted import HostedInstance
from holdfast.message import HandOver
from holdfast.store import Loaded


class StoredInstance(HostedInstance):
    """An instance as it was when the host came to rest."""

    columns: Columns
    """What lists know of it."""
    revision = -1

    def see(self, loaded: Loaded, segments: Iterable[Segment], graph_of: Callable[[int], Graph]) -> None:
        """As it is stored now, and what its journal has got since the last time.

        `graph_of` gives the graph of a version, by its number.
        """
        self.columns = loaded.columns
        self.revision = loaded.revision
        self._encoded = loaded.state or b""
        for segment in segments:
            records = read_records(segment)
            self.records += records
            self.graphs += [graph_of(segment.version)] * len(records)

    @property
    def status(self) -> str:
        return self.columns.sub_status.status.value

    @property
    def sub_status(self) -> str:
        return self.columns.sub_status.value

    @property
    def has_begun(self) -> bool:
        """Whether it has a state; one whose start waits or became a dead letter has none."""
        return bool(self._encoded)

    @property
    def last_record(self) -> int:
        """The number of the last record that was seen."""
        return self.records[-1].sequence if self.records else -1

    @property
    def tasks(self) -> list[HandOver]:
        """Tasks that were handed out and are not completed."""
        waiting = [b for b in self.bookmarks if b.name == TASK] if self.has_begun else []
        if not waiting:
            return []
        given = {record.execution: record.inputs for record in self.activity_records()}
        return [
            HandOver(
                task_id=read_payload(bookmark.payload)["taskId"],
                name=given[bookmark.execution].get("TaskName") or "",
                payload=given[bookmark.execution].get("Payload"),
            )
            for bookmark in waiting
        ]


def read_records(segment: Segment) -> list[Record]:
    """The records of a segment, as they were before they were written."""
    rows: list[Any] = decode_payload(segment.body)
    return [msgspec.convert(row, Record) for row in rows]
