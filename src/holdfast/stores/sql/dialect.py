"""What is done all the time, and so by each kind of database in its own way.

A `Dialect` tries to write a whole group in one transaction. When it cannot, because a key is taken or a
value does not fit, `commit` and `admit` here halve the group until the culprit is alone, so that its
bystanders are written. The dialects are `sqlite`, `postgresql` and `mariadb`; what is done rarely is
one code path for all, in the modules named after their subjects.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import groupby
from typing import ParamSpec, Protocol, TypeVar

from holdfast.commit import Commit, Delivery, Place
from holdfast.errors import Conflict, Unavailable
from holdfast.store import Admission, Admitted, Committed, Loaded, StaleTurn, Unwritable, Verdict
from holdfast.stores.sql.failures import TryAgain

P = ParamSpec("P")
T = TypeVar("T")

TRIES = 6
"""How often a transaction that others were in the way of is done; after that it is `Unavailable`."""

Outcome = Committed | StaleTurn


class Dialect(Protocol):
    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]: ...

    async def read(self, after: Sequence[Place], limit: int) -> list[Delivery]: ...

    async def due(self, shards: Sequence[int], until: datetime, limit: int) -> list[Delivery]: ...

    async def commit(self, commits: Sequence[Commit], shards: int) -> list[Outcome]:
        """Write those that are not stale, in one transaction. When it raises, nothing was written.

        Raises Conflict when a key that one of them wants to use is taken. No instance and no message in
        hand occurs in two of them.
        """
        ...

    async def admit(self, admissions: Sequence[Admission]) -> list[Admitted]:
        """Write all of them, in one transaction, or raise. Their guards do not look.

        Raises Conflict when an id, an activation or an idempotency key of one of them is taken.
        """
        ...

    async def forget_keys(self, limit: int) -> int:
        """Delete idempotency keys whose life is over, in one transaction; how many."""
        ...


async def again(ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Ask, and again while others are in the way; what was asked was taken back wholly then."""
    for attempt in range(1, TRIES):
        try:
            return await ask(*args, **kwargs)
        except TryAgain:
            await asyncio.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311  jitter is no secret
    return await ask(*args, **kwargs)


async def commit(dialect: Dialect, commits: Sequence[Commit], shards: int) -> list[Outcome]:
    """See `holdfast.store.Turns`."""
    outcomes: dict[int, Outcome] = {}
    instances: set[tuple[str, str]] = set()
    in_hand: set[Place] = set()
    chosen: list[int] = []
    for index, one in enumerate(commits):
        places = {message.place for message in one.in_hand if message.place is not None}
        if (one.tenant, one.instance_id) in instances:
            outcomes[index] = StaleTurn(one.instance_id, "another turn of it is in the same group")
        elif places & in_hand:
            outcomes[index] = StaleTurn(one.instance_id, "a message in hand is gone")
        else:
            instances.add((one.tenant, one.instance_id))
            in_hand |= places
            chosen.append(index)
    chosen.sort(key=lambda index: (commits[index].tenant, commits[index].instance_id))
    written = await _commit(dialect, [commits[index] for index in chosen], shards)
    outcomes.update(zip(chosen, written, strict=True))
    return [outcomes[index] for index in range(len(commits))]


async def _commit(dialect: Dialect, commits: Sequence[Commit], shards: int) -> list[Outcome]:
    if not commits:
        return []
    try:
        return await again(dialect.commit, commits, shards)
    except Unavailable:
        raise
    except Exception as error:  # whatever it is, it must reach the one turn that it is about
        if len(commits) > 1:
            middle = len(commits) // 2
            before = await _commit(dialect, commits[:middle], shards)
            return before + await _commit(dialect, commits[middle:], shards)
        return [await _refusal(dialect, commits[0], error)]


async def _refusal(dialect: Dialect, commit: Commit, error: Exception) -> StaleTurn:
    """A turn that came too late wants ids that the one before it took: that is not its fault."""
    if commit.change is not None:
        found = await dialect.load([(commit.tenant, commit.instance_id)])
        if not found or found[0].revision != commit.change.expects:
            return StaleTurn(commit.instance_id, "another turn was first")
    reason = (
        "an id it wants to use is taken" if isinstance(error, Conflict) else f"it cannot be written, {error}"
    )
    refusal = Unwritable(commit.instance_id, reason)
    refusal.__cause__ = error
    return refusal


async def admit(
    dialect: Dialect,
    admissions: Sequence[Admission],
    one_by_one: Callable[[Sequence[Admission]], Awaitable[list[Verdict]]],
) -> list[Verdict]:
    """See `holdfast.store.Intake`. Those for which somebody must look, and those whose key is taken, are
    asked about one by one."""
    verdicts: list[Verdict] = []
    for is_plain, some in groupby(admissions, key=_is_plain):
        run = list(some)
        verdicts += await (_admit(dialect, run, one_by_one) if is_plain else one_by_one(run))
    return verdicts


def _is_plain(admission: Admission) -> bool:
    return not any(guard.looks for guard in admission.activations)


async def _admit(
    dialect: Dialect,
    admissions: Sequence[Admission],
    one_by_one: Callable[[Sequence[Admission]], Awaitable[list[Verdict]]],
) -> list[Verdict]:
    try:
        return [*await again(dialect.admit, admissions)]
    except Conflict:
        if len(admissions) == 1:
            return await one_by_one(admissions)
    middle = len(admissions) // 2
    before = await _admit(dialect, admissions[:middle], one_by_one)
    return before + await _admit(dialect, admissions[middle:], one_by_one)
