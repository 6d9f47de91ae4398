"""The port of durable state: what the runtime asks of a store, and what every store promises.

Small protocols by subject, and one that is all of them. Every adapter in `stores/` passes
`holdfast.testing.conformance.StoreConformance`, where each promise below is a test. Whatever cannot be
done now because the database is away raises `Unavailable`; nothing was written then, or the caller
finds out by asking again under the same names.
"""

from typing import Protocol

from holdfast.store.attempts import Attempt, Attempts
from holdfast.store.bell import Bell
from holdfast.store.definitions import (
    Definitions,
    Edition,
    EditionChanged,
    Publication,
    StoredVersion,
    VersionHeader,
)
from holdfast.store.inbox import Inbox
from holdfast.store.intake import (
    Activation,
    Admission,
    Admitted,
    InstanceExists,
    Intake,
    KeyReused,
    Posted,
    Posting,
    Refused,
    Repeated,
    Verdict,
)
from holdfast.store.nodes import LiveNode, NodeExpired, Nodes, Renewal, Taken
from holdfast.store.placements import DEFAULT, Placement, Placements, ShardGroup
from holdfast.store.records import (
    Burial,
    InstanceFilter,
    LetterNotFound,
    Orphan,
    OutboxRow,
    Page,
    Pause,
    Records,
    Summary,
    Vitals,
)
from holdfast.store.schedules import Cursor, Firing, Schedule, Schedules
from holdfast.store.turns import Committed, Loaded, StaleTurn, Turns, Unwritable
from holdfast.store.waits import Waiting, Waits

__all__ = [
    "DEFAULT",
    "Activation",
    "Admission",
    "Admitted",
    "Attempt",
    "Attempts",
    "Bell",
    "Burial",
    "Committed",
    "Cursor",
    "Definitions",
    "Edition",
    "EditionChanged",
    "Firing",
    "Inbox",
    "InstanceExists",
    "InstanceFilter",
    "Intake",
    "KeyReused",
    "LetterNotFound",
    "LiveNode",
    "Loaded",
    "NodeExpired",
    "Nodes",
    "Orphan",
    "OutboxRow",
    "Page",
    "Pause",
    "Placement",
    "Placements",
    "Posted",
    "Posting",
    "Publication",
    "Records",
    "Refused",
    "Renewal",
    "Repeated",
    "Schedule",
    "Schedules",
    "ShardGroup",
    "StaleTurn",
    "Store",
    "StoredVersion",
    "Summary",
    "Taken",
    "Turns",
    "Unwritable",
    "Verdict",
    "VersionHeader",
    "Vitals",
    "Waiting",
    "Waits",
]


class Store(
    Nodes,
    Inbox,
    Turns,
    Intake,
    Waits,
    Definitions,
    Schedules,
    Attempts,
    Records,
    Placements,
    Bell,
    Protocol,
):
    """Everything the runtime asks of durable state."""

    def apart(self) -> "Store":
        """The same store with connections of its own, for another thread and its event loop."""
        ...

    async def close(self) -> None:
        """Finish what is under way and close every connection."""
        ...
