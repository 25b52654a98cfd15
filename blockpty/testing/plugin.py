"""Plugin of pytest: a real shell for a test, its screen and blocks in the report of a failure, and snapshots.

    def test_it_asks(terminal_sync):
        terminal_sync.exec_interactive("./install")
        terminal_sync.expect("Proceed? [y/N] ")

Rules of this file: pytest loads it in every run, so it imports nothing but pytest before a fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from blockpty.sync import Conversation
    from blockpty.testing.terminals import BridgedConversation

_CONVERSATION: pytest.StashKey[Conversation] = pytest.StashKey()
_DIRECTORY: pytest.StashKey[Path] = pytest.StashKey()
MARKER = "terminal(**parameters): parameters of `open` for the shell of the fixtures terminal and terminal_sync"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("blockpty").addoption(
        "--terminal-update", action="store_true", help="write the snapshots of terminals anew, in place of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def terminal_sync(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Conversation]:
    """Give a shell: a `blockpty.sync.Conversation` in `tmp_path`, with a home and a $HOME of its own.

    The mark `terminal` gives parameters of `open`, such as `shell`, `cols` or `env`. The shell is closed afterwards.
    """
    from blockpty.testing.terminals import terminal

    parameters: dict[str, Any] = {}
    for marker in reversed([*request.node.iter_markers("terminal")]):
        parameters |= marker.kwargs
    # Not below `tmp_path`, whose name grows with that of the test: the path of a socket holds about 100 bytes.
    directory = tmp_path_factory.mktemp("t")
    with terminal(directory, tmp_path, parameters) as conversation:
        request.node.stash[_CONVERSATION] = conversation
        request.node.stash[_DIRECTORY] = directory
        try:
            yield conversation
        finally:
            del request.node.stash[_CONVERSATION]


@pytest.fixture
def terminal(terminal_sync: Conversation) -> BridgedConversation:
    """Give the shell of `terminal_sync` to a test that is a coroutine, with the methods of `blockpty.Conversation`."""
    from blockpty.testing.terminals import bridged

    return bridged(terminal_sync)


@pytest.fixture
def terminal_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Give a function that compares a screen, a run, or a text with a file beside the test.

    The file is `__terminal__/<test module>/<test>.txt`, with `name` behind it where one is given; `--terminal-update`
    writes it.
    """
    taken: set[Path] = set()
    folder = request.path.parent / "__terminal__" / request.path.stem

    def check(shown: object, name: str = "") -> None:
        from blockpty.testing.terminals import snapshot_text

        stem = re.sub(r"[^\w.-]+", "_", request.node.name + (f"-{name}" if name else "")).strip("_")
        path = folder / f"{stem}.txt"
        if path in taken:
            raise ValueError(f"{path.name} was compared already in this test: give each snapshot a name")
        taken.add(path)
        _compare(path, snapshot_text(shown), update=bool(request.config.getoption("--terminal-update")))

    return check


def _compare(path: Path, text: str, *, update: bool) -> None:
    __tracebackhide__ = True
    kept = path.read_text("utf-8") if path.exists() else None
    if kept == text:
        return
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return
    if kept is None:
        pytest.fail(f"there is no snapshot {path} yet: look at this, and write it with --terminal-update\n\n{text}")
    from difflib import unified_diff

    lines = unified_diff(kept.splitlines(), text.splitlines(), "kept", "shown now", lineterm="")
    pytest.fail("\n".join([f"not as in {path} (--terminal-update writes it anew)", "", *lines]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    conversation = item.stash.get(_CONVERSATION, None)
    made = outcome.get_result()
    if conversation is None or made.when != "call" or not made.failed:
        return
    from blockpty.testing.terminals import report

    recording = item.stash[_DIRECTORY] / "recording.cast"
    made.sections.extend(report(conversation, recording))
    # Of the item: reports of its later phases, from which files are written, have it then.
    item.user_properties.append(("terminal_recording", str(recording)))
