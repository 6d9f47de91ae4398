"""What is addressed to one instance, and what an instance asks for in return.

A message is why a burst happens: start, resume, continue, cancel. An effect is what a burst asks of
whoever drives it, to be carried out when its result is kept: start a child, send a stimulus, hand a
task to the outside, do an activity in the background. Both are values; nothing here acts.
"""

from collections.abc import Mapping
from datetime import datetime
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
    state: str | None = None
    """An exported state to carry on from, instead of beginning."""


class Resume(msgspec.Struct, frozen=True, kw_only=True, tag="resume", omit_defaults=True):
    """Carry on from a bookmark, named by its id or found by its key."""

    bookmark_id: str | None = None
    key: str | None = None
    input: Mapping[str, Any] = {}
    expires: datetime | None = None
    """Until when somebody may still wait for it, if nobody does now. Without, it is for now or never."""
    tries: int = 0
    """How often it found nobody."""
    only: bool = False
    """It has no other receiver: should this instance end, it is everybody's again."""
    correlation_id: str | None = None
    """Whom it was meant for then."""


class Continue(msgspec.Struct, frozen=True, kw_only=True, tag="continue", omit_defaults=True):
    """Carry on from the work queue that a checkpoint kept."""


class Cancel(msgspec.Struct, frozen=True, kw_only=True, tag="cancel", omit_defaults=True):
    """End the instance without finishing it."""

    reason: str | None = None
    at_once: bool = False
    """Do not wait for what it is doing right now."""


class CancelChildren(msgspec.Struct, frozen=True, kw_only=True, tag="cancel-children", omit_defaults=True):
    """Go on cancelling the children of a cancelled instance, those behind this id."""

    after: str
    reason: str | None = None


class Pause(msgspec.Struct, frozen=True, kw_only=True, tag="pause", omit_defaults=True):
    """Stand still until `Unpause`: what arrives waits."""

    reason: str | None = None


class Unpause(msgspec.Struct, frozen=True, kw_only=True, tag="unpause", omit_defaults=True):
    """Go on."""


class Delete(msgspec.Struct, frozen=True, kw_only=True, tag="delete", omit_defaults=True):
    """Forget the instance with all that belongs to it."""


class CancelActivity(msgspec.Struct, frozen=True, kw_only=True, tag="cancel-activity", omit_defaults=True):
    """Cancel the open executions of one activity, or one of them."""

    activity_id: str | None = None
    execution: int | None = None
    """With neither, nothing is cancelled."""


class Retry(msgspec.Struct, frozen=True, kw_only=True, tag="retry", omit_defaults=True):
    """Execute a faulted activity again, under the same idempotency key, perhaps with other inputs."""

    execution: int
    inputs: Mapping[str, Any] = {}


class Skip(msgspec.Struct, frozen=True, kw_only=True, tag="skip", omit_defaults=True):
    """Take a faulted activity as completed."""

    execution: int
    outcomes: tuple[str, ...] = ()


class Migrate(msgspec.Struct, frozen=True, kw_only=True, tag="migrate", omit_defaults=True):
    """Carry on as another version of the same definition."""

    version: int
    activities: Mapping[str, str] = {}
    """Activity ids of the present version and what they are called in the other, where that differs."""


class SetVariable(msgspec.Struct, frozen=True, kw_only=True, tag="set-variable", omit_defaults=True):
    """Give a variable another value."""

    variable: str
    """Its id or its name."""
    value: Any = None
    execution: int | None = None
    """The open execution that declares it; without, the outermost one."""


class ScheduleActivity(
    msgspec.Struct, frozen=True, kw_only=True, tag="schedule-activity", omit_defaults=True
):
    """Let the container of an activity execute it, as if what comes before it had completed."""

    activity_id: str
    execution: int | None = None
    """The open execution of the container, where there are several."""


class RetryIncidents(msgspec.Struct, frozen=True, kw_only=True, tag="retry-incidents", omit_defaults=True):
    """Execute everything that has faulted again: all of it, or these activities."""

    activity_ids: tuple[str, ...] = ()


class SkipIncidents(msgspec.Struct, frozen=True, kw_only=True, tag="skip-incidents", omit_defaults=True):
    """Take everything that has faulted as completed: all of it, or these activities."""

    activity_ids: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()


Alteration = (
    Migrate
    | SetVariable
    | ScheduleActivity
    | CancelActivity
    | Retry
    | Skip
    | RetryIncidents
    | SkipIncidents
    | Cancel
)
"""What an operator may change in an instance."""


class Alter(msgspec.Struct, frozen=True, kw_only=True, tag="alter", omit_defaults=True):
    """Change an instance in these ways, in this order, all of them or none; then let it go on."""

    alterations: tuple[Alteration, ...]


class Steer(msgspec.Struct, frozen=True, kw_only=True, tag="steer", omit_defaults=True):
    """What a person asks of a run of a machine."""

    order: str
    """`pause`, `resume` or `delete`, which is of its data. To end it there is `Cancel`."""
    reason: str | None = None


Message = Start | Resume | Continue | Cancel | CancelActivity | Retry | Skip | Alter | Steer
"""What a burst handles."""

Order = CancelChildren | Pause | Unpause | Delete
"""What is handled around bursts: it changes how an instance is treated, not what it does."""


class StartChild(msgspec.Struct, frozen=True, kw_only=True, tag="start-child", omit_defaults=True):
    """Start an instance of the published version of a definition, as a child of this one."""

    instance_id: str
    definition_id: str
    parent_id: str | None = None
    """None: it lives on its own, and nobody's end is its end."""
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
