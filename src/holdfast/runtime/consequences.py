"""What a turn causes elsewhere: children, messages to others, stimuli and whom they hit."""

from typing import TYPE_CHECKING

from holdfast.bookmark import Stimulus
from holdfast.commit import Birth, DeadLetter, Envelope, KeptStimulus
from holdfast.errors import NotFound
from holdfast.message import Cancel, Effect, Message, Order, Resume, Send, StartChild
from holdfast.runtime.changes import newborn
from holdfast.runtime.children import child_refused, child_start
from holdfast.runtime.letters import sealed
from holdfast.runtime.lifecycle import LifecycleEvent
from holdfast.runtime.matching import kept_of, look

if TYPE_CHECKING:
    from holdfast.runtime.turn import Turn


class Consequences:
    """Gathered until the next commit of the turn writes them."""

    def __init__(self, turn: "Turn") -> None:
        self._turn = turn
        self._world = turn.world
        self.births: list[Birth] = []
        self.messages: list[Envelope] = []
        self.kept: list[KeptStimulus] = []
        self.dead_letters: list[DeadLetter] = []
        self.events: list[LifecycleEvent] = []
        """What children that were executed inside the burst tell."""

    def send(self, message: Message | Order, instance_id: str, shard: int) -> None:
        self.messages.append(sealed(message, tenant=self._turn.tenant, instance_id=instance_id, shard=shard))

    async def add(self, effect: Effect, name: str) -> None:
        """What a burst asked for. `name` is unique among all turns."""
        match effect:
            case StartChild():
                await self.start_child(effect)
            case Send():
                await self._stimulate(effect.stimulus, name)
            case _:
                pass  # background work is a row of the commit; a task is handed over after it

    async def start_child(self, effect: StartChild) -> None:
        turn, shard = self._turn, self._turn.loaded.shard
        try:
            program = await self._world.programs.published(turn.tenant, effect.definition_id)
        except NotFound:  # retracted a moment ago
            if effect.parent_id is None:
                return
            refused = child_refused(effect.instance_id, effect.parent_id, effect.reply_to)
            self.send(Resume(key=refused.key, input=refused.input), effect.parent_id, shard)
            return
        birth = newborn(
            program,
            instance_id=effect.instance_id,
            shard=self._world.shards.of(turn.tenant, program.definition_id, effect.instance_id),
            now=self._world.environment.clock.now(),
            correlation_id=effect.correlation_id,
            parent_id=effect.parent_id,
        )
        self.births.append(birth)
        self.send(child_start(effect, shard), effect.instance_id, birth.shard)

    def cancel_newborn(self, reason: str | None) -> None:
        """Children that are born by a commit which cancels their parent."""
        for birth in self.births:
            if birth.columns.parent_id == self._turn.instance_id and birth.columns.finished_at is None:
                self.send(Cancel(reason=reason), birth.instance_id, birth.shard)

    async def _stimulate(self, stimulus: Stimulus, name: str) -> None:
        """The first look, before the commit. The second one comes after it, for what is kept."""
        found = await look(self._world, self._turn.tenant, stimulus, name)
        self.births += [start.birth for start in found.starts if start.birth is not None]
        self.messages += [start.message for start in found.starts]
        self.messages += found.messages
        if not found.messages and not found.starts:
            self.kept.append(kept_of(stimulus, self._turn.tenant, name, self._world.environment.clock.now()))

    def put_back(self, stimulus: KeptStimulus) -> None:
        self.kept.append(stimulus)

    def bury(self, message: Resume, name: str) -> None:
        """It went round too often."""
        turn = self._turn
        self.dead_letters.append(
            DeadLetter(
                id=name,
                envelope=sealed(
                    message, tenant=turn.tenant, instance_id=turn.instance_id, shard=turn.loaded.shard
                ),
                error="It was matched again and again, and nobody waited for it when its turn came.",
                attempts=message.tries,
                deaths=0,
                at=self._world.environment.clock.now(),
            )
        )
