"""Definitions and instances, and everything that passes between them, in one process.

It does what the durable runtime does, one thing after another and without a database: matching,
timers, schedules, children, background activities. Every state is encoded and decoded between two
bursts, so nothing can work here that would not survive a wait.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.activities.events import event, task_completed
from holdfast.authoring import Children, ChildResult
from holdfast.bookmark import Bookmark, Stimulus, Trigger
from holdfast.clock import Clock, Ids
from holdfast.definitions.document import Definition
from holdfast.definitions.graph import Graph
from holdfast.definitions.validate import Problem, validate
from holdfast.definitions.versions import NotPublished
from holdfast.engine import Environment, Limits, Outcome, index_triggers, run_burst
from holdfast.engine.alterations import Altered, Versions
from holdfast.engine.background import do_in_background
from holdfast.errors import NotFound
from holdfast.instance import Incident, Status
from holdfast.local.catalogue import Catalogue
from holdfast.local.hosted import HostedInstance
from holdfast.local.schedule import Schedules
from holdfast.message import (
    Alter,
    Alteration,
    Cancel,
    DoInBackground,
    Effect,
    HandOver,
    Message,
    Resume,
    Retry,
    Send,
    Skip,
    Start,
    StartChild,
)
from holdfast.plugin import Plugins
from holdfast.runtime.children import REFUSED, child_ended, child_refused, child_start


class LocalHost:
    """Runs workflows in memory, with the plugins, the clock and the ids it is given."""

    def __init__(
        self,
        plugins: Plugins,
        *,
        clock: Clock,
        ids: Ids,
        limits: Limits | None = None,
        flowchart_mode: str = "CounterBased",
        fires_schedules: bool = True,
    ) -> None:
        self._fires_schedules = fires_schedules
        self.functions = plugins.functions
        self.tasks: list[HandOver] = []
        """Tasks that RunTask handed out, for somebody to complete."""
        self.instances: dict[str, HostedInstance] = {}
        self.triggers: list[Trigger] = []
        self.definitions = Catalogue(plugins.activities, plugins.expressions, ids)
        self._clock = clock
        self._ids = ids
        self._expressions = plugins.expressions
        self._kept: list[tuple[datetime, Stimulus]] = []
        self._effects: deque[tuple[HostedInstance, Effect]] = deque()
        self._schedules = Schedules()
        self._is_settling = False
        self.environment = Environment(
            clock=clock,
            services={Children: self, Versions: self, **plugins.services},
            functions=self.functions,
            expressions=plugins.expressions.languages,
            limits=limits or Limits(),
            around_activity=tuple(plugins.around_activity),
            around_burst=tuple(plugins.around_burst),
            has_background=True,
            flowchart_mode=flowchart_mode,
        )

    # --- definitions ------------------------------------------------------------------------------

    async def load(self, *sources: Path | str | Mapping[str, Any] | Definition) -> Definition:
        """Take definitions (files or documents) and publish them. Returns the last one."""
        loaded: list[Definition] = []
        for source in sources:
            if isinstance(source, Definition):
                text: bytes | Mapping[str, Any] = source.source
            elif isinstance(source, Mapping):
                text = source
            else:
                text = Path(source).read_bytes()  # noqa: ASYNC240  a small file, and nobody else waits
            definition = self.definitions.provide(text)
            loaded.append(self.definitions.mark_published(definition))
        for definition in loaded:
            self.index(definition)
        return loaded[-1]

    def validate(self, definition: Definition) -> list[Problem]:
        """Everything that is wrong with a definition, as this host sees it."""
        return validate(definition, self.definitions.types, self._expressions)

    def publish(self, definition_id: str, *, ignore_problems: bool = False) -> Definition:
        """Publish the draft, or a new version of what is published. Raises NotPublished."""
        draft = self.definitions.draft_of(definition_id)
        problems = [p for p in self.validate(draft) if p.blocks_publishing]
        if problems and not ignore_problems:
            raise NotPublished(problems)
        published = self.definitions.mark_published(draft)
        self.index(published)
        if published.options.usable_as_activity and published.options.auto_update_consumers:
            for consumer in self.definitions.update_consumers(published):
                if consumer.is_published:
                    self.index(consumer)
        return published

    def index(self, definition: Definition) -> None:
        """Replace the triggers and schedules of a definition by those of this version."""
        self.forget_triggers(definition.definition_id)
        if not definition.is_published:
            return
        graph = self.definitions.graph(definition)
        found = index_triggers(graph, self.environment)
        self.triggers += found
        if self._fires_schedules:
            self._schedules.replace(graph, found, self._clock.now())

    def forget_triggers(self, definition_id: str) -> None:
        self.triggers = [t for t in self.triggers if t.definition_id != definition_id]
        self._schedules.forget(definition_id)

    def delete(self, definition_id: str) -> None:
        """Forget a definition, all its versions and its triggers."""
        self.definitions.delete(definition_id)
        self.forget_triggers(definition_id)

    def reload(self) -> None:
        """Take again what providers brought and somebody deleted since."""
        for definition in self.definitions.restore_provided():
            self.index(definition)

    def refresh(self, *definition_ids: str) -> None:
        """Evaluate the triggers of published definitions again: of these, or of all."""
        published = {d.definition_id for d in self.definitions if d.is_published}
        for definition_id in published.intersection(definition_ids) if definition_ids else published:
            self.index(self.definitions.find(definition_id))

    async def is_published(self, definition_id: str) -> bool:
        return any(v.definition_id == definition_id and v.is_published for v in self.definitions)

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
    ) -> HostedInstance:
        """Start an instance; returns when it has ended or waits, and so has all it caused."""
        start = Start(
            input=input or {},
            variables=variables or {},
            correlation_id=correlation_id,
            name=name,
            properties=properties or {},
            trigger=trigger,
        )
        definition = self.definitions.find(definition_id, version)
        instance = await self._start(definition, start, self._ids.new())
        await self.settle()
        return instance

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
        applied = await self.handle(instance, Resume(bookmark_id=bookmark.id, input=input or {}))
        await self.settle()
        return applied

    async def send(self, stimulus: Stimulus) -> int:
        """Start and resume whoever waits for it; how many that were. Kept for later when nobody does."""
        hit = await self._match(stimulus)
        await self.settle()
        return hit

    @property
    def unmatched(self) -> list[Stimulus]:
        """Stimuli that nobody waited for so far, oldest first."""
        return [stimulus for _, stimulus in self._kept]

    async def publish_event(
        self, name: str, payload: Any = None, *, correlation_id: str | None = None
    ) -> int:
        return await self.send(event(name, payload, correlation_id=correlation_id))

    async def complete_task(self, task_id: str, result: Any = None) -> int:
        return await self.send(task_completed(task_id, result))

    async def cancel(self, instance: HostedInstance, reason: str | None = None) -> None:
        """Cancel an instance and its running children."""
        await self.handle(instance, Cancel(reason=reason))
        for child in list(self.instances.values()):
            if child.state.parent_id == instance.id and child.state.status is Status.RUNNING:
                await self.cancel(child, reason)
        await self.settle()

    async def retry(self, instance: HostedInstance, incident: Incident, **inputs: Any) -> None:
        """Execute the activity behind an incident again."""
        await self.handle(instance, Retry(execution=incident.execution, inputs=inputs))
        await self.settle()

    async def alter(self, instance: HostedInstance, *alterations: Alteration) -> tuple[Altered, ...]:
        """Change an instance in these ways, all of them or none; what became of each."""
        outcome = await self._burst(instance, Alter(alterations=alterations))
        if outcome.applied and any(isinstance(one, Cancel) for one in alterations):
            for child in list(self.instances.values()):
                if child.state.parent_id == instance.id and child.state.status is Status.RUNNING:
                    await self.cancel(child)
        await self.settle()
        return outcome.altered

    async def skip(self, instance: HostedInstance, incident: Incident, *outcomes: str) -> None:
        """Take the activity behind an incident as completed."""
        await self.handle(instance, Skip(execution=incident.execution, outcomes=outcomes))
        await self.settle()

    def next_due(self) -> datetime | None:
        """When something happens by itself next; None when nothing will."""
        due = self._next_due()
        return None if due is None else due[0]

    async def do_due(self) -> None:
        """Do what is due first: hit a timer's bookmark, or start by a schedule. The clock must be there."""
        due = self._next_due()
        if due is not None:
            await due[1]()
            await self.settle()

    def _next_due(self) -> tuple[datetime, Callable[[], Awaitable[Any]]] | None:
        waiting = self._timers()
        scheduled = self._schedules.next()
        if scheduled is not None:
            waiting.append((scheduled, self._fire_schedule))
        return min(waiting, key=lambda entry: entry[0], default=None)

    def _timers(self) -> list[tuple[datetime, Callable[[], Awaitable[Any]]]]:
        waiting: list[tuple[datetime, Callable[[], Awaitable[Any]]]] = []
        for instance in self.instances.values():
            state = instance.state
            for bookmark in state.bookmarks if state.status is Status.RUNNING else ():
                if bookmark.due is not None:
                    message = Resume(bookmark_id=bookmark.id)
                    waiting.append((bookmark.due, lambda i=instance, m=message: self.handle(i, m)))
        return waiting

    async def _fire_schedule(self) -> None:
        fired = self._schedules.fire(self._clock.now())
        if fired is None:
            return
        trigger, given = fired
        definition = self.definitions.find_version(trigger.version_id)
        await self._start(definition, Start(input=given, trigger=trigger.activity_id), self._ids.new())

    # --- inside -----------------------------------------------------------------------------------

    async def handle(self, instance: HostedInstance, message: Message) -> bool:
        """One message, one burst. Whether it found something to do."""
        return (await self._burst(instance, message)).applied

    async def _burst(self, instance: HostedInstance, message: Message) -> Outcome:
        state = instance.state
        graph = self.definitions.graph(self.definitions.find_version(state.version_id))
        outcome = await run_burst(graph, message, environment=self.environment, state=state)
        if outcome.state.version_id != state.version_id:
            graph = self.definitions.graph(self.definitions.find_version(outcome.state.version_id))
        if outcome.altered and state.status is outcome.state.status is Status.FINISHED:
            instance.keep(outcome, graph)  # its parent has heard of its end
        elif outcome.applied or outcome.records:
            await self._keep(instance, outcome, graph)
        return outcome

    async def graph(self, tenant: str, definition_id: str, version: int) -> Graph:
        """The port `Versions`: another version of a definition, for an instance that goes on as it."""
        return self.definitions.graph(self.definitions.find(definition_id, version))

    async def _start(self, definition: Definition, start: Start, instance_id: str) -> HostedInstance:
        instance = HostedInstance(instance_id)
        if self._forbids(definition, start.correlation_id):
            instance.started = False
            return instance
        graph = self.definitions.graph(definition)
        self.instances[instance_id] = instance
        outcome = await run_burst(graph, start, environment=self.environment, instance_id=instance_id)
        await self._keep(instance, outcome, graph)
        return instance

    def _forbids(self, definition: Definition, correlation_id: str | None) -> bool:
        """Whether the definition's activation strategy refuses one more instance."""
        strategy = definition.options.activation_strategy
        if strategy in (None, "AllowAlwaysStrategy"):
            return False
        running = [i.state for i in self.instances.values() if i.records and i.state.status is Status.RUNNING]
        own = [s for s in running if s.definition_id == definition.definition_id]
        candidates = running if strategy == "CorrelationStrategy" else own
        if strategy == "SingletonStrategy":
            return bool(own)
        return any(s.correlation_id == correlation_id for s in candidates)

    async def _keep(self, instance: HostedInstance, outcome: Outcome, graph: Graph) -> None:
        instance.keep(outcome, graph)
        self._effects.extend((instance, effect) for effect in outcome.effects)
        ended = child_ended(outcome.state, outcome.state.id)
        if ended is not None:
            self._effects.append((instance, Send(stimulus=ended)))

    async def settle(self) -> None:
        """Carry out what bursts asked for, until nothing is left."""
        if self._is_settling:
            return
        self._is_settling = True
        try:
            while self._effects or await self._match_kept():
                while self._effects:
                    await self._carry_out(*self._effects.popleft())
        finally:
            self._is_settling = False

    async def _carry_out(self, instance: HostedInstance, effect: Effect) -> None:
        match effect:
            case StartChild():
                definition = self.definitions.find(effect.definition_id)
                child = await self._start(definition, child_start(effect), effect.instance_id)
                if not child.started and effect.parent_id is not None and effect.reply_to is not None:
                    await self._match(child_refused(effect.instance_id, effect.parent_id, effect.reply_to))
            case Send():
                await self._match(effect.stimulus)
            case HandOver():
                self.tasks.append(effect)
            case DoInBackground():
                state = instance.state
                graph = self.definitions.graph(self.definitions.find_version(state.version_id))
                message = await do_in_background(graph, state, effect, self.environment)
                await self.handle(instance, message)

    async def execute(
        self,
        *,
        definition_id: str,
        instance_id: str,
        parent_id: str,
        input: Mapping[str, Any],  # noqa: A002  as the port has it
        correlation_id: str | None,
        reply_to: str | None,
    ) -> ChildResult:
        """The port `Children`: the child's first burst, inside its parent's."""
        effect = StartChild(
            instance_id=instance_id,
            definition_id=definition_id,
            parent_id=parent_id,
            input=input,
            correlation_id=correlation_id,
            reply_to=reply_to,
        )
        definition = self.definitions.find(definition_id)
        child = await self._start(definition, child_start(effect), instance_id)
        if not child.started:
            return ChildResult(instance_id=instance_id, status="Finished", sub_status=REFUSED, output={})
        state = child.state
        return ChildResult(
            instance_id=instance_id, status=state.status, sub_status=state.sub_status, output=child.output
        )

    async def _match(self, stimulus: Stimulus, *, keep: bool = True) -> int:
        key = stimulus.key
        hit = 0
        if stimulus.instance_id is None:
            for trigger in [t for t in self.triggers if t.key == key]:
                definition = self.definitions.find_version(trigger.version_id)
                start = Start(
                    input=stimulus.input, correlation_id=stimulus.correlation_id, trigger=trigger.activity_id
                )
                await self._start(definition, start, self._ids.new())
                hit += 1
        for instance in list(self.instances.values()):
            if not instance.records:  # being started right now, inside its parent's burst
                continue
            state = instance.state
            if stimulus.instance_id not in (None, state.id) or state.status is not Status.RUNNING:
                continue
            if stimulus.correlation_id not in (None, state.correlation_id):
                continue
            for bookmark in state.bookmarks:
                if bookmark.key == key:
                    message = Resume(bookmark_id=bookmark.id, input=stimulus.input)
                    hit += await self.handle(instance, message)
        if not hit and keep:
            addressed = stimulus.instance_id or stimulus.correlation_id
            life = timedelta(days=1) if addressed else timedelta(minutes=1)
            self._kept.append((self._clock.now() + life, stimulus))
        return hit

    async def _match_kept(self) -> bool:
        """Look again for stimuli that came before anybody waited."""
        self._kept = [(until, s) for until, s in self._kept if until > self._clock.now()]
        for entry in list(self._kept):
            waiting = {b.key for i in self.instances.values() if i.records for b in i.bookmarks}
            if entry[1].key in waiting and await self._match(entry[1], keep=False):
                self._kept.remove(entry)
                return True
        return False
