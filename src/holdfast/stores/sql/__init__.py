"""Durable state in a SQL database: SQLite, PostgreSQL, MariaDB.

`tables` is the schema as the code sees it, `migrations` how a database gets there, `engines` how a
function of a connection is run, `failures` what becomes of a driver's errors. Nothing is imported
here, so that whoever does without a SQL database does not wait for SQLAlchemy.
"""
