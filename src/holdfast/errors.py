"""Everything Holdfast raises on purpose.

One root, and under it a few branches that answer *who must act*:

    HoldfastError
    ├── Invalid       fix what you sent
    ├── NotFound      it is not there
    ├── Conflict      the world moved; look again, then decide
    ├── Denied        you may not
    └── Unavailable   try again later

A branch becomes an HTTP status or an exit code in one place, at the edge. Errors that belong to
one subject (a definition, an expression) are defined beside that subject, under one of these.
"""

from typing import ClassVar


class HoldfastError(Exception):
    """The root. `code` is stable and documented; the wording may get better any day."""

    code: ClassVar[str] = "holdfast"


class Invalid(HoldfastError):
    """What was sent cannot be used as it is. The message says what to change."""

    code = "invalid"


class NotFound(HoldfastError):
    """Nothing has that name here."""

    code = "not_found"


class Conflict(HoldfastError):
    """The world moved between your reading and your writing. Load again, then decide."""

    code = "conflict"


class Denied(HoldfastError):
    """Known, understood, and not allowed."""

    code = "denied"


class Unavailable(HoldfastError):
    """Not now. The same request may succeed later."""

    code = "unavailable"
