"""`holdfast migrate`: gives a database the tables that this version of Holdfast needs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.database import DATABASE, database_option
from holdfast.cli.group import common_options
from holdfast.cli.output import Settings, clean, console, count

if TYPE_CHECKING:
    import sqlalchemy as sa


@click.command()
@database_option
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@common_options
@click.pass_obj
def migrate(settings: Settings, address: str, dry_run: bool) -> None:
    """Give a database the tables that this version needs.

    URL is sqlite:///FILE, postgresql://USER:PASSWORD@HOST/DATABASE, or mariadb:// likewise. Rows stay as
    they are; what was done before is not done again, and others who migrate at the same time wait.
    """
    import asyncio

    from rich.text import Text

    url = _url(address)
    if not dry_run:
        _prepare_folder(url, is_ours=address == DATABASE)
    is_new = url.get_backend_name() == "sqlite" and not Path(url.database or "").exists()
    steps = _all_steps() if dry_run and is_new else asyncio.run(_steps(url, dry_run=dry_run))
    out = console(settings)
    symbol, color = ("●", "yellow") if dry_run else ("✓", "green")
    for step in steps:
        out.print(Text.assemble((f"{symbol} ", color), clean(step)), soft_wrap=True)
    place = clean(url.render_as_string(hide_password=True))
    if not steps:
        said = f"{place} is up to date."
    elif dry_run:
        said = f"{count(len(steps), 'migration')} to do in {place}. Nothing was changed."
    else:
        said = f"{place} is up to date: {count(len(steps), 'migration')} done."
    out.print(Text(said, "bold"), soft_wrap=True)


def _url(address: str) -> "sa.URL":
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError

    from holdfast.errors import Invalid

    try:
        return sa.make_url(address)
    except (ArgumentError, ValueError):
        raise Invalid(  # without what was given: there may be a password in it
            "--database is no URL. Give it as sqlite:///holdfast.db or "
            "postgresql://user:password@host:5432/database."
        ) from None


def _prepare_folder(url: "sa.URL", *, is_ours: bool) -> None:
    """SQLite makes its file, not the folder it lies in. We make our own one, nobody else's."""
    from holdfast.errors import Invalid

    if url.get_backend_name() != "sqlite" or not url.database:
        return
    folder = Path(url.database).parent
    if is_ours and not folder.exists():
        try:
            folder.mkdir()
        except OSError as problem:
            raise Invalid(f"The folder {folder} cannot be made: {problem.strerror}.") from None
    if not folder.is_dir():
        raise Invalid(f"There is no folder {folder} for the database. Make it, or choose another place.")


async def _steps(url: "sa.URL", *, dry_run: bool) -> list[str]:
    from holdfast.stores.sql.engines import create
    from holdfast.stores.sql.migrations import migrate, pending

    database = create(url)
    try:
        return await (database.read(pending) if dry_run else database.write(migrate))
    finally:
        await database.close()


def _all_steps() -> list[str]:
    """What a new database needs. Looking into a file that is not there would make one."""
    import sqlalchemy as sa

    from holdfast.stores.sql.migrations import pending

    engine = sa.create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            return pending(connection)
    finally:
        engine.dispose()
