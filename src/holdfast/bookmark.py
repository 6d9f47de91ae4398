"""Where an instance waits, and what wakes it.

A Bookmark is a place in one instance that waits. It waits under a key, and a Stimulus with the same
key finds it; a Trigger is such a place in a published version, and a stimulus with its key starts a
new instance. The values and the key live here. Looking them up is the host's work; carrying on from
a bookmark is `engine.burst`.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.codec import encode, is_list, is_object


def key_of(name: str, payload: Any = None, execution_id: str | None = None) -> str:
    """Equal for equal waits, in whatever order, case and company of nulls their members arrived.

    With an execution id only that one execution can be meant; without, anybody who waits for the
    same payload under the same name.
    """
    return sha256(encode([name, _canonical(payload), execution_id])).hexdigest()


def _canonical(payload: Any) -> Any:
    if is_object(payload):
        members = {name.casefold(): value for name, value in payload.items() if value is not None}
        return [[name, _canonical(members[name])] for name in sorted(members)]
    return [_canonical(item) for item in payload] if is_list(payload) else payload


class Stimulus(msgspec.Struct, frozen=True, kw_only=True):
    """Something happened outside, and whoever waits for it should know."""

    name: str
    payload: Any = None
    input: Mapping[str, Any] = {}
    correlation_id: str | None = None
    instance_id: str | None = None
    execution_id: str | None = None
    exact_key: str | None = None
    """Set when the sender was told the key, as a child was by its parent."""

    @property
    def key(self) -> str:
        return self.exact_key or key_of(self.name, self.payload, self.execution_id)


class Bookmark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place where one instance waits. It wakes the instance, and then, usually, it is gone."""

    id: str
    name: str
    key: str
    activity_id: str
    execution: int
    created_at: datetime
    payload: Any = None
    resume: str | None = None
    """The activity's method that carries on; without one the activity just completes."""
    burns: bool = True
    """Gone once it was used. A bookmark that does not burn can be hit again and again."""
    due: datetime | None = None
    """Set when a timer hits it: the instant before which it must not be hit."""
    metadata: Mapping[str, str] = {}


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a published version that starts a new instance."""

    definition_id: str
    version_id: str
    activity_id: str
    name: str
    key: str
    payload: Any = None
