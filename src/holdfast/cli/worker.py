"""`holdfast worker`: a node that works until it is told to stop."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.database import check_address, database_option
from holdfast.cli.group import common_options
from holdfast.cli.options import activities_option, json_option, machines_option, with_option
from holdfast.cli.output import Settings, clean, console, count, shorten

if TYPE_CHECKING:
    from holdfast.application import Holdfast
    from holdfast.sources.folders import FolderReport

LONGEST = 300
"""Characters of a log line, for people."""


@click.command()
@database_option
@with_option
@activities_option
@machines_option
@click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Publish the definitions in it, now and whenever they change.",
)
@click.option(
    "--slots", type=click.IntRange(1, 10_000), default=512, show_default=True, help="Turns at a time."
)
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Work the shards of this group only.")
@json_option
@common_options
@click.pass_obj
def worker(
    settings: Settings,
    address: str,
    companions: tuple[Path, ...],
    modules: tuple[str, ...],
    machines: tuple[str, ...],
    folders: tuple[Path, ...],
    slots: int,
    groups: tuple[str, ...],
    as_json: bool,
) -> None:
    """Work the instances of a database.

    Several workers share the work, on one machine or many; on SQLite there can be one. SIGTERM and Ctrl-C
    drain: it takes nothing more, finishes what is under way, and gives its shards to the others.

    \b
    holdfast worker --folder workflows --activities shop.activities
    holdfast worker --database postgresql://me@db/orders --group heavy
    """
    import asyncio

    from holdfast.application import Holdfast
    from holdfast.assembly import load_plugins
    from holdfast.cli.files import import_activities, import_machines, read_companions
    from holdfast.store import DEFAULT

    check_address(address, is_made=True)
    beside = read_companions(companions)
    own = [made for workflow in beside for made in workflow.activities]
    holdfast = Holdfast(
        address,
        plugins=load_plugins([*own, *import_activities(modules)]),
        definitions=[workflow.definition() for workflow in beside],
        machines=import_machines(machines),
        folders=folders,
        slots=slots,
        groups=groups or (DEFAULT,),
    )
    say = _Voice(settings, as_json=as_json)
    holdfast.on_folder = lambda report: _tell_folder(say, report)
    _log_to(say)
    asyncio.run(_work(holdfast, say))


class _Voice:
    """A line on stderr for each thing that happens, for people or for programs."""

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        self._out = console(settings, stderr=True)
        self._as_json = as_json

    def __call__(self, event: str, text: str, *, style: str = "", **about: Any) -> None:
        import msgspec
        from rich.text import Text

        if self._as_json:
            click.echo(msgspec.json.encode({"event": event, **about}), err=True)
        else:
            self._out.print(Text(clean(" ".join(text.split())), style), soft_wrap=True)


def _log_to(say: _Voice) -> None:
    """What Holdfast logs is told like everything else, a line for each."""
    import logging

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = self.format(record)
            say("log", shorten(text, LONGEST), style="yellow", level=record.levelname, message=text)

    log = logging.getLogger("holdfast")
    log.addHandler(Told(logging.WARNING))
    log.propagate = False


async def _work(holdfast: "Holdfast", say: _Voice) -> None:
    import asyncio
    import signal

    from holdfast.assembly import calm_collector

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with holdfast:
        calm_collector()
        node = holdfast.node.id
        say("joined", f"Worker {node} works {_shards(holdfast)}. Ctrl-C drains.", node=node, **_has(holdfast))
        watching = asyncio.ensure_future(_watch(holdfast, say))
        await stopping.wait()
        watching.cancel()
        node = holdfast.node.id
        say("draining", f"Worker {node} drains.", node=node)
    say("drained", "Drained: what was under way is finished, and the shards are given back.", node=node)


async def _watch(holdfast: "Holdfast", say: _Voice) -> None:
    """Say when it gets or loses leases, and when it had to begin anew."""
    import asyncio

    node, had = holdfast.node.id, _leases(holdfast)
    while True:
        await asyncio.sleep(0.25)
        if holdfast.node.id != node:
            node = holdfast.node.id
            say("rejoined", f"It did not renew in time and goes on as worker {node}.", node=node)
        has = _leases(holdfast)
        if has != had:
            numbers = (len(has - had), "taken"), (len(had - has), "given up")
            changes = ", ".join(f"{count(n, 'lease')} {word}" for n, word in numbers if n)
            say("leases", f"{changes}: {_shards(holdfast)} now.", node=node, **_has(holdfast))
            had = has


def _leases(holdfast: "Holdfast") -> set[str]:
    return _roles(holdfast) | {f"shard-{number}" for number in holdfast.node.reader.shards}


def _roles(holdfast: "Holdfast") -> set[str]:
    return set() if holdfast.node.shares is None else set(holdfast.node.shares.roles)


def _has(holdfast: "Holdfast") -> dict[str, Any]:
    return {"shards": len(holdfast.node.reader.shards), "roles": sorted(_roles(holdfast))}


def _shards(holdfast: "Holdfast") -> str:
    return " and ".join([count(len(holdfast.node.reader.shards), "shard"), *sorted(_roles(holdfast))])


def _tell_folder(say: _Voice, report: "FolderReport") -> None:
    for definition in report.taken:
        name, version = definition.definition_id, definition.version
        say("published", f"Published {name}, version {version}.", definition=name, version=version)
    for path, problem in report.problems.items():
        say("unusable", f"{path} is not used: {problem}", style="yellow", file=str(path), problem=problem)
