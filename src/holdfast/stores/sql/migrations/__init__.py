"""How a database gets the tables of this code, whatever it has now.

Each step is a module in `versions/`, numbered, and goes forward only: `upgrade(op)` gets Alembic's
operations as an argument. There is no `env.py` and nobody imports `alembic.op`: both are global to the
process, and two databases migrated at the same time would get each other's steps. Alembic keeps its
own record of what was done in the table `holdfast_version`.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, MigrationStep
from alembic.script import Script, ScriptDirectory

from holdfast.errors import Unavailable

VERSION_TABLE = "holdfast_version"
PATIENCE = 60
"""Seconds that one process waits for another one to migrate."""

_HERE = Path(__file__).parent


class NotMigrated(Unavailable):
    """The database lacks steps that this code needs. Run `holdfast migrate`."""

    code = "database.not_migrated"


class TooNew(Unavailable):
    """The database has had steps that this code does not know. Run the newer Holdfast."""

    code = "database.too_new"


def migrate(connection: sa.Connection, *, also: Sequence[Path] = (), to: str = "heads") -> list[str]:
    """Bring the database up to date and say what was done. Others that start meanwhile wait.

    The connection is in a transaction, as `Database.write` gives it, and does nothing else in it.
    `also` names more folders with steps, `to` the last one to take. PostgreSQL and SQLite do all steps
    or none; MariaDB commits at every change of a table, so a step looks what an earlier try has left.
    """
    with _alone(connection):
        known = _known(also)
        steps = _missing(connection, known, to)

        def todo(*_: object) -> list[MigrationStep]:
            return [MigrationStep.upgrade_from_script(known.revision_map, step) for step in steps]

        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "fn": todo})
        context.run_migrations(op=Operations(context))
        return [_title(step) for step in steps]


def pending(connection: sa.Connection, *, also: Sequence[Path] = ()) -> list[str]:
    """What `migrate` would do, in its order. Raises TooNew."""
    return [_title(step) for step in _missing(connection, _known(also))]


def check(connection: sa.Connection, *, also: Sequence[Path] = ()) -> None:
    """Whether the database has the tables of this code. Raises NotMigrated or TooNew."""
    steps = pending(connection, also=also)
    if steps:
        raise NotMigrated(
            f"The database {connection.engine.url.database} lacks: {', '.join(steps)}. "
            f"Run `holdfast migrate`, then start again."
        )


def _known(also: Sequence[Path]) -> ScriptDirectory:
    return ScriptDirectory(_HERE, version_locations=[_HERE / "versions", *also])


def _missing(connection: sa.Connection, known: ScriptDirectory, to: str = "heads") -> list[Script]:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    done = context.get_current_heads()
    numbers = {script.revision for script in known.walk_revisions()}
    unknown = sorted(set(done) - numbers)
    if unknown:
        raise TooNew(
            f"The database {connection.engine.url.database} is at version {', '.join(unknown)}, this code "
            f"knows versions up to {max(numbers)}. A newer Holdfast has migrated it: run that one."
        )
    return [*known.iterate_revisions(to, done)][::-1]


def _title(step: Script) -> str:
    return step.revision + " " + step.doc.removesuffix(".")


@contextmanager
def _alone(connection: sa.Connection) -> Generator[None]:
    """Nobody else migrates this database inside."""
    if connection.dialect.name == "postgresql":
        # Waiting for the lock, and rewriting a large table, take longer than a turn may.
        connection.execute(sa.text(f"set local lock_timeout = '{PATIENCE}s'"))
        connection.execute(sa.text("set local statement_timeout = 0"))
        connection.execute(sa.text(f"select pg_advisory_xact_lock({crc32(VERSION_TABLE.encode())})"))
        yield
    elif connection.dialect.name in ("mysql", "mariadb"):
        with _named_lock(connection):
            yield
    else:
        yield  # BEGIN IMMEDIATE is the lock


@contextmanager
def _named_lock(connection: sa.Connection) -> Generator[None]:
    database = str(connection.engine.url.database)
    name = f"holdfast.{crc32(database.encode())}"  # locks are known by name to the whole server
    asked = {"name": name, "patience": PATIENCE}
    with _without_time_limit(connection):
        if connection.scalar(sa.text("select get_lock(:name, :patience)"), asked) != 1:
            raise Unavailable(
                f"Another process has been migrating the database {database} for more than {PATIENCE} "
                f"seconds. Look whether it is still at work, then start again."
            )
        try:
            yield
            # Before the lock goes, or the next one does not see the version. Not `commit()`: the
            # transaction is the caller's to end.
            connection.exec_driver_sql("commit")
        finally:
            connection.execute(sa.text("select release_lock(:name)"), asked)


@contextmanager
def _without_time_limit(connection: sa.Connection) -> Generator[None]:
    if not getattr(connection.dialect, "is_mariadb", False):
        yield  # MySQL limits nothing but selects
        return
    limit = connection.scalar(sa.text("select @@max_statement_time"))
    connection.execute(sa.text("set max_statement_time = 0"))
    try:
        yield
    finally:
        connection.execute(sa.text("set max_statement_time = :limit"), {"limit": limit})
