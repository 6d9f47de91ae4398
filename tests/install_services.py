"""Databases and brokers from Debian packages, for a CI machine that has none.

The pytest process that began the run calls this when `CI=true`, before any worker starts. PostgreSQL
and NATS are not in here: their wheels are among the development dependencies. Finding a service, and
starting those two, is `services`.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable

from tests.services import MARIADB, RABBITMQ, REDIS, Service, on_loopback

PACKAGES = {MARIADB: "mariadb-server", REDIS: "redis-server", RABBITMQ: "rabbitmq-server"}
DAEMONS = {MARIADB: "mariadb", REDIS: "redis-server", RABBITMQ: "rabbitmq-server"}
PROGRAMS = {MARIADB: "mariadbd", REDIS: "redis-server", RABBITMQ: "rabbitmq-server"}

LET_TESTS_IN = (
    "CREATE USER IF NOT EXISTS"
    " 'test'@'127.0.0.1' IDENTIFIED BY 'test', 'test'@'localhost' IDENTIFIED BY 'test';"
    "GRANT ALL ON *.* TO 'test'@'127.0.0.1', 'test'@'localhost';"
)


def install_missing(say: Callable[[str], None]) -> None:
    """Install and start what does not answer yet, on standard ports, and say what takes so long."""
    missing = [service for service in PACKAGES if _is_missing(service)]
    if not missing or not shutil.which("apt-get"):
        return
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    if packages := [PACKAGES[s] for s in missing if not shutil.which(PROGRAMS[s], path=path)]:
        say(f"installing {', '.join(packages)}")
        _as_root("apt-get", "update", "-qq")
        _as_root("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
    for service in missing:
        say(f"starting {service.title}")
        _as_root("service", DAEMONS[service], "start")
        if service is MARIADB:
            _as_root("mariadb", "-e", LET_TESTS_IN)  # a fresh one lets root in by its socket only
        _wait_for(service)


def _is_missing(service: Service) -> bool:
    return service.wanted and not os.environ.get(service.variable) and not on_loopback(service)


def _as_root(*command: str) -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive"]
    done = subprocess.run(
        [*sudo, *environment, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"CI=true, but `{' '.join(command)}` failed:\n{done.stdout[-4000:]}")


def _wait_for(service: Service) -> None:
    deadline = time.monotonic() + 60
    while not on_loopback(service):
        if time.monotonic() > deadline:
            raise RuntimeError(f"CI=true: {service.title} was installed and started, but does not answer")
        time.sleep(0.2)
