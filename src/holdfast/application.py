"""The front door: one object that an application creates, gives workflows, and uses.

    async with Holdfast("sqlite:///orders.db", definitions=[order], activities=[charge]) as holdfast:
        instance = await holdfast.run("order", input={"amount": 10})

It joins the store as a node and works as long as the block is open. Several processes on one
PostgreSQL or MariaDB share the work; on SQLite there is one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast import telemetry
from holdfast.activities.events import event, task_completed
from holdfast.assembly import load_plugins
from holdfast.bookmark import Bookmark, Stimulus
from holdfast.definitions.builder import Workflow
from holdfast.definitions.document import Definition
from holdfast.engine import Limits
from holdfast.errors import HoldfastError, Invalid, NotFound, Unavailable
from holdfast.machines.machine import Machine
from holdfast.machines.run import ObjectT, StatusT
from holdfast.message import Cancel, Delete, Message, Order, Pause, Resume, Retry, Skip, Start, Unpause
from holdfast.parts import Settings, assemble
from holdfast.plugin import Plugins
from holdfast.runtime import accounts
from holdfast.runtime.archive import Archive
from holdfast.runtime.coded import Coded, programs_of
from holdfast.runtime.courier import CATALOGUE
from holdfast.runtime.letters import WAKES
from holdfast.runtime.lifecycle import EventType
from holdfast.runtime.listeners import Callback, Listeners, Subscription
from holdfast.runtime.node import SLOTS
from holdfast.runtime.program import Program
from holdfast.runtime.reception import Sent
from holdfast.runtime.results import InstanceNotFound
from holdfast.runtime.retention import AGE
from holdfast.runtime.runs import Runs
from holdfast.runtime.sizes import Sizes
from holdfast.runtime.view import Instance
from holdfast.sources.files import activities_in, definitions_in, import_module, machines_in
from holdfast.sources.folders import Folder, FolderReport
from holdfast.store import DEFAULT, InstanceFilter, Loaded, Page, Store, Summary
from holdfast.stores.opening import open_store

DATABASE = "sqlite:///.holdfast/holdfast.db"
"""Where it keeps everything unless told otherwise."""
HEAR = 5.0
"""Seconds in which subscribers may hear the rest when it stops."""
MEASURE = 15.0
"""Seconds between two looks at how much waits."""

_log = logging.getLogger("holdfast")

Source = Workflow | Definition | Mapping[str, Any] | bytes | Path
"""A workflow: built in Python, or as JSON, or a file of it."""


class Holdfast:
    """Use it with `async with`. Leaving the block finishes what is under way to a commit."""

    def __init__(
        self,
        store: str | Store = DATABASE,
        *,
        definitions: Iterable[Source] = (),
        folders: Iterable[Path | str] = (),
        modules: Iterable[str] = (),
        programs: Iterable[Program] = (),
        machines: Iterable[Machine[Any, Any]] = (),
        activities: Iterable[Any] = (),
        plugins: Plugins | None = None,
        tenant: str = "",
        works: bool = True,
        groups: Sequence[str] = (DEFAULT,),
        slots: int = SLOTS,
        migrate: bool | None = None,
        limits: Limits | None = None,
        configuration: Mapping[str, Any] | None = None,
        sizes: Sizes | None = None,
        retention: timedelta | None = AGE,
        archive: Path | str | None = None,
        streams: Mapping[str, Any] | None = None,
    ) -> None:
        """`store` is a database's URL, or a store.

        Workflows come from the database, from `definitions`, from `folders` of JSON, which are watched, and
        from Python `modules`, which bring their activities and machines along. `machines` are workflows as
        typed code.
        `works=False` sends and asks, but leaves the work to others. `groups` are the shards it works.
        `migrate` brings the database up to date first; None means for SQLite only.
        `sizes` limits messages and states. Finished instances are deleted after the time of `retention`
        unless their definition says otherwise, None is never; into `archive`, a folder, they go first.
        `streams` are destinations by name, each an async function or an `EventStream`, for lifecycle events.
        """
        self.tenant = tenant
        self.plugins = plugins or load_plugins(activities)
        if plugins is not None:
            plugins.add_activities(*activities)
        self._given = store
        self._definitions = list(definitions)
        given = list(machines)
        for module in map(import_module, modules):
            self.plugins.add_activities(*activities_in(module))
            given += [found for found in machines_in(module) if found not in given]
            self._definitions += definitions_in(module).values()
        self._folders = [Path(folder) for folder in folders]
        self.on_folder: Callable[[FolderReport], None] = _log_folder
        """Called with what a look at a folder came to."""
        self._migrate = migrate
        self._figures = telemetry.Figures()
        self._listeners = Listeners(streams, self._figures)
        self._settings = Settings(
            plugins=self.plugins,
            listeners=self._listeners,
            figures=self._figures,
            tenant=tenant,
            programs=(*programs, *(one for machine in given for one in programs_of(machine))),
            groups=tuple(groups) if works else (),
            slots=slots,
            limits=limits or Limits(),
            configuration=configuration or {},
            sizes=sizes or Sizes(),
            retention=retention,
            archive=None if archive is None else Archive(Path(archive)),
        )
        self._tasks = asyncio.TaskGroup()

    # --- its life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> "Holdfast":
        if isinstance(self._given, str):
            self.store = await open_store(self._given, migrate_first=self._migrate)
        else:
            self.store = self._given
        try:
            await self._begin()
        except BaseException:
            if isinstance(self._given, str):
                await self.store.close()
            raise
        return self

    async def _begin(self) -> None:
        parts = await assemble(self.store, self._settings)
        self.clock, self.ids = parts.clock, parts.ids
        self.library, self.world, self.node = parts.library, parts.world, parts.node
        self.definitions, self.operations = parts.definitions, parts.operations
        self._reception = parts.reception
        await self._tasks.__aenter__()
        self._running = self._tasks.create_task(self.node.run(), context=telemetry.apart())
        self._receiving = self._tasks.create_task(self._reception.run())
        self._watching = [self._tasks.create_task(self._listeners.run())]
        if telemetry.is_read():
            self._watching.append(self._tasks.create_task(self._measure()))
        try:
            await self.node.ready()
            await self.publish(*self._definitions)
            for path in self._folders:
                folder = Folder(path, self.definitions, self.tenant)
                self.on_folder(await folder.look())
                self._watching.append(self._tasks.create_task(folder.watch(self._folder_changed)))
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.node.stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(HEAR):
                    await self._listeners.settled()
            for task in (self._receiving, *self._watching):
                task.cancel()
            # An error of the block is the caller's, not the group's; a cancellation may be the group's.
            is_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
            await self._tasks.__aexit__(*((kind, error, trace) if is_cancelled else (None, None, None)))
        finally:
            if isinstance(self._given, str):
                await self.store.close()

    # --- definitions ------------------------------------------------------------------------------

    async def publish(self, *sources: Source, tenant: str | None = None) -> list[Definition]:
        """Take workflows and publish them; one that says nothing new changes nothing. Raises NotPublished."""
        if not sources:
            return []
        documents = [_document(source) for source in sources]
        taken = await self.definitions.provide(self._tenant(tenant), *documents)
        self.node.courier.say(CATALOGUE)
        return taken

    def _folder_changed(self, report: FolderReport) -> None:
        if report.taken:
            self.node.courier.say(CATALOGUE)
        self.on_folder(report)

    # --- starting ---------------------------------------------------------------------------------

    async def run(
        self,
        definition_id: str,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002  Elsa's word, and ours
        variables: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        name: str | None = None,
        instance_id: str | None = None,
        key: str | None = None,
        version: int | None = None,
        tenant: str | None = None,
    ) -> Instance:
        """Start an instance; returns when it has ended or waits for something.

        With the same idempotency `key` there is one instance, however often it is asked for.
        """
        started = await self.dispatch(
            definition_id,
            input=input,
            variables=variables,
            correlation_id=correlation_id,
            name=name,
            instance_id=instance_id,
            key=key,
            version=version,
            tenant=tenant,
        )
        loaded = await self.node.results.rested(self._tenant(tenant), started)
        return await self._view(loaded)

    async def dispatch(
        self,
        definition_id: str,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        variables: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        name: str | None = None,
        instance_id: str | None = None,
        key: str | None = None,
        version: int | None = None,
        tenant: str | None = None,
    ) -> str:
        """Start an instance; returns its id as soon as that is durable."""
        owner = self._tenant(tenant)
        start = Start(input=input or {}, variables=variables or {}, correlation_id=correlation_id, name=name)
        return await self._reception.start(
            await self._program(owner, definition_id, version),
            start,
            tenant=owner,
            instance_id=instance_id,
            key=key,
            reply=WAKES,
        )

    async def dispatch_many(
        self,
        definition_id: str,
        inputs: Iterable[Mapping[str, Any]],
        *,
        tenant: str | None = None,
    ) -> list[str | HoldfastError]:
        """Start one instance for each input, all in one transaction; an id or a refusal for each."""
        owner = self._tenant(tenant)
        program = await self._program(owner, definition_id, None)
        starts = [Start(input=dict(one)) for one in inputs]
        return await self._reception.start_many(program, starts, tenant=owner)

    # --- machines ---------------------------------------------------------------------------------

    def machine(
        self, machine: Machine[ObjectT, StatusT], *, tenant: str | None = None
    ) -> Runs[ObjectT, StatusT]:
        """The runs of a machine that this was given."""
        for program in self._settings.programs:
            if isinstance(program, Coded) and program.machine is machine:
                return Runs(program, self.node, self._reception, self.ids, self._tenant(tenant))
        raise NotFound(f"{machine!r} was not given to this Holdfast: pass `machines=[...]`.")

    # --- reaching instances -----------------------------------------------------------------------

    async def send(self, stimulus: Stimulus, *, key: str | None = None, tenant: str | None = None) -> Sent:
        """Start and resume whoever waits for it; kept for later when nobody does."""
        return await self._reception.send(stimulus, tenant=self._tenant(tenant), key=key)

    async def publish_event(
        self,
        name: str,
        payload: Any = None,
        *,
        correlation_id: str | None = None,
        instance_id: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
    ) -> Sent:
        """Send an event by its name, to everybody who waits for it, or to some."""
        stimulus = event(name, payload, correlation_id=correlation_id, instance_id=instance_id)
        return await self.send(stimulus, key=key, tenant=tenant)

    async def complete_task(
        self, task_id: str, result: Any = None, *, key: str | None = None, tenant: str | None = None
    ) -> Sent:
        """Say that a task that was handed to the outside is done."""
        return await self.send(task_completed(task_id, result), key=key, tenant=tenant)

    async def resume(
        self,
        instance_id: str,
        bookmark: Bookmark | str,
        *,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        key: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Carry on from one bookmark."""
        name = bookmark if isinstance(bookmark, str) else bookmark.id
        await self.tell(instance_id, Resume(bookmark_id=name, input=input or {}), key=key, tenant=tenant)

    async def cancel(
        self,
        instance_id: str,
        reason: str | None = None,
        *,
        at_once: bool = False,
        tenant: str | None = None,
    ) -> None:
        """End an instance and its open children. `at_once` abandons what it is doing right now."""
        await self.tell(instance_id, Cancel(reason=reason, at_once=at_once), tenant=tenant)

    async def pause(self, instance_id: str, reason: str | None = None, *, tenant: str | None = None) -> None:
        """Let an instance stand still; what arrives for it waits."""
        await self.tell(instance_id, Pause(reason=reason), tenant=tenant)

    async def unpause(self, instance_id: str, *, tenant: str | None = None) -> None:
        await self.tell(instance_id, Unpause(), tenant=tenant)

    async def delete(self, instance_id: str, *, tenant: str | None = None) -> None:
        """Forget an instance with all that belongs to it."""
        await self.tell(instance_id, Delete(), tenant=tenant)

    async def retry(
        self,
        instance_id: str,
        execution: int,
        *,
        inputs: Mapping[str, Any] | None = None,
        tenant: str | None = None,
    ) -> None:
        """Execute the activity behind an incident again, perhaps with other inputs."""
        await self.tell(instance_id, Retry(execution=execution, inputs=inputs or {}), tenant=tenant)

    async def skip(self, instance_id: str, execution: int, *outcomes: str, tenant: str | None = None) -> None:
        """Take the activity behind an incident as completed."""
        await self.tell(instance_id, Skip(execution=execution, outcomes=outcomes), tenant=tenant)

    async def tell(
        self,
        instance_id: str,
        message: Message | Order,
        *,
        key: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Send a message to one instance; durable when it returns."""
        await self._reception.tell(message, tenant=self._tenant(tenant), instance_id=instance_id, key=key)

    # --- asking -----------------------------------------------------------------------------------

    async def instance(self, instance_id: str, *, tenant: str | None = None) -> Instance:
        """Raises InstanceNotFound."""
        found = await self.store.load([(self._tenant(tenant), instance_id)])
        if not found:
            raise InstanceNotFound(instance_id)
        return await self._view(found[0])

    async def result(
        self,
        instance_id: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  it is what people look for
        tenant: str | None = None,
    ) -> Instance:
        """The instance when it has ended, on whichever node. Raises TimeoutError."""
        async with asyncio.timeout(timeout):
            loaded = await self.node.results.ended(self._tenant(tenant), instance_id)
        return await self._view(loaded)

    def subscribe(
        self,
        callback: Callback,
        types: Iterable[EventType | str] | None = None,
        tenant: str | None = None,
    ) -> Subscription:
        """Hear of lifecycle events after their commits: of these types, of one tenant or all.

        An async function is awaited, another one is called in a thread; a slow one misses the oldest.
        """
        return self._listeners.subscribe(callback, types, tenant)

    async def metrics(self) -> str:
        """Figures of this process, as Prometheus reads them."""
        await accounts.measure(self.world, shards=len(self.node.reader.shards), turns=self.node.lines.busy)
        return self._figures.text()

    async def instances(
        self, wanted: InstanceFilter | None = None, *, skip: int = 0, limit: int = 100, **more: Any
    ) -> Page[Summary]:
        """One page of a list, the newest first."""
        wanted = wanted or InstanceFilter(tenant=self.tenant)
        return await self.store.instances(wanted, skip=skip, limit=limit, **more)

    # --- inside -----------------------------------------------------------------------------------

    async def _measure(self) -> None:
        """For OpenTelemetry, which does not ask before it reads."""
        while True:
            with suppress(Unavailable):
                await self.metrics()
            await asyncio.sleep(MEASURE)

    def _tenant(self, tenant: str | None) -> str:
        return self.tenant if tenant is None else tenant

    async def _program(self, tenant: str, definition_id: str, version: int | None) -> Program:
        if version is None:
            return await self.library.published(tenant, definition_id)
        for stored in (await self.store.edition(tenant, definition_id)).versions:
            if stored.header.version == version:
                return await self.library.find(tenant, stored.header.version_id)
        raise NotFound(f"There is no version {version} of a definition {definition_id!r}.")

    async def _view(self, loaded: Loaded) -> Instance:
        return Instance(loaded, await self.library.find(loaded.tenant, loaded.columns.version_id))


def _document(source: Source) -> bytes | Mapping[str, Any]:
    if isinstance(source, Workflow):
        return source.build().source
    if isinstance(source, Definition):
        return source.source
    if isinstance(source, Path):
        try:
            return source.read_bytes()
        except OSError as problem:
            raise Invalid(f"The file {source} cannot be read: {problem.strerror}.") from problem
    return source


def _log_folder(report: FolderReport) -> None:
    for definition in report.taken:
        _log.info("Workflow %s, version %s, is published.", definition.definition_id, definition.version)
    for path, problem in report.problems.items():
        _log.warning("%s was not taken: %s", path, problem)
