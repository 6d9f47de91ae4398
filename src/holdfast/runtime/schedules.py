"""When triggers fire by themselves: from a Timer, Cron or StartAt trigger to the times it starts instances.

Nothing here reads a clock or a store. `schedule_of` makes the row that publishing writes, `renewed` brings
it together with the row that was there, and `step` says what to do first about one that is due: fire an
occurrence or let it go, and how the row stands then. After each step the row is asked again, so that
whoever takes over after a crash carries on where the last step was written.

An author sets zone and policies in the trigger's custom properties, under `holdfast`: `timeZone` (IANA),
`missed` (skip, last, all), `missedLimit`, `overlap` (allow, skip, queue, cancelPrevious), `waitingLimit`.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from holdfast.bookmark import Trigger
from holdfast.codec import decode, encode, is_object, parse_timespan
from holdfast.cron import Cron
from holdfast.definitions.graph import Graph
from holdfast.definitions.reader import member
from holdfast.errors import Invalid
from holdfast.message import Start
from holdfast.runtime.recurrence import ByCron, Every, Once, Recurrence
from holdfast.store import Activation, Cursor, Schedule

GRACE = timedelta(seconds=30)
"""An occurrence that is later than this was missed, and the schedule's policy decides about it."""

MOST_CAUGHT_UP = 1_000
"""What `missedLimit` and `waitingLimit` may be at most."""

KINDS = frozenset({"Elsa.Timer", "Elsa.Cron", "Elsa.StartAt"})
"""The triggers that time hits."""

_LONGEST_KEY = 200


class ScheduleInvalid(Invalid):
    """A trigger cannot be scheduled as it is written. The message names the member and what it may be."""

    code = "schedule.invalid"


class Missed(StrEnum):
    """What becomes of occurrences that nobody was there for."""

    SKIP = "skip"
    LAST = "last"
    ALL = "all"
    """The latest of them, up to the limit."""


class Overlap(StrEnum):
    """What becomes of an occurrence while the instance of an earlier one is still running."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_PREVIOUS = "cancelPrevious"


class Policies(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    missed: Missed = Missed.LAST
    missed_limit: int = 100
    overlap: Overlap = Overlap.ALLOW
    waiting_limit: int = 1
    """How many occurrences may wait for an earlier one to end."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What to do first about a schedule, and how it stands after."""

    nominal: datetime
    starts: bool
    """False when the occurrence is let go, or waits."""
    then: Cursor
    if_refused: Cursor | None = None
    """When an earlier one is still running; None means like `then`."""


def schedule_of(
    trigger: Trigger, settings: Mapping[str, Any], *, tenant: str, shard: int, now: datetime
) -> Schedule | None:
    """The row of a trigger that is published now; None when time does not hit it. Raises Invalid."""
    if trigger.name not in KINDS:
        return None
    zone, policies = _read_settings(settings)
    # A timer's payload says when it was indexed, which would make every publication another schedule.
    payload = {name: value for name, value in trigger.payload.items() if name != "startAt"}
    return planned(
        tenant=tenant,
        definition_id=trigger.definition_id,
        activity_id=trigger.activity_id,
        shard=shard,
        version_id=trigger.version_id,
        spec=encode({"name": trigger.name, "payload": payload}),
        zone=zone,
        policies=policies,
        anchor=now if trigger.name == "Elsa.Timer" else None,
        now=now,
    )


def planned(
    *,
    tenant: str,
    definition_id: str,
    activity_id: str,
    shard: int,
    version_id: str,
    spec: bytes,
    zone: str | None,
    policies: Policies,
    anchor: datetime | None,
    now: datetime,
) -> Schedule:
    """A row that begins now. Raises Invalid."""
    found = Schedule(
        tenant=tenant,
        definition_id=definition_id,
        activity_id=activity_id,
        shard=shard,
        version_id=version_id,
        spec=spec,
        zone=zone,
        policies=msgspec.json.encode(policies),
        anchor=anchor,
        cursor=Cursor(next_at=None),
    )
    return msgspec.structs.replace(found, cursor=Cursor(next_at=_recurrence_of(found).first(now)))


def settings_of(graph: Graph, trigger: Trigger) -> Mapping[str, Any]:
    """What the author of a trigger said about its zone and policies."""
    node = graph.find(trigger.activity_id)
    custom = None if node is None else member(node.json, "customProperties")
    settings = member(custom, "holdfast") if is_object(custom) else None
    if settings is not None and not is_object(settings):
        raise ScheduleInvalid("`holdfast` in the custom properties is a JSON object. Write {} for none.")
    return settings or {}


def renewed(found: Schedule, before: Schedule | None, now: datetime) -> Schedule:
    """The row of a trigger that was published before: unless it changed, it goes on where it was."""
    if before is None:
        return found
    was = before.cursor
    if was.next_at is not None and (before.spec, before.zone) == (found.spec, found.zone):
        return msgspec.structs.replace(found, anchor=before.anchor, cursor=was)
    after = now if was.last_at is None else max(now, was.last_at)
    cursor = Cursor(
        next_at=_recurrence_of(found).first(after, was.last_at), last_at=was.last_at, waiting=was.waiting
    )
    return msgspec.structs.replace(found, cursor=cursor)


def retracted(schedule: Schedule) -> Schedule:
    """The row of a trigger that fires no more. It remembers how far it came, should it be published again."""
    return msgspec.structs.replace(schedule, cursor=Cursor(next_at=None, last_at=schedule.cursor.last_at))


def policies_of(schedule: Schedule) -> Policies:
    return _read_policies(schedule.policies)


def start_of(schedule: Schedule) -> Start:
    """The message of an instance that the schedule starts. A row may say itself how its start looks."""
    said = decode(schedule.spec).get("start")
    if said is None:
        return Start(input=given(schedule), trigger=schedule.activity_id)
    return Start(input=said.get("input") or {}, correlation_id=said.get("correlationId"))


def condition_of(schedule: Schedule) -> str | None:
    """What decides whether an occurrence starts something; None: each does."""
    said = decode(schedule.spec).get("start")
    return None if said is None else said.get("condition")


def given(schedule: Schedule) -> dict[str, Any]:
    """The input of an instance that the schedule starts, as Elsa gives it."""
    payload = cast("dict[str, Any]", decode(schedule.spec)["payload"])
    if schedule.anchor is not None:
        first = following(schedule, schedule.anchor)
        payload = {"startAt": None if first is None else first.isoformat(), **payload}
    return {name[:1].upper() + name[1:]: value for name, value in payload.items()}


def guard(schedule: Schedule) -> Activation | None:
    """What must be free for an occurrence to begin; None when occurrences may overlap."""
    if policies_of(schedule).overlap is Overlap.ALLOW:
        return None
    key = f"schedule:{schedule.id}"
    if len(key) > _LONGEST_KEY:
        key = f"schedule:{sha256(key.encode()).hexdigest()}"
    return Activation(key=key, looks=False)


def instance_id_of(schedule: Schedule, nominal: datetime) -> str:
    """The id of the instance that one occurrence starts: the same, however often it is tried."""
    return sha256(f"{schedule.id}@{nominal.astimezone(UTC).isoformat()}".encode()).hexdigest()[:40]


def following(schedule: Schedule, after: datetime) -> datetime | None:
    """The first occurrence after that instant; None when there is none."""
    return _recurrence_of(schedule).following(after)


def step(schedule: Schedule, now: datetime) -> Step | None:
    """What to do first about a schedule that is due; None when it is not.

    While its oldest occurrence is no later than `GRACE`, nothing was missed and each of them is fired.
    Else the policy says which one comes first, and those before it are let go with it.
    """
    due = schedule.cursor.next_at
    if due is None or due > now:
        return None
    policies, recurrence = policies_of(schedule), _recurrence_of(schedule)
    nominal, starts = due, True
    if now - due > GRACE:
        match policies.missed:
            case Missed.ALL:
                nominal = recurrence.first_of_latest(policies.missed_limit, due, now)
            case Missed.LAST:
                nominal = max(due, recurrence.latest(now) or due)
            case Missed.SKIP:
                nominal = max(due, recurrence.latest(now) or due)
                starts = now - nominal <= GRACE
    waiting = schedule.cursor.waiting
    then = Cursor(next_at=recurrence.following(nominal), last_at=nominal, waiting=waiting)
    if not starts or policies.overlap in (Overlap.ALLOW, Overlap.SKIP):
        return Step(nominal=nominal, starts=starts, then=then)
    joined = msgspec.structs.replace(then, waiting=_joined(waiting, nominal, policies))
    if waiting:  # nobody overtakes those who came first
        return Step(nominal=nominal, starts=False, then=joined)
    return Step(nominal=nominal, starts=True, then=then, if_refused=joined)


def waiting_step(schedule: Schedule) -> Step | None:
    """Try again to start the oldest occurrence that waits; None when none does."""
    was = schedule.cursor
    if not was.waiting:
        return None
    then = msgspec.structs.replace(was, waiting=was.waiting[1:])
    return Step(nominal=was.waiting[0], starts=True, then=then, if_refused=was)


def steps(schedule: Schedule, now: datetime) -> Iterator[Step]:
    """All that a due schedule comes to, as long as no start is refused."""
    while (first := step(schedule, now)) is not None:
        yield first
        schedule = msgspec.structs.replace(schedule, cursor=first.then)


def _joined(waiting: tuple[datetime, ...], nominal: datetime, policies: Policies) -> tuple[datetime, ...]:
    if policies.overlap is Overlap.CANCEL_PREVIOUS:
        return (nominal,)
    return (*waiting, nominal) if len(waiting) < policies.waiting_limit else waiting


def _recurrence_of(schedule: Schedule) -> Recurrence:
    return _recurrence(schedule.spec, schedule.zone, schedule.anchor)


@lru_cache(maxsize=1_000)
def _recurrence(spec: bytes, zone: str | None, anchor: datetime | None) -> Recurrence:
    read = decode(spec)
    payload = read["payload"]
    if anchor is not None:
        interval = parse_timespan(payload["interval"])
        if interval <= timedelta(0):
            raise ScheduleInvalid("The interval of a timer must be longer than nothing.")
        return Every(anchor, interval)
    if read["name"] == "Elsa.Cron":
        return ByCron(Cron(payload["cronExpression"]), zone)
    return Once(datetime.fromisoformat(payload["executeAt"]))


Choice = TypeVar("Choice", bound=StrEnum)

_MEMBERS = ("timeZone", "missed", "missedLimit", "overlap", "waitingLimit")


def _read_settings(settings: Mapping[str, Any]) -> tuple[str | None, Policies]:
    spelled = {name.lower(): name for name in _MEMBERS}
    for name in settings:
        if name.lower() not in spelled:
            raise ScheduleInvalid(f"A schedule has no setting {name!r}. It has {', '.join(_MEMBERS)}.")
    default = Policies()
    zone = member(settings, "timeZone")
    if zone is not None:
        check_zone(zone)
    return zone, Policies(
        missed=_choice(settings, "missed", default.missed),
        missed_limit=_limit(settings, "missedLimit", default.missed_limit),
        overlap=_choice(settings, "overlap", default.overlap),
        waiting_limit=_limit(settings, "waitingLimit", default.waiting_limit),
    )


def check_zone(zone: Any) -> None:
    """Raises ScheduleInvalid."""
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, TypeError, OSError) as problem:  # also for a folder of zones, or a path
        close = get_close_matches(str(zone)[:100], available_timezones(), n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise ScheduleInvalid(
            f"The time zone {zone!r} is unknown.{meant} Use an IANA name such as Europe/Vienna."
        ) from problem


def _choice(settings: Mapping[str, Any], name: str, default: Choice) -> Choice:
    value = member(settings, name)
    if value is None:
        return default
    kind = type(default)
    for known in kind:
        if str(value).lower() == known.value.lower():
            return known
    raise ScheduleInvalid(f"`{name}` cannot be {value!r}. Use one of {', '.join(kind)}.")


def _limit(settings: Mapping[str, Any], name: str, default: int) -> int:
    value = member(settings, name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_CAUGHT_UP:
        raise ScheduleInvalid(f"`{name}` cannot be {value!r}. Use a number from 1 to {MOST_CAUGHT_UP}.")
    return value


@lru_cache(maxsize=1_000)
def _read_policies(policies: bytes) -> Policies:
    return msgspec.json.decode(policies, type=Policies)
