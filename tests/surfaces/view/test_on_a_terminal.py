"""`blockpty view` and `watch` on real terminals: in tmux with bash and vim, and with a program that is hostile."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from blockpty.surfaces.client import Client
from tests.support.async_tests import async_test
from tests.support.cli_terminal import on_terminal, start
from tests.support.hostile_output import HOSTILE
from tests.support.tmux_panes import Tmux, pane

pytestmark = [pytest.mark.needs("bash"), pytest.mark.linux]

# What Textual itself writes: colours, the cursor, modes and a question about them, and the shape of the mouse pointer.
OURS = re.compile(r"\x1b\[(?:[0-9;:]*[mH]|[?<>][0-9]*[hlu]|\?[0-9]+\$p)|\x1b\]22;default\x07")
ANYTHING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def inner(rows: list[str], height: int) -> list[str]:
    """Return the program's screen in the pane of `watch`: below our header and caption, and a column in."""
    return [row[1:].rstrip() for row in rows[2 : 2 + height]]


async def expected(client: Client, height: int) -> list[str]:
    conversation = await client.conversation("c1")
    found = (await conversation.screen(format="text")).content.split("\n")
    return [row.rstrip() for row in found] + [""] * (height - len(found))


async def until_alike(tmux: Tmux, client: Client, height: int) -> list[str]:
    """Wait until the pane shows what the engine does; a program may draw in steps, on which both follow."""
    for _ in range(200):
        wanted = await expected(client, height)
        shown = inner(await asyncio.to_thread(tmux.rows), height)
        if shown == wanted:
            return wanted
    raise AssertionError("\n".join(["never alike:", *wanted, "but:", *shown]))


@pytest.mark.needs("tmux", "vim")
@async_test
async def test_vim_in_tmux_looks_as_the_engine_has_it(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = home / "plan.txt"
    text.write_text("".join(f"line {number} 漢字 é\n" for number in range(60)))
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/", cols=70, rows=24)
        await conversation.exec_interactive(f"vim -Nu NONE {text}")
        await conversation.wait_for("line 20")
        with pane(tmp_path_factory.mktemp("t"), home, "watch", "c1", columns=80, lines=30) as tmux:
            await tmux.until(lambda rows: any("line 20" in row for row in rows))
            for keys, seen in (("20G", "line 19"), ("oadded here[ESC]", "added here"), (":set number[ENTER]", " 21 ")):
                await conversation.send_keys(keys)
                await conversation.wait_for({"screen": re.escape(seen)}, view="raw")
                assert any(seen in row for row in await until_alike(tmux, client, 24))
            await conversation.resize(60, 20)
            await conversation.send_keys("^L")
            rows = await tmux.until(lambda rows: "60×20" in rows[1])
            assert rows[1].lstrip().startswith("Screen 60×20 · live")
            await conversation.send_keys(":q![ENTER]")
            await conversation.wait_for({"token": "PROMPT"})
            await until_alike(tmux, client, 20)
            tmux("send-keys", "q")
        await conversation.close()


@pytest.mark.needs("tmux", "vim")
@async_test
async def test_a_person_edits_with_vim_in_tmux(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    text = home / "plan.txt"
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd=str(home))
        with pane(tmp_path_factory.mktemp("t"), home, "view", "c1", columns=190, lines=40) as tmux:
            await tmux.until(lambda rows: "agent types" in rows[0] and "● live" in rows[0])
            tmux("send-keys", "t")
            await tmux.until(lambda rows: "you type" in rows[0])
            tmux("send-keys", "-l", "vim -Nu NONE plan.txt")
            tmux("send-keys", "Enter")
            await tmux.until(lambda rows: any("plan.txt" in row and "[New]" in row for row in rows))
            tmux("send-keys", "-l", "iqt?!/ j")
            await tmux.until(lambda rows: any("-- INSERT --" in row for row in rows))
            await tmux.until(lambda rows: any(" qt?!/ j" in row for row in rows))
            tmux("send-keys", "Escape")
            await tmux.until(lambda rows: not any("INSERT" in row for row in rows))
            tmux("send-keys", "-l", ":wq")
            tmux("send-keys", "Enter")
            await tmux.until(lambda rows: any("✓ vim" in row for row in rows))
            tmux("send-keys", "C-]")
            await tmux.until(lambda rows: "agent types" in rows[0])
            assert text.read_text() == "qt?!/ j\n"
            tmux("send-keys", "q")
        await conversation.close()


@async_test
async def test_no_byte_of_a_hostile_program_reaches_the_terminal(home: Path) -> None:
    payload = home / "payload"
    payload.write_bytes(HOSTILE + b"\n")
    place = home / "x\x1b]0;OWNED\x07\u202e"
    place.mkdir()
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd=str(place))
        await conversation.run(f"cat {payload}; printf 'over\\n'; false # \u202e\x1b]0;OWNED\x07")

        def look() -> str:
            with start("view", "c1", "--home", str(home), columns=200) as terminal:
                terminal.expect_exact("live")
                # In the block and on the screen, in light as well, and while being searched for.
                shown = terminal.before + terminal.after
                for keys, answer in (("D", "live"), ("/", "search every"), ("over", "matches"), ("\x1b", "help")):
                    terminal.send(keys)
                    terminal.expect_exact(answer)
                    shown += terminal.before + terminal.after
                terminal.send("q")
                shown += terminal.read()
                terminal.wait()
                assert terminal.exitstatus == 0
                text: str = shown.decode()
                return text

        text = await asyncio.to_thread(look)
        await conversation.close()
    assert "over" in text and "OWNED" in text
    assert re.findall(ANYTHING.pattern + ".{0,12}", OURS.sub("", text)) == []


@async_test
async def test_the_terminal_is_as_before_and_errors_are_shown_as_any_other(home: Path) -> None:
    async with Client(home) as client:
        conversation = await client.open("c1", shell="bash", cwd="/")

        def look() -> tuple[int | None, str]:
            with start("watch", "c1", "--home", str(home), columns=100) as terminal:
                terminal.expect_exact("live")
                terminal.send("q")
                rest = terminal.read().decode()
                terminal.wait()
                return terminal.exitstatus, rest

        status, rest = await asyncio.to_thread(look)
        assert status == 0 and "\x1b[?1049l" in rest and "\x1b[?25h" in rest
        for command in ("view", "watch"):
            status, shown = await asyncio.to_thread(on_terminal, command, "missing", "--home", str(home))
            assert status == 1 and "not_found" in shown and "\x1b[?1049h" not in shown
        await conversation.close()


def test_it_needs_a_terminal(home: Path) -> None:
    for command in (("view",), ("watch", "c1")):
        done = subprocess.run(
            [sys.executable, "-m", "blockpty", "--home", str(home), *command], capture_output=True, text=True,
            check=False, timeout=60, env={**os.environ}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 2 and "needs a terminal" in done.stderr


def test_other_commands_do_not_load_textual(home: Path) -> None:
    program = (
        "import sys\nfrom blockpty.surfaces.cli.main import main\n"
        "main(['--home', sys.argv[1], 'list'])\nmain(['view', '--help'])\nmain(['--help'])\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'textual'], 'textual was loaded'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
