"""What a step may say instead of a next status, and what it may raise.

They are values, so a step is tested by calling it. `Pause`, `Skip`, `Cancel` and `Again` keep what the
step changed in the object; whatever is raised drops it.
"""

from datetime import datetime, timedelta

import msgspec

from holdfast.errors import HoldfastError


class Pause(msgspec.Struct, frozen=True):
    """Stand still until somebody resumes the run, or until then. The step is called again after that."""

    reason: str = ""
    until: datetime | timedelta | None = None
    """An instant, or a span from now."""


class Skip(msgspec.Struct, frozen=True):
    """Stay in this status and go on waiting for its callbacks and timeouts."""


class Cancel(msgspec.Struct, frozen=True):
    """End the run without completing it."""

    reason: str = ""


class Again(msgspec.Struct, frozen=True):
    """Keep what was done so far, let others have a turn, and call the same function again."""

    delay: timedelta | None = None


Control = Pause | Skip | Cancel | Again
"""What leads to no other status."""


class GiveUp(HoldfastError):
    """Raise it where trying again is useless: the run is paused at once, until a person resumes it."""

    code = "machine.given_up"


class Retry(HoldfastError):
    """Raise it to be called again after that span, whatever the backoff says. It counts as an error."""

    code = "machine.retry"

    def __init__(self, reason: str = "", *, after: timedelta) -> None:
        super().__init__(reason or f"To be tried again after {after}.")
        self.after = after
