"""Nothing that a program, a command, a directory or a name holds can drive the terminal that shows it (S3)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import blockpty
from tests.support.cli_terminal import on_terminal, unsafe
from tests.support.hostile_output import HOSTILE
from tests.support.processes import stop_server
from tests.support.profile import one_in_turn, some_of

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]

BROKEN = HOSTILE + b"\x9b5n\x9b"
SHOWN = "OWNED"
# A directory's name: what a file system allows of that. Twice the word, because a table may fold a path within one.
DIRECTORY = BROKEN.replace(b"/", b"") + SHOWN.encode()


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory, homes: dict[Path, str]) -> Iterator[Path]:
    """Give a home with a conversation that is hostile wherever it can be."""
    top = tmp_path_factory.mktemp("h")
    homes[top] = __name__
    home, place = top / "home", os.fsencode(top) + b"/" + DIRECTORY
    os.mkdir(place)
    payload = top / "payload"
    payload.write_bytes(BROKEN)
    home.mkdir(mode=0o700)
    asyncio.run(asyncio.wait_for(_fill(home, os.fsdecode(place), payload), 60))
    yield home
    _close(home)


async def _fill(home: Path, place: str, payload: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", persist=True)
        await conversation.run(f"cat '{payload}'; echo; false")
        text = HOSTILE.decode("utf-8", "replace")
        # As a comment and as a string, over several lines.
        await conversation.run(f"# {text}\nprintf '%s\\n' '{text}' >&2")
        await conversation.run(f"cd '{payload.parent}'/*OWNED*; cat '{payload}'")
        await conversation.run("pwd; (exit 7)")
        await engine.open("c2", shell="bash", persist=True)
        await conversation.exec_interactive(f"cat '{payload}'; read -p 'SAY OWNED ' answer")
        await conversation.wait_for("SAY OWNED ")
    assert "OWNED" in place


def _close(home: Path) -> None:
    # Whichever engine owns them by now: the command line finds it.
    for name in ("c1", "c2"):
        command = [sys.executable, "-m", "blockpty", "--home", str(home), "close", name]
        subprocess.run(command, capture_output=True, check=True, timeout=60)
    stop_server(home)


CALLS: Final[list[list[str | bytes]]] = [
    ["list"],
    ["status", "c1"],
    ["blocks", "c1"],
    ["block", "c1", "b2"],
    ["block", "c1", "b4"],
    ["log", "c1"],
    ["log", "c1", "--reverse", "--no-output"],
    ["log", "c1", "--json"],
    ["read", "c1", "--view", "ansi", "--max-bytes", "1000000"],
    ["read", "c1", "--view", "raw", "--max-bytes", "1000000"],
    ["read", "c1", "--block-id", "b5", "--view", "rendered"],
    ["wait-for", "c1", '{"regex": ".*OWNED.*"}', "--from-cursor", "0", "--view", "ansi"],
    ["wait-for", "c1", "OWNED never", "--from-cursor", "0", "--view", "ansi", "--timeout-ms", "900"],
    ["wait-for", "c1", "OWNED never", "--from-cursor", "0", "--view", "raw", "--timeout-ms", "10"],
    ["events", "c1", "--no-follow"],
    ["run", "c2", b"'" + HOSTILE + b"'"],
    ["read", "c1", "--block-id", HOSTILE],
    ["open", "c3", "--shell", HOSTILE],
    ["open", "c3", "--cwd", b"/" + HOSTILE],
    ["open", "c3", "--env", HOSTILE.replace(b"=", b"")],
    ["events", "c1", HOSTILE],
    ["read", "c1", "--view", HOSTILE],
    [HOSTILE],
    ["status", "c1", b"--" + HOSTILE],
    ["doctor", "--home", b"/OWNED" + HOSTILE],
    ["list", "--home", b"/proc/OWNED" + HOSTILE],
]
WITHOUT_COLOURS: Final = some_of(CALLS, 4)


@pytest.mark.parametrize(
    "arguments", CALLS,
    ids=lambda arguments: " ".join(word if isinstance(word, str) else "HOSTILE" for word in arguments),
)
def test_what_is_hostile_is_shown_and_not_obeyed(
    transcript: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str | bytes]
) -> None:
    monkeypatch.setenv("BLOCKPTY_HOME", str(transcript))
    _, shown = on_terminal(*arguments)
    assert SHOWN in shown
    assert not unsafe(shown)
    if arguments in WITHOUT_COLOURS:
        _, shown = on_terminal(*arguments, NO_COLOR="1")
        assert "\x1b" not in shown and not unsafe(shown)


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        pytest.param(arguments, data, id=f"{' '.join(arguments)}-{'text' if data is HOSTILE else 'no text'}")
        for number, arguments in enumerate(
            (["run", "c1"], ["send", "c1", "--session-id"], ["status"], ["tail"], ["log"], [], ["open", "--cwd"])
        )
        for data in one_in_turn(number, (HOSTILE, BROKEN))
    ],
)
def test_what_is_refused_is_not_obeyed_either(
    transcript: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], data: bytes
) -> None:
    monkeypatch.setenv("BLOCKPTY_HOME", str(transcript))
    status, shown = on_terminal(*arguments, data)
    assert status in (1, 2) and "Traceback" not in shown
    assert not unsafe(shown)


@pytest.mark.parametrize("arguments", [[], ["--blocks"], ["--json"]])
def test_tail_of_a_hostile_program(home: Path, arguments: list[str]) -> None:
    payload = home.parent / "payload"
    payload.write_bytes(BROKEN)
    asyncio.run(asyncio.wait_for(_hostile_and_over(payload), 60))
    status, shown = on_terminal("tail", "c1", "--from-cursor", "0", *arguments)
    assert status == 0 and SHOWN in shown
    assert not unsafe(shown)


async def _hostile_and_over(payload: Path) -> None:
    async with blockpty.Engine() as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run(f": '{HOSTILE.decode('utf-8', 'replace')}'; cat '{payload}'")


@pytest.mark.parametrize("shown", ["\x1b[2J", "\x1b]0;x", "\x9b5n", "\x07", "a\rb", "\u202e", "\x1b"])
def test_what_would_be_obeyed_is_noticed(shown: str) -> None:
    assert unsafe(f"text {shown} text")
