"""Programs that ask the terminal get a constant answer, once, and no other program sees it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.scenarios.stage import PROMPT, TIMEOUT_MS, open_stage
from tests.support.async_tests import async_test

DA1 = b"\x1b[?62;22c"
WELL = b"\x1b[0n"

# Asks in raw mode, reads up to the final byte, prints what it got in hexadecimal.
ASK = """import os, sys, termios, tty
question, last = sys.argv[1].encode().decode('unicode_escape').encode(), sys.argv[2].encode()
old = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, question)
got = b''
while not got.endswith(last):
    got += os.read(0, 1)
termios.tcsetattr(0, termios.TCSADRAIN, old)
print('got', got.hex())
"""


NUMBERS = [
    (r"\x1b[6n", "R", rb"\x1b\[(\d+);(\d+)R"), (r"\x1b[?6n", "R", rb"\x1b\[\?\d+;\d+;1R"),
    (r"\x1b[18t", "t", rb"\x1b\[8;24;80t"),
    (r"\x1b[>c", "c", rb"\x1b\[>1;\d+;0c"), (r"\x1b[?2004$p", "y", rb"\x1b\[\?2004;2\$y"),
    (r"\x1b[3;7H\x1b[6n", "R", rb"\x1b\[3;7R"),
]  # fmt: skip


@pytest.mark.needs("bash")
@pytest.mark.parametrize(("question", "last", "expected"), NUMBERS, ids=[one[0] for one in NUMBERS])
@async_test
async def test_answers_with_numbers(question: str, last: str, expected: bytes, home: Path) -> None:
    async with open_stage(home, "bash") as stage:
        (stage.folder / "ask.py").write_text(ASK)
        result = await stage.run(f"{sys.executable} ask.py '{question}' {last}")
        got = bytes.fromhex(result.output.rpartition("got ")[2].strip())
        assert re.fullmatch(expected, got), got
        assert await stage.doubts() == [] and (await stage.done("echo next")).output == b"next\n"


@pytest.mark.needs("bash")
@async_test
async def test_no_answer_where_none_is_wanted(home: Path) -> None:
    async with open_stage(home, "bash", answers=False) as stage:
        (stage.folder / "ask.py").write_text(ASK)
        begun = await stage.conversation.exec_interactive(f"{sys.executable} ask.py '\\x1b[c' c")
        await stage.wait("\x1b[c", begun.cursor, view="raw")
        assert await stage.absent("got", begun.cursor) == "timeout"
        await stage.conversation.send("xc")
        assert (await stage.wait("got 7863", begun.cursor)).matched


@pytest.mark.parametrize("shell", [
    pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in ("bash", "zsh", "fish", "dash")
])  # fmt: skip
@async_test
async def test_a_program_asks(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        (stage.folder / "ask.py").write_text(ASK)
        for question, last, answer in ((r"\x1b[c", "c", DA1), (r"\x1b[0c", "c", DA1), (r"\x1b[5n", "n", WELL)):
            result = await stage.run(f"{sys.executable} ask.py '{question}' {last}")
            assert result.output.endswith(f"got {answer.hex()}\n"), result
            assert answer not in await stage.raw()
        assert (await stage.done("echo next")).output == b"next\n"
        typed = [entry for entry in stage.timeline() if entry["kind"] == "input" and entry["author"] == "engine"]
        assert [entry["data"].encode() for entry in typed] == [DA1, DA1, WELL]
        assert await stage.doubts() == []


@pytest.mark.parametrize("shell", [
    pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in ("bash", "zsh", "fish", "dash")
])  # fmt: skip
@async_test
async def test_a_question_that_is_only_shown(shell: str, home: Path) -> None:
    """A file with a question in it: no program reads, so no answer may stand on the next command line."""
    async with open_stage(home, shell) as stage:
        (stage.folder / "file").write_bytes(b"before \x1b[c after\n")
        for _ in range(20):
            assert (await stage.done("cat file")).output == b"before \x1b[c after\n"
            assert (await stage.done("echo next")).output == b"next\n"
        assert DA1 not in await stage.raw()


@pytest.mark.needs("bash")
@async_test
async def test_old_questions_are_not_answered(home: Path) -> None:
    """Another engine that takes the conversation over reads the question again, and says nothing."""
    from blockpty import Engine

    work = home.parent / "work"
    work.mkdir()
    (work / "ask.py").write_text(ASK)
    async with Engine(home) as first:
        conversation = await first.open("c1", shell="bash", cwd=str(work), persist=True)
        result = await conversation.run(f"{sys.executable} ask.py '\\x1b[c' c", timeout_ms=TIMEOUT_MS)
        assert result.block.exit_status == 0
    async with Engine(home) as second:
        conversation = await second.conversation("c1")
        waited = await conversation.run("echo next", timeout_ms=TIMEOUT_MS)
        assert waited.output == "next\n"
        inputs = [event async for event in conversation.events(follow=False) if event.type == "input"]
        assert [event.fields["author"] for event in inputs] == ["agent", "engine", "agent"]
        await conversation.wait_for(PROMPT, from_cursor=0, timeout_ms=TIMEOUT_MS)
        await conversation.close()
