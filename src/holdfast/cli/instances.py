"""`holdfast instances`: what runs and what has run in a database, and what can be done about it.

Whatever changes an instance is a message to it: durable when the command returns, done by a worker.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.database import NO_WORKER, connected, database_option, has_worker, opened, tenant_option
from holdfast.cli.group import common_options
from holdfast.cli.options import activities_option, json_option
from holdfast.cli.output import Settings, complain, console, count

if TYPE_CHECKING:
    from holdfast.application import Holdfast
    from holdfast.store import InstanceFilter

STATUSES = ("Running", "Finished")
SUB_STATUSES = ("Pending", "Executing", "Suspended", "Interrupted", "Finished", "Cancelled", "Faulted")


@click.group(invoke_without_command=True)
@click.option("--definition", "definitions", multiple=True, metavar="ID", help="Of this definition.")
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="With this status.")
@click.option(
    "--sub-status",
    "sub_statuses",
    multiple=True,
    type=click.Choice(SUB_STATUSES, case_sensitive=False),
    help="With this sub-status.",
)
@click.option("--correlation", metavar="ID", help="With this correlation id.")
@click.option("--parent", metavar="ID", help="Started by this instance.")
@click.option("--search", metavar="TEXT", help="With this in an id, a name or a correlation id.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many at most.")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_context
def instances(
    context: click.Context,
    definitions: tuple[str, ...],
    status: str | None,
    sub_statuses: tuple[str, ...],
    correlation: str | None,
    parent: str | None,
    search: str | None,
    limit: int,
    address: str,
    tenant: str,
    as_json: bool,
) -> None:
    """List instances, the newest first, or see to one of them."""
    if context.invoked_subcommand is not None:
        return
    import asyncio

    from holdfast.instance import Status, SubStatus
    from holdfast.store import InstanceFilter

    wanted = InstanceFilter(
        tenant=tenant,
        definition_ids=definitions,
        status=None if status is None else Status(status),
        sub_statuses=tuple(map(SubStatus, sub_statuses)),
        correlation_id=correlation,
        parent_id=parent,
        search=search,
    )
    asyncio.run(_list(context.ensure_object(Settings), address, wanted, limit, as_json))


async def _list(
    settings: Settings, address: str, wanted: "InstanceFilter", limit: int, as_json: bool
) -> None:
    from holdfast.cli.instance_view import list_document, print_list
    from holdfast.cli.report import to_json
    from holdfast.clock import SystemClock

    async with opened(address) as store:
        page = await store.instances(wanted, limit=limit)
        keys = [(one.tenant, one.instance_id) for one in page.items]
        loaded = {one.instance_id: one for one in (await store.load(keys) if keys else ())}
    now = SystemClock().now()
    if as_json:
        click.echo(to_json(list_document(page, loaded, now)))
    else:
        print_list(console(settings), page, loaded, now)


@instances.command()
@click.argument("instance_id", metavar="ID")
@click.option(
    "--journal",
    "tail",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    help="So many records.",
)
@activities_option
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def show(
    settings: Settings,
    instance_id: str,
    tail: int,
    modules: tuple[str, ...],
    address: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Show where an instance stands: what it waits for, what went wrong, what it did last."""
    import asyncio

    asyncio.run(_show(settings, address, (tenant, instance_id), modules, tail, as_json))


async def _show(
    settings: Settings,
    address: str,
    key: tuple[str, str],
    modules: tuple[str, ...],
    tail: int,
    as_json: bool,
) -> None:
    from holdfast.cli.instance_view import examine, instance_document, print_instance
    from holdfast.cli.report import to_json
    from holdfast.clock import SystemClock

    async with opened(address) as store:
        found = await examine(store, key, modules, tail)
    now = SystemClock().now()
    if as_json:
        click.echo(to_json(instance_document(found)))
    else:
        print_instance(console(settings), found, now)


@instances.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", metavar="TEXT", help="Why, for the journal.")
@click.option("--at-once", is_flag=True, help="Do not wait for what it is doing right now.")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def cancel(
    settings: Settings,
    ids: tuple[str, ...],
    reason: str | None,
    at_once: bool,
    address: str,
    tenant: str,
    as_json: bool,
) -> None:
    """End instances, and the open ones they started."""
    _tell(
        settings,
        (address, tenant, as_json),
        "cancel",
        ids,
        lambda holdfast, one: holdfast.cancel(one, reason, at_once=at_once),
    )


@instances.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--execution", type=int, metavar="N", help="Only this execution; else all with an incident.")
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def retry(
    settings: Settings,
    ids: tuple[str, ...],
    execution: int | None,
    address: str,
    tenant: str,
    as_json: bool,
) -> None:
    """Execute the activities behind incidents again, under the same idempotency keys."""

    async def tell(holdfast: "Holdfast", instance_id: str) -> None:
        from holdfast.errors import Conflict

        executions = [execution] if execution is not None else await _incidents(holdfast, instance_id)
        if not executions:
            raise Conflict(f"Instance {instance_id} has no incidents; there is nothing to do again.")
        for number in executions:
            await holdfast.retry(instance_id, number)

    _tell(settings, (address, tenant, as_json), "retry", ids, tell)


async def _incidents(holdfast: "Holdfast", instance_id: str) -> list[int]:
    from holdfast.engine import decode_state
    from holdfast.runtime.results import InstanceNotFound

    found = await holdfast.store.load([(holdfast.tenant, instance_id)])
    if not found:
        raise InstanceNotFound(instance_id)
    state = found[0].state
    return [] if state is None else sorted({i.execution for i in decode_state(state).incidents})


@instances.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@database_option
@tenant_option
@json_option
@common_options
@click.pass_obj
def delete(settings: Settings, ids: tuple[str, ...], address: str, tenant: str, as_json: bool) -> None:
    """Forget instances with all that belongs to them."""
    _tell(settings, (address, tenant, as_json), "delete", ids, lambda holdfast, one: holdfast.delete(one))


def _tell(
    settings: Settings,
    place: tuple[str, str, bool],
    verb: str,
    ids: tuple[str, ...],
    tell: Callable[["Holdfast", str], Awaitable[Any]],
) -> None:
    import asyncio

    from rich.text import Text

    from holdfast.cli.report import to_json

    address, tenant, as_json = place

    async def send() -> bool:
        async with connected(address, tenant) as holdfast:
            for instance_id in ids:
                await tell(holdfast, instance_id)
            return await has_worker(holdfast.store)

    is_worked = asyncio.run(send())
    if as_json:
        click.echo(to_json({"told": verb, "ids": list(ids), "hasWorker": is_worked}))
        return
    out = console(settings)
    out.print(
        Text.assemble(("✓ ", "green"), f"{count(len(ids), 'instance')} told to {verb}."), soft_wrap=True
    )
    if not is_worked:
        complain(settings, NO_WORKER, kind="Note")
