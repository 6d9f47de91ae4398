"""What the runtime knows of whatever it drives: a version that can take bursts, and the state they leave.

Two things provide it: a definition made of activities, and a typed status machine. The runtime asks no
more of either than what stands here.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from holdfast.bookmark import Bookmark
from holdfast.engine import Environment
from holdfast.instance import Incident, Record, Status, SubStatus
from holdfast.message import DoInBackground, Effect, Message, Resume
from holdfast.store import Activation


class Snapshot(Protocol):
    """An instance between two bursts, as far as lists, matching and parents care."""

    @property
    def definition_id(self) -> str: ...
    @property
    def version_id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def status(self) -> Status: ...
    @property
    def sub_status(self) -> SubStatus: ...
    @property
    def updated_at(self) -> datetime: ...
    @property
    def finished_at(self) -> datetime | None: ...
    @property
    def parent_id(self) -> str | None: ...
    @property
    def correlation_id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def output(self) -> Mapping[str, Any]: ...
    @property
    def properties(self) -> Mapping[str, Any]: ...
    @property
    def is_halfway(self) -> bool:
        """Kept in the middle of a burst, at a checkpoint."""
        ...

    @property
    def bookmarks(self) -> Sequence[Bookmark]: ...
    @property
    def incidents(self) -> Sequence[Incident]: ...


class Stoppable(Protocol):
    """A burst under way."""

    stopping: bool
    """Set it, and the burst stops before its next step, as at a checkpoint."""


class Result(Protocol):
    """What one message came to."""

    @property
    def state(self) -> Any: ...
    @property
    def records(self) -> Sequence[Record]: ...
    @property
    def effects(self) -> Sequence[Effect]: ...
    @property
    def applied(self) -> bool:
        """False when the message found nothing to do."""
        ...


Checkpoint = Callable[[Any], Awaitable[None]]
"""Awaited with a Result wherever progress shall be kept before the burst is over."""


class Program(Protocol):
    """One version of something that can be started."""

    @property
    def definition_id(self) -> str: ...
    @property
    def version_id(self) -> str: ...
    @property
    def version(self) -> int: ...

    @property
    def background(self) -> str:
        """The name of bookmarks that wait for work outside the turn."""
        ...

    def activity(self, node: int) -> tuple[str, str]:
        """The id and the type of what records name by this number."""
        ...

    def decode(self, state: bytes) -> Snapshot: ...

    def encode(self, state: Any) -> bytes: ...

    def variables(self, state: Any) -> dict[str, Any]:
        """What an instance knows by name, for whoever looks at it."""
        ...

    async def burst(
        self,
        message: Message,
        *,
        environment: Environment,
        state: Any,
        instance_id: str,
        tenant: str,
        checkpoint: Checkpoint,
        on_begin: Callable[[Stoppable], None],
    ) -> Result:
        """Handle one message, from the state as it was last kept; None for a start."""
        ...

    async def attempt(self, state: Any, task: DoInBackground, environment: Environment) -> Resume:
        """Do the work of one execution outside its turn, and say how it went."""
        ...

    def guards(self, correlation_id: str | None) -> tuple[Activation, ...]:
        """What must be free for one more instance to begin."""
        ...


class Programs(Protocol):
    """Where programs are found."""

    async def find(self, tenant: str, version_id: str) -> Program:
        """Raises NotFound."""
        ...

    async def published(self, tenant: str, definition_id: str) -> Program:
        """The version that new instances run. Raises NotFound."""
        ...
