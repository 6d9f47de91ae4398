"""What Holdfast promises, each promise as something that can be seen to be broken.

A check is a function of a Bench. `guarantee(n)` says of which promise of the design it is; the tests run
every check on every database, and the mutants show that each can fail.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from unittest.mock import patch

from holdfast.commit import Envelope
from holdfast.engine.context import Context
from holdfast.instance import Status, SubStatus
from holdfast.message import Resume
from holdfast.runtime import worker
from holdfast.runtime.membership import Membership
from holdfast.runtime.reception import StartRefused
from holdfast.runtime.schedules import instance_id_of
from holdfast.store import Admission, InstanceFilter, KeyReused, Store
from tests.documents import document, literal, sequence
from tests.guarantees.bench import PATIENCE, Bench, call, delay, event, plus_one, reached, until, workflow

Check = Callable[[Bench], Awaitable[None]]

CHECKS: list[tuple[int, Check]] = []


def guarantee(number: int) -> Callable[[Check], Check]:
    def note(check: Check) -> Check:
        CHECKS.append((number, check))
        return check

    return note


@guarantee(1)
async def what_was_acknowledged_is_done_by_whoever_lives(bench: Bench) -> None:
    async with bench.node(workflow("order", call("charge")), works=False) as sender:
        ids = [await sender.dispatch("order") for _ in range(5)]
        await bench.kill(sender)
    async with bench.node() as other:
        for instance_id in ids:
            assert (await other.result(instance_id, timeout=PATIENCE)).sub_status is SubStatus.FINISHED
    assert len(bench.outside.did("charge")) == 5


@guarantee(2)
async def an_owner_that_was_taken_for_dead_cannot_commit(bench: Bench) -> None:
    outside = bench.outside
    definition = workflow("order", plus_one("first"), call("slow"), plus_one("second"))
    async with AsyncExitStack() as stack:
        with patch.object(Membership, "renew_in_thread", _stall):  # it does not hear that it is dead, either
            stale = await stack.enter_async_context(bench.node(definition))
        outside.blocked = {1}
        instance_id = await stale.dispatch("order")
        await outside.begun.wait()
        async with bench.store() as store:
            await store.leave(stale.node.id)
        other = await stack.enter_async_context(bench.node())
        instance = await other.result(instance_id, timeout=PATIENCE)
        outside.blocked.clear()  # now the first one goes on, from the same state
        await asyncio.sleep(0.5)
        again = await other.instance(instance_id)
    assert instance.variables == {"Count": 2}
    assert again.revision == 1, "one turn was committed, by one of them"
    assert len(set(outside.did("slow"))) == 1, "both asked the world under the same key"


async def _stall(_: Membership) -> None:
    await asyncio.Event().wait()


async def _asked(answer: bool) -> bool:
    return answer


@guarantee(3)
async def a_turn_is_written_wholly_or_not_at_all(bench: Bench) -> None:
    """Whoever dies between two writes of a turn leaves nothing of it."""
    child = workflow("child", call("child"))
    start_child = {
        "id": "dispatch",
        "type": "Elsa.DispatchWorkflow",
        "workflowDefinitionId": literal("child"),
        "waitForCompletion": literal(True, "Boolean"),
    }
    parent = workflow("parent", start_child, call("after"))
    async with bench.node(child, parent) as holdfast:
        # A parent gives its children their ids. One that exists makes the parent's turn impossible, at the
        # last moment: when everything else of it could have been written.
        await holdfast.result(await holdfast.dispatch("parent"), timeout=PATIENCE)
        born = await holdfast.instances(InstanceFilter(tenant="", definition_ids=("child",)))
        assert born.total == 1
    async with bench.node() as holdfast:
        with patch.object(Context, "new_id", lambda _: born.items[0].instance_id):
            bench.outside.calls.clear()
            await holdfast.dispatch("parent", instance_id="parent-1")
            await asyncio.sleep(0.5)
            found = (await holdfast.store.load([("", "parent-1")]))[0]
            assert found.state is None and found.revision == 0, "nothing of the turn was kept"
            assert await holdfast.store.journal_of("", "parent-1") == []
            assert not bench.outside.calls


@guarantee(4)
async def a_checkpoint_is_not_done_again(bench: Bench) -> None:
    outside = bench.outside
    each = {"commitStrategyName": "ActivityExecuted"}
    definition = workflow("order", call("first"), call("second"), call("third"), options=each)
    outside.blocked = {"second"}
    async with bench.node(definition) as first:
        instance_id = await first.dispatch("order")
        await until(lambda: _asked(bool(outside.did("second"))))
        await bench.kill(first)
    outside.blocked.clear()
    async with bench.node() as other:
        instance = await other.result(instance_id, timeout=PATIENCE)
    assert instance.sub_status is SubStatus.FINISHED
    assert len(outside.did("first")) == 1, "what a checkpoint kept is not done again"
    assert len(outside.did("second")) == 2 and len(set(outside.did("second"))) == 1
    assert len(outside.did("third")) == 1


@guarantee(5)
async def a_burst_that_is_done_again_asks_the_world_under_the_same_key(bench: Bench) -> None:
    outside = bench.outside
    async with bench.node(workflow("order", plus_one("a"), call("charge"))) as first:
        outside.blocked = {"charge"}
        instance_id = await first.dispatch("order")
        await outside.begun.wait()
        await bench.kill(first)
    outside.blocked.clear()
    async with bench.node() as other:
        instance = await other.result(instance_id, timeout=PATIENCE)
    assert len(outside.did("charge")) == 2
    assert len(set(outside.did("charge"))) == 1
    assert instance.variables == {"Count": 1}


@guarantee(6)
async def a_timer_fires_once_and_never_early(bench: Bench) -> None:
    definition = workflow("order", delay("00:00:01"), plus_one("after"), call("rang"))
    async with bench.node(definition) as one, bench.node() as _other:
        instance = await one.run("order")
        due = instance.bookmarks[0].due
        assert due is not None
        ended = await one.result(instance.id, timeout=PATIENCE)
        async with bench.store() as store:
            now = (await store.join("observer", "", timedelta(seconds=1))).now
    assert ended.variables == {"Count": 1} and len(bench.outside.did("rang")) == 1
    assert ended.finished_at is not None and due <= ended.finished_at <= now


@guarantee(6)
async def an_occurrence_fires_once_on_two_nodes_and_over_a_publication(bench: Bench) -> None:
    def tick(version: int) -> dict[str, object]:
        timer = {
            "id": "timer",
            "type": "Elsa.Timer",
            "interval": literal("00:00:01"),
            "canStartWorkflow": True,
        }
        return document(
            sequence(timer, call(f"tick {version}")),
            id=f"tick-{version}",
            definitionId="tick",
            version=version,
        )

    async with bench.node(tick(1)) as one, bench.node() as _other:
        before = (await one.store.schedules("", "tick"))[0]
        await until(lambda: _asked(len(bench.outside.calls) >= 2))
        await one.publish(tick(2))
        after = (await one.store.schedules("", "tick"))[0]
        assert after.version_id == "tick-2" and after.anchor == before.anchor, "it goes on where it was"
        await until(lambda: _asked(len(bench.outside.did("tick 2")) >= 1))
        page = await one.instances(InstanceFilter(tenant=""))
    assert before.anchor is not None
    times = [before.anchor + timedelta(seconds=n + 1) for n in range(page.total)]
    expected = {instance_id_of(before, nominal) for nominal in times}
    assert {summary.instance_id for summary in page.items} == expected, "one instance for each second"
    assert len(set(bench.outside.did("tick 1"))) == len(bench.outside.did("tick 1"))


@guarantee(7)
async def a_stimulus_that_comes_early_is_kept(bench: Bench) -> None:
    loop = workflow("loop", event("go"), plus_one("a"), {**event("go"), "id": "again"}, plus_one("b"))
    async with bench.node(loop) as holdfast:
        instance_id = await holdfast.dispatch("loop", instance_id="early", correlation_id="c-1")
        sent = [await holdfast.publish_event("go", correlation_id="c-1") for _ in range(2)]
        assert len(sent) == 2
        instance = await holdfast.result(instance_id, timeout=PATIENCE)
        assert instance.variables == {"Count": 2}


@guarantee(7)
async def a_stimulus_before_its_instance_waits_for_it(bench: Bench) -> None:
    async with bench.node(workflow("order", event("go"), plus_one("a"))) as holdfast:
        assert (await holdfast.publish_event("go", instance_id="later")).hit == 0
        instance = await holdfast.run("order", instance_id="later")
        instance = await holdfast.result("later", timeout=PATIENCE)
        assert instance.variables == {"Count": 1}


@guarantee(8)
async def the_same_key_has_one_effect_and_one_answer(bench: Bench) -> None:
    definition = workflow("order", call("charge"), event("go"), plus_one("a"))
    async with bench.node(definition) as one, bench.node() as other:
        started = await asyncio.gather(
            *(node.dispatch("order", input={"n": 1}, key="k-1") for node in (one, other, one, other))
        )
        assert len(set(started)) == 1
        await reached(one, started[0], "Suspended")
        answers = await asyncio.gather(*(one.publish_event("go", key="k-2") for _ in range(3)))
        assert len({answer.resumed for answer in answers}) == 1
        await one.result(started[0], timeout=PATIENCE)
        try:
            await one.dispatch("order", input={"n": 2}, key="k-1")
        except KeyReused:
            pass
        else:
            raise AssertionError("another request under the same key must be refused")
        assert (await one.instances()).total == 1
    assert len(bench.outside.did("charge")) == 1


@guarantee(9)
async def a_singleton_is_alone_however_many_want_to_start(bench: Bench) -> None:
    strategy = "Elsa.Workflows.ActivationValidators.SingletonStrategy, Elsa.Workflows.Core"
    options = {"activationStrategyType": strategy}
    single = workflow("single", call("alone"), event("go"), options=options)
    start_child = {
        "id": "dispatch",
        "type": "Elsa.DispatchWorkflow",
        "workflowDefinitionId": literal("single"),
        "waitForCompletion": literal(True, "Boolean"),
    }
    parent = workflow("parent", start_child, plus_one("after"))
    async with bench.node(single, parent) as one, bench.node() as other:
        outcomes = await asyncio.gather(
            *(node.dispatch("single") for node in (one, other) * 4), return_exceptions=True
        )
        started = [outcome for outcome in outcomes if isinstance(outcome, str)]
        assert len(started) == 1
        assert sum(isinstance(outcome, StartRefused) for outcome in outcomes) == 7
        refused = await one.result(await one.dispatch("parent"), timeout=PATIENCE)
        assert refused.variables == {"Count": 1}, "the parent of a refused child goes on"
        await reached(one, started[0], "Suspended")
        await one.cancel(started[0])
        await one.result(started[0], timeout=PATIENCE)
        again = await one.run("single")
        assert again.sub_status is SubStatus.SUSPENDED, "whoever ends makes room"
    assert len(bench.outside.did("alone")) == 2


@guarantee(10)
async def what_has_ended_does_not_change(bench: Bench) -> None:
    async with bench.node(workflow("order", call("charge"), event("go")), works=False) as sender:
        instance_id = await sender.dispatch("order")
        await sender.cancel(instance_id, "not wanted")  # before anybody has begun it
        async with bench.node() as other:
            await reached(sender, instance_id, "Cancelled")
            await sender.tell(instance_id, Resume(key="nothing"))
            await sender.cancel(instance_id)
            done = await other.run("order")
            await other.publish_event("go")
            await other.result(done.id, timeout=PATIENCE)
            ended = await other.instance(done.id)
            await other.cancel(done.id)
            await until(lambda: _is_empty(bench))
            assert (await other.instance(done.id)).revision == ended.revision
            found = await other.instance(instance_id)
            assert (found.sub_status, found.status) == (SubStatus.CANCELLED, Status.FINISHED)
    assert len(bench.outside.did("charge")) == 1, "what was cancelled before it began never begins"


async def _is_empty(bench: Bench) -> bool:
    async with bench.store() as store:
        return not await store.depth()


@guarantee(11)
async def what_cannot_be_handled_is_put_aside_and_others_go_on(bench: Bench) -> None:
    async with bench.node(workflow("order", event("go"), plus_one("a"))) as holdfast:
        with patch.object(worker, "until_retry", lambda *_: timedelta(milliseconds=10)):
            bad = await holdfast.run("order")
            good = await holdfast.run("order")
            shard = (await holdfast.store.shards("", [bad.id]))[bad.id]
            poison = Envelope(tenant="", instance_id=bad.id, shard=shard, kind="nonsense")
            await holdfast.store.admit([Admission(message=poison)])
            holdfast.node.reader.doubt()
            await reached(holdfast, bad.id, "Interrupted")
            await holdfast.publish_event("go", instance_id=good.id)
            await holdfast.result(good.id, timeout=PATIENCE)
            letters = await holdfast.store.dead_letters("")
            about = [(letter.envelope.instance_id, letter.envelope.kind) for letter in letters.items]
            assert about == [(bad.id, "nonsense")]
            assert "nonsense" in letters.items[0].error and letters.items[0].attempts == worker.ATTEMPTS
            await holdfast.publish_event("go", instance_id=bad.id)
            assert (await holdfast.result(bad.id, timeout=PATIENCE)).variables == {"Count": 1}


@guarantee(12)
async def tenants_never_meet(bench: Bench) -> None:
    definition = workflow("order", event("go"), plus_one("a"))
    async with bench.node() as holdfast:
        for tenant in ("acme", "umbrella"):
            await holdfast.publish(definition, tenant=tenant)
            await holdfast.dispatch(
                "order", instance_id="same", correlation_id="same", key="same", tenant=tenant
            )
        for tenant in ("acme", "umbrella"):
            await until(lambda tenant=tenant: _waits(holdfast.store, tenant))
        sent = await holdfast.publish_event("go", correlation_id="same", tenant="acme")
        assert sent.resumed == ("same",)
        assert (await holdfast.result("same", timeout=PATIENCE, tenant="acme")).variables == {"Count": 1}
        other = await holdfast.instance("same", tenant="umbrella")
        assert other.sub_status is SubStatus.SUSPENDED
        assert (await holdfast.instances(InstanceFilter(tenant="umbrella"))).total == 1
        assert (await holdfast.instances(InstanceFilter(tenant="nobody"))).total == 0


async def _waits(store: Store, tenant: str) -> bool:
    found = await store.load([(tenant, "same")])
    return bool(found) and found[0].columns.sub_status is SubStatus.SUSPENDED


@guarantee(13)
async def everything_open_has_a_cause(bench: Bench) -> None:
    waiting = [
        workflow("timer", delay("01:00:00")),
        workflow("event", event("go")),
        workflow("pending", call("never")),
    ]
    async with bench.node(*waiting) as holdfast:
        for name in ("timer", "event"):
            assert (await holdfast.run(name)).sub_status is SubStatus.SUSPENDED
        assert await holdfast.store.stuck(10) == []
