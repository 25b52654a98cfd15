"""`run` on a terminal: output as it comes, once, and what is said when it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pexpect
import pytest

import blockpty
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")


def spawn(home: Path, *arguments: str) -> pexpect.spawn[str]:
    return pexpect.spawn(
        sys.executable,
        ["-m", "blockpty", "--home", str(home), *arguments],
        encoding="utf-8",
        timeout=60,
        # Tests that are run in the background of a script inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@async_test
async def test_output_is_shown_as_it_comes_and_once(home: Path) -> None:
    async with blockpty.Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        gate = home / "gate"
        os.mkfifo(gate)
        shown = spawn(home, "run", "c1", f"echo first; cat {gate}; exit_with() {{ return 3; }}; exit_with")
        shown.expect("first\r\n")
        # It runs until something is written there: what was shown so far came while it ran.
        await asyncio.to_thread(gate.write_text, "last line\n")
        shown.expect(pexpect.EOF)
        shown.close()
        assert shown.exitstatus == 3
        assert shown.before is not None and shown.before.count("last line") == 1 and "first" not in shown.before
        quick = spawn(home, "run", "c1", "echo quick")
        quick.expect(pexpect.EOF)
        assert quick.before == "quick\r\n"
        quick.close()
        await conversation.close()


@async_test
async def test_leaving_says_what_runs_on(home: Path) -> None:
    async with blockpty.Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        gate = home / "gate"
        os.mkfifo(gate)
        shown = spawn(home, "run", "c1", f"echo begun; cat {gate}")
        shown.expect("begun\r\n")
        shown.sendintr()
        shown.expect("the command keeps running in c1")
        shown.expect("blockpty interrupt c1")
        shown.expect(pexpect.EOF)
        shown.close()
        assert shown.exitstatus == 130
        assert (await conversation.status()).mode == "block_running"
        await asyncio.to_thread(gate.write_text, "done\n")
        assert (await conversation.wait_for({"token": "PROMPT"})).matched
        await conversation.close()
