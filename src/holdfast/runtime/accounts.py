"""What is counted and logged of turns, after their commits.

A line in the log is for what somebody may want to act on; it carries tenant, definition, instance and turn
as fields. How turns went is counted for all of them, with a few additions each.
"""

import logging

from holdfast.commit import Commit, DeadLetter, Delivery
from holdfast.instance import SubStatus
from holdfast.runtime.world import World
from holdfast.store import Committed, Loaded, StaleTurn

_log = logging.getLogger("holdfast")

# By identity: an enumeration's hash is Python code, and this is asked for every turn.
_PENDING, _EXECUTING, _CANCELLED = SubStatus.PENDING, SubStatus.EXECUTING, SubStatus.CANCELLED
_RESTS = (
    (SubStatus.FINISHED, ("instances", "completed")),
    (SubStatus.SUSPENDED, ("instances", "suspended")),
    (SubStatus.FAULTED, ("instances", "faulted")),
    (SubStatus.CANCELLED, ("instances", "cancelled")),
)


async def measure(world: World, *, shards: int, turns: int) -> None:
    """Look at what is not counted but there: how much waits, and how much is under way."""
    depth = await world.store.depth()
    oldest = min((sent_at for _, _, sent_at in depth if sent_at is not None), default=None)
    lag = 0.0 if oldest is None else (world.environment.clock.now() - oldest).total_seconds()
    world.figures.gauges |= {
        ("inbox_messages", ""): sum(waiting for _, waiting, _ in depth),
        ("inbox_lag_seconds", ""): max(0.0, lag),
        ("shards", ""): shards,
        ("turns_under_way", ""): turns,
    }


def turn_began(world: World, delivery: Delivery) -> None:
    """With a timer."""
    if delivery.due is not None:
        late = (world.environment.clock.now() - delivery.due).total_seconds()
        world.figures.histogram("timer_lateness_seconds").observe(max(0.0, late))


def turn_settled(world: World, loaded: Loaded, commit: Commit, committed: Committed, changed: bool) -> None:
    """`changed` says whether its last commit changed the state; one before it did for sure."""
    counters = world.figures.counters
    counters["turns", "settled"] += 1
    for birth in commit.births:
        if birth.state is not None:
            counters["instances", "started"] += 1
            _count(world, birth.columns.sub_status)
    if commit.change is None or commit.deletes:
        return
    was, now = loaded.columns.sub_status, commit.change.columns.sub_status
    if not changed and committed.revision == loaded.revision + 1 and was is now:
        return
    if was is _PENDING:
        if commit.change.state is not None:
            counters["instances", "started"] += 1
    elif now is not _CANCELLED and was is not _EXECUTING:
        counters["instances", "resumed"] += 1
    _count(world, now)


def _count(world: World, now: SubStatus) -> None:
    for rest, key in _RESTS:
        if now is rest:
            world.figures.counters[key] += 1
            return


def turn_late(world: World, key: tuple[str, str], late: StaleTurn) -> None:
    """Another node was first, or a message is gone: this one was not the owner any more, or had doubts."""
    world.figures.count("turns", "stale")
    _log.info("%s", late, extra={"tenant": key[0], "instance": key[1]})


def turn_raised(world: World, key: tuple[str, str], error: Exception, attempts: int) -> None:
    world.figures.count("turns", "raised")
    _log.warning(
        "A turn of instance %s raised, at attempt %d: %s",
        key[1],
        attempts,
        error,
        extra={"tenant": key[0], "instance": key[1]},
    )


def buried(world: World, loaded: Loaded, letter: DeadLetter) -> None:
    """A message became a dead letter."""
    world.figures.count("dead_letters")
    world.figures.count("instances", "interrupted")
    _log.error(
        "A message of the kind %s for instance %s became a dead letter: %s",
        letter.envelope.kind,
        loaded.instance_id,
        letter.error,
        extra={
            "tenant": loaded.tenant,
            "definition": loaded.columns.definition_id,
            "instance": loaded.instance_id,
            "turn": letter.id,
        },
    )
