"""Files through the terminal of a shell: what a cut leaves, what arrives wrongly, and another machine."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from pathlib import Path

import pytest

import blockpty
from blockpty.runtime.terminal_files import CHUNK_BYTES
from tests.support.async_tests import async_test
from tests.support.nested_shells import SHELLS, inside
from tests.support.ssh_server import ssh_server

TIMEOUT_MS = 20_000
RANDOM = random.Random(1).randbytes(1_000_000)
pytestmark = pytest.mark.needs("bash")


@async_test
async def test_a_transfer_that_was_cut_goes_on_and_a_wrong_part_is_dropped(home: Path, tmp_path: Path) -> None:
    part = tmp_path / f".blockpty-{hashlib.sha256(RANDOM).hexdigest()[:16]}.part"
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        await inside(conversation, SHELLS["bash"])
        commands = []
        for there in (RANDOM, RANDOM[:600_000], RANDOM[:600_000] + b"wrong", RANDOM + b"more"):
            part.write_bytes(there)
            before = len((await conversation.blocks(author="engine")).blocks)
            await conversation.put_file("x", RANDOM)
            commands.append(len((await conversation.blocks(author="engine")).blocks) - before)
            assert (tmp_path / "x").read_bytes() == RANDOM and not part.exists()
        # Prepare and finish; the chunks of the rest; prepare again, and all chunks.
        rest, all_of_it = -(-400_000 // CHUNK_BYTES), -(-1_000_000 // CHUNK_BYTES)
        assert commands == [2, 2 + rest, 3 + all_of_it, 3 + all_of_it]


@async_test
async def test_what_arrives_otherwise_is_noticed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        (tmp_path / "x").write_text("old")
        await inside(conversation, SHELLS["bash"])
        for wrong in ("d3Jvbmc=\n-\n", "no base64 !\n-\n"):
            with monkeypatch.context() as patch:
                patch.setattr("blockpty.runtime.terminal_files.typed_chunk", lambda data, wrong=wrong: wrong.encode())
                with pytest.raises(blockpty.InternalError, match="not what was sent"):
                    await conversation.put_file("x", "new")
            assert (tmp_path / "x").read_text() == "old"
        await conversation.put_file("x", "new")
        assert (tmp_path / "x").read_text() == "new" and os.listdir(tmp_path) == ["x"]


@async_test
async def test_one_that_is_cancelled_leaves_a_shell_at_its_prompt(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        await inside(conversation, SHELLS["bash"])
        putting = asyncio.ensure_future(conversation.put_file("x", RANDOM))
        async for event in conversation.events():
            # Something is typed with echo off.
            if event.type == "input" and event.fields.get("redacted"):
                break
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        await conversation.exec_block("stty -a | grep -c -- ' echo '", queue=True)
        waited = await conversation.wait_for({"token": "PROMPT"}, timeout_ms=TIMEOUT_MS)
        assert (waited.matched, waited.text) == (True, "1\n")
        assert not (tmp_path / "x").exists()
        await conversation.put_file("x", RANDOM)
        assert (tmp_path / "x").read_bytes() == RANDOM and os.listdir(tmp_path) == ["x"]


@async_test
async def test_files_move_over_ssh(home: Path, tmp_path: Path) -> None:
    with ssh_server(tmp_path, ("bash", "--norc")) as server:
        async with blockpty.Engine(home) as engine:
            source = f"ssh:127.0.0.1:{server.port}"
            conversation = await engine.open("c1", source=source, env=server.environment, timeout_ms=TIMEOUT_MS)
            put = await conversation.put_file("~/x", RANDOM)
            got = await conversation.get_file("x")
            assert (put.how, got.how, got.content) == ("terminal", "terminal", RANDOM)
            assert (tmp_path / "home" / "x").read_bytes() == RANDOM
            await conversation.close()
