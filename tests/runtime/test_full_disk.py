"""Stopping a program on a full disk: control reaches the recorder, and the record is completed when there is room."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from blockpty import Engine
from blockpty.errors import StorageFull
from blockpty.model.conditions import Match
from blockpty.runtime.conversation import Conversation
from tests.support.async_tests import async_test
from tests.support.small_disk import make_room, small_disk

SMALL_KIB = 2048
ROOMY_KIB = 64 * 1024
PROMPT: Match = {"token": "PROMPT"}


async def filled(engine: Engine) -> Conversation:
    """A conversation in which `yes` has filled the disk, and the engine's own writes fail as well."""
    conversation = await engine.open("one", shell="bash", cwd="/")
    await conversation.exec_interactive("yes")
    await until(lambda: conversation.live.deriver.problem is not None, conversation)
    while (await conversation.host.inspect("one")).storage is None:
        pass
    return conversation


async def until(condition: Callable[[], bool], conversation: Conversation) -> None:
    async with asyncio.timeout(30):
        while not condition():
            conversation.live.pump()
            await asyncio.sleep(0.01)


def runs(name: str, shell: int) -> bool:
    children = Path(f"/proc/{shell}/task/{shell}/children")
    if not children.exists():
        return False
    with_name = [pid for pid in children.read_text().split() if name in Path(f"/proc/{pid}/comm").read_text()]
    return bool(with_name)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.linux
@pytest.mark.parametrize("stop", ["interrupt", "ctrl_c", "send_keys", "end_session"])
def test_the_program_is_stopped(home: Path, stop: str) -> None:
    @async_test
    async def check() -> None:
        with small_disk(home, SMALL_KIB):
            async with Engine(home) as engine:
                conversation = await filled(engine)
                shell = conversation.pid
                assert shell is not None
                how: dict[str, Callable[[], Awaitable[Any]]] = {
                    "interrupt": lambda: conversation.interrupt(up_to="KILL"),
                    "ctrl_c": conversation.ctrl_c,
                    "send_keys": lambda: conversation.send_keys("^C"),
                    "end_session": lambda: conversation.end_session("s1"),
                }
                done = await how[stop]()
                await until(lambda: not runs("yes", shell), conversation)
                if stop == "interrupt":
                    assert done.how == "SIGINT"
                with pytest.raises(StorageFull):
                    await conversation.send("x")
                # What is derived waits for room; nothing of it differs.
                found = await conversation.verify()
                assert found.clean and found.behind and all("waits for room" in one["message"] for one in found.behind)
                with pytest.raises(StorageFull):
                    await conversation.start_capture()
                make_room(home, ROOMY_KIB)
                await conversation.wait_for(PROMPT, timeout_ms=20_000)
                assert (await conversation.run("echo again", timeout_ms=20_000)).output == "again\n"
                assert (await conversation.verify()).clean
                if stop in ("ctrl_c", "send_keys"):
                    lines = (conversation.directory / "timeline.jsonl").read_text().splitlines()
                    assert any('"kind":"input"' in line and '"data":"\\u0003"' in line for line in lines)

    check()


@pytest.mark.linux
@pytest.mark.parametrize("stop", ["kill", "close", "reset", "engine"])
def test_the_shell_is_ended(home: Path, stop: str) -> None:
    @async_test
    async def check() -> None:
        with small_disk(home, SMALL_KIB):
            async with Engine(home) as engine:
                conversation = await filled(engine)
                shell = conversation.pid
                assert shell is not None
                if stop == "kill":
                    assert (await conversation.kill(signal="KILL")).how == "KILL"
                elif stop == "engine":
                    await engine.close()
                elif stop == "reset":
                    with pytest.raises(StorageFull):
                        await conversation.reset()
                else:
                    # Its end may find room in what the timeline has of its last page.
                    with contextlib.suppress(StorageFull):
                        await conversation.close()
                await until(lambda: not (runs("yes", shell) or alive(shell)), conversation)
                make_room(home, ROOMY_KIB)
                conversation = await engine.conversation("one")
                await until(lambda: conversation.mode == "exited", conversation)
                assert (await conversation.verify()).clean

    check()
