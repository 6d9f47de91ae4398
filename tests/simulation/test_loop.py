"""The world in which the runtime is simulated: its time, its order, its deaths, its repeatability."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.clock import Clock, Ids
from holdfast.errors import Invalid, NotFound
from holdfast.testing.simulation import (
    Deadlock,
    Endless,
    Entry,
    Failure,
    NotSimulated,
    Simulation,
    run_seeds,
    simulate,
)

ROOT = Path(__file__).parents[2]


def words(trace: list[Entry]) -> list[str]:
    return [entry.words for entry in trace]


# Time and order


def test_a_year_passes_in_no_time() -> None:
    async def story(simulation: Simulation) -> float:
        before = simulation.now()
        await asyncio.sleep(365 * 24 * 3600)
        assert simulation.now() - before == timedelta(days=365)
        return asyncio.get_running_loop().time()

    played = simulate(story, 1)
    assert played.value == played.seconds == 365 * 24 * 3600


def test_ready_callbacks_run_in_the_order_they_became_ready() -> None:
    async def story(simulation: Simulation) -> None:
        loop = asyncio.get_running_loop()
        for number in range(5):
            loop.call_soon(simulation.note, number)
        loop.call_later(0, simulation.note, "no delay")
        loop.call_soon_threadsafe(simulation.note, "from no thread")
        await asyncio.sleep(0)

    assert words(simulate(story, 1).trace) == ["0", "1", "2", "3", "4", "no delay", "from no thread"]


def test_timers_of_one_instant_run_in_the_order_they_were_set() -> None:
    async def story(simulation: Simulation) -> None:
        loop = asyncio.get_running_loop()
        for number in (3, 1, 2):
            loop.call_at(10, simulation.note, number)
        loop.call_at(5, simulation.note, "early")
        loop.call_at(7, simulation.note, "cancelled").cancel()
        await asyncio.sleep(20)

    assert simulate(story, 1).trace == [
        (5, "story", "early"),
        (10, "story", "3"),
        (10, "story", "1"),
        (10, "story", "2"),
    ]


def test_cancelled_timers_are_not_kept_until_they_are_due() -> None:
    async def story(simulation: Simulation) -> int:
        for _ in range(5000):
            async with asyncio.timeout(1e6):
                await asyncio.sleep(0.001)
        return len(simulation.loop._timers)

    played = simulate(story, 1)
    assert played.value < 300
    assert played.seconds < 6


def test_the_clock_of_a_node_may_go_wrong() -> None:
    async def story(simulation: Simulation) -> None:
        right: Clock = simulation.clock_for("a")
        wrong = simulation.clock_for("b")
        wrong.skew = timedelta(seconds=-30)
        assert simulation.clock_for("b") is wrong
        due = right.now() + timedelta(seconds=10)
        await right.sleep_until(due)
        assert right.now() == simulation.now() == due
        await wrong.sleep_until(due)
        assert wrong.now() == due
        assert simulation.now() == due + timedelta(seconds=30)

    simulate(story, 1)


# What asyncio offers


def test_a_task_group_waits_for_all_and_cancels_the_others_when_one_fails() -> None:
    async def work(simulation: Simulation, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
            if seconds == 2:
                raise ValueError("two")
            simulation.note(seconds)
        except asyncio.CancelledError:
            simulation.note("cancelled", seconds)
            raise

    async def story(simulation: Simulation) -> None:
        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for seconds in (1, 2, 3, 4):
                    group.create_task(work(simulation, seconds))

    played = simulate(story, 1)
    assert sorted(words(played.trace)) == ["1", "cancelled 3", "cancelled 4"]
    assert played.seconds == 2


def test_timeouts_end_what_takes_too_long() -> None:
    async def story(simulation: Simulation) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(50)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 5)
        assert await asyncio.wait_for(asyncio.sleep(1, "done"), 5) == "done"

    assert simulate(story, 1).seconds == 11


def test_queues_events_locks_and_conditions_work() -> None:
    async def story(simulation: Simulation) -> list[int]:
        queue: asyncio.Queue[int] = asyncio.Queue(2)
        go, lock, turn = asyncio.Event(), asyncio.Lock(), asyncio.Condition()
        got: list[int] = []

        async def consume() -> None:
            await go.wait()
            while len(got) < 6:
                number = await queue.get()
                async with lock:
                    await asyncio.sleep(0.1)
                    got.append(number)
                async with turn:
                    turn.notify_all()

        async with asyncio.TaskGroup() as group:
            group.create_task(consume())
            asyncio.get_running_loop().call_later(1, go.set)
            for number in range(6):
                await queue.put(number)
            async with turn:
                await turn.wait_for(lambda: len(got) == 6)
        return got

    assert simulate(story, 1).value == [0, 1, 2, 3, 4, 5]


def test_gather_shield_wait_and_cancellation_work() -> None:
    async def story(simulation: Simulation) -> None:
        assert await asyncio.gather(asyncio.sleep(2, "a"), asyncio.sleep(1, "b")) == ["a", "b"]
        async with asyncio.TaskGroup() as group:
            inner = group.create_task(asyncio.sleep(5, "kept"))
            outer = asyncio.shield(inner)
            outer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await outer
            assert await inner == "kept"
            slow, quick = group.create_task(asyncio.sleep(9)), group.create_task(asyncio.sleep(1))
            done, pending = await asyncio.wait({slow, quick}, return_when=asyncio.FIRST_COMPLETED)
            assert (done, pending) == ({quick}, {slow})
            slow.cancel()
        assert slow.cancelled()

    simulate(story, 1)


def test_executors_are_called_in_place_and_answer_a_step_later() -> None:
    async def story(simulation: Simulation) -> None:
        loop = asyncio.get_running_loop()
        called: list[int] = []
        future = loop.run_in_executor(None, called.append, 1)
        assert called == [1]
        assert not future.done()
        await future
        assert await asyncio.to_thread(lambda: simulation.now().year) == 2026
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)

    simulate(story, 1)


def test_generators_left_half_way_are_closed() -> None:
    async def story(simulation: Simulation) -> None:
        async def numbers(name: str) -> AsyncIterator[int]:
            try:
                for number in range(3):
                    yield number
            finally:
                await asyncio.sleep(1)
                simulation.note("closed", name)

        async for _ in numbers("dropped"):
            break
        await asyncio.sleep(2)
        simulation.note("ends")
        global kept
        kept = numbers("kept")
        await anext(kept)

    assert words(simulate(story, 1).trace) == ["closed dropped", "ends", "closed kept"]


kept: AsyncIterator[int]


def test_what_is_not_simulated_is_refused() -> None:
    async def story(simulation: Simulation) -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(NotSimulated, match="add_signal_handler"):
            loop.add_signal_handler(signal.SIGTERM, lambda: None)
        with pytest.raises(NotSimulated, match="no create_connection"):
            await asyncio.open_connection("localhost", 80)
        with pytest.raises(NotSimulated, match="subprocess_exec"):
            await asyncio.create_subprocess_exec("true")

    simulate(story, 1)


# How it ends


def test_at_the_end_the_living_are_cancelled_and_may_clean_up() -> None:
    async def serve(simulation: Simulation) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(1)
            simulation.note("cleaned up")

    async def story(simulation: Simulation) -> str:
        simulation.start("a", serve(simulation))
        await asyncio.sleep(1)
        return "told"

    played = simulate(story, 1)
    assert played.value == "told"
    assert played.trace == [(2, "a", "cleaned up")]
    assert played.seconds == 1


def test_a_deadlock_names_who_waits_and_where() -> None:
    async def wait_for_godot() -> None:
        await asyncio.Event().wait()

    async def story(simulation: Simulation) -> None:
        simulation.start("a", wait_for_godot()).set_name("estragon")
        await asyncio.sleep(3)
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match=r"at 3\.0+ s") as caught:
        simulate(story, 7)
    assert "estragon of node a in Event.wait" in str(caught.value)
    assert "seed 7" in caught.value.__notes__[0]


def test_a_story_without_end_is_ended() -> None:
    async def story(simulation: Simulation) -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Endless, match="after 1000 steps"):
        simulate(story, 1, steps=1000)


def test_what_the_story_raises_comes_out_with_its_seed() -> None:
    async def story(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong") as caught:
        simulate(story, 42)
    assert "seed 42" in caught.value.__notes__[0]


def test_an_error_that_nobody_sees_fails_the_simulation() -> None:
    async def fail() -> None:
        raise ValueError("unseen")

    async def in_a_task(simulation: Simulation) -> None:
        simulation.start("a", fail())
        await asyncio.sleep(1)

    async def in_a_callback(simulation: Simulation) -> None:
        asyncio.get_running_loop().call_soon(int, "unseen")
        await asyncio.sleep(1)

    async def behind_a_deadlock(simulation: Simulation) -> None:
        simulation.start("a", fail())
        await asyncio.Event().wait()

    for story in (in_a_task, in_a_callback):
        with pytest.raises(ValueError, match="unseen"):
            simulate(story, 1)
    with pytest.raises(Deadlock) as caught:
        simulate(behind_a_deadlock, 1)
    assert any("unseen" in note for note in caught.value.__notes__)


# Nodes


async def beat(simulation: Simulation) -> None:
    try:
        while True:
            simulation.note("beat")
            await asyncio.sleep(1)
    finally:
        simulation.note("finally")


def test_a_killed_node_does_nothing_more_and_the_others_go_on() -> None:
    async def story(simulation: Simulation) -> None:
        simulation.start("a", beat(simulation))
        simulation.start("b", beat(simulation))
        await asyncio.sleep(1.5)
        simulation.kill("a")
        assert not simulation.is_alive("a")
        await asyncio.sleep(2)

    assert [(entry.node, entry.words) for entry in simulate(story, 1).trace] == [
        *[("a", "beat"), ("b", "beat")] * 2,
        *[("b", "beat")] * 2,
        ("b", "finally"),
    ]


def test_descendants_belong_to_the_node_of_their_parent() -> None:
    async def parent(simulation: Simulation) -> None:
        assert simulation.current == "a"
        asyncio.get_running_loop().call_later(5, simulation.note, "timer")
        async with asyncio.TaskGroup() as group:
            group.create_task(beat(simulation))

    async def story(simulation: Simulation) -> None:
        simulation.start("a", parent(simulation))
        assert simulation.current is None
        await asyncio.sleep(0.5)
        simulation.kill("a")
        await asyncio.sleep(10)

    assert words(simulate(story, 1).trace) == ["beat"]


def test_no_line_of_the_dead_runs_however_it_is_suspended() -> None:
    ran: list[str] = []

    @contextmanager
    def managed() -> Iterator[None]:
        try:
            yield
        finally:
            ran.append("context manager")

    @asynccontextmanager
    async def managed_async() -> AsyncIterator[None]:
        try:
            yield
        finally:
            ran.append("asynchronous context manager")

    def plain() -> Iterator[int]:
        try:
            yield 1
        finally:
            ran.append("generator")

    async def waits() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ran.append("coroutine")

    async def numbers() -> AsyncIterator[int]:
        try:
            await waits()
            yield 1
        finally:
            ran.append("asynchronous generator")

    async def node() -> None:
        try:
            with managed():
                async with managed_async(), AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                    stack.enter_context(managed())
                    await stack.enter_async_context(managed_async())
                    group.create_task(waits())
                    for _ in plain():
                        try:
                            async for _ in numbers():
                                pass
                        except BaseException:
                            ran.append("except")
                            raise
        finally:
            ran.append("finally")

    async def story(simulation: Simulation) -> None:
        simulation.start("a", node())
        await asyncio.sleep(1)
        simulation.start("a", waits())  # and one that does not even begin
        simulation.kill("a")
        await asyncio.sleep(5000)

    simulate(story, 1)
    gc.collect()
    assert ran == []


def test_what_others_await_from_the_dead_never_comes() -> None:
    async def story(simulation: Simulation) -> None:
        answer = simulation.start("a", beat(simulation))
        await asyncio.sleep(0.5)
        simulation.kill("a")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(50):
                await asyncio.shield(answer)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answer, 50)

    played = simulate(story, 1)
    assert (played.seconds, words(played.trace)) == (100.5, ["beat"])

    async def waits_for_ever(simulation: Simulation) -> None:
        answer = simulation.start("a", asyncio.sleep(2, "answer"))
        simulation.kill("a")
        await answer

    with pytest.raises(Deadlock, match=r"of node a \(dead\)"):
        simulate(waits_for_ever, 1)


def test_a_node_that_kills_itself_goes_on_to_its_next_await_and_no_further() -> None:
    async def node(simulation: Simulation, handed_over: asyncio.Future[str]) -> None:
        try:
            simulation.kill("a")
            simulation.note("still here")
            handed_over.set_result("last words")
            await asyncio.sleep(0)
            simulation.note("never")
        finally:
            simulation.note("finally")

    async def story(simulation: Simulation) -> str:
        handed_over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        simulation.start("a", node(simulation, handed_over))
        return await handed_over

    played = simulate(story, 1)
    assert (played.value, words(played.trace)) == ("last words", ["still here"])


def test_a_node_may_die_on_the_spot() -> None:
    async def node(simulation: Simulation) -> None:
        try:
            await simulation.die()
        finally:
            simulation.note("finally")

    async def story(simulation: Simulation) -> None:
        simulation.start("a", node(simulation))
        await asyncio.sleep(1)
        assert not simulation.is_alive("a")
        with pytest.raises(Invalid):
            await simulation.die()

    assert simulate(story, 1).trace == []


def test_a_dead_node_may_begin_a_new_life_under_its_name() -> None:
    async def story(simulation: Simulation) -> None:
        simulation.start("a", beat(simulation))
        await asyncio.sleep(0.5)
        simulation.kill("a")
        await asyncio.sleep(5)
        simulation.start("a", beat(simulation))
        assert simulation.is_alive("a")
        await asyncio.sleep(1.5)

    assert [(entry.at, entry.words) for entry in simulate(story, 1).trace] == [
        (0, "beat"),
        (5.5, "beat"),
        (6.5, "beat"),
        (7, "finally"),
    ]


def test_a_frozen_node_goes_on_later_where_it_was() -> None:
    async def story(simulation: Simulation) -> None:
        simulation.start("a", beat(simulation))
        simulation.start("b", beat(simulation))
        await asyncio.sleep(0.5)
        simulation.freeze("a", 10)
        simulation.freeze("a", 3)
        await asyncio.sleep(12)
        simulation.kill("b")

    trace = simulate(story, 1).trace
    assert [entry.at for entry in trace if entry.node == "a"] == [0, 10.5, 11.5, 12.5, 12.5]
    assert trace[-1] == (12.5, "a", "finally")
    assert [entry.at for entry in trace if entry.node == "b"] == list(range(13))


def test_a_node_may_freeze_itself_and_goes_on_as_well() -> None:
    async def node(simulation: Simulation) -> None:
        simulation.freeze("a", 10)
        await asyncio.sleep(0)
        simulation.note("awake")

    async def story(simulation: Simulation) -> None:
        await simulation.start("a", node(simulation))

    assert simulate(story, 1).trace == [(10, "a", "awake")]


def test_a_frozen_node_that_is_killed_stays_dead() -> None:
    async def story(simulation: Simulation) -> None:
        simulation.start("a", beat(simulation))
        await asyncio.sleep(0.5)
        simulation.freeze("a", 10)
        await asyncio.sleep(5)
        simulation.kill("a")
        await asyncio.sleep(20)

    assert words(simulate(story, 1).trace) == ["beat"]


def test_only_nodes_that_began_can_be_killed_or_frozen() -> None:
    async def story(simulation: Simulation) -> None:
        simulation.start("a", asyncio.sleep(1))
        with pytest.raises(NotFound, match="Known: a"):
            simulation.kill("b")
        with pytest.raises(NotFound):
            simulation.freeze("b", 1)

    simulate(story, 1)


# The same again


async def turmoil(simulation: Simulation) -> None:
    """Sets of tasks and futures, pauses, deaths and chance."""
    ids: Ids = simulation.ids

    async def work(number: int) -> int:
        await simulation.pause()
        if simulation.chance(0.2):
            simulation.note("id", ids.new())
        await asyncio.sleep(0 if simulation.chance(0.5) else 1)
        return number

    async def node(name: str) -> None:
        while True:
            tasks = {asyncio.ensure_future(work(number)) for number in range(8)}
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                simulation.note(name, *(task.result() for task in done))

    loop = asyncio.get_running_loop()
    futures = {loop.create_future() for _ in range(10)}
    simulation.note(*(future.serial for future in futures))  # pyright: ignore
    for name in "abc":
        simulation.start(name, node(name))
    await asyncio.sleep(30)
    simulation.kill(simulation.random.choice("abc"))
    await asyncio.sleep(30)


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    first, again, other = simulate(turmoil, 1), simulate(turmoil, 1), simulate(turmoil, 2)
    assert len(first.trace) > 100
    assert (first.trace, first.steps) == (again.trace, again.steps)
    assert first.trace != other.trace


def test_another_process_gives_the_same_trace() -> None:
    script = (
        "import sys; waste = [object() for _ in range(int(sys.argv[1]))]\n"
        "from tests.simulation.test_loop import turmoil, simulate\n"
        "print(*simulate(turmoil, 5).trace, sep='\\n')"
    )

    def trace(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", script, str(int(hash_seed) * 777)]
        return subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        ).stdout

    here = "\n".join(map(str, simulate(turmoil, 5).trace)) + "\n"
    assert here == trace("1") == trace("2")


def test_ids_are_new_and_sort_by_time() -> None:
    async def story(simulation: Simulation) -> list[str]:
        drawn: list[str] = []
        for _ in range(100):
            drawn.append(simulation.ids.new())
            await asyncio.sleep(0.001)
        return drawn

    drawn = simulate(story, 1).value
    assert sorted(set(drawn)) == drawn == simulate(story, 1).value


def test_pauses_are_mostly_tiny_and_sometimes_long() -> None:
    async def story(simulation: Simulation) -> list[float]:
        taken: list[float] = []
        for _ in range(5000):
            before = simulation.loop.time()
            await simulation.pause()
            taken.append(simulation.loop.time() - before)
        return sorted(taken)

    taken = simulate(story, 1).value
    assert taken[0] == 0
    assert taken[2500] < 0.002
    assert 5 < taken[-1] <= 20


def test_many_seeds_are_played_and_the_failing_ones_told() -> None:
    async def story(simulation: Simulation) -> None:
        simulation.note("seed", simulation.seed)
        await simulation.pause()
        if simulation.seed % 4 == 3:
            raise ValueError(simulation.seed)

    told: list[tuple[int, bool]] = []

    def on_progress(seed: int, failure: Failure | None) -> None:
        told.append((seed, failure is None))

    failures = run_seeds(story, range(8), on_progress)
    assert [(failure.seed, str(failure.error)) for failure in failures] == [(3, "3"), (7, "7")]
    assert words(failures[0].trace) == ["seed 3"]
    assert told == [(seed, seed not in {3, 7}) for seed in range(8)]


def test_nothing_of_a_world_is_left_behind() -> None:
    class Store:
        pass

    left: list[weakref.ref[Store]] = []

    async def story(simulation: Simulation) -> None:
        async def serve(store: Store) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                del store

        store = Store()
        left.append(weakref.ref(store))
        simulation.start("a", serve(store))
        await asyncio.sleep(1)
        simulation.kill("a")

    simulate(story, 1)
    gc.collect()
    assert left[0]() is None
    assert gc.isenabled()
