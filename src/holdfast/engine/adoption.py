"""Taking in a state that was exported elsewhere, perhaps from another database, as one of our own.

The bookmarks keep their keys and due times, so the instance goes on waiting for what it waited for. Work
that had left its burst is asked for again.
"""

import msgspec

from holdfast.definitions.graph import Graph
from holdfast.engine.burst import BACKGROUND
from holdfast.engine.state import decode_state
from holdfast.errors import Invalid
from holdfast.instance import State
from holdfast.message import DoInBackground


class StateForeign(Invalid):
    """A state of another definition, or one in which something is open that the version has not."""

    code = "state.foreign"


def adopt_state(text: str | bytes, graph: Graph, instance_id: str, tenant: str) -> State:
    """An exported state as this instance's. Raises StateUnreadable, StateForeign."""
    state = decode_state(text.encode() if isinstance(text, str) else text)
    definition = graph.definition
    if state.definition_id != definition.definition_id:
        raise StateForeign(
            f"This is a state of definition {state.definition_id!r}, and it was to go on as one of "
            f"{definition.definition_id!r}."
        )
    known = {node.ref for node in graph.nodes}
    work = () if state.transient is None else state.transient.work
    missing = sorted({one.node for one in (*state.frames, *work)} - known)
    if missing:
        raise StateForeign(
            f"Activity {missing[0]!r} is open in this state, and version {definition.version} of "
            f"{definition.definition_id!r} has none. Publish the version it was exported from first."
        )
    return msgspec.structs.replace(
        state, id=instance_id, tenant=tenant, version_id=definition.id, version=definition.version
    )


def background_of(state: State) -> list[DoInBackground]:
    """The work outside the burst that a state waits for."""
    return [
        DoInBackground(execution=b.execution, activity_id=b.activity_id, bookmark_id=b.id)
        for b in state.bookmarks
        if b.name == BACKGROUND
    ]
