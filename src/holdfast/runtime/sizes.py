"""How large things may be, so that one workflow cannot fill the database or the memory of a node.

What comes from outside is refused before anything is written, with the name of what is too large. A
state that grew too large in a turn faults its instance, which keeps the state it had before.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import msgspec

from holdfast.codec import encode_payload
from holdfast.errors import Invalid
from holdfast.instance import ActivityStatus, Incident, OpenFrame, Record, State, SubStatus
from holdfast.runtime.program import Program

MEGABYTE = 1_000_000


class TooLarge(Invalid):
    """A value, or a whole message, is larger than the limit."""

    code = "payload.too_large"

    def __init__(self, name: str, size: int, limit: int) -> None:
        super().__init__(
            f"`{name}` has {_said(size)} as JSON; {_said(limit)} are allowed. Store it elsewhere and pass a "
            f"reference to it, or raise the limit."
        )
        self.name = name


class StateTooLarge(Invalid):
    """An instance has grown larger than the limit."""

    code = "state.too_large"

    def __init__(self, instance_id: str, size: int, limit: int) -> None:
        super().__init__(
            f"The state of instance {instance_id} has grown to {_said(size)}; {_said(limit)} are allowed. "
            f"Keep less in variables, or store it elsewhere and keep a reference to it."
        )


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Limits in bytes, as JSON."""

    value: int = MEGABYTE
    """One value: a member of an input, a variable, the payload of an event."""
    state: int = 4 * MEGABYTE
    """All of an instance, and all of a message."""

    def check(self, message: msgspec.Struct, encoded: bytes | None) -> None:
        """Raises TooLarge. Costs nothing for what is small as a whole."""
        size = len(encoded or b"")
        if size <= min(self.value, self.state):
            return
        taken_in: str | None = getattr(message, "state", None)
        for field in message.__struct_fields__:
            if field != "state":
                self.check_value(field, getattr(message, field))
        if taken_in is not None:
            size = len(taken_in.encode())
        if size > self.state:
            raise TooLarge(type(message).__name__.lower(), size, self.state)

    def check_value(self, name: str, value: Any) -> None:
        """Raises TooLarge. The members of an object are values of their own."""
        if isinstance(value, Mapping):
            for key, member in cast("Mapping[Any, Any]", value).items():
                self._check_one(f"{name}.{key}", member)
        elif isinstance(value, tuple):
            for part in cast("tuple[Any, ...]", value):
                self._check_one(name, part)
        else:
            self._check_one(name, value)

    def _check_one(self, name: str, value: Any) -> None:
        size = len(encode_payload(value))
        if size > self.value:
            raise TooLarge(name, size, self.value)


def faulted(
    program: Program, before: State | None, grown: State, problem: StateTooLarge, now: datetime
) -> tuple[State, Record]:
    """The instance as it was before it grew, with an incident that says why it does not go on."""
    kept = before or msgspec.structs.replace(
        grown,
        frames=(OpenFrame(number=1, node=grown.frames[0].node, status=ActivityStatus.RUNNING),),
        bookmarks=(),
        incidents=(),
        input={},
        output={},
        properties={},
        executions=1,
        records=0,
    )
    root = kept.frames[0]
    incident = Incident(
        activity_id=root.node,
        node_id=root.node,
        activity_type=program.definition_id,
        execution=root.number,
        message=str(problem),
        at=now,
        code=problem.code,
        exception_type=type(problem).__name__,
    )
    number = kept.records + 1
    state = msgspec.structs.replace(
        kept,
        sub_status=SubStatus.FAULTED,
        updated_at=now,
        finished_at=now,
        incidents=(*kept.incidents, incident),
        records=number,
        transient=None,
    )
    return state, Record(number, "Faulted", root.number, 0, 0, now, str(problem))


def _said(size: int) -> str:
    return f"{size / MEGABYTE:.1f} MB" if size >= MEGABYTE // 10 else f"{size} bytes"
