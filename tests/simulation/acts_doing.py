"""Acts about what instances do: children, background work, guards, pauses, schedules, and what kills."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from typing import Any

from holdfast import store
from holdfast.definitions.versions import DefinitionNotFound
from holdfast.errors import Conflict
from holdfast.message import Cancel, Pause, Unpause
from holdfast.runtime.gate import TENANT, definition_scope
from holdfast.runtime.reception import StartRefused
from holdfast.testing.simulation import BEGINNING
from tests.simulation.acts import Act
from tests.simulation.watched import claim
from tests.simulation.workflows import DOCUMENTS, SCHEDULED


class Families(Act):
    """Children sent away and children executed inside, each waited for."""

    async def play(self) -> None:
        await self.dispatch("parent", "parent")
        await self.dispatch("host", "host")

    async def check(self) -> None:
        for name in ("parent", "host"):
            self.expect(name, "Finished", "before", "heard")
            children = self.children_of(name)
            claim(len(children) == 1, name, "has", len(children), "children")
            claim(
                self.done(children[0].instance_id) == ["born", "grown"],
                "child did",
                self.steps(children[0].instance_id),
            )


class Cancelling(Act):
    """Whoever is cancelled takes its children with it, also one that is just being born."""

    async def play(self) -> None:
        await self.dispatch("fertile", "fertile")
        await self.linger(1.5)
        await self.surely(lambda node: node.tell(self.tenant, "fertile", Cancel()))

    async def check(self) -> None:
        status = self.row("fertile").columns.sub_status
        claim(status == "Cancelled", "fertile is", status)
        for row in self.children_of("fertile"):
            claim(row.columns.sub_status == "Cancelled", "a child is", row.columns.sub_status)


class Labour(Act):
    """Work outside the turn comes back once, or not at all when nobody wants it any more."""

    async def play(self) -> None:
        for number in range(2):
            await self.dispatch("laborious", f"laborious-{number}")
        await self.dispatch("laborious", "unwanted")
        await self.linger(1.0)
        await self.surely(lambda node: node.tell(self.tenant, "unwanted", Cancel()))

    async def check(self) -> None:
        for number in range(2):
            self.expect(f"laborious-{number}", "Finished", "before", "heard")
        claim(self.row("unwanted").columns.finished_at is not None, "unwanted goes on")


class Guarded(Act):
    """One at a time, whoever asks: a caller, a parent, a word."""

    async def play(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(self._ask("single", f"single-{number}", None))
            for number in range(3):
                tasks.create_task(self._ask("paired", f"paired-{number}", f"pair-{number % 2}"))
            for number in range(2):
                tasks.create_task(self.dispatch("guardian", f"guardian-{number}"))
                tasks.create_task(self._ring(number))

    async def _ask(self, definition_id: str, name: str, correlation_id: str | None) -> bool:
        await self.linger(2.0)
        with suppress(StartRefused):
            await self.surely(
                lambda node: node.dispatch(
                    self.tenant, definition_id, key=name, correlation_id=correlation_id, Token=self.token
                )
            )
            return True
        return False

    async def _ring(self, number: int) -> None:
        await self.linger(2.0)
        if self.random.random() < 0.5:
            await self.say("bell", f"{self.token}-{number}")
        else:
            await self.dispatch("ringer", f"ringer-{number}")

    async def finish(self) -> None:
        for second in range(60):
            await asyncio.sleep(1.0)
            if await self._ask("single", f"last-{second}", None):
                return
        claim(False, "nobody may begin any more")

    async def check(self) -> None:
        for definition_id in ("single", "paired", "knocked", "guardian"):
            rows = self.instances_of(definition_id)
            claim(rows != [], "nobody ever began", definition_id)
            for row in rows:
                claim(row.columns.sub_status == "Finished", row.instance_id, "is", row.columns.sub_status)
        for row in self.instances_of("single"):
            claim(self.done(row.instance_id) == ["before", "heard"], "did", self.steps(row.instance_id))


class Pausing(Act):
    """What is paused stands still, and goes on afterwards as if nothing had been."""

    async def play(self) -> None:
        await self.dispatch("short", "paused")
        await self.surely(lambda node: node.tell(self.tenant, "paused", Pause()))
        scope = self.random.choice([TENANT, definition_scope("order")])
        paused = store.Pause(tenant=self.tenant, scope=scope, since=self.simulation.now())
        await self.surely(lambda node: node.store.pause(paused))
        await self.dispatch("order", "held")
        await self.say("go", self.token, instance_id="held", key="held")
        await self.linger(4.0)
        await self.surely(lambda node: node.store.lift(self.tenant, scope))

    async def finish(self) -> None:
        for _ in range(12):  # only what is told at one node is heard in its order
            await self.surely(lambda node: node.tell(self.tenant, "paused", Unpause()))
            await asyncio.sleep(4.0)
            if self.row("paused").columns.finished_at is not None:
                return

    async def check(self) -> None:
        self.expect("paused", "Finished", "after")
        self.expect("held", "Finished", "first", "second", "go", "third")


class Poisoned(Act):
    """A message whose turn raises is tried again, and at last becomes a dead letter."""

    async def play(self) -> None:
        self.names = ["poisoned"]
        self.stage.poison[self.tenant, "poisoned"] = self.random.choice([1, 2, 3, 99])
        await self.dispatch(self.random.choice(["quick", "short"]), "poisoned")
        await self.linger(0.5)
        await self.dispatch("quick", "bystander")

    async def finish(self) -> None:
        for _ in range(120):
            if self.row("poisoned").columns.finished_at is not None:
                return
            letters = await self.store.dead_letters(self.tenant, instance_id="poisoned")
            for letter in letters.items:
                status = self.row("poisoned").columns.sub_status
                claim(status == "Interrupted", "its message is a dead letter, and it is", status)
                self.stage.poison[self.tenant, "poisoned"] = 0
                await self.store.replay(self.tenant, letter.id)
            await asyncio.sleep(1.0)
        claim(False, "poisoned is neither done nor among the dead letters")

    async def check(self) -> None:
        row = self.row("poisoned")
        claim(row.columns.sub_status == "Finished", "poisoned is", row.columns.sub_status)
        claim(self.done("poisoned") in (["only"], ["after"]), "poisoned did", self.done("poisoned"))
        self.expect("bystander", "Finished", "only")


class Killing(Act):
    """A message that kills whoever handles it kills three, not everybody."""

    async def play(self) -> None:
        self.deadly = self.random.choice([1, 2, 99])
        self.stage.killers[self.tenant, "killer"] = self.deadly
        await self.dispatch("quick", "killer")
        await self.dispatch("short", "survivor")

    async def finish(self) -> None:
        for _ in range(120):
            if self.row("killer").columns.finished_at is not None:
                return
            for letter in (await self.store.dead_letters(self.tenant, instance_id="killer")).items:
                self.stage.killers[self.tenant, "killer"] = 0
                await self.store.replay(self.tenant, letter.id)
            await asyncio.sleep(1.0)
        claim(False, "killer is neither done nor among the dead letters")

    async def check(self) -> None:
        self.expect("killer", "Finished", "only")
        self.expect("survivor", "Finished", "after")
        used = self.deadly - self.stage.killers.get((self.tenant, "killer"), 0)
        claim(self.deadly != 99 or used == 99, "it killed", used)


class Scheduled(Act):
    """Each occurrence once and in time, before and after the definition is published again."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.schedules = (self.random.choice(list(SCHEDULED)),)

    async def play(self) -> None:
        for _ in range(self.random.choice([1, 2])):
            await asyncio.sleep(self.random.uniform(1.0, 5.0))
            await self._publish_again(self.schedules[0])

    async def _publish_again(self, name: str) -> None:
        written = next(one for one in DOCUMENTS if one["definitionId"] == name)
        again = {**written, "name": f"{name} {self.random.random()}"}
        try:
            await self.once(lambda node: node.publishing.import_draft(self.tenant, again))
            await self.once(lambda node: node.publishing.publish(self.tenant, name))
        except Conflict:
            pass  # it fired all the time meanwhile

    async def finish(self) -> None:
        (one,) = await self.store.schedules(self.tenant)
        waited, calm = one.cursor.waiting, self.simulation.now()
        for _ in range(60):
            (one,) = await self.store.schedules(self.tenant)
            if (one.cursor.last_at or BEGINNING) > calm and not set(waited) & set(one.cursor.waiting):
                break
            await asyncio.sleep(1.0)
        else:
            claim(False, one.definition_id, "stands still at", one.cursor)
        await self._retract(self.schedules[0])

    async def _retract(self, name: str) -> None:
        while True:
            try:
                await self.surely(lambda node: node.publishing.retract(self.tenant, name))
            except Conflict:
                continue
            except DefinitionNotFound:
                pass  # retracted, and the answer was lost
            return

    async def check(self) -> None:
        for one in await self.store.schedules(self.tenant, self.schedules[0]):
            fired = sorted(at for (name, at) in self.store.firings if name == one.id)
            claim(fired != [], one.id, "never fired")
            interval = timedelta(seconds=SCHEDULED[one.definition_id])
            claim(all((at - BEGINNING) % interval == timedelta() for at in fired), one.id, "fired at", fired)
            if one.definition_id == "steady":
                gaps = [after - before for before, after in pairwise(fired)]
                claim(all(gap == interval for gap in gaps), one.id, "missed some of", fired)
        for name in self.schedules:
            for row in self.instances_of(name):
                done = self.done(row.instance_id)
                is_over = row.columns.sub_status == "Cancelled" or done == ["ran"]
                claim(is_over, row.instance_id, "of", name, "is", row.columns.sub_status, done)
