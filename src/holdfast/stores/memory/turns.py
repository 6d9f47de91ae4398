"""Instances: loading them, and the commit of a group of turns."""

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.commit import CONTINUE, Birth, Commit, Delivery, Envelope, InHand, Place, Then
from holdfast.store import Attempt, Committed, Loaded, StaleTurn, Unwritable
from holdfast.stores.memory.tables import Key, Subject, Work


class MemoryTurns(Subject):
    async def load(self, keys: Sequence[tuple[str, str]]) -> list[Loaded]:
        instances = self._tables.instances
        return [instances[key] for key in keys if key in instances]

    async def shards(self, tenant: str, instance_ids: Sequence[str]) -> Mapping[str, int]:
        instances = self._tables.instances
        return {
            instance_id: instances[tenant, instance_id].shard
            for instance_id in instance_ids
            if (tenant, instance_id) in instances
        }

    async def commit(self, commits: Sequence[Commit]) -> list[Committed | StaleTurn]:
        seen: set[Key] = set()
        results: list[Committed | StaleTurn] = []
        for commit in commits:
            key = (commit.tenant, commit.instance_id)
            reason = "another turn of it is in the same group" if key in seen else self._objection(commit)
            seen.add(key)
            if reason is not None:
                results.append(StaleTurn(commit.instance_id, reason))
            elif any((commit.tenant, birth.instance_id) in self._tables.instances for birth in commit.births):
                results.append(Unwritable(commit.instance_id, "an id it wants to use is taken"))
            else:
                results.append(self._write(commit))
        return results

    def _objection(self, commit: Commit) -> str | None:
        """Why a commit is stale; None when it may be written."""
        change, instances = commit.change, self._tables.instances
        if change is not None:
            present = instances.get((commit.tenant, commit.instance_id))
            if present is None:
                return "it does not exist"
            if present.revision != change.expects:
                return f"it is at revision {present.revision}, the turn began at {change.expects}"
            if present.columns.finished_at is not None and not change.reopens and not commit.deletes:
                return "it has ended"
        for message in commit.in_hand:
            if not self._is_there(commit, message):
                return "a message in hand is gone"
        return None

    def _is_there(self, commit: Commit, message: InHand) -> bool:
        if message.place is not None:
            present = self._tables.inbox.get(message.place)
            return present is not None and message.kind in (None, present.envelope.kind)
        timers = self._tables.timers
        return message.timer is None or (commit.tenant, commit.instance_id, message.timer) in timers

    def _write(self, commit: Commit) -> Committed:
        tables = self._tables
        tenant, owner = commit.tenant, (commit.tenant, commit.instance_id)
        revision, shard = 1, commit.births[0].shard if commit.births else 0
        for birth in commit.births:
            tables.bear(tenant, birth, commit.turn)
            self._keep((tenant, birth.instance_id), birth.shard, birth)
        if commit.change is not None:
            change, revision, shard = commit.change, commit.change.expects + 1, commit.change.shard
            tables.instances[owner] = Loaded(
                tenant=tenant,
                instance_id=commit.instance_id,
                shard=change.shard,
                revision=revision,
                turn=commit.turn,
                columns=change.columns,
                state=change.state,
            )
        continued: Place | None = None
        for message in commit.in_hand:
            continued = self._settle(commit, message, shard) or continued
        if commit.deletes:
            self._delete(owner)
        else:
            self._withdraw(commit)
            self._keep(owner, shard, commit)
        self._send_records(commit, shard)
        places = tuple(tables.send(envelope) for envelope in commit.messages)
        return Committed(revision, places, continued)

    def _delete(self, owner: Key) -> None:
        """The instance and all that belongs to it. What lies in its inbox comes too late."""
        tables = self._tables
        del tables.instances[owner]
        tables.journal.pop(owner, None)
        for belongings in (tables.timers, tables.waits, tables.attempts, tables.activations):
            for key in list(belongings.by("instance", owner)):
                del belongings[key]  # type: ignore[arg-type]  # each table has keys of its own kind
        for key, stimulus in list(tables.stimuli.items()):
            if (stimulus.tenant, stimulus.instance_id) == owner:
                del tables.stimuli[key]

    def _withdraw(self, commit: Commit) -> None:
        """Timers, bookmarks, background work and activations that nobody wants any more."""
        tables, tenant, instance_id = self._tables, commit.tenant, commit.instance_id
        for timer_id in commit.timers_gone:
            tables.timers.pop((tenant, instance_id, timer_id), None)
        for wait_id in commit.waits_gone:
            tables.waits.pop((tenant, instance_id, wait_id), None)
        for execution in commit.tasks_gone:
            tables.attempts.pop((tenant, instance_id, execution), None)
        if commit.frees_activations:
            for key in list(tables.activations.by("instance", (tenant, instance_id))):
                del tables.activations[key]

    def _keep(self, owner: Key, shard: int, kept: Commit | Birth) -> None:
        """What an instance waits for, what is done for it in the background, and what happened to it."""
        tables, (tenant, instance_id) = self._tables, owner
        for timer in kept.timers:
            envelope = Envelope(
                tenant=tenant,
                instance_id=instance_id,
                shard=shard,
                kind=timer.kind,
                payload=timer.payload,
                trace=timer.trace,
            )
            delivery = Delivery(envelope=envelope, timer=timer.id, due=timer.due)
            tables.timers[tenant, instance_id, timer.id] = delivery
        for wait in kept.waits:
            tables.waits[tenant, instance_id, wait.id] = wait.key
        for task in kept.tasks:
            attempt = Attempt(
                tenant=tenant,
                instance_id=instance_id,
                execution=task.execution,
                shard=shard,
                number=0,
                payload=task.payload,
            )
            tables.attempts[tenant, instance_id, task.execution] = Work(attempt)
        if kept.journal:
            tables.journal.setdefault(owner, []).extend(kept.journal)

    def _send_records(self, commit: Commit, shard: int) -> None:
        """What the turn leaves for others: outbox, stimuli, dead letters, answers."""
        tables, tenant = self._tables, commit.tenant
        for outgoing in commit.outbox:
            tables.put_out(shard, tenant, commit.instance_id, outgoing)
        for stimulus in commit.put_back:
            tables.keep(stimulus)
        tables.dead_letters |= {letter.id: letter for letter in commit.dead_letters}
        for answer in commit.answers:
            asked = tables.asked.get((tenant, answer.key))
            if asked is not None:
                asked.answer = answer.body

    def _settle(self, commit: Commit, message: InHand, shard: int) -> Place | None:
        """What becomes of a message in hand; where it lies now, if it goes on as a `continue`."""
        tables, timer_key = self._tables, (commit.tenant, commit.instance_id, message.timer or "")
        if message.then is Then.CONSUME:
            if message.place is not None:
                del tables.inbox[message.place]
            elif message.timer is not None:
                del tables.timers[timer_key]
            return None
        if message.then is Then.KEEP:
            return None
        if message.place is not None:
            present = tables.inbox[message.place]
            tables.inbox[message.place] = Delivery(
                envelope=msgspec.structs.replace(present.envelope, kind=CONTINUE, payload=None),
                place=message.place,
                sent_at=present.sent_at,
            )
            return message.place
        tables.timers.pop(timer_key, None)
        return tables.send(
            Envelope(tenant=commit.tenant, instance_id=commit.instance_id, shard=shard, kind=CONTINUE)
        )
