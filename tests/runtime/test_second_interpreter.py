"""The runtime drives whatever has the few methods of `Program`: here a machine that counts.

It shares no code with the engine of definitions. It keeps each count by a checkpoint, waits for an
event, waits for a timer, has a drawn workflow do the rest, and ends with what that one gave.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.bookmark import Bookmark, key_of
from holdfast.clock import SystemClock
from holdfast.engine import Environment
from holdfast.errors import Unavailable
from holdfast.instance import Incident, Record, Status, SubStatus
from holdfast.message import Cancel, Continue, DoInBackground, Effect, Message, Resume, Start, StartChild
from holdfast.runtime.program import Checkpoint, Stoppable
from holdfast.runtime.view import Instance
from holdfast.store import Activation, InstanceFilter, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.opening import open_store
from tests.documents import document, event, literal, sequence, write
from tests.guarantees.bench import until

PAUSE = timedelta(milliseconds=20)
WORKER = document(
    sequence(
        event("answer"),
        {
            "id": "out",
            "type": "Elsa.SetOutput",
            "outputName": literal("Total"),
            "outputValue": literal(42),
        },
    ),
    id="worker-1",
    definitionId="worker",
    outputs=[{"name": "Total", "type": "Int32"}],
)
BOSS = document(
    sequence(
        {
            "id": "start",
            "type": "Elsa.DispatchWorkflow",
            "workflowDefinitionId": literal("countdown"),
            "input": literal({"from": 2}),
            "waitForCompletion": literal(True),
        },
        write("done"),
    ),
    id="boss-1",
    definitionId="boss",
)


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Where a countdown stands, with what lists, matching and parents ask of every state."""

    id: str
    definition_id: str
    version_id: str
    version: int
    left: int
    updated_at: datetime
    sub_status: SubStatus = SubStatus.EXECUTING
    finished_at: datetime | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    name: str | None = None
    output: Mapping[str, Any] = {}
    properties: Mapping[str, Any] = {}
    bookmarks: tuple[Bookmark, ...] = ()
    incidents: tuple[Incident, ...] = ()
    records: int = 0

    @property
    def status(self) -> Status:
        return self.sub_status.status

    @property
    def is_halfway(self) -> bool:
        return self.sub_status is SubStatus.EXECUTING


class Result(msgspec.Struct, frozen=True, kw_only=True):
    state: Count
    records: tuple[Record, ...] = ()
    effects: tuple[Effect, ...] = ()
    applied: bool = True


class Burst:
    stopping = False


class Countdown:
    """The interpreter. `counted` is what it did to the outside, in this process."""

    definition_id, version_id, version, background = "countdown", "countdown-1", 1, "Countdown.Background"

    def __init__(self) -> None:
        self.counted: list[int] = []

    def decode(self, state: bytes) -> Count:
        return msgspec.json.decode(state, type=Count)

    def encode(self, state: Count) -> bytes:
        return msgspec.json.encode(state)

    def variables(self, state: Count) -> dict[str, Any]:
        return {"left": state.left}

    def guards(self, correlation_id: str | None) -> tuple[Activation, ...]:
        return ()

    async def attempt(self, state: Count, task: DoInBackground, environment: Environment) -> Resume:
        raise AssertionError("it never asks for work in the background")

    async def burst(
        self,
        message: Message,
        *,
        environment: Environment,
        state: Count | None,
        instance_id: str,
        tenant: str,
        checkpoint: Checkpoint,
        on_begin: Callable[[Stoppable], None],
    ) -> Result:
        now = environment.clock.now()
        burst = Burst()
        on_begin(burst)
        match message:
            case Start():
                begun = self._begun(message, instance_id, now)
                return await self._count(begun, burst, environment, checkpoint)
            case Continue() if state is not None and state.is_halfway:
                return await self._count(state, burst, environment, checkpoint)
            case Cancel() if state is not None:
                return Result(state=_ended(state, SubStatus.CANCELLED, now))
            case Resume() if state is not None:
                hit = [b for b in state.bookmarks if message.bookmark_id == b.id or message.key == b.key]
                if hit:
                    return self._go_on(state, hit[0], message, now)
            case _:
                pass
        assert state is not None
        return Result(state=state, applied=False)

    def _begun(self, start: Start, instance_id: str, now: datetime) -> Count:
        return Count(
            id=instance_id,
            definition_id=self.definition_id,
            version_id=self.version_id,
            version=self.version,
            left=start.input["from"],
            updated_at=now,
            parent_id=start.parent_id,
            correlation_id=start.correlation_id,
            name=start.name,
            properties=start.properties,
        )

    async def _count(
        self, state: Count, burst: Burst, environment: Environment, checkpoint: Checkpoint
    ) -> Result:
        while state.left and not burst.stopping:
            await asyncio.sleep(0)
            self.counted.append(state.left)
            now = environment.clock.now()
            number = state.records + 1
            record = Record(number, "Counted", number, 0, 0, now, str(state.left))
            state = msgspec.structs.replace(state, left=state.left - 1, records=number, updated_at=now)
            await checkpoint(Result(state=state, records=(record,)))
        if state.left:
            return Result(state=state)
        return Result(state=_waiting(state, "Elsa.Event", {"eventName": "go"}, environment.clock.now()))

    def _go_on(self, state: Count, hit: Bookmark, message: Resume, now: datetime) -> Result:
        if hit.due is not None:
            child = f"{state.id}-c"
            waiting = _waiting(state, "Countdown.Child", {"child": child}, now)
            reply_to = waiting.bookmarks[0].key
            effect = StartChild(
                instance_id=child, definition_id="worker", parent_id=state.id, reply_to=reply_to
            )
            return Result(state=waiting, effects=(effect,))
        if hit.name == "Elsa.Event":
            return Result(state=_waiting(state, "Countdown.Pause", None, now, due=now + PAUSE))
        ended = _ended(state, SubStatus.FINISHED, now)
        return Result(state=msgspec.structs.replace(ended, output=message.input["WorkflowOutput"]))


def _waiting(state: Count, name: str, payload: Any, now: datetime, due: datetime | None = None) -> Count:
    bookmark = Bookmark(
        id=f"{state.id}-{name}",
        name=name,
        key=key_of(name, payload),
        activity_id=name,
        execution=1,
        created_at=now,
        due=due,
    )
    return msgspec.structs.replace(
        state, bookmarks=(bookmark,), sub_status=SubStatus.SUSPENDED, updated_at=now
    )


def _ended(state: Count, how: SubStatus, now: datetime) -> Count:
    return msgspec.structs.replace(state, bookmarks=(), sub_status=how, updated_at=now, finished_at=now)


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore(SystemClock())
        return
    opened = await open_store(f"sqlite:///{tmp_path / 'holdfast.db'}")
    yield opened
    await opened.close()


@pytest.fixture
def program() -> Countdown:
    return Countdown()


@pytest.fixture
async def holdfast(store: Store, program: Countdown) -> AsyncIterator[Holdfast]:
    async with Holdfast(store, definitions=[WORKER, BOSS], programs=[program]) as holdfast:
        yield holdfast


async def waits_at(holdfast: Holdfast, instance_id: str, name: str) -> Instance:
    async def is_there() -> bool:
        return [b.name for b in (await holdfast.instance(instance_id)).bookmarks] == [name]

    await until(is_there)
    return await holdfast.instance(instance_id)


async def finish(holdfast: Holdfast, instance_id: str) -> Instance:
    """From the event to the end: a timer, a child, and what the child is told."""
    sent = await holdfast.publish_event("go")
    assert sent.resumed == (instance_id,)
    await waits_at(holdfast, instance_id, "Countdown.Child")
    await waits_at(holdfast, f"{instance_id}-c", "Elsa.Event")
    await holdfast.publish_event("answer")
    return await holdfast.result(instance_id, timeout=10)


async def test_it_counts_waits_for_an_event_a_timer_and_a_drawn_child_and_ends(
    holdfast: Holdfast, program: Countdown
) -> None:
    waiting = await holdfast.run("countdown", input={"from": 3}, correlation_id="c-1", name="Three")
    assert (waiting.sub_status, waiting.variables) == (SubStatus.SUSPENDED, {"left": 0})
    assert (waiting.correlation_id, waiting.name) == ("c-1", "Three")
    assert program.counted == [3, 2, 1]
    ended = await finish(holdfast, waiting.id)
    assert (ended.sub_status, ended.output) == (SubStatus.FINISHED, {"Total": 42})
    children = await holdfast.instances(InstanceFilter(tenant="", parent_id=waiting.id))
    assert [child.columns.definition_id for child in children.items] == ["worker"]


async def test_every_count_is_a_commit_of_its_own(holdfast: Holdfast) -> None:
    waiting = await holdfast.run("countdown", input={"from": 3})
    assert waiting.revision == 4
    segments = await holdfast.store.journal_of("", waiting.id)
    assert [(segment.sequence, segment.records) for segment in segments] == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize(("is_written", "counted"), [(True, [3, 2, 1]), (False, [3, 2, 2, 1])])
async def test_after_a_checkpoint_that_nobody_confirmed_it_goes_on_from_what_is_stored(
    holdfast: Holdfast,
    program: Countdown,
    monkeypatch: pytest.MonkeyPatch,
    is_written: bool,
    counted: list[int],
) -> None:
    commit, seen = holdfast.store.commit, list[Any]()

    async def interrupted(commits: Any) -> Any:
        seen.append(commits)
        is_lost = len(seen) == 2
        if is_lost and not is_written:
            raise Unavailable("The connection was lost before it was written.")
        committed = await commit(commits)
        if is_lost:
            raise Unavailable("The connection was lost after it was written.")
        return committed

    monkeypatch.setattr(holdfast.store, "commit", interrupted)
    instance_id = await holdfast.dispatch("countdown", input={"from": 3})
    await waits_at(holdfast, instance_id, "Elsa.Event")
    assert program.counted == counted
    assert (await finish(holdfast, instance_id)).output == {"Total": 42}


async def test_another_node_with_a_program_of_its_own_carries_on(store: Store) -> None:
    async with Holdfast(store, definitions=[WORKER], programs=[Countdown()]) as first:
        instance_id = (await first.run("countdown", input={"from": 2})).id
    later = Countdown()
    async with Holdfast(store, programs=[later]) as second:
        ended = await finish(second, instance_id)
    assert (ended.output, later.counted) == ({"Total": 42}, [])


@pytest.mark.parametrize("at", ["Elsa.Event", "Countdown.Child"])
async def test_cancelled_it_ends_with_the_children_it_has(holdfast: Holdfast, at: str) -> None:
    instance_id = (await holdfast.run("countdown", input={"from": 1})).id
    if at == "Countdown.Child":
        await holdfast.publish_event("go")
    await waits_at(holdfast, instance_id, at)
    await holdfast.cancel(instance_id, "Nobody counts any more.")
    assert (await holdfast.result(instance_id, timeout=10)).sub_status is SubStatus.CANCELLED
    if at == "Countdown.Child":
        child = await holdfast.result(f"{instance_id}-c", timeout=10)
        assert child.sub_status is SubStatus.CANCELLED
    assert (await holdfast.publish_event("go")).hit == 0


async def test_cancelled_in_the_middle_of_counting_it_stops_before_the_next_count(
    holdfast: Holdfast, program: Countdown
) -> None:
    instance_id = await holdfast.dispatch("countdown", input={"from": 1_000_000})
    async with asyncio.timeout(10):
        while len(program.counted) < 5:
            await asyncio.sleep(0.001)
    await holdfast.cancel(instance_id)
    ended = await holdfast.result(instance_id, timeout=10)
    assert ended.sub_status is SubStatus.CANCELLED
    assert ended.variables == {"left": 1_000_000 - len(program.counted)}


async def test_a_drawn_workflow_has_it_as_a_child_and_hears_of_its_end(holdfast: Holdfast) -> None:
    boss = await holdfast.run("boss")
    children = await holdfast.instances(InstanceFilter(tenant="", parent_id=boss.id))
    (child,) = [summary.instance_id for summary in children.items]
    await waits_at(holdfast, child, "Elsa.Event")
    await finish(holdfast, child)
    assert (await holdfast.result(boss.id, timeout=10)).sub_status is SubStatus.FINISHED
