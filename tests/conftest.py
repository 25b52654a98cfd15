"""What every test may use, and what every test is held to.

A test never sees the developer's own home or shell configuration, and when the last one is done no process that a test
started may be left. Async tests use `tests.support.async_tests.async_test`.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import blockpty
from tests.support import versions
from tests.support.matrix import MatrixWriter
from tests.support.processes import end_left_processes, stop_server
from tests.support.schemas import check_files

# What a developer's environment could bring into a shell under test, or into blockpty itself.
_FOREIGN_VARIABLES = (
    *("BASH_ENV", "ENV", "ZDOTDIR", "HISTFILE", "HISTCONTROL", "INPUTRC", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
)

# Properties look at no clock: on a machine that does other work, drawing an example may take as long as it likes.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", type=Path, help="write how each test ended into this file, for tools/gen_matrix")


def pytest_configure(config: pytest.Config) -> None:
    # Nothing of what the collection makes is garbage, and to look for some takes a fifth of its time.
    gc.disable()
    path = config.getoption("--matrix")
    # The processes of pytest-xdist report to the first one, which writes.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(MatrixWriter(path.absolute()), "matrix")
    config.addinivalue_line("markers", "needs(program, ...): skip, with the reason, where a program is not installed")
    config.addinivalue_line("markers", "linux: uses what only Linux has (/proc, splice, pidfd)")
    config.addinivalue_line("markers", "slow: takes more than a few seconds")
    config.addinivalue_line("markers", "damages_files: writes lines into its home on purpose that no schema allows")


def pytest_collection_finish(session: pytest.Session) -> None:
    # Hypothesis also draws constants of the modules that are loaded. Where processes share the tests out, its examples
    # would depend on which of them ran before in the same process, and a run could not be repeated.
    if hasattr(session.config, "workerinput"):
        for module in pkgutil.walk_packages(blockpty.__path__, "blockpty."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    # Each async test collects garbage twice, to see what it left. What was there before the first test is not its
    # own, and to go through all of it takes some 0.2 s.
    gc.enable()
    gc.collect()
    gc.freeze()


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
        left = [line for directory, test in used.items() for line in end_left_processes(directory, test)]
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
    stop_server(made)
    if request.node.get_closest_marker("damages_files") is None:
        wrong = check_files(made)
        if wrong:
            pytest.fail("lines that spool_schema/ does not allow:\n  " + "\n  ".join(wrong), pytrace=False)


@pytest.fixture(params=[False, True], ids=["splice", "no-splice"])
def no_splice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a test as the system has it, and once more with a recorder that reads and writes."""
    if request.param:
        monkeypatch.setenv("BLOCKPTY_NO_SPLICE", "1")
    return bool(request.param)


@pytest.fixture
def fdatasyncs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often this process forces each file to the medium, by the last part of its name."""
    count: Counter[str] = Counter()
    real = os.fdatasync

    def counted(fd: int) -> None:
        count[Path(os.readlink(f"/proc/self/fd/{fd}")).name] += 1
        real(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    return count


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
