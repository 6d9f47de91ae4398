"""Requests from outside: durable when it answers, and answered once per idempotency key.

Requests that arrive while others are being written share the next transaction, as commits do.
"""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.bookmark import Stimulus
from holdfast.clock import Ids
from holdfast.codec import encode_payload
from holdfast.commit import Lane
from holdfast.errors import Conflict, HoldfastError, Invalid, Unavailable
from holdfast.message import Message, Order, Start
from holdfast.runtime.changes import newborn
from holdfast.runtime.courier import Courier
from holdfast.runtime.letters import WAKES, sealed
from holdfast.runtime.matching import Matching, kept_of, look
from holdfast.runtime.program import Program
from holdfast.runtime.results import InstanceNotFound
from holdfast.runtime.spans import spanned
from holdfast.runtime.world import World
from holdfast.store import (
    Admission,
    Admitted,
    InstanceExists,
    KeyReused,
    Posting,
    Refused,
    Repeated,
    Verdict,
)

MOST = 300
"""Requests in one transaction."""
TOGETHER = 2
"""Transactions under way."""
LONGEST_ID = 64
TRIES = 5
"""How often a request whose outcome is unknown is asked again, under the same names."""

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")


class StartRefused(Conflict):
    """An activation strategy allows no further instance now."""

    code = "start.refused"

    def __init__(self, definition_id: str, instance_id: str) -> None:
        super().__init__(
            f"No further instance of {definition_id!r} may start while {instance_id!r} is open: its "
            f"activation strategy says so. Wait for it to end, or cancel it."
        )
        self.instance_id = instance_id


class Sent(msgspec.Struct, frozen=True):
    """Whom a stimulus reached at once. It is kept for later when it reached nobody."""

    started: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()

    @property
    def hit(self) -> int:
        return len(self.started) + len(self.resumed)


def check_id(value: str, what: str) -> str:
    """An id that a caller brings. Raises Invalid."""
    if not value or len(value) > LONGEST_ID or not _SAFE.issuperset(value):
        raise Invalid(
            f"The {what} {value[:80]!r} is not usable: 1 to {LONGEST_ID} characters, letters, digits and "
            f"'-', '_', '.', '~' only."
        )
    return value


class Reception:
    def __init__(self, world: World, courier: Courier, matching: Matching, ids: Ids) -> None:
        self._world = world
        self._courier = courier
        self._matching = matching
        self._ids = ids
        self._pending: list[tuple[Admission, asyncio.Future[Verdict]]] = []
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(TOGETHER):
                tasks.create_task(self._admit_groups())

    async def _admit_groups(self) -> None:
        while True:
            group, self._pending = self._pending[:MOST], self._pending[MOST:]
            if not group:
                self._news.clear()
                await self._news.wait()
            else:
                await self._answer(group)

    async def _answer(self, group: Sequence[tuple[Admission, asyncio.Future[Verdict]]]) -> None:
        try:
            verdicts = await self._admit([admission for admission, _ in group])
        except Exception as error:  # whatever it was, those who wait must hear of it
            if len(group) > 1 and not isinstance(error, Unavailable):
                for one in group:  # only the one that it is about
                    await self._answer([one])
                return
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), verdict in zip(group, verdicts, strict=True):
            if not answer.done():
                answer.set_result(verdict)

    async def _admit(self, admissions: Sequence[Admission]) -> list[Verdict]:
        with self._courier.expecting(admissions):
            verdicts = await self._world.store.admit(admissions)
            for admission, verdict in zip(admissions, verdicts, strict=True):
                if isinstance(verdict, Admitted):
                    self._courier.deliver_admitted(admission, verdict.place)
        return verdicts

    async def admit(self, admission: Admission) -> Verdict:
        """Durable when it returns. Asked again while nobody knows: the names make it one request."""
        is_named = admission.birth is not None or admission.key is not None
        for attempt in range(TRIES if is_named else 1):
            answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
            self._pending.append((admission, answer))
            self._news.set()
            try:
                verdict = await answer
            except Unavailable:
                if attempt + 1 == (TRIES if is_named else 1):
                    raise
                await asyncio.sleep(0.05 * 2**attempt)
                continue
            if attempt and isinstance(verdict, InstanceExists) and await self._is_ours(admission):
                # From the time before. Its message is read from where it lies.
                return Repeated(admission.message.instance_id, None)
            return verdict
        raise Unavailable("The store did not answer.")

    async def _is_ours(self, admission: Admission) -> bool:
        """Whether the instance that exists was born by this very request, or bears the id by chance."""
        birth = admission.birth
        found = await self._world.store.load([(admission.message.tenant, admission.message.instance_id)])
        return birth is not None and bool(found) and found[0].columns.created_at == birth.columns.created_at

    # --- starts -----------------------------------------------------------------------------------

    @spanned("dispatch")
    async def start(
        self,
        program: Program,
        start: Start,
        *,
        tenant: str,
        instance_id: str | None = None,
        key: str | None = None,
        lane: Lane = Lane.ORDINARY,
        reply: str | None = None,
        trace: str | None = None,
    ) -> str:
        """The id of the instance that will start, or did under the same key before.

        Raises StartRefused, KeyReused, InstanceExists.
        """
        admission = self.start_of(
            program,
            start,
            tenant=tenant,
            instance_id=instance_id,
            key=key,
            lane=lane,
            reply=reply,
            trace=trace,
        )
        verdict = await self.admit(admission)
        return _started(program, admission, verdict)

    @spanned("dispatch")
    async def start_many(
        self, program: Program, starts: Sequence[Start], *, tenant: str
    ) -> list[str | HoldfastError]:
        """All of them in one transaction, in a lane of its own, so that they delay nobody."""
        admissions = [self.start_of(program, one, tenant=tenant, lane=Lane.BULK) for one in starts]
        verdicts = await self._admit(admissions)
        outcomes: list[str | HoldfastError] = []
        for admission, verdict in zip(admissions, verdicts, strict=True):
            try:
                outcomes.append(_started(program, admission, verdict))
            except HoldfastError as refused:
                outcomes.append(refused)
        return outcomes

    def start_of(
        self,
        program: Program,
        start: Start,
        *,
        tenant: str,
        instance_id: str | None = None,
        key: str | None = None,
        lane: Lane = Lane.ORDINARY,
        reply: str | None = None,
        trace: str | None = None,
    ) -> Admission:
        """A start, ready to be admitted."""
        name = self._ids.new() if instance_id is None else check_id(instance_id, "instance id")
        shard = self._world.shards.of(tenant, program.definition_id, name)
        if reply == WAKES and self._courier.owns(shard):
            reply = None  # whoever waits here hears of the commit itself
        message = sealed(
            start, tenant=tenant, instance_id=name, shard=shard, lane=lane, reply=reply, trace=trace
        )
        self._world.sizes.check(start, message.payload)
        return Admission(
            message=message,
            birth=newborn(
                program,
                instance_id=name,
                shard=shard,
                now=self._world.environment.clock.now(),
                correlation_id=start.correlation_id,
                parent_id=start.parent_id,
                name=start.name,
            ),
            key=key,
            request=digest(program.definition_id, start, instance_id) if key is not None else b"",
            activations=program.guards(start.correlation_id),
        )

    # --- messages and stimuli ---------------------------------------------------------------------

    @spanned("send")
    async def tell(
        self,
        message: Message | Order,
        *,
        tenant: str,
        instance_id: str,
        key: str | None = None,
        lane: Lane | None = None,
        reply: str | None = None,
    ) -> None:
        """Send a message to one instance. Raises InstanceNotFound, KeyReused."""
        shards = await self._world.store.shards(tenant, [instance_id])
        if instance_id not in shards:
            raise InstanceNotFound(instance_id)
        envelope = sealed(
            message,
            tenant=tenant,
            instance_id=instance_id,
            shard=shards[instance_id],
            lane=lane,
            reply=key or reply,
        )
        self._world.sizes.check(message, envelope.payload)
        admission = Admission(
            message=envelope, key=key, request=digest(instance_id, message, None) if key else b""
        )
        verdict = await self.admit(admission)
        if isinstance(verdict, KeyReused):
            raise verdict

    @spanned("send")
    async def send(self, stimulus: Stimulus, *, tenant: str, key: str | None = None) -> Sent:
        """Bring a stimulus to whoever waits for it, or keep it for whoever will. Raises KeyReused."""
        self._world.sizes.check_value("payload", stimulus.payload)
        self._world.sizes.check_value("input", stimulus.input)
        name = self._ids.new()
        found = await look(self._world, tenant, stimulus, name)
        is_kept = not found.messages and not found.starts
        sent = Sent(
            tuple(start.message.instance_id for start in found.starts),
            tuple(message.instance_id for message in found.messages),
        )
        posting = Posting(
            tenant=tenant,
            starts=found.starts,
            messages=found.messages,
            keep=kept_of(stimulus, tenant, name, self._world.environment.clock.now()) if is_kept else None,
            key=key,
            request=digest(stimulus.key, stimulus, None) if key else b"",
            answer=msgspec.json.encode(sent),
        )
        outcome = await self._world.store.post(posting)
        if isinstance(outcome, KeyReused):
            raise outcome
        if isinstance(outcome, Repeated):
            before = msgspec.json.decode(outcome.answer or b"{}", type=Sent)
            if not before.hit:
                # Whoever sent it first may have died before looking again.
                await self._matching.look_for(tenant, [stimulus.key])
            return before
        self._courier.deliver(found.messages, outcome.places)
        admitted = [
            (start.message, verdict.place)
            for start, verdict in zip(found.starts, outcome.verdicts, strict=True)
            if isinstance(verdict, Admitted)
        ]
        self._courier.deliver([message for message, _ in admitted], [place for _, place in admitted])
        if posting.keep is not None:
            # Somebody may have begun to wait between our look and our commit: look again, after it.
            await self._matching.look_again(posting.keep)
        return Sent(tuple(message.instance_id for message, _ in admitted), sent.resumed)


def _started(program: Program, admission: Admission, verdict: Verdict) -> str:
    match verdict:
        case Refused(instance_id=holder):
            raise StartRefused(program.definition_id, holder)
        case KeyReused() | InstanceExists():
            raise verdict
        case Repeated(instance_id=first):
            return first
        case Admitted():
            return admission.message.instance_id


def digest(subject: str, message: Any, instance_id: str | None) -> bytes:
    """What was asked, so that a repetition is told from another request under the same key."""
    fields: Mapping[str, Any] = msgspec.structs.asdict(message)
    return sha256(encode_payload([subject, instance_id, dict(fields)])).digest()
