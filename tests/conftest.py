"""What every test may use, and what every test is held to.

A test never sees the developer's own home or shell configuration, and when the last one is done no process that a test
started may be left. Async tests use `tests.asyncio_support.async_test`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import versions
from tests.matrix import MatrixWriter
from tests.schema_support import check_files

# What a developer's environment could bring into a shell under test, or into blockpty itself.
_FOREIGN_VARIABLES = (
    *("BASH_ENV", "ENV", "ZDOTDIR", "HISTFILE", "HISTCONTROL", "INPUTRC", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
)
_LEAVING_SECONDS = 10.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", type=Path, help="write how each test ended into this file, for tools/gen_matrix")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--matrix")
    if path is not None:
        config.pluginmanager.register(MatrixWriter(path.absolute()), "matrix")
    config.addinivalue_line("markers", "needs(program, ...): skip, with the reason, where a program is not installed")
    config.addinivalue_line("markers", "linux: uses what only Linux has (/proc, splice, pidfd)")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "damages_files: writes lines into its home on purpose that no schema allows")


def pytest_report_header() -> str:
    return versions.report()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        missing = [program for program in marker.args if shutil.which(program) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")
    if item.get_closest_marker("linux") and sys.platform != "linux":
        pytest.skip("needs Linux")


@pytest.fixture(scope="session", autouse=True)
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, str]]:
    """Directories that hold a home, each with the test it belongs to; checked for left processes at the end."""
    fallback = tmp_path_factory.mktemp("h")
    used = {fallback: "a test without the fixture `home`"}
    with pytest.MonkeyPatch.context() as patch:
        _isolate(patch, fallback)
        yield used
        left = [line for directory, test in used.items() for line in _end_left_processes(directory, test)]
    if left:
        pytest.fail("processes were left running (and are killed now):\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture
def home(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    homes: dict[Path, str],
) -> Iterator[Path]:
    """Give a fresh BLOCKPTY_HOME (0700), set in the environment together with an empty $HOME.

    It is not below `tmp_path`, whose name grows with that of the test: a unix socket path holds about 100 bytes.
    Afterwards every line that was written in it must be what spool_schema/ says.
    """
    directory = tmp_path_factory.mktemp("h")
    homes[directory] = request.node.nodeid
    made = _isolate(monkeypatch, directory)
    yield made
    _stop_server(made)
    if request.node.get_closest_marker("damages_files") is None:
        wrong = check_files(made)
        if wrong:
            pytest.fail("lines that spool_schema/ does not allow:\n  " + "\n  ".join(wrong), pytrace=False)


def _stop_server(home: Path) -> None:
    """End the server that a command started on demand: it would stay for as long as its shells do."""
    try:
        pid = json.loads((home / "server" / "server.json").read_bytes())["pid"]
    except (OSError, ValueError):
        return
    with (home / "server" / "lock").open("rb") as lock:
        os.kill(pid, signal.SIGTERM)
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back when it has gone


def _isolate(patch: pytest.MonkeyPatch, directory: Path) -> Path:
    for name in os.environ:
        if name in _FOREIGN_VARIABLES or name.startswith("BLOCKPTY_"):
            patch.delenv(name)
    home = directory / "home"
    user = directory / "user"
    home.mkdir(mode=0o700)
    user.mkdir(mode=0o700)
    # Where one of these is missing, fish's first start reads all manual pages in the background, and holds the terminal
    # open for that long; the homes of people have them.
    for folder in (".local/share", ".cache"):
        (user / folder / "fish" / "generated_completions").mkdir(parents=True)
    patch.setenv("BLOCKPTY_HOME", str(home))
    patch.setenv("HOME", str(user))
    patch.setenv("LC_ALL", "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8")
    patch.setenv("TERM", "xterm-256color")
    return home


def _end_left_processes(directory: Path, test: str) -> list[str]:
    """Give the hosts below `directory` time to leave; kill and name those that do not."""
    left = []
    for path in sorted(directory.rglob("host/pid")):
        try:
            host = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue  # it left in this moment
        deadline = time.monotonic() + _LEAVING_SECONDS
        running = {pid: role for role, pid in host.items() if isinstance(pid, int) and pid > 1 and _is_alive(pid)}
        while running and time.monotonic() < deadline:
            # They are not our children, so there is nothing portable to wait on but their absence.
            time.sleep(0.02)
            running = {pid: role for pid, role in running.items() if _is_alive(pid)}
        commands = {pid: _command_line(pid) for pid in running}
        # A number whose process is no Python at all belongs to somebody else by now.
        ours = [pid for pid, command in commands.items() if "blockpty" in command or "python" in command.lower()]
        left += [f"{running[pid]} {pid} of {test}: {commands[pid]}" for pid in ours]
        # Keeper and recorder start each other again, so neither may see the other end.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in ours:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
    return left


def _is_alive(pid: int) -> bool:
    # If a test started it as its own child, only collecting it tells a dead one from a living one.
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # another user's: the number was used again
    return True


def _command_line(pid: int) -> str:
    if sys.platform == "linux":  # a minimal system has no ps
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    listing = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=10
    )
    return listing.stdout.strip()
