"""What every conversation has in Python beside the operations, with an engine of its own and through a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import blockpty
from blockpty import PROMPT, AnyConversation, Client, Engine, Regex
from tests.support.async_tests import async_test
from tests.support.http_client import serving

pytestmark = pytest.mark.needs("bash")
each_kind = pytest.mark.parametrize("kind", ["engine", "client"])


@contextlib.asynccontextmanager
async def opened(kind: str, home: Path) -> AsyncIterator[AnyConversation]:
    if kind == "engine":
        async with Engine(home) as engine, engine.open("c1", shell="bash", cwd="/") as conversation:
            yield conversation
    else:
        async with serving(home), Client(home) as client, client.open("c1", shell="bash", cwd="/") as remote:
            yield remote


@each_kind
@async_test
async def test_leaving_it_closes_it(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        assert conversation.opened is not None and conversation.id == "c1"
    async with Engine(home) as engine:
        assert [one.live for one in (await engine.list()).conversations] == [False]


@each_kind
@async_test
async def test_expect_returns_what_matched_or_raises(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        await conversation.exec_interactive("echo one; read -r line; stty -echo; read -r key; stty echo; echo over")
        found = await conversation.expect(Regex("^(o)ne"), timeout=30)
        assert found.groups == {"1": "o"}
        with pytest.raises(blockpty.Timeout, match="'two' did not come in time") as raised:
            await conversation.expect("two", timeout=0.05)
        assert "screen:\n" in str(raised.value) and "    one" in str(raised.value)
        assert raised.value.result.reason == "timeout" and "one" in raised.value.screen
        await conversation.send("x\r")
        with pytest.raises(blockpty.PasswordPrompt):
            await conversation.expect("two")
        await conversation.send("y\r")
        with pytest.raises(blockpty.EndOfFile, match="before the program ended"):
            await conversation.expect({"regex": "two"})
        with pytest.raises(blockpty.NotMatched) as stopped:
            await conversation.expect("two", from_cursor=0, stop="one")
        assert stopped.value.details["reason"] == "stopped"
        with pytest.raises(blockpty.BadRequest, match="timeout must be 0 to 3600 seconds, not -1"):
            await conversation.expect("two", timeout=-1)
        assert (await conversation.wait_for(PROMPT, from_cursor=0)).matched


@each_kind
@async_test
async def test_check_raises_what_a_command_said(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        assert (await conversation.run("true", check=True)).ok
        with pytest.raises(blockpty.CommandFailed) as raised:
            await conversation.run("echo no rule; (exit 2)", check=True)
        assert (raised.value.exit_status, raised.value.output) == (2, "no rule\n")
        assert not (await conversation.run("false")).ok
        with pytest.raises(blockpty.Timeout, match="the end of 'sleep 1000' did not come in time"):
            await conversation.run("sleep 1000", check=True, timeout=0.05)
        await conversation.ctrl_c()
        assert (await conversation.wait_for(PROMPT)).matched
        with pytest.raises(blockpty.InputPrompt, match="asks for a line"):
            await conversation.run("read -r x", check=True)
        await conversation.send("\r")
        assert (await conversation.wait_for(PROMPT)).matched


@each_kind
@async_test
async def test_lines_come_as_they_are_printed(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        begun = await conversation.exec_block(
            r"echo one; read -r x; printf '10%%\r20%%\r30%%'; read -r x; printf '\033[31mtwo\033[m\n\nlast'"
        )
        seen = []
        async for line in conversation.lines(begun.block_id):
            seen.append(line)
            if line in ("one", "20%"):
                await conversation.send("\r")
        assert [line for line in seen if line] == ["one", "10%", "20%", "30%", "two", "last"]
        assert seen[-3:] == ["two", "", "last"]
        # The newest block is the one that is meant, and that has ended.
        assert [line async for line in conversation.lines()] == seen


@each_kind
@async_test
async def test_leaving_the_loop_leaves_the_program_alone(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        await conversation.exec_block("echo one; read -r x; echo got $x")
        async with contextlib.aclosing(conversation.lines()) as lines:  # type: ignore[type-var]
            assert await anext(lines) == "one"
        await conversation.send("it\r")
        assert (await conversation.expect("got it")).matched


@each_kind
@async_test
async def test_there_are_no_lines_without_a_block(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        with pytest.raises(blockpty.NotFound, match="c1 has no block yet"):
            await anext(conversation.lines())
        with pytest.raises(blockpty.NotFound, match="b9"):
            await anext(conversation.lines("b9"))


@async_test
async def test_a_long_output_and_a_line_longer_than_is_read_at_a_time(home: Path) -> None:
    async with opened("engine", home) as conversation:
        await conversation.run("seq 1 60000", max_bytes=100)
        assert [int(line) async for line in conversation.lines()] == list(range(1, 60001))
        await conversation.run("head -c 600000 /dev/zero | tr '\\0' x; echo; echo end", max_bytes=100)
        lines = [line async for line in conversation.lines()]
        assert lines[-1] == "end" and "".join(lines[:-1]) == "x" * 600_000


@async_test
async def test_the_end_of_the_engine_ends_the_lines(home: Path) -> None:
    async with Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        await conversation.exec_block("echo one; read -r x")
        first = asyncio.Event()

        async def read() -> list[str]:
            seen = []
            async for line in conversation.lines():
                seen.append(line)
                first.set()
            return seen

        reading = asyncio.create_task(read())
        await first.wait()
        await conversation.close()
    assert (await reading)[0] == "one"


@each_kind
@async_test
async def test_the_file_of_an_output_is_found(kind: str, home: Path) -> None:
    async with opened(kind, home) as conversation:
        assert isinstance(conversation, blockpty.Conversation | blockpty.RemoteConversation)
        block = (await conversation.run("echo hi")).block
        assert conversation.output_path(block).read_bytes() == b"hi\n"
        await conversation.exec_block("read -r x")
        running = (await conversation.blocks(running=True, order="newest", page_size=1)).blocks[0]
        with pytest.raises(blockpty.NotFound, match="no file of output"):
            conversation.output_path(running)
        await conversation.ctrl_c()
        await conversation.wait_for(PROMPT)


def test_a_server_elsewhere_has_its_files_there() -> None:
    client = Client(url="http://elsewhere")
    with pytest.raises(blockpty.BadRequest, match="machine of the server"):
        client.directory_of("c1")


@async_test
async def test_a_conversation_shows_its_name_mode_and_directory(home: Path) -> None:
    async with opened("engine", home) as conversation:
        assert repr(conversation) == "<Conversation c1 idle />"
        offered = set(dir(conversation))
        assert {"run", "expect", "lines", "directory", "id", "close", "output_path", "__class__"} <= offered
        internal = {"answering", "attach", "detach", "epoch", "live", "look", "note", "noted", "own", "type", "layout"}
        assert not internal & offered and all(hasattr(conversation, name) for name in internal)
    assert repr(blockpty.RemoteConversation(Client(start=False), "c1")) == "<RemoteConversation c1>"
