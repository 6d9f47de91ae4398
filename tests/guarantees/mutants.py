"""Mistakes that somebody could make, each of which breaks one guarantee and must be found by its checks."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from holdfast.application import Holdfast
from holdfast.commit import Commit, Place, Then
from holdfast.engine.context import Context
from holdfast.runtime import turn, worker
from holdfast.runtime.drawn import Drawn
from holdfast.runtime.matching import Matching
from holdfast.runtime.membership import StoreClock
from holdfast.runtime.reception import Reception
from holdfast.runtime.turn import Turn
from holdfast.store import Admission, Admitted, Committed, StaleTurn, Verdict
from holdfast.stores.sql.store import SqlStore


class Mutant(NamedTuple):
    guarantee: int
    name: str
    plant: Callable[[], AbstractContextManager[Any]]


def _answers_before_commit() -> AbstractContextManager[Any]:
    async def admit(self: Reception, admission: Admission) -> Verdict:
        return Admitted(Place(0, 0, 0))

    return patch.object(Reception, "admit", admit)


def _takes_the_revision_at_the_end() -> AbstractContextManager[Any]:
    """A turn that proves nothing: whatever is there is what it began from, and no message is in hand."""
    commit = SqlStore.commit

    async def unproved(self: SqlStore, commits: list[Commit]) -> list[Committed | StaleTurn]:
        changed: list[Commit] = []
        for one in commits:
            found = await self.load([(one.tenant, one.instance_id)])
            change = one.change
            if change is not None and found:
                change = msgspec.structs.replace(change, expects=found[0].revision, reopens=True)
            changed.append(msgspec.structs.replace(one, change=change, in_hand=(), journal=()))
        return await commit(self, changed)

    return patch.object(SqlStore, "commit", unproved)


def _commits_in_two_steps() -> AbstractContextManager[Any]:
    commit = SqlStore.commit

    async def in_two_steps(self: SqlStore, commits: list[Commit]) -> list[Committed | StaleTurn]:
        first = [msgspec.structs.replace(one, births=(), messages=()) for one in commits]
        outcome = await commit(self, first)
        await commit(
            self, [msgspec.structs.replace(one, change=None, in_hand=(), journal=()) for one in commits]
        )
        return outcome

    return patch.object(SqlStore, "commit", in_two_steps)


def _keeps_the_message_at_a_checkpoint() -> AbstractContextManager[Any]:
    """The first checkpoint leaves the message as it was, to be applied again."""
    commit = SqlStore.commit

    async def keeping(self: SqlStore, commits: list[Commit]) -> list[Committed | StaleTurn]:
        kept = [
            msgspec.structs.replace(
                one,
                change=None
                if one.change is not None and any(hand.then is Then.CONTINUE for hand in one.in_hand)
                else one.change,
                in_hand=tuple(
                    msgspec.structs.replace(hand, then=Then.KEEP) if hand.then is Then.CONTINUE else hand
                    for hand in one.in_hand
                ),
            )
            for one in commits
        ]
        return await commit(self, kept)

    return patch.object(SqlStore, "commit", keeping)


def _draws_keys_by_lot() -> AbstractContextManager[Any]:
    numbers = iter(range(1_000_000))
    return patch.object(Context, "idempotency_key", property(lambda _: f"key {next(numbers)}"))


def _runs_ahead_of_the_database() -> AbstractContextManager[Any]:
    now = StoreClock.now
    return patch.object(StoreClock, "now", lambda self: now(self) + timedelta(seconds=30))


def _forgets_the_cursor_at_a_publication() -> AbstractContextManager[Any]:
    return patch("holdfast.runtime.entrances.renewed", lambda found, before, now: found)


def _looks_once() -> AbstractContextManager[Any]:
    async def nothing(*_: Any, **__: Any) -> int:
        return 0

    stack = ExitStack()
    stack.enter_context(patch.object(Matching, "look_for", nothing))
    stack.enter_context(patch.object(Matching, "look_again", nothing))
    stack.enter_context(patch.object(Matching, "sweep", nothing))
    return stack


def _forgets_the_key() -> AbstractContextManager[Any]:
    start_of = Reception.start_of

    def keyless(self: Reception, *given: Any, **more: Any) -> Admission:
        return msgspec.structs.replace(start_of(self, *given, **more), key=None)

    return patch.object(Reception, "start_of", keyless)


def _guards_nothing() -> AbstractContextManager[Any]:
    return patch.object(Drawn, "guards", lambda *_: ())


def _goes_on_after_the_end() -> AbstractContextManager[Any]:
    change = Turn._change

    def reopening(self: Turn) -> Any:
        made = change(self)
        return None if made is None else msgspec.structs.replace(made, reopens=True)

    stack = ExitStack()
    stack.enter_context(patch.object(Turn, "_has_ended", property(lambda _: False)))
    stack.enter_context(patch.object(Turn, "_change", reopening))
    return stack


def _tries_for_ever() -> AbstractContextManager[Any]:
    return patch.object(worker, "ATTEMPTS", 1_000_000)


def _knows_one_tenant() -> AbstractContextManager[Any]:
    return patch.object(Holdfast, "_tenant", lambda *_: "acme")


def _sets_no_timers() -> AbstractContextManager[Any]:
    return patch.object(turn, "timers_of", lambda _: ())


MUTANTS = [
    Mutant(1, "answers before the commit", _answers_before_commit),
    Mutant(2, "proves neither revision nor messages", _takes_the_revision_at_the_end),
    Mutant(3, "commits in two steps", _commits_in_two_steps),
    Mutant(4, "applies a message again after its checkpoint", _keeps_the_message_at_a_checkpoint),
    Mutant(5, "draws idempotency keys by lot", _draws_keys_by_lot),
    Mutant(6, "runs ahead of the database's clock", _runs_ahead_of_the_database),
    Mutant(6, "forgets the schedule's cursor at a publication", _forgets_the_cursor_at_a_publication),
    Mutant(7, "looks for a match only once", _looks_once),
    Mutant(8, "forgets the idempotency key", _forgets_the_key),
    Mutant(9, "asks no activation strategy", _guards_nothing),
    Mutant(10, "goes on after the end", _goes_on_after_the_end),
    Mutant(11, "tries for ever", _tries_for_ever),
    Mutant(12, "knows one tenant only", _knows_one_tenant),
    Mutant(13, "sets no timers", _sets_no_timers),
]
