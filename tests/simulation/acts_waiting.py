"""Acts about callers and words: starting, waiting, keys, addresses."""

import asyncio

from holdfast.commit import Lane
from holdfast.message import Cancel
from holdfast.store import KeyReused
from tests.simulation.acts import Act
from tests.simulation.watched import claim
from tests.simulation.workflows import word


class Orders(Act):
    """Checkpoints, a timer, an event that may come first, and a caller who waits."""

    async def play(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.random.choice([1, 2])):
                tasks.create_task(self._order(f"order-{number}"))
            tasks.create_task(self._run())

    async def _order(self, name: str) -> None:
        if self.random.random() < 0.3:
            await self.say("go", self.token, instance_id=name, key=f"go-{name}")
            await self.dispatch("order", name)
        else:
            await self.dispatch("order", name)
            await self.linger(4.0)
            await self.say("go", self.token, instance_id=name, key=f"go-{name}")

    async def _run(self) -> None:
        answer = await self.once(
            lambda node: node.run_through(self.tenant, "quick", instance_id="quick", Token=self.token)
        )
        if answer is not None:
            row = self.row("quick")
            claim(
                row.columns.sub_status == "Finished", "run answered while quick was", row.columns.sub_status
            )

    async def check(self) -> None:
        for number in range(2):
            if (self.tenant, f"order-{number}") in self.store.tables.instances:
                self.expect(f"order-{number}", "Finished", "first", "second", "go", "third")
        if (self.tenant, "quick") in self.store.tables.instances:
            self.expect("quick", "Finished", "only")


class Keys(Act):
    """Several callers, one key: one instance, and everybody is told the same."""

    async def play(self) -> None:
        self.told: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(self._ask())
        await self._ask_otherwise()

    async def _ask(self) -> None:
        await self.linger(1.0)
        self.told.add(
            await self.surely(lambda node: node.dispatch(self.tenant, "short", key="one", Token=self.token))
        )

    async def _ask_otherwise(self) -> None:
        try:
            told = await self.once(lambda node: node.dispatch(self.tenant, "short", key="one", Token="other"))
        except KeyReused:
            return
        claim(told is None, "another request under the same key was accepted")

    async def check(self) -> None:
        claim(len(self.told) == 1, "one key, several instances:", self.told)
        for instance_id in self.told:
            self.expect(instance_id, "Finished", "after")


class Short(Act):
    """Nothing but a timer, some of it in the bulk lane."""

    async def play(self) -> None:
        for number in range(3):
            lane = self.random.choice([Lane.ORDINARY, Lane.BULK])
            await self.dispatch("short", f"short-{number}", lane=lane)

    async def check(self) -> None:
        for number in range(3):
            self.expect(f"short-{number}", "Finished", "after")


class Listening(Act):
    """A loop that waits for the same again and again, and words that come in bunches."""

    async def play(self) -> None:
        self.name = self.random.choice(["listener-b", "listener-d", "listener-e", "listener-f"])
        self.said: list[str] = []
        self.shouted: list[str] = []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._begin())
            for number in range(self.random.choice([3, 5])):
                tasks.create_task(self._say(number))

    async def _begin(self) -> None:
        await self.linger(3.0)
        await self.dispatch("listener", self.name, correlation_id="radio")
        self.open.add(self.name)

    async def _say(self, number: int) -> None:
        said = f"{self.token}-{number}"
        await self.linger(3.0)
        kind = self.random.random()
        if kind < 0.4:
            await self.say("ping", said, instance_id=self.name)
        elif kind < 0.8:
            await self.say("ping", said, correlation_id="radio")
        else:
            await self.once(lambda node: node.send(self.tenant, word("ping", said)))
            self.shouted.append(said)
            return
        self.said.append(said)

    async def check(self) -> None:
        heard = [said for _, said in self.steps(self.name)]
        claim(len(heard) == len(set(heard)), "heard twice:", heard)
        claim(set(heard) <= {*self.said, *self.shouted}, "heard", heard, "of", self.said)
        missing = set(self.said) - set(heard)
        claim(not missing, "never heard:", sorted(missing))


class Mixing(Act):
    """Timers and words for one instance, side by side."""

    async def play(self) -> None:
        self.name = self.random.choice(["mixed-b", "mixed-d", "mixed-e", "mixed-f"])
        await self.dispatch("mixed", self.name)
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(self._tick(number))

    async def _tick(self, number: int) -> None:
        await self.linger(2.0)
        await self.say("tick", self.token, instance_id=self.name, key=f"tick-{number}")

    async def check(self) -> None:
        row = self.row(self.name)
        claim(row.columns.sub_status == "Finished", "mixed is", row.columns.sub_status)
        claim(sorted(self.done(self.name)) == ["one", "three", *["tick"] * 3, "two"], self.done(self.name))


class Moving(Act):
    """A word for a correlation that the instance only has later."""

    async def play(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.dispatch("moving", "moving"))
            tasks.create_task(self._say("letter", "new-address"))
            tasks.create_task(self._say("move", "old-address"))

    async def _say(self, subject: str, correlation_id: str) -> None:
        await self.linger(3.0)
        await self.say(subject, self.token, correlation_id=correlation_id)

    async def check(self) -> None:
        row = self.row("moving")
        claim(row.columns.sub_status == "Finished", "moving is", row.columns.sub_status)
        claim(sorted(self.done("moving")) == ["letter", "move", "settled"], "moving did", self.done("moving"))


class Addressed(Act):
    """A word for one instance, which ends meanwhile, is nobody else's."""

    async def play(self) -> None:
        await self.dispatch("order", "other")
        await self.dispatch("order", "addressed")
        await self.linger(1.0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.say("go", "not yours", instance_id="addressed", key="addressed"))
            tasks.create_task(self._cancel())

    async def _cancel(self) -> None:
        await self.linger(2.0)
        await self.surely(lambda node: node.tell(self.tenant, "addressed", Cancel()))

    async def finish(self) -> None:
        await asyncio.sleep(3.0)
        await self.say("go", self.token, instance_id="other", key="other")

    async def check(self) -> None:
        self.expect("other", "Finished", "first", "second", "go", "third")
        claim(self.row("addressed").columns.finished_at is not None, "addressed goes on")


class Entering(Act):
    """Each word starts one instance."""

    async def play(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(2):
                for _ in range(self.random.choice([1, 2])):
                    tasks.create_task(self._knock(number))

    async def _knock(self, number: int) -> None:
        await self.linger(2.0)
        await self.say("knock", f"{self.token}-{number}")

    async def check(self) -> None:
        found = [self.steps(row.instance_id) for row in self.instances_of("entered")]
        heard = sorted(steps[0][1] for steps in found if steps)
        claim(heard == [f"{self.token}-0", f"{self.token}-1"], "entered:", heard)
        for row in self.instances_of("entered"):
            claim(self.done(row.instance_id) == ["knock", "inside"], "did", self.done(row.instance_id))
