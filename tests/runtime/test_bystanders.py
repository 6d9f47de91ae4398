"""Who was near when a process died: counted with care, and never in the way of others."""

from datetime import UTC, datetime
from typing import Any

from holdfast.clock import SystemClock
from holdfast.commit import Delivery, Envelope, KeptStimulus, Lane, Place
from holdfast.runtime.lines import ALONE, Lines
from holdfast.runtime.matching import Matching
from holdfast.runtime.reader import Reader
from holdfast.store import Waiting


def delivery(instance_id: str, seq: int, *, shard: int = 1, deaths: int = 0) -> Delivery:
    envelope = Envelope(tenant="", instance_id=instance_id, shard=shard, kind="resume")
    return Delivery(envelope=envelope, place=Place(shard, Lane.ORDINARY, seq), deaths=deaths)


async def test_a_line_that_is_dropped_before_it_ran_alone_stops_nobody() -> None:
    lines = Lines()
    lines.add(delivery("suspect", 1, shard=1, deaths=ALONE))
    lines.drop_shard(1)
    lines.add(delivery("other", 2, shard=2))
    line = await lines.next()
    assert line.key == ("", "other")


async def test_one_that_may_be_deadly_runs_while_nothing_else_does() -> None:
    lines = Lines()
    lines.add(delivery("suspect", 1, deaths=ALONE))
    lines.add(delivery("other", 2))
    line = await lines.next()
    assert (line.key, lines.busy) == (("", "suspect"), 1)
    line.take(1)
    lines.done(line)
    assert (await lines.next()).key == ("", "other")


class Inbox:
    """What lies in one shard, and how often a death was counted for each message."""

    def __init__(self, *deliveries: Delivery) -> None:
        self._deliveries = list(deliveries)
        self.counted: list[str] = []

    async def read(self, after: Any, limit: int) -> list[Delivery]:
        return [
            one for one in self._deliveries if one.place is not None and one.place.shard == after[0].shard
        ]

    async def due(self, *_: Any) -> list[Delivery]:
        return []

    async def count_deaths(self, deliveries: Any) -> list[Delivery]:
        self.counted += [one.envelope.instance_id for one in deliveries]
        return list(deliveries)


def reader_of(inbox: Any, lines: Lines) -> Reader:
    return Reader(inbox, lines, SystemClock(), slots=8, monotonic=lambda: 1000.0)


async def test_a_takeover_makes_suspects_and_convicts_nobody() -> None:
    inbox, lines = Inbox(delivery("fresh", 1), delivery("suspect", 2, deaths=ALONE)), Lines()
    reader = reader_of(inbox, lines)
    reader.take(1, carefully=True)
    await reader.look(everywhere=True)
    assert inbox.counted == ["fresh"]
    assert len(lines) == 2


async def test_wake_ups_for_a_shard_that_went_away_leave_the_reader_in_peace() -> None:
    reader = reader_of(Inbox(), Lines())
    reader.take(1, carefully=False)
    await reader.look(everywhere=True)
    reader.hint(Place(1, Lane.ORDINARY, 7))
    reader.drop(1)
    assert not reader._has_work()


async def test_many_under_one_key_are_looked_up_once() -> None:
    """An event's key is its name: a thousand orders wait for `paid` under the same one."""

    class Store:
        looks = 0
        paired: tuple[str, ...] = ()

        async def kept(self, *_: Any) -> list[KeptStimulus]:
            return [stimulus(number) for number in range(100)]

        async def find(self, *_: Any) -> tuple[list[Any], list[Waiting]]:
            self.looks += 1
            return [], [Waiting("i7", 1, "b7", "order-7")]

        async def pair(self, tenant: str, stimulus_id: str, messages: Any) -> list[Place]:
            self.paired += (stimulus_id,)
            return [Place(1, 1, 1) for _ in messages]

    class World:
        store = Store()

    class Courier:
        def deliver(self, *_: Any) -> None:
            """Nobody is there to hear of it."""

    matching = Matching(World(), Courier())  # type: ignore[arg-type]
    assert await matching.look_for("", ["k"]) == 1
    assert (World.store.looks, World.store.paired) == (1, ("s7",))


def stimulus(number: int) -> KeptStimulus:
    return KeptStimulus(
        id=f"s{number}",
        tenant="",
        key="k",
        payload=b"{}",
        expires=datetime(2099, 1, 1, tzinfo=UTC),
        correlation_id=f"order-{number}",
    )
