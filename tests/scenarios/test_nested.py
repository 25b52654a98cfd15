"""Another shell inside a block: it is seen, and the block lasts until it ends."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.scenarios.stage import GRACE_MS, PROMPT, TIMEOUT_MS, in_every_shell, open_stage
from tests.support.async_tests import async_test

# The command and the program that has the terminal then.
NESTED: Final = {
    "bash": ("bash --norc --noprofile", "bash"),
    "zsh": ("zsh -f", "zsh"),
    "sh": ("sh", "sh"),
    "all variables exported": ("set -a; bash --norc --noprofile", "bash"),
    "exported prompts": ("export PS0 PS1 PS2 PROMPT_COMMAND; bash --norc --noprofile", "bash"),
    "su": ("su -s /bin/bash -c 'exec bash --norc' root", "su"),
    "python": (f"{shlex.quote(sys.executable)} -i -q", "python"),
}


@pytest.mark.parametrize("name", NESTED)
@in_every_shell()
@async_test(timeout_seconds=60)
async def test_an_inner_shell_is_part_of_its_block(name: str, shell: str, home: Path) -> None:
    command, program = NESTED[name]
    if name == "su" and os.geteuid() != 0:
        pytest.skip("su asks for a password unless root calls it")
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    async with open_stage(home, shell) as stage:
        session = await stage.conversation.exec_interactive(command)
        say = "print('in'+'side')" if program == "python" else "echo in''side"
        await stage.wait({"idle_ms": 50}, session.cursor)
        await stage.conversation.send(f"{say}\r", session_id=session.session_id)
        await stage.wait("inside", session.cursor)
        nested = (await stage.conversation.status()).nested
        assert nested is not None and nested["evidence"] == "foreground"
        assert nested["program"].startswith(program) or (name == "su" and nested["program"] == "bash")
        assert (await stage.conversation.status()).active_block_id == session.block_id
        assert await stage.blocks() == []
        await stage.conversation.send(b"exit()\r" if program == "python" else b"exit 3\r")
        await stage.conversation.wait_for(PROMPT, timeout_ms=TIMEOUT_MS)
        assert [block.block_id for block in await stage.blocks()] == [session.block_id]
        assert (await stage.conversation.status()).nested is None
        assert (await stage.run("echo next")).output == "next\n"


@pytest.mark.parametrize("command", ["sleep 1000", "(read -r a; exit 1)"])
@in_every_shell()
@async_test(timeout_seconds=60)
async def test_a_program_that_runs_no_commands_is_not_nested(command: str, shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        if shell == "fish" and command.startswith("("):
            pytest.skip("fish has no (...)")
        begun = await stage.conversation.exec_block(f"echo there; {command}")
        await stage.wait({"regex": "^there$"}, begun.cursor)
        assert (await stage.conversation.status()).nested is None
        await stage.conversation.interrupt(grace_ms=GRACE_MS)


@in_every_shell()
@async_test(timeout_seconds=180)
async def test_a_program_that_is_about_to_start_is_not_nested(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        for _ in range(20):
            begun = await stage.conversation.exec_block("sleep 0.02")
            assert [(await stage.conversation.status()).nested for _ in range(12)] == [None] * 12
            await stage.conversation.wait_for(PROMPT, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)


EVIDENCE: Final = {
    "hints": b"there\n\033]133;A\007",
    "marks": b"there\n\033]7717;__PROMPT__;n=;i=9;s=1;c=0;p=1\007",
}


@pytest.mark.parametrize("evidence", EVIDENCE)
@in_every_shell()
@async_test(timeout_seconds=60)
async def test_what_is_printed_is_evidence_and_no_border(evidence: str, shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        # Printed by the program that goes on: a shell that prints it itself may start the program much later.
        printed = home.with_name("printed")
        printed.write_bytes(EVIDENCE[evidence])
        begun = await stage.conversation.exec_block(f"tail -n +1 -f {shlex.quote(str(printed))}")
        await stage.wait({"regex": "^there$"}, begun.cursor)
        await stage.wait({"idle_ms": 50}, begun.cursor)
        status = await stage.conversation.status()
        assert status.nested == {"program": "tail", "evidence": evidence}
        assert status.active_block_id == begun.block_id and await stage.blocks() == []
        assert len(await stage.events("hint")) == (evidence == "hints")
        await stage.conversation.interrupt(grace_ms=GRACE_MS)
