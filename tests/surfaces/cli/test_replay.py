"""`blockpty replay` on a real terminal: what is shown, when, and what never reaches it."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockpty
from blockpty.screen.emulator import Emulator
from tests.support.cli_terminal import on_terminal, start, unsafe
from tests.support.hostile_output import HOSTILE
from tests.support.processes import stop_server

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]

# All that a picture is drawn with, apart from colours.
OURS = re.compile(r"\x1b\[(?:\?1049[hl]|\?25[hl]|\?7[hl]|2J|2K|H|\d+;\d+H)")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory, homes: dict[Path, str]) -> Iterator[Path]:
    """Give a home with a conversation that has colours, a full-screen program, a pause and hostile bytes."""
    top = tmp_path_factory.mktemp("h")
    homes[top] = __name__
    home, payload = top / "home", top / "payload"
    payload.write_bytes(HOSTILE + b"\x1b[m\r\n")
    asyncio.run(asyncio.wait_for(_fill(home, payload), 60))
    yield home
    stop_server(home)


async def _fill(home: Path, payload: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("printf '\\033[32mgreen\\033[0m\\n'; sleep 0.3")
        await conversation.run("printf '\\033[?1049h\\033[5;10Hfull screen'; sleep 0.6; printf '\\033[?1049l'")
        await conversation.run(f"cat '{payload}'")
        await conversation.run("clear; echo the end")


def ours_removed(shown: str) -> str:
    return OURS.sub("", shown)


def test_it_plays_and_ends_with_the_last_picture(record: Path) -> None:
    status, shown = on_terminal("replay", "c1", "--home", str(record), "--speed", "5")
    assert status == 0, shown
    assert shown.startswith("\x1b[?1049h") and "\x1b[0;32mgreen" in shown and "full screen" in shown
    ending = shown.rpartition("\x1b[?1049l")[2]
    screen = Emulator(200, 40)
    screen.feed(ending.encode())
    lines = [line.text for line in screen.frame().lines]
    assert "the end" in lines and not any("green" in line for line in lines)
    assert unsafe(ours_removed(shown)) == []
    assert not (record / "exports").exists()


def test_nothing_hostile_reaches_the_terminal(record: Path) -> None:
    status, shown = on_terminal("replay", "c1", "--home", str(record), "--block", "b3", "--speed", "50")
    assert status == 0
    assert unsafe(ours_removed(shown)) == []
    # The title is in no cell; what was printed is, the character that would reorder the line by its number.
    assert "OWNED" not in shown
    assert "writte<U+202E>" in shown


def test_a_part_of_it_and_shortened_silences(record: Path) -> None:
    _, shown = on_terminal("replay", "c1", "--home", str(record), "--block", "b1", "--from", "60")
    assert "green" in shown and "full screen" not in shown
    # Without the limit the two pauses take 90 s, and a program on this terminal is given 60.
    status, _ = on_terminal("replay", "c1", "--home", str(record), "--speed", "0.01", "--idle-limit", "0")
    assert status == 0


def test_ctrl_c_gives_the_terminal_back(record: Path) -> None:
    with start("replay", "c1", "--home", str(record), "--block", "b2", "--speed", "0.01") as terminal:
        terminal.expect_exact("full screen")
        terminal.sendintr()
        shown = terminal.read().decode()
    assert terminal.exitstatus == 130 and terminal.signalstatus in (None, signal.SIGINT)
    assert "\x1b[?1049l" in shown and "Traceback" not in shown
    assert not (record / "exports").exists()


def test_what_is_wrong_is_said_before_anything_is_played(record: Path) -> None:
    status, shown = on_terminal("replay", "c1", "--home", str(record), "--block", "b99")
    assert status == 1 and "not_found" in shown and "\x1b[?1049h" not in shown
    assert on_terminal("replay", "c1", "--home", str(record), "--json")[0] == 2
    assert on_terminal("replay", "c1", "--home", str(record), "--verify")[0] == 0


def test_the_keys_of_a_player(record: Path) -> None:
    with start("replay", "c1", "--home", str(record), "--step", "--speed", "5") as terminal:
        terminal.expect_exact("paused")
        terminal.expect_exact("b1 printf")
        terminal.send("n")
        terminal.expect_exact("b2 printf")
        terminal.send("p")
        terminal.expect_exact("b1 printf")
        terminal.send("+")
        terminal.expect_exact("x10")
        terminal.send("\x1b[C ")
        terminal.send("q")
        shown = terminal.read().decode()
    assert terminal.exitstatus == 0, shown
    assert "\x1b[?1049l" in shown and "Traceback" not in shown
