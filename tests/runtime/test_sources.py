"""Conversations whose terminal shows one program and no shell: `open(source="exec:...")`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import blockpty
from blockpty.model.block import Block
from blockpty.spool.checkpoint import SOURCE_VERSION
from tests.support.async_tests import async_test

END = {"token": "EOF"}
TIMEOUT_MS = 20_000
ASKS = "exec:sh -c 'echo name?; read name; echo hello $name; exit 3'"


def meta_of(conversation: blockpty.Conversation) -> dict[str, object]:
    return dict(json.loads(conversation.layout.meta.read_bytes()))


async def only_block(conversation: blockpty.Conversation) -> Block:
    blocks = (await conversation.blocks()).blocks
    assert len(blocks) == 1
    return (await conversation.block(blocks[0].block_id)).block


@async_test
async def test_a_program_is_one_session_from_its_start_to_its_end(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=ASKS)
        assert conversation.opened is not None and conversation.opened.mode == "interactive"
        status = await conversation.status()
        assert (status.source, status.integrity, status.active_session_id) == (ASKS, "ok", "s1")
        asked = await conversation.wait_for("name?", session_id="s1", timeout_ms=TIMEOUT_MS)
        assert asked.matched
        assert "name?" in (await conversation.screen()).content
        await conversation.send("Ada\r", session_id="s1")
        over = await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
        assert (over.reason, over.mode) == ("eof", "exited")
        block = await only_block(conversation)
        assert (block.kind, block.state, block.exit_status, block.degraded) == ("session", "ended", 3, None)
        assert block.cmd == "sh -c 'echo name?; read name; echo hello $name; exit 3'"
        assert (block.span[0], block.session_id) == (0, "s1")
        assert (await conversation.read(block_id="b1", view="text")).data == "name?\nAda\nhello Ada\n"
        assert (await conversation.status()).exit == {"status": 3, "signal": None}
        exported = await conversation.export("text")
        assert exported.data == "name?\nAda\nhello Ada\n"
        assert (await conversation.verify()).clean
        listed = (await engine.list()).conversations[0]
        assert (listed.source, listed.mode) == (ASKS, "exited")


@async_test
async def test_what_needs_a_shell_is_refused_at_once(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source="exec:cat")
        for refused in (conversation.run("ls"), conversation.exec_block("ls", queue=True),
                        conversation.exec_interactive("ls")):  # fmt: skip
            with pytest.raises(blockpty.InteractiveSessionActive, match="exec:cat, and no shell"):
                await refused
        await conversation.ctrl_d()
        assert (await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)).matched
        with pytest.raises(blockpty.Exited):
            await conversation.run("ls")
        assert (await conversation.verify()).clean


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("exec:printf '%s|' 'a b' \"c\" d\\ e", "a b|c|d e|"),
        ('exec:["printf", "%s|", "it\'s", "", "two\\nlines"]', "it's||two\nlines|"),
        ("exec:[ 1 = 1 ]", ""),
    ],
)
@async_test
async def test_the_arguments_are_those_that_were_meant(text: str, output: str, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=text)
        await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
        assert (await conversation.read(block_id="b1", view="text")).data == output
        assert (await only_block(conversation)).exit_status == 0


@pytest.mark.parametrize(
    "text", ["exec:", "exec: ", "exec:'open", 'exec:["a", 1]', 'exec:["a"', 'exec:[""]', "nothing:x", "exec"]
)
@async_test
async def test_what_names_no_program_makes_no_conversation(text: str, home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.BadRequest):
            await engine.open("c1", source=text)
        with pytest.raises(blockpty.SpawnFailed, match="no program 'no-such-program'"):
            await engine.open("c1", source="exec:no-such-program")
        with pytest.raises(blockpty.BadRequest, match="shell and login"):
            await engine.open("c1", source="exec:cat", shell="bash")
        assert (await engine.list()).conversations == []


@async_test
async def test_it_is_interrupted_reset_and_closed(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source="exec:sh -c 'echo up; exec sleep 600'")
        await conversation.wait_for("up", timeout_ms=TIMEOUT_MS)
        assert (await conversation.interrupt(grace_ms=5000)).how == "SIGINT"
        await conversation.wait_for(END, timeout_ms=TIMEOUT_MS)
        block = await only_block(conversation)
        assert (block.state, block.exit_status, block.signal) == ("ended", None, "SIGINT")
        # The same program again, in the same record.
        await conversation.reset()
        await conversation.wait_for("up", timeout_ms=TIMEOUT_MS)
        ended = await conversation.end_session()
        assert ended.how == "ctrl_c" and (await conversation.status()).mode == "exited"
        await conversation.reset()
        await conversation.wait_for("up", timeout_ms=TIMEOUT_MS)
        await conversation.close()
        assert [one.signal for one in (await conversation.blocks()).blocks] == ["SIGINT", "SIGINT", "SIGHUP"]
        assert (await conversation.verify()).clean


@async_test
async def test_a_program_that_ignores_all_but_kill_is_ended_and_not_started_again(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        stubborn = "trap '' INT QUIT TERM; echo up; cat >/dev/null; cat"
        conversation = await engine.open("c1", source=f"exec:{json.dumps(['sh', '-c', stubborn])}")
        await conversation.wait_for("up", timeout_ms=TIMEOUT_MS)
        assert (await conversation.end_session()).how == "SIGKILL"
        assert (await only_block(conversation)).signal == "SIGKILL"
        assert (await conversation.verify()).clean


@async_test
async def test_the_next_engine_starts_the_same_again(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        shell = await engine.open("plain", shell="bash")
        assert meta_of(shell)["format"] != SOURCE_VERSION
        asked = meta_of(shell)["open"]
        assert isinstance(asked, dict) and not {"source", "format"} & set(asked)
        await engine.open("c1", source="exec:echo one", persist=True)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        assert meta_of(conversation)["format"] == SOURCE_VERSION
        assert (await conversation.status()).source == "exec:echo one"
        opened = await conversation.reset()
        await conversation.wait_for(END, from_cursor=opened.cursor, timeout_ms=TIMEOUT_MS)
        assert (await conversation.read(0, view="text")).data == "one\none\n"
        # A shell takes its place under the same name.
        again = await engine.open("c1", shell="bash")
        assert (await again.run("echo two", timeout_ms=TIMEOUT_MS)).output == "two\n"
        assert (await again.status()).source == "shell"
        assert (await again.verify()).clean
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        assert "'source'" not in str(meta_of(conversation)["open"])
        plain = await engine.conversation("plain")
        await plain.reset()
        assert (await plain.run("echo three", timeout_ms=TIMEOUT_MS)).output == "three\n"
        await plain.close()
