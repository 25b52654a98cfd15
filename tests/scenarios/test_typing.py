"""A person types at the prompt of a real shell: the block has the command's text, however it was edited."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from blockpty.host import spawn
from tests.scenarios.stage import PROMPT, SHORT_MS, Stage, in_every_shell, open_stage
from tests.support.async_tests import async_test

# What is typed, burst by burst, and the command that it makes.
TYPED: Final = {
    "plain": ([b"echo one; echo two\r"], "echo one; echo two"),
    "backspace": ([b"echo abx\x7fc\r"], "echo abc"),
    "home and end": ([b"world\x01", b"echo \x05 !\r"], "echo world !"),
    "arrows": ([b"echo ac\x1b[D", b"b\x1b[C", b"d\r"], "echo abcd"),
    "kill line": ([b"junk junk\x15", "echo é日\r".encode()], "echo é日"),
    "kill word": ([b"echo a b c\x17", b"\x17", b"z\r"], "echo a z"),
    "continued": ([b"for x in 1 2; do\r", b"echo $x\r", b"done\r"], "for x in 1 2; do\necho $x\ndone"),
    "paste": ([b"\x1b[200~echo p1\necho p2\x1b[201~", b"\r"], "echo p1\necho p2"),
    "history search": ([b"\x12", b"needle", b"\r"], "echo needle"),
    "completion": ([b"echo unique", b"\t", b"\r"], "echo unique_name"),
    "clear screen": ([b"echo q\x0c", b"r\r"], "echo qr"),
    "wrapped": ([b"echo " + b"w" * 150 + b"\x1b[D\x1b[DXY\x1b[C\r"], "echo " + "w" * 148 + "XYww"),
    "inserted before rows": ([b"echo " + b"ab " * 60 + b"\x01\x1b[C", b"Q\x05end\r"], "eQcho " + "ab " * 60 + "end"),
    "exactly one row": ([b"echo " + b"r" * 200 + b"\x7f" * 120, b"\r"], "echo " + "r" * 80),
}


async def type_out(stage: Stage, bursts: list[bytes]) -> None:
    """Type one burst after the other, each when the line editor has drawn the last."""
    first = await stage.type(bursts[0])
    for burst in bursts[1:]:
        await stage.wait({"idle_ms": 25}, first)
        await stage.type(burst)
    await stage.wait(PROMPT, first)


@in_every_shell()
@async_test(timeout_seconds=100)
async def test_an_edited_line_is_the_command(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        (stage.folder / "unique_name").touch()
        await type_out(stage, [b"echo needle\r"])
        for name, (bursts, command) in TYPED.items():
            await type_out(stage, bursts)
            block = (await stage.blocks())[-1]
            assert (block.kind, block.author, block.cmd.rstrip()) == ("user", "user", command), name
        assert await stage.doubts() == []


@in_every_shell()
@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_a_shell_that_has_not_read_a_line_yet_is_not_taken_to_wait_for_more(shell: str, home: Path) -> None:
    """On a busy machine the shell may get no processor time for longer than a silence takes."""
    async with open_stage(home, shell) as stage:
        first = await stage.type(b"for x in 1 2; do\r")
        await stage.wait({"idle_ms": 25}, first)
        pid = (await stage.conversation.status()).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        while (facts := spawn.process_facts(pid)) is None or facts[0] != "T":
            pass
        cursor = await stage.type(b"echo $x; done\r")
        # A silence is entered while the line has not been read.
        await stage.wait({"idle_ms": 50}, cursor)
        waited = await stage.conversation.wait_for(PROMPT, from_cursor=first, timeout_ms=SHORT_MS)
        assert (waited.matched, waited.reason) == (False, "timeout")
        os.kill(pid, signal.SIGCONT)
        await stage.wait(PROMPT, first)
        assert (await stage.blocks())[-1].state == "ended"


@pytest.mark.needs("fish")
@async_test(timeout_seconds=100)
async def test_fish_names_the_line_that_a_person_typed(home: Path) -> None:
    same = ("plain", "backspace", "home and end", "arrows", "kill line", "paste", "wrapped")
    typed = {name: TYPED[name] for name in same}
    typed["continued"] = ([b"for x in 1 2\r", b"echo $x\r", b"end\r"], "for x in 1 2\necho $x\nend")
    typed["every character"] = ([b"echo '~%;' \"a\\$b\" #x\r"], "echo '~%;' \"a\\$b\" #x")
    typed["long"] = (["echo é".encode() * 700 + b"\r"], "echo é" * 700)
    async with open_stage(home, "fish") as stage:
        for name, (bursts, command) in typed.items():
            await type_out(stage, bursts)
            block = (await stage.blocks())[-1]
            # fish indents what is continued.
            text = "\n".join(line.strip() for line in block.cmd.split("\n"))
            assert (block.kind, block.author, text) == ("user", "user", command), name
        assert (await stage.done("echo ours")).output == b"ours\n"
        assert (await stage.blocks())[-1].cmd == "echo ours"
        assert await stage.doubts() == []


@pytest.mark.needs("bash")
@pytest.mark.parametrize("ps0", [r"[PS0]\n", "no line end", r"$(date)\n\n", r"\e[0m", "$(sleep 0.3)"])
@async_test(timeout_seconds=60)
async def test_what_the_users_ps0_prints_is_no_part_of_the_command(ps0: str, home: Path) -> None:
    (home.parent / "user" / ".bashrc").write_text(f"PS0='{ps0}'\n")
    async with open_stage(home, "bash") as stage:
        for typed, command in ([b"echo hi\r"], "echo hi"), TYPED["continued"], TYPED["wrapped"]:
            await type_out(stage, typed)
            assert ((await stage.blocks())[-1].kind, (await stage.blocks())[-1].cmd) == ("user", command)
        await type_out(stage, [b"echo hi\r"])
        assert (await stage.done("echo two")).output == b"two\n"
        blocks = await stage.blocks()
        assert [stage.outcome(block).output for block in blocks[-2:]] == [b"hi\n", b"two\n"]
        assert [block.cmd for block in blocks[-2:]] == ["echo hi", "echo two"]
        assert await stage.doubts() == []


@in_every_shell()
@async_test(timeout_seconds=60)
async def test_a_staged_command_is_not_reported_twice(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        await stage.run("echo staged")
        assert b"__CMD__" not in stage.stream()
        assert [block.cmd for block in await stage.blocks()] == ["echo staged"]


@in_every_shell()
@async_test(timeout_seconds=60)
async def test_the_nonce_is_masked_in_what_is_typed(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        await type_out(stage, [f"echo {stage.nonce}\r".encode()])
        assert [block.cmd for block in await stage.blocks()] == ["echo " + "*" * len(stage.nonce)]


@in_every_shell()
@async_test(timeout_seconds=60)
async def test_what_a_program_reads_is_no_part_of_the_command(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        cursor = await stage.type(b"stty -echo; echo ready; read -r x; stty echo\r")
        await stage.wait({"regex": "^ready$"}, cursor)
        await stage.type(b"secret\r")
        await stage.wait(PROMPT, cursor)
        assert [block.cmd for block in await stage.blocks()] == ["stty -echo; echo ready; read -r x; stty echo"]


@pytest.mark.needs("zsh")
@async_test(timeout_seconds=60)
async def test_a_long_command_is_cut_and_says_so(home: Path) -> None:
    async with open_stage(home, "zsh") as stage:
        line = "x='" + "é%" * 3000 + "'"
        await type_out(stage, [line.encode() + b"\r"])
        recorded = (await stage.blocks())[-1].cmd
        assert recorded.endswith("…") and line.startswith(recorded[:-1]) and len(recorded) > 2000
