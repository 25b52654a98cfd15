"""log: on a terminal in the pager, elsewhere plain."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.cli_tail import Conversation, in_a_conversation
from tests.support.cli_terminal import on_terminal, start, unsafe

pytestmark = pytest.mark.needs("bash")


def log(*arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "blockpty", "log", "c1", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stderr == ""
    return result.stdout


def records(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log("--json", *arguments).splitlines()]


@in_a_conversation
async def test_log(conversation: Conversation) -> None:
    for command in ("echo one", "(exit 3)", "seq 1000000\ntrue", "kill -TERM $BASHPID", "printf '\\033[31mred'"):
        await conversation.run(command, timeout_ms=60_000)
    await conversation.exec_block("echo now; read x")
    await conversation.wait_for("now")

    def ids(*arguments: str) -> list[str]:
        return [record["block_id"] for record in records(*arguments)]

    async def check() -> None:
        assert await asyncio.to_thread(ids) == ["b6", "b5", "b4", "b3", "b2", "b1"]
        assert await asyncio.to_thread(ids, "-n", "2") == ["b6", "b5"]
        assert await asyncio.to_thread(ids, "-n", "0") == []
        assert await asyncio.to_thread(ids, "--reverse", "-n", "2") == ["b5", "b6"]
        assert "b2" in (failed := await asyncio.to_thread(ids, "--failed")) and not {"b1", "b3", "b6"} & set(failed)
        by_id = {record["block_id"]: record for record in await asyncio.to_thread(records)}
        assert by_id["b1"] == {
            **(await conversation.block("b1")).block.to_dict(),
            "span": by_id["b1"]["span"],
            "output": "one\n",
            "output_truncated": False,
        }
        assert by_id["b3"]["output"].split() == ["1", "2", "3", "4", "5", *(str(999_996 + n) for n in range(5))]
        assert by_id["b3"]["output_truncated"] is True
        assert by_id["b6"]["state"] == "running" and by_id["b6"]["output"] == "now\n"
        assert "output" not in (await asyncio.to_thread(records, "--no-output"))[0]
        text = await asyncio.to_thread(log)
        assert "\x1b" not in text
        headings = [line for line in text.splitlines() if line.startswith("b")]
        assert [line.split()[0] for line in headings] == ["b6", "b5", "b4", "b3", "b2", "b1"]
        assert "running" in headings[0] and "exit 3" in headings[4]
        assert "$ seq 1000000\n  true\n" in text and "    one\n" in text and "6888896 bytes in all" in text
        assert "one" in await asyncio.to_thread(log, "--lines", "1")
        assert "    one" not in await asyncio.to_thread(log, "--no-output")

    await check()


@in_a_conversation
async def test_log_on_a_terminal_goes_through_the_pager(conversation: Conversation) -> None:
    await conversation.run("printf '\\033[31mred\\033]0;t\\007'; (exit 3)")
    await conversation.run("seq 2000")
    status, shown = await asyncio.to_thread(on_terminal, "log", "c1", PAGER="sed 's/^/PAGED /'")
    assert status == 0 and not unsafe(shown)
    assert "PAGED \x1b[33mb2" in shown and "\x1b[31mred^[]0;t" in shown and "\x1b[31mexit 3" in shown
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        status, shown = await asyncio.to_thread(on_terminal, "log", "c1", **variables)
        assert status == 0 and "\x1b" not in shown and "red" in shown
    status, shown = await asyncio.to_thread(on_terminal, "log", "c1", "--no-pager", PAGER="false")
    assert status == 0 and "\x1b[33mb2" in shown
    # Who leaves the pager early has seen enough.
    status, shown = await asyncio.to_thread(on_terminal, "log", "c1", "--lines", "1000", PAGER="head -n 1")
    assert status == 0 and shown.count("\n") == 1


@pytest.mark.needs("less")
@in_a_conversation
async def test_log_in_less(conversation: Conversation) -> None:
    await conversation.run("seq -f %0200g 900; printf '\\033[31mred\\033]0;OW%s\\007' NED")

    def page() -> tuple[int | None, bytes]:
        with start("log", "c1", "--lines", "1000", columns=300, PAGER="less -R", LESS="-R") as terminal:
            # The first screen is full, so less waits for a key; more is to come than a pipe holds.
            terminal.expect_exact(":\x1b[K")
            terminal.sendintr()  # less takes it for itself, and rings
            terminal.expect_exact("\x07")
            terminal.send("GG")  # one key may get lost: less drops it if the Ctrl-C came just before it began to wait
            terminal.expect_exact("OWNED")
            shown = terminal.before
            terminal.send("q")
            terminal.read()
        return terminal.exitstatus, shown

    status, shown = await asyncio.to_thread(page)
    assert status == 0
    assert b"\x1b[31mred" in shown and shown.endswith(b"^[]0;")
