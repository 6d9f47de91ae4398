"""The database that a command is about: where it is, and what is said when it is not there.

Operators look at what runs, so nothing here makes a database or changes its tables: `holdfast migrate`
does that, and `holdfast worker` where the database is a file.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from holdfast.application import Holdfast
    from holdfast.store import Store

F = TypeVar("F", bound=Callable[..., Any])

DATABASE = "sqlite:///.holdfast/holdfast.db"
VARIABLE = "HOLDFAST_DATABASE"


def _inherited(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """What was given, here or to the command around this one."""
    name = parameter.name or ""
    if value is None and context.parent is not None:
        value = context.parent.params.get(name)
    return value


def _chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    return _inherited(context, parameter, value) or os.environ.get(VARIABLE) or DATABASE


def _tenant(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    return _inherited(context, parameter, value) or ""


database_option = click.option(
    "--database",
    "address",
    metavar="URL",
    callback=_chosen,
    help=f"Which one. Else what {VARIABLE} says, else {DATABASE}.",
)

tenant_option = click.option("--tenant", metavar="ID", callback=_tenant, help="Of this tenant.")


def check_address(address: str, *, is_made: bool = False) -> None:
    """Say what is wrong with a URL before anybody connects. Raises Invalid or NotFound.

    `is_made`: a file that is not there yet will be made.
    """
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError

    from holdfast.errors import Invalid, NotFound

    try:
        url = sa.make_url(address)
    except (ArgumentError, ValueError):
        raise Invalid(  # without what was given: there may be a password in it
            "--database is no URL. Give it as sqlite:///holdfast.db or "
            "postgresql://user:password@host:5432/database."
        ) from None
    file = Path(url.database or "")
    if url.get_backend_name() == "sqlite" and url.database and not is_made and not file.exists():
        raise NotFound(
            f"There is no database {file}. `holdfast worker` makes one and works it, `holdfast migrate` "
            f"only makes it; another one is named with --database or {VARIABLE}."
        )


@asynccontextmanager
async def opened(address: str) -> AsyncGenerator["Store"]:
    """The store at that address, to look at."""
    from holdfast.stores.opening import open_store

    check_address(address)
    store = await open_store(address, migrate_first=False)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def connected(address: str, tenant: str = "") -> AsyncGenerator["Holdfast"]:
    """The same, to send messages to whoever works there."""
    from holdfast.application import Holdfast

    check_address(address)
    async with Holdfast(address, works=False, migrate=False, tenant=tenant) as holdfast:
        yield holdfast


async def has_worker(store: "Store") -> bool:
    """Whether some living node works shards."""
    living = {node.id for node in await store.nodes()}
    leases = await store.leases()
    return any(node in living and name.startswith("shard-") for name, (node, _) in leases.items())


NO_WORKER = "No worker is running, so it waits: start one with `holdfast worker`."
