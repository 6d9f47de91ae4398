"""Nodes that all believe they own everything, die at any moment, and still do nothing twice.

There are no leases here: every node takes every turn it sees. Correctness rests on the two checks of
the commit alone, so a store without one of them must be found out; the last tests plant that.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast
from unittest.mock import patch

import pytest

from holdfast.activities.events import event as happened
from holdfast.codec import encode_payload, read_payload
from holdfast.commit import Commit, KeptStimulus, Lane, Place
from holdfast.engine import decode_state
from holdfast.errors import Unavailable
from holdfast.store import StaleTurn
from holdfast.stores.memory import MemoryStore
from holdfast.testing import Host
from holdfast.testing.simulation import Simulation, run_seeds, simulate
from tests.documents import document, event, literal, sequence, variable
from tests.runtime.driver import SHARDS, TENANT, Driver

INSTANCES = [f"order-{n}" for n in range(3)]
NODES = ["a", "b", "c"]


def plus_one(name: str) -> dict[str, Any]:
    value = {"typeName": "Object", "expression": {"type": "Python", "value": "variables.Count + 1"}}
    return {"id": name, "type": "Elsa.SetVariable", "variable": {"id": "count"}, "value": value}


ORDER = document(
    sequence(
        plus_one("first"),
        {"id": "delay", "type": "Elsa.Delay", "timeSpan": literal("00:00:01")},
        plus_one("second"),
        event("go"),
        plus_one("third"),
    ),
    variables=[variable("Count", "Int32", "0")],
    options={"commitStrategyName": "ActivityExecuted"},
)
HOST = Host()
HOST.definitions.provide(ORDER)
"""Definitions are compiled once; time is each simulation's own."""


class Unreliable:
    """A store at the end of a bad line: slow, sometimes away, and nodes die while they talk to it."""

    def __init__(self, simulation: Simulation, store: MemoryStore) -> None:
        self._simulation = simulation
        self._store = store
        self.written: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        async def talk(*given: Any) -> Any:
            simulation = self._simulation
            await simulation.pause()
            if simulation.current is not None and simulation.chance(0.01):
                await simulation.die()
            if simulation.chance(0.01):
                raise Unavailable("no answer, and nothing was done")
            answer = await call(*given)
            if name == "commit":
                self._note(given[0], answer)
            await simulation.pause()
            if simulation.current is not None and simulation.chance(0.01):
                await simulation.die()
            if simulation.chance(0.01):
                raise Unavailable("no answer, but it was done")
            return answer

        return talk

    def _note(self, commits: list[Commit], outcomes: list[Any]) -> None:
        for commit, outcome in zip(commits, outcomes, strict=True):
            if not isinstance(outcome, StaleTurn) and commit.change is not None:
                self.written.append((commit.instance_id, commit.turn))


async def story(simulation: Simulation) -> None:
    clock = simulation.clock_for("database")
    store = MemoryStore(clock)
    line = Unreliable(simulation, store)
    host = Host(clock=cast("Any", clock))
    host.definitions = HOST.definitions
    quiet = Driver(store, host)
    for name in INSTANCES:
        await quiet.dispatch("test", name)
        await send_go(simulation, store, host, name)

    async def node() -> None:
        driver = Driver(cast("Any", line), host)
        while True:
            try:
                await driver.settle()
                await driver.look(happened("go").key)
            except (StaleTurn, Unavailable):
                pass  # somebody else was first, or nobody knows: look again
            await simulation.pause()

    for name in NODES:
        simulation.start(name, node())
    for _ in range(2000):
        for name in NODES:
            if not simulation.is_alive(name):
                simulation.start(name, node())
        if [await quiet.status(i) for i in INSTANCES] == ["Finished"] * len(INSTANCES):
            break
        await simulation.pause()
    await check(simulation, store, line)


async def send_go(simulation: Simulation, store: MemoryStore, host: Host, instance_id: str) -> None:
    await store.keep(
        KeptStimulus(
            id=f"go-{instance_id}",
            tenant=TENANT,
            key=happened("go").key,
            payload=encode_payload({}),
            expires=host.clock.now() + timedelta(days=1),
            instance_id=instance_id,
        )
    )


async def check(simulation: Simulation, store: MemoryStore, line: Unreliable) -> None:
    """Everything ended, every step counted once, no turn was written twice, nothing is left over."""
    for loaded in await store.load([(TENANT, name) for name in INSTANCES]):
        assert loaded.columns.sub_status == "Finished", f"{loaded.instance_id} is {loaded.columns.sub_status}"
        state = decode_state(loaded.state or b"")
        assert read_payload(state.frames[0].variables["count"]) == 3, loaded.instance_id
        turns = [turn for instance_id, turn in line.written if instance_id == loaded.instance_id]
        assert loaded.revision == len(turns), "a turn was written twice"
    lanes = [Place(shard, lane, 0) for shard in range(SHARDS) for lane in Lane]
    assert await store.read(lanes, 10) == []
    assert await store.due(range(SHARDS), simulation.now() + timedelta(days=9), 10) == []


def test_whatever_dies_when_every_step_counts_once() -> None:
    failures = run_seeds(story, range(150))
    assert not failures, f"seed {failures[0].seed}: {failures[0].error!r}"


def test_a_seed_replays_exactly() -> None:
    first, second = simulate(story, 7), simulate(story, 7)
    assert (first.trace, first.steps, first.seconds) == (second.trace, second.steps, second.seconds)


def without_revision_check(self: MemoryStore, commit: Commit) -> str | None:
    """A store that takes every turn whose messages are still there."""
    missing = [m for m in commit.in_hand if not self._is_there(commit, m)]
    return "a message in hand is gone" if missing else None


def without_row_check(self: MemoryStore, commit: Commit, message: Any) -> bool:
    """A store that believes every message to be still there."""
    return True


def without_kind_check(self: MemoryStore, commit: Commit, message: Any) -> bool:
    """A store that takes a continue for the message it was before."""
    return message.place is None or message.place in self._tables.inbox


@pytest.mark.parametrize(
    ("member", "mistake"),
    [
        ("_objection", without_revision_check),
        ("_is_there", without_row_check),
        ("_is_there", without_kind_check),
    ],
)
def test_a_store_that_does_not_check_is_found_out(member: str, mistake: Callable[..., Any]) -> None:
    with patch.object(MemoryStore, member, mistake):
        assert any(simulate_fails(seed) for seed in range(300))


def simulate_fails(seed: int) -> bool:
    return bool(run_seeds(story, [seed]))
