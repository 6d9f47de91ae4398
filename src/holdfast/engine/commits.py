"""When a burst wants its progress kept before it settles."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from holdfast.definitions.graph import Node
    from holdfast.engine.burst import Burst

PERIOD = timedelta(seconds=10)
"""How often the strategy `Periodic` asks for a checkpoint."""


def wants_checkpoint(burst: Burst, node: Node, moment: Literal["Executing", "Executed"]) -> bool:
    """Whether a commit strategy wants a checkpoint now: the activity's answer first, then the workflow's."""
    own = node.commit_strategy
    if own is not None:
        return own in ("CommitAlways", moment)
    strategy = burst.commit_strategy
    if strategy == "Periodic":
        since = burst.checkpointed_at
        return since is None or burst.clock.now() - since >= PERIOD
    if node.implementation.only_schedules:
        return False
    return strategy == f"Activity{moment}"
