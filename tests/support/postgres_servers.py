"""PostgreSQL for tests: a coordinator and some shards, each a server of its own, from the installed programs.

No fixed port, no TCP: the servers listen on unix sockets in a short temporary directory. PostgreSQL refuses to run as
root, so under root it runs as the user `postgres`, or as one without rights. To look around in what the tests use:

    python -m tests.support.postgres_servers
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
import pytest

START_SECONDS = 30.0
SUPERUSER = "blockpty"
# What a killed server has committed is in the system's cache; these tests do not turn the power off.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "60",
    "autovacuum_naptime": "10s",
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",
}
# What a test has left in a database: connections, and all that it may have made. With it go those who wait for a lock.
_EMPTY = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "DROP EXTENSION IF EXISTS postgres_fdw CASCADE",
    "DROP SCHEMA IF EXISTS blockpty CASCADE",
    "DROP SCHEMA public CASCADE",
    "CREATE SCHEMA public",
)
_databases = itertools.count(1)


def programs() -> Path | None:
    """Return the directory of the newest server programs, or None where PostgreSQL is not installed."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: float(path.parent.name))
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


def _user() -> str | None:
    """Return as whom the servers run, None for as whom this runs."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):  # words: on the system
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


class Server:
    """One server with a data directory of its own.

    Attributes:
        name: what the others call it.
        directory: holds its data, its socket and its log.
    """

    def __init__(self, name: str, directory: Path, bin_directory: Path, settings: dict[str, str]) -> None:
        self.name = name
        self.directory = directory
        self._bin = bin_directory
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(mode=0o700)
        if (user := _user()) is not None:
            shutil.chown(directory, user)
            directory.chmod(0o711)

    def dsn(self, database: str) -> str:
        """Return the connection string of a database."""
        return f"postgresql://{SUPERUSER}@/{database}?host={self.directory}"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.directory / "data"

    def initialise(self) -> None:
        """Make the data directory."""
        command = [
            str(self._bin / "initdb"), "--no-sync", "--auth=trust", "--username", SUPERUSER, "--encoding=UTF8",
            "--locale=C.UTF-8" if sys.platform == "linux" else "--locale=C", "--pgdata", str(self.data),
        ]  # fmt: skip
        if self._run(command).wait() != 0:
            raise RuntimeError(f"initdb failed:\n{self._log()}")

    def start(self) -> None:
        """Start it and wait until it answers; from a thread that ends before it, it would end with that."""
        options = {**_SETTINGS, "unix_socket_directories": str(self.directory), **self._settings}
        command = [str(self._bin / "postgres"), "-D", str(self.data)]
        command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        if shutil.which("setpriv"):
            # A test run that is killed leaves no servers behind.
            command = ["setpriv", "--pdeathsig=INT", *command]
        self._process = self._run(command)
        self.wait()

    def wait(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                gone = self._process is None or self._process.poll() is not None
                if gone or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.name} does not start:\n{self._log()}") from None
                time.sleep(0.01)

    def kill(self) -> None:
        """Kill it, and every process of it, with SIGKILL."""
        assert self._process is not None
        everything = [self._process.pid, *self._children()]
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        # A server that starts while a process of the one before it lives refuses to.
        while any(_lives(pid) for pid in everything):
            time.sleep(0.002)

    def pause(self) -> None:
        """Stop every process of it with SIGSTOP: connections stay, and none is answered."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal_all(signal.SIGCONT)

    def stop(self) -> None:
        """Stop it, if it runs; what is in its memory is not written first, since its files go as well."""
        if self._process is not None and self._process.poll() is None:
            self.resume()
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def _signal_all(self, number: int) -> None:
        assert self._process is not None
        for pid in (self._process.pid, *self._children()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _children(self) -> list[int]:
        assert self._process is not None
        pid = self._process.pid
        with contextlib.suppress(OSError):
            return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return []

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                command, user=_user(), group=None if _user() is None else pwd.getpwnam(str(_user())).pw_gid,
                extra_groups=None if _user() is None else [], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            )  # fmt: skip

    def _log(self) -> str:
        return (self.directory / "log").read_text("utf-8", "replace")[-2000:]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A child that has not been waited for yet is no process any more.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@dataclass(frozen=True)
class Databases:
    """A database on each server, empty; what a test is given.

    Attributes:
        url: of the coordinator, or of the only server.
        shards: of the shards, in their order; empty where there is one server.
        servers: the servers, the coordinator first.
    """

    url: str
    shards: tuple[str, ...]
    servers: Servers


class Servers:
    """A coordinator and its shards; a context manager that leaves nothing behind."""

    def __init__(self, shards: int = 2, settings: dict[str, str] | None = None) -> None:
        bin_directory = programs()
        if bin_directory is None:
            raise RuntimeError("PostgreSQL is not installed")
        self._directory = Path(tempfile.mkdtemp(prefix="bp"))
        self._directory.chmod(0o711)
        names = ["coordinator", *(f"shard_{number}" for number in range(shards))]
        self._all = [
            Server(name, self._directory / f"{number}", bin_directory, settings or {})
            for number, name in enumerate(names)
        ]
        # Unused databases, of all servers and of the coordinator alone.
        self._free: dict[bool, list[str]] = {True: [], False: []}

    @property
    def coordinator(self) -> Server:
        """The server that engines connect to."""
        return self._all[0]

    @property
    def shards(self) -> list[Server]:
        """The servers that hold the text."""
        return self._all[1:]

    def __enter__(self) -> Self:
        try:
            self.coordinator.initialise()
            for server in self.shards:
                # Faster than to make it three times.
                subprocess.run(["cp", "-a", self.coordinator.data, server.data], check=True)
            for server in self._all:
                server.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop all servers and remove their files."""
        for server in self._all:
            server.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    @contextlib.contextmanager
    def databases(self, *, sharded: bool = True) -> Iterator[Databases]:
        """Give an empty database of one name on each server."""
        servers, free = (self._all if sharded else self._all[:1]), self._free[sharded]
        if free:
            name = free.pop()
        else:
            name = f"t{os.getpid()}_{next(_databases)}"
            for server in servers:
                _execute(server, "postgres", f"CREATE DATABASE {name}")
        urls = [server.dsn(name) for server in servers]
        yield Databases(urls[0], tuple(urls[1:]), self)
        # To make one anew takes the servers a quarter of a second each.
        for server in servers:
            _execute(server, name, *_EMPTY)
        free.append(name)


def _execute(server: Server, database: str, *statements: str) -> None:
    with psycopg.connect(server.dsn(database), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture(scope="session")
def postgres_servers() -> Iterator[Servers]:
    """Give a coordinator and two shards that run, once for a test process."""
    if programs() is None:
        pytest.skip("not installed: PostgreSQL")
    with Servers() as servers:
        yield servers


def main() -> None:
    """Run the servers until Enter is pressed."""
    with Servers() as servers, servers.databases() as databases:
        print(f"BLOCKPTY_DATABASE_URL='{databases.url}'")
        print(f"BLOCKPTY_DATABASE_SHARDS='{','.join(databases.shards)}'")
        input("Enter stops them: ")


if __name__ == "__main__":
    main()
