"""What the whole suite shares: one Hypothesis profile, and a place of one's own in every service.

Each test process gets an own, empty database, dropped when it ends; those of processes that died
are dropped by the next run. RabbitMQ and NATS have nothing of that kind to hand out: tests name what
they create after `private_name` and remove it. Where the services are is found by `services`.
"""

import contextlib
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sqlalchemy.engine import make_url

from holdfast.clock import SystemClock
from tests import services
from tests.install_services import install_missing

# Without a stopwatch: on a busy machine a deadline measures the neighbours.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

PREFIX = "holdfast_test"
DAY = 24 * 60 * 60
NOT_TESTED = "not tested here: "
IN_CI = os.environ.get("CI") == "true"


def pytest_configure(config: pytest.Config) -> None:
    if services.RUN_FOLDER in os.environ:  # a worker, or a pytest that a test started
        return
    services.begin_run()
    config.add_cleanup(services.end_run)
    if IN_CI:
        try:
            install_missing(lambda line: print(f"CI=true: {line}", file=sys.stderr, flush=True))
        except Exception as error:  # whatever it is, the run cannot be complete
            raise pytest.UsageError(str(error)) from error


@pytest.hookimpl(wrapper=True, tryfirst=True)  # so that our lines are the last before the count
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    said: set[str] = set()
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if reason.startswith(NOT_TESTED):
                said.add(reason)
                # Told from one place, pytest folds all tests of a missing service into one line.
                report.longrepr = (str(Path(__file__)), None, reason)
    yield
    for line in sorted(said):
        terminalreporter.write_line(line, yellow=True)


def address_of(service: services.Service) -> str:
    """Where it is; else the test is skipped, or fails if this is CI."""
    try:
        return services.find(service)
    except services.Unreachable as error:
        pytest.fail(str(error), pytrace=False)
    except services.NotHere as error:
        if IN_CI:
            pytest.fail(f"{NOT_TESTED}{error}; with CI=true nothing may be left out", pytrace=False)
        pytest.skip(f"{NOT_TESTED}{error}")


def new_name() -> str:
    """A name that says which process made it, and when."""
    made = int(SystemClock().now().timestamp())
    return f"{PREFIX}_{services.this_host()}_{os.getpid()}_{made}_{secrets.token_hex(3)}"


def is_stale(name: str) -> bool:
    """Whether whoever made this name is dead, or has had a day."""
    match name.removeprefix(f"{PREFIX}_").split("_"):
        case [host, pid, made, _] if name.startswith(PREFIX) and made.isdigit():
            return services.is_gone(host, pid) or SystemClock().now().timestamp() - int(made) > DAY
        case _:
            return False


@pytest.fixture(scope="session")
def private_name() -> str:
    """No other test process uses it. Letters, digits and underscores."""
    return new_name()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database of this process, for SQLAlchemy with asyncpg."""
    address, name = address_of(services.POSTGRES), new_name()

    async def create() -> None:
        import asyncpg

        async with services.postgres_connection(address) as server:
            for row in await server.fetch("SELECT datname FROM pg_database"):
                if is_stale(row["datname"]):
                    with contextlib.suppress(asyncpg.PostgresError):  # another process dropped it first
                        await server.execute(f'DROP DATABASE IF EXISTS "{row["datname"]}" WITH (FORCE)')
            await server.execute(f'CREATE DATABASE "{name}"')

    async def drop() -> None:
        async with services.postgres_connection(address) as server:
            await server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    services.run(create())
    yield in_database(address, name, drivername="postgresql+asyncpg")
    services.run(drop())


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    """An empty MariaDB database of this process, for SQLAlchemy with asyncmy."""
    address, name = address_of(services.MARIADB), new_name()

    async def create() -> None:
        async with services.mariadb_cursor(address) as server:
            await server.execute("SELECT schema_name FROM information_schema.schemata")
            for (database,) in await server.fetchall():
                if is_stale(database):
                    await drop(database)
            await server.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")

    async def drop(database: str) -> None:
        async with services.mariadb_cursor(address) as server:
            await server.execute("SET sql_notes = 0")  # else a database that is gone already is a warning
            await server.execute(f"DROP DATABASE IF EXISTS `{database}`")

    services.run(create())
    yield in_database(address, name, drivername="mysql+asyncmy")
    services.run(drop(name))


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """An empty numbered database of this process. Who has which is noted in the server's first one."""
    address, name = address_of(services.REDIS), new_name()
    number = services.run(claim_redis_database(address, name))
    url = in_database(address, str(number))
    yield url
    services.run(release_redis_database(address, url, number))


@pytest.fixture(scope="session")
def rabbitmq_url() -> str:
    """The server's address; what a test declares there is exclusive, or deleted by the test."""
    return address_of(services.RABBITMQ)


@pytest.fixture(scope="session")
def nats_url(private_name: str) -> Iterator[str]:
    """The server's address; streams whose name begins with `private_name` are deleted at the end."""
    address = address_of(services.NATS)

    async def delete(is_due: Callable[[str], bool]) -> None:
        import nats
        from nats.js.errors import NotFoundError

        async with await nats.connect(address) as client:
            streams = client.jetstream()
            for stream in await streams.streams_info():
                if is_due(stream.config.name or ""):
                    with contextlib.suppress(NotFoundError):  # another process deleted it first
                        await streams.delete_stream(stream.config.name or "")

    services.run(delete(is_stale))
    yield address
    services.run(delete(lambda name: name.startswith(private_name)))


def in_database(address: str, database: str, **more: Any) -> str:
    return make_url(address).set(database=database, **more).render_as_string(hide_password=False)


# Ours if nobody has it, or if whoever has it is still the one we found stale.
CLAIM = """
local owner = redis.call('GET', KEYS[1])
if not owner or owner == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) return 1 end
return 0
"""


async def claim_redis_database(address: str, name: str) -> int:
    from redis.asyncio import Redis

    async with Redis.from_url(in_database(address, "0"), decode_responses=True) as claims:
        for number in range(1, int((await claims.config_get("databases"))["databases"])):
            key = f"{PREFIX}:{number}"
            owner = await claims.get(key) or ""
            if owner and not is_stale(owner):
                continue
            if not await claims.eval(CLAIM, 1, key, owner, name):
                continue
            async with Redis.from_url(in_database(address, str(number))) as database:
                if owner:
                    await database.flushdb()
                if await database.dbsize() == 0:
                    return number
            await claims.delete(key)  # it holds somebody's data, who knows nothing of our claims
    raise RuntimeError("Every numbered database of this Redis is in use; start it with more of them.")


async def release_redis_database(address: str, url: str, number: int) -> None:
    from redis.asyncio import Redis

    async with Redis.from_url(url) as database:
        await database.flushdb()
    async with Redis.from_url(in_database(address, "0")) as claims:
        await claims.delete(f"{PREFIX}:{number}")
