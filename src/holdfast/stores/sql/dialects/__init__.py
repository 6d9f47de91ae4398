"""The kinds of database we know, each with its own quick way for what is done all the time."""

from holdfast.stores.sql.dialect import Dialect
from holdfast.stores.sql.dialects.mariadb import MariadbDialect
from holdfast.stores.sql.dialects.postgresql import PostgresqlDialect
from holdfast.stores.sql.dialects.sqlite import SqliteDialect
from holdfast.stores.sql.engines import Database, PostgresqlDatabase, SqliteDatabase


def dialect_of(database: Database) -> Dialect:
    if isinstance(database, PostgresqlDatabase):
        return PostgresqlDialect(database)
    if isinstance(database, SqliteDatabase):
        return SqliteDialect(database)
    return MariadbDialect(database)
