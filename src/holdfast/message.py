"""What is addressed to one instance, and what an instance asks for in return.

A message is why a burst happens: start, resume, continue, cancel. An effect is what a burst asks of
whoever drives it, to be carried out when its result is kept: start a child, send a stimulus, hand a
task to the outside, do an activity in the background. Both are values; nothing here acts.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.bookmark import Stimulus


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start", omit_defaults=True):
    """Begin a new life of a definition."""

    input: Mapping[str, Any] = {}
    variables: Mapping[str, Any] = {}
    """Workflow variables, by name, that begin with another value than their default."""
    properties: Mapping[str, Any] = {}
    correlation_id: str | None = None
    name: str | None = None
    trigger: str | None = None
    """The id of the activity whose trigger was hit; it completes instead of waiting."""
    parent_id: str | None = None


class Resume(msgspec.Struct, frozen=True, kw_only=True, tag="resume", omit_defaults=True):
    """Carry on from a bookmark, named by its id or found by its key."""

    bookmark_id: str | None = None
    key: str | None = None
    input: Mapping[str, Any] = {}


class Continue(msgspec.Struct, frozen=True, kw_only=True, tag="continue", omit_defaults=True):
    """Carry on from the work queue that a checkpoint kept."""


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel", omit_defaults=True):
    """End the instance without finishing it."""

    reason: str | None = None


class CancelActivity(msgspec.Struct, frozen=True, kw_only=True, tag="cancel-activity", omit_defaults=True):
    """Cancel the open executions of one activity, or one of them."""

    activity_id: str
    execution: int | None = None


class Retry(msgspec.Struct, frozen=True, kw_only=True, tag="retry", omit_defaults=True):
    """Execute a faulted activity again, under the same idempotency key, perhaps with other inputs."""

    execution: int
    inputs: Mapping[str, Any] = {}


class Skip(msgspec.Struct, frozen=True, kw_only=True, tag="skip", omit_defaults=True):
    """Take a faulted activity as completed."""

    execution: int
    outcomes: tuple[str, ...] = ()


Message = Start | Resume | Continue | Cancel | CancelActivity | Retry | Skip


class StartChild(msgspec.Struct, frozen=True, kw_only=True, tag="start-child", omit_defaults=True):
    """Start an instance of the published version of a definition, as a child of this one."""

    instance_id: str
    definition_id: str
    parent_id: str
    input: Mapping[str, Any] = {}
    correlation_id: str | None = None
    reply_to: str | None = None
    """The key of the parent's bookmark that wants to hear when the child has ended."""


class Send(msgspec.Struct, frozen=True, kw_only=True, tag="send", omit_defaults=True):
    """Send a stimulus to whoever waits for it."""

    stimulus: Stimulus


class HandOver(msgspec.Struct, frozen=True, kw_only=True, tag="hand-over", omit_defaults=True):
    """Give a task to the outside. Whoever does it completes it by its id."""

    task_id: str
    name: str
    payload: Any = None


class DoInBackground(msgspec.Struct, frozen=True, kw_only=True, tag="background", omit_defaults=True):
    """Execute an activity outside the burst; its outcome comes back through the bookmark."""

    execution: int
    activity_id: str
    bookmark_id: str


Effect = StartChild | Send | HandOver | DoInBackground
