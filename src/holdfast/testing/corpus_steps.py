"""Performing the steps of a case on a fresh host: the local one, or the durable runtime.

A `Stage` is the host with the definitions of the scenario in it, and the instance the case is about.
A step gives back what there is to compare; the comparing is `corpus_check`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from holdfast.bookmark import Trigger
from holdfast.codec import decode, read_payload
from holdfast.definitions.document import Definition
from holdfast.definitions.validate import Problem
from holdfast.engine.alterations import read_alterations
from holdfast.engine.state import thaw
from holdfast.errors import HoldfastError, Invalid, NotFound
from holdfast.local.hosted import HostedInstance
from holdfast.testing import corpus_scenario as form
from holdfast.testing.corpus_values import ABSENT
from holdfast.testing.durable import DurableHost
from holdfast.testing.host import Host, NotPublished

T = TypeVar("T")

LONGEST_WAIT = timedelta(days=30)
"""How far the clock is moved for an instance that should finish by itself."""
MOST_ROUNDS = 1000
"""How often it is moved, or bookmarks are resumed: beyond that an instance is taken for endless."""


class StepFailed(Invalid):
    """A step could not do what it says."""

    code = "corpus.step_failed"


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """How publishing went."""

    definition: Definition | None
    """None when it was refused."""
    problems: list[Problem]


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A definition, and the part of its JSON that was asked for."""

    definition: Definition
    document: Any


@asynccontextmanager
async def local_host(options: form.Options) -> AsyncGenerator[Host]:
    """Everything in this process and in memory, one thing after another."""
    yield Host(functions=_functions(options), flowchart_mode=options.flowchart_execution_mode)


@asynccontextmanager
async def durable_host(options: form.Options) -> AsyncGenerator[DurableHost]:
    """A node of the durable runtime on a store in memory."""
    async with DurableHost(
        functions=_functions(options), flowchart_mode=options.flowchart_execution_mode
    ) as host:
        yield host


def _functions(options: form.Options) -> dict[str, Callable[..., Any]]:
    return {name: _always(value) for name, value in options.javascript_functions.items()}


async def done(answer: T | Awaitable[T]) -> T:
    """What the local host answers at once, and the durable one when it is written."""
    if isinstance(answer, Awaitable):
        return await cast("Awaitable[T]", answer)
    return answer


NewHost = Callable[[form.Options], AbstractAsyncContextManager[Host | DurableHost]]
"""Gives a fresh host for a case."""


class Stage:
    """One host with the definitions of a scenario, while a case is played on it."""

    def __init__(self, folder: Path, options: form.Options, host: Host | DurableHost) -> None:
        self.folder = folder
        self.options = options
        self.host = host
        self.payload: Any = ABSENT
        """What `readPayload` read last."""
        self.definition_id: str | None = None
        """The definition that a step imported, published or looked at last."""
        self._instance: HostedInstance | None = None
        self._imported: dict[str, str] = {}

    @property
    def instance(self) -> HostedInstance:
        """The current instance: the one that was run last."""
        if self._instance is None:
            raise StepFailed("there is no current instance: no step of this case has run one")
        return self._instance

    def read(self, file: str) -> bytes:
        try:
            return (self.folder / file).read_bytes()
        except OSError as problem:
            raise StepFailed(f"{file} cannot be read: {problem.strerror}") from problem

    async def load(self, sources: Iterable[form.Source]) -> None:
        """Bring the scenario's files into the host, in order."""
        for source in sources:
            try:
                await self._load(source)
            except HoldfastError as problem:
                raise StepFailed(f"{source.file} cannot be loaded: {problem}") from problem
        await done(self.host.refresh())  # only now does everybody know everybody's workflow-activities

    async def _load(self, source: form.Source) -> None:
        text = self.read(source.file)
        if source.load == "data":
            decode(text)
        elif source.load == "provider":
            await done(self.host.definitions.provide(text))
        else:
            definition_id = await self.import_file(source.file)
            if source.load == "import":
                published = await self.publish(definition_id)
                if published.definition is None:
                    raise NotPublished(published.problems)

    async def import_file(self, file: str) -> str:
        imported = await done(self.host.definitions.import_draft(self.read(file)))
        self._imported[file] = imported.definition_id
        return imported.definition_id

    def imported(self, file: str) -> str:
        """The definition that the latest import of a file made or changed."""
        if file not in self._imported:
            raise StepFailed(f"{file} was not imported, so that there is no draft of it")
        return self._imported[file]

    async def publish(self, definition_id: str) -> Published:
        draft = await done(self.host.definitions.draft_of(definition_id))
        problems = [problem for problem in self.host.validate(draft) if problem.blocks_publishing]
        ignore = not self.options.fail_on_validation_errors
        try:
            definition = await done(self.host.publish(definition_id, ignore_problems=ignore))
        except NotPublished as refused:
            return Published(definition=None, problems=refused.problems)
        return Published(definition=definition, problems=problems)

    async def run(self, step: form.Run) -> None:
        self._instance = instance = await self.host.run(
            step.definition_id,
            version=step.version,
            input=step.input,
            correlation_id=step.correlation_id,
            name=step.name,
        )
        if not instance.started:
            raise StepFailed(f"{step.definition_id} was not started: its activation strategy refused")
        if step.until == "end":
            await self._resume_to_the_end(instance, step)
        elif step.until == "finished":
            await self._wait_until_finished(instance)

    async def _resume_to_the_end(self, instance: HostedInstance, step: form.Run) -> None:
        for _ in range(MOST_ROUNDS):
            waiting = instance.bookmarks
            if instance.status == "Finished" or not waiting:
                return
            for bookmark in waiting:
                if bookmark.id in {b.id for b in instance.bookmarks}:
                    await self.host.resume(instance, bookmark, step.input)
        raise StepFailed(
            f"the instance still waits after {MOST_ROUNDS} rounds of resuming it: {_place(instance)}"
        )

    async def _wait_until_finished(self, instance: HostedInstance) -> None:
        latest = self.host.clock.now() + LONGEST_WAIT
        for _ in range(MOST_ROUNDS):
            due = self.host.next_due()
            if instance.status == "Finished" or due is None or due > latest:
                break
            await self.host.advance(max(due - self.host.clock.now(), timedelta()))
        if instance.status != "Finished":
            raise StepFailed(f"the instance does not finish by itself: {_place(instance)}")

    async def resume(self, step: form.Resume) -> None:
        wanted = msgspec.to_builtins(step.bookmark)
        found = [
            bookmark
            for bookmark in self.instance.bookmarks
            if wanted.items() <= {"activityId": bookmark.activity_id, "name": bookmark.name}.items()
        ]
        if len(found) != 1:
            raise StepFailed(
                f"{len(found)} bookmarks match {wanted}, one was wanted: {_place(self.instance)}"
            )
        await self.host.resume(self.instance, found[0], step.input)

    def round_trip(self) -> str | None:
        """Write the state, read it, and make a burst of it; what went wrong, if anything did."""
        instance = self.instance
        try:
            instance.restore(instance.export())
            definition = self.host.definitions.find_version(instance.state.version_id)
            thaw(instance.state, self.host.definitions.graph(definition), self.host.environment)
        except Exception as problem:  # whatever it is, the case wants to know that there was an error
            return f"{type(problem).__name__}: {problem}"
        return None

    def fetch(self, step: form.GetDefinition | form.GetSubgraph) -> Fetched:
        definitions = self.host.definitions
        if isinstance(step, form.GetSubgraph):
            found = definitions.find_version(step.id)
            return Fetched(definition=found, document=definitions.subgraph(step.id, step.node_id))
        if step.id is not None:
            found = definitions.find_version(step.id)
        else:
            found = definitions.find(cast("str", step.definition_id), step.version)
        return Fetched(definition=found, document=found.source)

    def triggers_of(self, definition_id: str | None) -> list[Trigger]:
        """The stored triggers of a definition, or of all."""
        return [t for t in self.host.triggers if definition_id in (None, t.definition_id)]

    def read_file_payload(self, step: form.ReadPayload) -> None:
        value = read_payload(decode(self.read(step.file)), known_types=step.known_types)
        if step.select is not None:
            if not isinstance(value, dict) or step.select not in value:
                raise StepFailed(f"the payload in {step.file} has no member {step.select!r}")
            value = cast("dict[str, Any]", value)[step.select]
        self.payload = value


async def perform(stage: Stage, step: form.AnyStep) -> Any:
    """Do one step. What comes back is for `corpus_check.check_step`."""
    host = stage.host
    match step:
        case form.Run():
            return await stage.run(step)
        case form.Resume():
            return await stage.resume(step)
        case form.Cancel():
            return await host.cancel(stage.instance)
        case form.PublishEvent():
            await host.publish_event(step.event_name, step.payload, correlation_id=step.correlation_id)
        case form.Publish():
            stage.definition_id = step.definition_id or stage.imported(step.file or "")
            return await stage.publish(stage.definition_id)
        case form.PublishNewVersion():
            stage.definition_id = step.definition_id
            return await stage.publish(step.definition_id)
        case form.Import():
            stage.definition_id = await stage.import_file(step.file)
        case form.GetDefinition() | form.GetSubgraph():
            return stage.fetch(step)
        case form.Consumers():
            try:
                return host.definitions.consumers(step.definition_id)
            except NotFound:
                return None
        case form.GetTriggers():
            stage.definition_id = step.definition_id
            return stage.triggers_of(step.definition_id)
        case form.DeleteDefinition():
            await done(host.delete(step.definition_id))
        case form.ReloadDefinitions():
            await done(host.reload())
        case form.RefreshDefinitions():
            await done(host.refresh(*step.definition_ids))
        case form.RoundTripState():
            return stage.round_trip()
        case form.ReadPayload():
            stage.read_file_payload(step)
        case form.SetJavascriptFunction():
            host.functions[step.name] = _always(step.value)
        case form.Alter():
            return await host.alter(stage.instance, *read_alterations(step.alterations))
        case form.Http() | form.Api():
            raise StepFailed("this host cannot do that; the scenario must name the feature in `requires`")
    return None


def _always(value: Any) -> Callable[..., Any]:
    return lambda *_: value


def _place(instance: HostedInstance) -> str:
    """Where an instance stands, for somebody who expected it elsewhere."""
    waits = ", ".join(f"{b.activity_id} ({b.name})" for b in instance.bookmarks) or "nothing"
    told = "".join(f"; {incident.activity_id}: {incident.message}" for incident in instance.incidents)
    return f"it is {instance.sub_status} and waits at {waits}{told}"
