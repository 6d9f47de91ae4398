"""One execution of an activity, while it is open or queued.

Frames are the mutable heart of a burst: plain slots, private to `engine`. What survives a wait is
copied out by `engine.state`.
"""

from typing import Any

from holdfast.authoring import Activity
from holdfast.bookmark import Bookmark
from holdfast.definitions.graph import Node
from holdfast.instance import ActivityStatus

PENDING = ActivityStatus.PENDING
RUNNING = ActivityStatus.RUNNING
COMPLETED = ActivityStatus.COMPLETED
CANCELED = ActivityStatus.CANCELED
FAULTED = ActivityStatus.FAULTED


class Frame:
    __slots__ = (
        "activity",
        "attempt",
        "backward",
        "bookmarks",
        "children",
        "done",
        "dynamic",
        "edited",
        "faults",
        "ids",
        "inputs",
        "log",
        "memory",
        "node",
        "number",
        "outcomes",
        "outputs",
        "parent",
        "queued",
        "results",
        "resumption",
        "state",
        "status",
        "tag",
    )

    def __init__(self, node: Node, parent: "Frame | None", done: str | None = None, tag: Any = None) -> None:
        self.node = node
        self.parent = parent
        self.number = 0
        """Given when the execution begins; 0 while it is only queued."""
        self.status = PENDING
        self.done = done
        """The method of the owner's activity that hears of the completion."""
        self.tag = tag
        self.backward = False
        self.activity: Activity | None = None
        self.inputs: dict[str, Any] | None = None
        self.edited: dict[str, Any] | None = None
        """Inputs an operator gave for a retry, in place of the evaluated ones."""
        self.outputs: dict[str, Any] | None = None
        self.log: dict[str, Any] | None = None
        self.state: dict[str, Any] | None = None
        self.memory: dict[str, Any] | None = None
        """Values by variable id, for frames that declare variables."""
        self.dynamic: dict[str, str] | None = None
        """Variables beyond those the activity declares: id to name."""
        self.results: dict[tuple[str, str], Any] | None = None
        """The output register of a container: first value by activity id and output name."""
        self.children: dict[int, Frame] | None = None
        """Open executions this one owns, by number."""
        self.queued = 0
        """How many queued executions this one owns."""
        self.bookmarks = 0
        self.resumption: Bookmark | None = None
        """Set while queued to carry on from a bookmark."""
        self.outcomes: tuple[str, ...] | None = None
        self.faults = 0
        self.attempt = 1
        self.ids = 0
        """How many ids were derived from this execution so far."""

    def __repr__(self) -> str:
        return f"<Frame {self.number} {self.node!r} {self.status}>"
