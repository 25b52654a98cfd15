"""The same short list through the engine, in every version of bash, zsh and fish that `tools/shells` has fetched."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.scenarios.stage import PROMPT, Done, Stage, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import some_of
from tests.support.versions import FETCHED, OLDEST, numbers, startup

SYNTAX_ERROR = {"bash": 2, "zsh": 1, "fish": 123}


def versions() -> Iterator[object]:
    if not FETCHED:
        yield pytest.param(None, None, id="none", marks=pytest.mark.skip("no other versions here: run tools/shells"))
    for name, version, path in some_of(FETCHED, 2):
        old = numbers(version) < OLDEST[name]
        marks = [pytest.mark.skip(f"{name} {version} is older than what is supported")] if old else []
        yield pytest.param(name, path, id=f"{name}-{version}", marks=marks)


in_each_version = pytest.mark.parametrize(("name", "path"), [*versions()])


@contextlib.asynccontextmanager
async def opened(home: Path, name: str, path: Path) -> AsyncIterator[Stage]:
    file = startup(name, path)
    if file is not None:
        (Path.home() / file[0]).write_text(file[1])
    async with open_stage(home, str(path)) as stage:
        yield stage


async def plain(stage: Stage, name: str) -> None:
    """Statuses, output without a line end, several lines, a directory."""
    (stage.folder / "a b").mkdir()
    status = await stage.conversation.status()
    assert (status.mode, status.tty, status.integrity) == ("idle", "at_prompt", "ok")
    for command, done in (
        ("echo hi", Done(0, "ended", b"hi\n")), ("false", Done(1, "ended", b"")), ("printf x", Done(0, "ended", b"x")),
        ("sh -c 'exit 7'", Done(7, "ended", b"")), ("echo one\necho two\nfalse", Done(1, "ended", b"one\ntwo\n")),
        ("printf '\\n\\nx\\n\\n'", Done(0, "ended", b"\n\nx\n\n")),
    ):  # fmt: skip
        assert await stage.done(command) == done, command
    syntax = await stage.run("echo before\necho )")
    assert syntax.block.exit_status in (SYNTAX_ERROR[name], 1, 127)
    assert syntax.block.state == ("ended" if name == "bash" else "rejected")
    for actual, directory in (
        (await stage.done("cd 'a b'; pwd"), f"{stage.folder}/a b"), (await stage.done("pwd", cwd="/usr"), "/usr"),
    ):  # fmt: skip
        # fish 4 tells the terminal of a new directory at once (OSC 7), so it stands in the output.
        output = re.sub(rb"\x1b\]7;[^\x07]*\x07", b"", actual.output) if name == "fish" else actual.output
        assert (actual.exit_status, actual.state, output) == (0, "ended", os.fsencode(directory) + b"\n")
    assert (await stage.conversation.status()).cwd == "/usr"


async def pipes(stage: Stage, name: str) -> None:
    """The statuses of the last pipeline are those of the user's."""
    variable = {"bash": '"${PIPESTATUS[@]}"', "zsh": '"${pipestatus[@]}"', "fish": "$pipestatus"}[name]
    await stage.type_line("false | true")
    block = await stage.type_line(f"echo {variable}")
    assert block is not None and b"1 0\n" in stage.outcome(block).output


async def interrupted(stage: Stage) -> None:
    started = await stage.conversation.exec_block("sh -c 'echo started; exec sleep 600'\necho after")
    await stage.wait("started")
    await stage.conversation.interrupt()
    await stage.wait(PROMPT)
    block = await stage.block(started.block_id)
    assert (block.exit_status, block.state) == (130, "interrupted")
    assert b"after\n" not in stage.outcome(block).output


async def redirected(stage: Stage) -> None:
    assert await stage.done("exec 3>&1; exec >/dev/null; echo unseen; false") == Done(1, "ended", b"")
    assert await stage.done("echo unseen") == Done(0, "ended", b"")
    assert await stage.done("exec >&3; echo seen") == Done(0, "ended", b"seen\n")


async def unset(stage: Stage, name: str) -> None:
    """Hooks that a command takes away come back."""
    commands = {
        "bash": ["unset PROMPT_COMMAND", "PROMPT_COMMAND=true", "PS0=", "PS1='new> '", "unset PS0"],
        "zsh": ["precmd_functions=()", "preexec_functions=()", "PS1='new> '", "zle -D zle-line-init"],
        "fish": ["function fish_prompt; echo 'new> '; end", "functions -e fish_prompt"],
    }[name]
    for command in commands:
        assert (await stage.done(command)).state == "ended", command
        for number in (0, 3):
            assert (await stage.done(f"sh -c 'echo out; exit {number}'")) == Done(number, "ended", b"out\n"), command


@in_each_version
@async_test
async def test_version(name: str, path: Path, home: Path) -> None:
    async with opened(home, name, path) as stage:
        await plain(stage, name)
        await pipes(stage, name)
        await interrupted(stage)
        # What was typed and never entered is not part of the next command.
        await stage.type(b"never entered")
        assert await stage.done("echo clean") == Done(0, "ended", b"clean\n")
        if name != "fish":
            await redirected(stage)
        assert await stage.doubts() == []
        await unset(stage, name)


@in_each_version
@async_test
async def test_quick_blocks(name: str, path: Path, home: Path) -> None:
    async with opened(home, name, path) as stage:
        for number in range(100):
            assert await stage.done(f"echo {number}") == Done(0, "ended", f"{number}\n".encode())
        assert [block.parts for block in await stage.blocks()] == [1] * 100
        assert {block.degraded for block in await stage.blocks()} == {None}
        assert await stage.doubts() == []
