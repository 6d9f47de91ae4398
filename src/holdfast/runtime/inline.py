"""Children executed inside their parent's burst. Each is one more birth in the parent's commit.

It lives in its parent's shard, so that one commit may carry both. If it waits, it goes on as an
instance of its own.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import telemetry
from holdfast.authoring import ChildResult
from holdfast.codec import read_payload
from holdfast.commit import Birth
from holdfast.errors import NotFound
from holdfast.instance import Record, Status, SubStatus
from holdfast.message import Effect, StartChild
from holdfast.runtime.changes import columns_of, segments_of, tasks_of, timers_of, waits_of
from holdfast.runtime.children import child_start
from holdfast.runtime.coded import Coded
from holdfast.runtime.lifecycle import events_of_turn, executed_in, told_by
from holdfast.runtime.program import Result, Stoppable
from holdfast.runtime.spans import with_home
from holdfast.runtime.turn import CURRENT


class InlineChildren:
    """The port `Children`, for activities of the turn in which it is asked."""

    async def is_published(self, definition_id: str) -> bool:
        turn = CURRENT.get()
        try:
            with turn.asking():
                await turn.world.programs.published(turn.tenant, definition_id)
        except NotFound:
            return False
        return True

    async def execute(
        self,
        *,
        definition_id: str,
        instance_id: str,
        parent_id: str,
        input: Mapping[str, Any],  # noqa: A002  as the port has it
        correlation_id: str | None,
        reply_to: str | None,
    ) -> ChildResult:
        turn = CURRENT.get()
        effect = StartChild(
            instance_id=instance_id,
            definition_id=definition_id,
            parent_id=parent_id,
            input=input,
            correlation_id=correlation_id,
            reply_to=reply_to,
        )
        with turn.asking():
            program = await turn.world.programs.published(turn.tenant, definition_id)
        if program.guards(correlation_id) or isinstance(program, Coded):
            # One must ask before it begins, which it can only do once it is born; the other keeps each of
            # its steps before the next, which it cannot do inside another's turn.
            with turn.asking():
                await turn.consequences.start_child(effect)
            return ChildResult(
                instance_id=instance_id, status=Status.RUNNING, sub_status=SubStatus.PENDING, output={}
            )
        records: list[Record] = []
        effects: list[Effect] = []

        async def pass_on(result: Result) -> None:
            records.extend(result.records)
            effects.extend(result.effects)

        def begin(burst: Stoppable) -> None:
            pass  # its parent's burst is the one that can be stopped

        start = child_start(effect, turn.loaded.shard)
        result = await program.burst(
            start if telemetry.tracing is None else with_home(start, None),
            environment=turn.world.environment,
            state=None,
            instance_id=instance_id,
            tenant=turn.tenant,
            checkpoint=pass_on,
            on_begin=begin,
        )
        await pass_on(result)
        state = result.state
        with turn.asking():
            for number, asked in enumerate(effects):
                await turn.consequences.add(asked, f"{instance_id}-{number}")
        now = turn.world.environment.clock.now()
        turn.consequences.births.append(
            Birth(
                instance_id=instance_id,
                shard=turn.loaded.shard,
                columns=columns_of(state, now),
                state=program.encode(state),
                timers=timers_of(state.bookmarks),
                waits=waits_of(state.bookmarks),
                tasks=tasks_of(effects),
                journal=segments_of(records, program.version),
            )
        )
        if wanted := turn.world.listeners.wanted:
            turn.consequences.events += events_of_turn(
                None,
                state,
                (*executed_in(program, records, wanted), *told_by(None, state, effects)),
                tenant=turn.tenant,
                instance_id=instance_id,
                revision=1,
                wanted=wanted,
            )
        return ChildResult(
            instance_id=instance_id,
            status=state.status,
            sub_status=state.sub_status,
            output=read_payload(msgspec.to_builtins(state.output)),
        )
