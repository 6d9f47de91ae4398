"""The durable runtime for tests: a store, one node at work on it, and a clock that only the test moves.

    async with DurableHost() as host:
        await host.load("order.json")
        order = await host.run("order", input={"amount": 12})

It has the questions and requests of `holdfast.testing.Host`, but a real node carries them out, and what
it answers is read from the store. A request returns when everything it caused has been committed.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.activities.events import event, task_completed
from holdfast.assembly import load_plugins
from holdfast.authoring import Console
from holdfast.bookmark import Bookmark, Stimulus, Trigger
from holdfast.clock import Ids, SystemClock, TimeOrderedIds
from holdfast.codec import decode_payload
from holdfast.commit import Commit
from holdfast.definitions.document import Definition
from holdfast.definitions.validate import Problem, validate
from holdfast.engine import Environment, Limits, index_triggers
from holdfast.engine.alterations import Altered
from holdfast.engine.environment import ActivityMiddleware, BurstMiddleware
from holdfast.errors import Invalid, NotFound
from holdfast.instance import Incident
from holdfast.local.hosted import HostedInstance
from holdfast.message import Alter, Alteration, Cancel, HandOver, Message, Order, Resume, Retry, Skip, Start
from holdfast.plugin import Plugins
from holdfast.runtime.courier import CATALOGUE
from holdfast.runtime.node import Node
from holdfast.runtime.program import Program, Snapshot
from holdfast.runtime.reception import StartRefused
from holdfast.runtime.shards import Shards
from holdfast.store import DEFAULT, Committed, InstanceFilter, Store, Summary
from holdfast.testing.clock import ManualClock, NumberedIds
from holdfast.testing.durable_clock import FollowingClock, TimelessStore
from holdfast.testing.durable_definitions import StoredDefinitions
from holdfast.testing.durable_instance import StoredInstance
from holdfast.testing.durable_node import RunningNode
from holdfast.testing.durable_rest import Rest
from holdfast.testing.lines import Lines
from holdfast.testing.mocks import mocked

TENANT = ""
AHEAD = datetime(2900, 1, 1, tzinfo=UTC)
"""Where the clock begins on a store that has a time of its own: so late that nothing expires by that."""
_PAGE = 500


class DurableHost:
    """Definitions and instances on a store, driven by the runtime itself. Use it with `async with`.

    A store of the test's own has its own time, by which leases end and kept stimuli expire. Timers,
    schedules and workflows follow the test's clock on every store.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        activities: Iterable[Any] = (),
        register: Iterable[Callable[[Plugins], None]] = (),
        mocks: Mapping[str, Any] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        services: Mapping[type[Any], Any] | None = None,
        around_activity: Iterable[ActivityMiddleware] = (),
        around_burst: Iterable[BurstMiddleware] = (),
        clock: ManualClock | None = None,
        ids: Ids | None = None,
        limits: Limits | None = None,
        flowchart_mode: str = "CounterBased",
    ) -> None:
        """Without a store everything is in memory, and ids repeat. One that is given is not closed."""
        plugins = load_plugins(activities)
        for plugin in register:
            plugin(plugins)
        for type_name, mock in (mocks or {}).items():
            plugins.activities.replace(mocked(plugins.activities, type_name, mock))
        self.clock = clock or (ManualClock() if store is None else ManualClock(AHEAD))
        self.console = Lines()
        plugins.services = {Console: self.console, **plugins.services, **(services or {})}
        plugins.functions |= functions or {}
        plugins.around_activity += around_activity
        plugins.around_burst += around_burst
        self.functions = plugins.functions
        self.store: Store = TimelessStore(self.clock) if store is None else store
        self.instances: dict[str, StoredInstance] = {}
        """As they were when the runtime came to rest, in the order in which they were first seen."""
        self.triggers: list[Trigger] = []
        self.unmatched: list[Stimulus] = []
        """Stimuli that nobody waited for so far. Those that workflows sent are known by their key only."""
        self._plugins = plugins
        self._ids = ids or (NumberedIds() if store is None else TimeOrderedIds(SystemClock()))
        self._limits = limits or Limits()
        self._flowchart_mode = flowchart_mode
        self._sent: dict[str, Stimulus] = {}
        self._trigger_keys: set[str] = set()
        self._next_due: datetime | None = None

    # --- its life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> "DurableHost":
        groups = await self.store.shard_groups()
        shards = Shards(groups[DEFAULT].count)
        shards.learn(groups, await self.store.placements())
        self._following = FollowingClock(self.clock)
        self._running = RunningNode(
            self.store,
            self._plugins,
            self._following,
            self._ids,
            shards=shards,
            limits=self._limits,
            flowchart_mode=self._flowchart_mode,
            observer=self,
        )
        self.definitions = StoredDefinitions(
            self.store, self._running.publishing, self._plugins, self._ids, TENANT
        )
        self._rest = Rest(self.node, self.store)
        async with AsyncExitStack() as leaving:
            await leaving.enter_async_context(self._running)
            await self.definitions.read()
            await self._catalogue_changed()
            self._leaving = leaving.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leaving.__aexit__(kind, error, trace)

    @property
    def node(self) -> Node:
        """The node at work."""
        return self._running.node

    @property
    def environment(self) -> Environment:
        return self._running.environment

    # --- definitions ------------------------------------------------------------------------------

    async def load(self, *sources: Path | str | Mapping[str, Any] | Definition) -> Definition:
        """Take definitions (files or documents) and publish them. Returns the last one."""
        taken = await self.definitions.provide(*map(_text, sources))
        for definition in taken:
            if not definition.is_published:
                await self.definitions.publish(definition.definition_id, ignore_problems=True)
        await self._catalogue_changed()
        return self.definitions.find(taken[-1].definition_id)

    def validate(self, definition: Definition) -> list[Problem]:
        """Everything that is wrong with a definition, as this host sees it."""
        return validate(definition, self.definitions.types, self._plugins.expressions)

    async def publish(self, definition_id: str, *, ignore_problems: bool = False) -> Definition:
        """Publish the draft, or a new version of what is published. Raises NotPublished."""
        published = await self.definitions.publish(definition_id, ignore_problems=ignore_problems)
        await self._catalogue_changed()
        return published

    async def delete(self, definition_id: str) -> None:
        """Forget a definition, all its versions and its triggers."""
        await self.definitions.delete(definition_id)
        await self._catalogue_changed()

    async def reload(self) -> None:
        """Take again what providers brought and somebody deleted since."""
        await self.definitions.restore_provided()
        await self._catalogue_changed()

    async def refresh(self, *definition_ids: str) -> None:
        """Evaluate the triggers of published definitions again: of these, or of all."""
        await self.definitions.refresh(*definition_ids)
        await self._catalogue_changed()

    async def is_published(self, definition_id: str) -> bool:
        return any(v.definition_id == definition_id and v.is_published for v in self.definitions)

    async def _catalogue_changed(self) -> None:
        self.node.hear(CATALOGUE)
        for definition in self.definitions:
            if definition.is_published:
                with suppress(Invalid):
                    found = index_triggers(self.definitions.graph(definition), self.environment)
                    self._trigger_keys |= {trigger.key for trigger in found}
        await self.settle()

    # --- running ----------------------------------------------------------------------------------

    async def run(
        self,
        definition_id: str,
        *,
        version: str | int = "Published",
        input: Mapping[str, Any] | None = None,  # noqa: A002  Elsa's word, and ours
        variables: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        name: str | None = None,
        properties: Mapping[str, Any] | None = None,
        trigger: str | None = None,
    ) -> StoredInstance:
        """Start an instance; returns when it has ended or waits, and so has all it caused."""
        start = Start(
            input=input or {},
            variables=variables or {},
            correlation_id=correlation_id,
            name=name,
            properties=properties or {},
            trigger=trigger,
        )
        program = await self._program(definition_id, version)
        try:
            instance_id = await self._running.reception.start(program, start, tenant=TENANT)
        except StartRefused:
            refused = StoredInstance(self._ids.new())
            refused.started = False
            return refused
        await self.settle()
        return self.instances[instance_id]

    async def _program(self, definition_id: str, version: str | int) -> Program:
        library = self._running.library
        if version == "Published":
            return await library.published(TENANT, definition_id)
        return await library.find(TENANT, self.definitions.find(definition_id, version).id)

    async def resume(
        self,
        instance: HostedInstance,
        bookmark: Bookmark | str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
    ) -> bool:
        """Hit one bookmark, by itself, its id, or the id of the activity that waits."""
        if isinstance(bookmark, str):
            wanted = bookmark
            found = [b for b in instance.bookmarks if wanted in (b.id, b.activity_id, b.name)]
            if len(found) != 1:
                waits = ", ".join(b.activity_id for b in instance.bookmarks) or "nothing"
                raise NotFound(
                    f"{len(found)} bookmarks match {wanted!r}; instance {instance.id} waits at: {waits}."
                )
            bookmark = found[0]
        return await self.tell(instance, Resume(bookmark_id=bookmark.id, input=input or {}))

    async def send(self, stimulus: Stimulus) -> int:
        """Start and resume whoever waits for it; how many that were. Kept for later when nobody does."""
        self._sent[stimulus.key] = stimulus
        sent = await self._running.reception.send(stimulus, tenant=TENANT)
        await self.settle()
        return sent.hit

    async def publish_event(
        self, name: str, payload: Any = None, *, correlation_id: str | None = None
    ) -> int:
        return await self.send(event(name, payload, correlation_id=correlation_id))

    async def complete_task(self, task_id: str, result: Any = None) -> int:
        return await self.send(task_completed(task_id, result))

    async def cancel(self, instance: HostedInstance, reason: str | None = None) -> None:
        """Cancel an instance and its running children."""
        await self.tell(instance, Cancel(reason=reason))

    async def retry(self, instance: HostedInstance, incident: Incident, **inputs: Any) -> None:
        """Execute the activity behind an incident again."""
        await self.tell(instance, Retry(execution=incident.execution, inputs=inputs))

    async def skip(self, instance: HostedInstance, incident: Incident, *outcomes: str) -> None:
        """Take the activity behind an incident as completed."""
        await self.tell(instance, Skip(execution=incident.execution, outcomes=outcomes))

    async def alter(self, instance: HostedInstance, *alterations: Alteration) -> tuple[Altered, ...]:
        """Change an instance in these ways, all of them or none; what became of each."""
        answer = await self._ask(instance, Alter(alterations=alterations))
        return tuple(Altered(one["succeeded"], one["text"]) for one in answer.get("alterations", ()))

    async def tell(self, instance: HostedInstance, message: Message | Order) -> bool:
        """Send any message to an instance. Whether it found something to do."""
        return bool((await self._ask(instance, message)).get("applied"))

    async def _ask(self, instance: HostedInstance, message: Message | Order) -> Mapping[str, Any]:
        """What is answered under the message's key; nothing while it was not handled."""
        key = self._ids.new()
        await self._running.reception.tell(message, tenant=TENANT, instance_id=instance.id, key=key)
        await self.settle()
        answer = await self.store.answer(TENANT, key)
        return {} if answer is None else decode_payload(answer)

    @property
    def tasks(self) -> list[HandOver]:
        """Tasks that RunTask handed out, for somebody to complete."""
        return [task for instance in self.instances.values() for task in instance.tasks]

    # --- time -------------------------------------------------------------------------------------

    def next_due(self) -> datetime | None:
        """When something happens by itself next; None when nothing will."""
        return self._next_due

    async def advance(self, span: timedelta) -> None:
        """Let time pass, stopping at each instant at which something is due."""
        until = self.clock.now() + span
        while self._next_due is not None and self._next_due <= until:
            self.clock.move_to(self._next_due)
            await self.settle()
        self.clock.move_to(until)
        await self.settle()

    async def settle(self) -> None:
        """Returns when everything that can happen now has happened. Raises Unsettled."""
        if self._following.notice():
            self.node.hear("")  # as after a lost wake-up: look at everything again
            self.node.clockwork.look()
            await self.node.housekeeping.clean(thoroughly=True)
        await self._rest.reached(self.clock.now())
        await self._see()

    # --- what is stored ---------------------------------------------------------------------------

    def committed(
        self,
        commit: Commit,
        committed: Committed,
        before: Snapshot | None,
        after: Snapshot | None,
    ) -> None:
        """The runtime tells of each commit: stimuli that workflows sent may be kept."""
        for kept in commit.put_back:
            self._sent.setdefault(kept.key, Stimulus(name="", exact_key=kept.key))

    async def _see(self) -> None:
        await self._see_instances()
        self._next_due = await self._rest.next_due()
        stored = [await self.store.find(TENANT, key) for key in sorted(self._trigger_keys)]
        self.triggers = [trigger for triggers, _ in stored for trigger in triggers]
        self.unmatched = [
            _stimulus(self._sent[kept.key], kept.payload, kept.correlation_id, kept.instance_id)
            for kept in await self.store.kept(TENANT, sorted(self._sent))
            if kept.expires > self.clock.now()
        ]

    async def _see_instances(self) -> None:
        found: dict[str, Summary] = {}
        while True:
            page = await self.store.instances(
                InstanceFilter(tenant=TENANT), descending=False, skip=len(found), limit=_PAGE
            )
            found |= {summary.instance_id: summary for summary in page.items}
            if len(page.items) < _PAGE:
                break
        for instance_id in self.instances.keys() - found.keys():
            del self.instances[instance_id]
        changed = [
            (TENANT, name)
            for name, summary in found.items()
            if name not in self.instances or self.instances[name].revision != summary.revision
        ]
        for loaded in await self.store.load(changed):
            instance = self.instances.setdefault(loaded.instance_id, StoredInstance(loaded.instance_id))
            segments = await self.store.journal_of(
                TENANT, loaded.instance_id, after=instance.last_record, limit=1_000_000
            )
            definition_id, versions = loaded.columns.definition_id, {s.version for s in segments}
            graphs = {v: await self._running.versions.graph(TENANT, definition_id, v) for v in versions}
            instance.see(loaded, segments, graphs.__getitem__)


def _text(source: Path | str | Mapping[str, Any] | Definition) -> bytes | Mapping[str, Any]:
    if isinstance(source, Definition):
        return source.source
    return source if isinstance(source, Mapping) else Path(source).read_bytes()


def _stimulus(
    sent: Stimulus, payload: bytes, correlation_id: str | None, instance_id: str | None
) -> Stimulus:
    return Stimulus(
        name=sent.name,
        payload=sent.payload,
        input=decode_payload(payload),
        correlation_id=correlation_id,
        instance_id=instance_id,
        execution_id=sent.execution_id,
        exact_key=sent.exact_key,
    )
