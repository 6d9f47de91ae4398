"""What a driver's error means for whoever asked: try later, try again, the key is taken, or not here.

Three databases say the same few things in three ways; here they are named once. What is not named
(a syntax error, a value too long, a missing table) is a mistake of ours and rises as it is.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import exc

from holdfast.errors import Conflict, HoldfastError, Invalid, Unavailable


class TryAgain(Unavailable):
    """Two transactions were in each other's way, and this one was taken back. Do the same again."""


class DatabaseRefused(Invalid):
    """The address of a database does not lead to one that we may use. Correct it, or ask for the right."""

    code = "database.refused"


@contextmanager
def translated(where: sa.URL) -> Generator[None]:
    """Inside, errors of the drivers become ours."""
    try:
        yield
    except exc.DBAPIError as error:
        # Last, since PostgreSQL and MariaDB close the connection after some of the errors we name.
        meaning = _meaning(error.orig) or (Unavailable if error.connection_invalidated else None)
        if meaning is None:
            raise
        raise meaning(f"{_PHRASES[meaning]} {_said(error.orig)}") from error
    # Drivers let these through bare, and a pool that is exhausted has an error of its own.
    except (OSError, exc.TimeoutError) as error:
        raise _away(where, error) from error
    except Exception as error:
        # Not wrapped: asyncpg's while connecting, and whatever is said to a driver directly.
        meaning = None if isinstance(error, HoldfastError) else _meaning(error)
        if meaning is None:
            raise
        if meaning is Unavailable:
            raise _away(where, error) from error
        raise meaning(f"{_PHRASES[meaning]} {_said(error)}") from error


_PHRASES: dict[type[HoldfastError], str] = {
    Unavailable: "The database cannot do this now; try again later. It said:",
    TryAgain: "Another transaction was in the way and this one was taken back; do the same again. It said:",
    Conflict: "A row with this key exists already; look at it, then decide. The database said:",
    DatabaseRefused: "The database refuses us; correct its address, or ask for the right. It said:",
}


def _away(where: sa.URL, error: BaseException) -> Unavailable:
    place = where.render_as_string(hide_password=True)
    return Unavailable(f"The database {place} cannot be reached; try again later. {_said(error)}")


def _said(error: BaseException | None) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _meaning(driver: BaseException | None) -> type[HoldfastError] | None:
    number = driver.args[0] if driver is not None and driver.args else None
    if isinstance(driver, sqlite3.Error):
        return _of_sqlite(getattr(driver, "sqlite_errorcode", 0))
    if isinstance(number, int):  # only MariaDB's begin with a number; they may have an SQLSTATE as well
        return _of_mariadb(number)
    if type(driver).__name__ == "InvalidCachedStatementError":
        # A migration elsewhere changed a table under a prepared statement; the next try prepares anew.
        return TryAgain
    return _of_postgresql(str(getattr(driver, "sqlstate", None) or ""))


def _of_postgresql(state: str) -> type[HoldfastError] | None:
    if state == "23505":
        return Conflict
    if state in ("40001", "40P01", "55P03"):  # serialization, deadlock, lock_timeout
        return TryAgain
    if state[:2] in ("28", "3D") or state == "42501":  # user or password, no such database, not permitted
        return DatabaseRefused
    return Unavailable if _is_away(state) else None


def _is_away(state: str) -> bool:
    """Connection lost, out of resources, stopped by an operator or a timeout, I/O error, read-only."""
    return state[:2] in ("08", "53", "57", "58") or state in ("25006", "25P03")


def _of_mariadb(number: int) -> type[HoldfastError] | None:
    if number in (1062, 1586):
        return Conflict
    if number in (1020, 1205, 1213):  # record changed since last read, lock wait timeout, deadlock
        return TryAgain
    if number in (1044, 1045, 1049, 1142, 1143, 1227, 1698):  # as above
        return DatabaseRefused
    return Unavailable if number in _MARIADB_AWAY else None


_MARIADB_AWAY = frozenset(
    {1021, 1041, 1114}  # disk or memory or table full
    | {1040, 1203, 1226}  # too many connections, for all or for this user
    | {1047, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184}  # shutting down, connection aborted
    | {1290, 1792, 1836}  # read-only
    | {1317, 1927, 1969, 3024, 4031}  # killed, or ran out of time
    | {2002, 2003, 2005, 2006, 2013, 2014, 2055}  # the client's: no connection, or lost
)


def _of_sqlite(code: int) -> type[HoldfastError] | None:
    if code in (
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
        sqlite3.SQLITE_CONSTRAINT_ROWID,
    ):
        return Conflict
    primary = code & 0xFF  # the rest says more, which nobody here can act on
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return TryAgain
    if primary == sqlite3.SQLITE_NOTADB:
        return DatabaseRefused
    away = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
    return Unavailable if primary in away else None
