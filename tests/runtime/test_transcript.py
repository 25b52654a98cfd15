"""Reading of a conversation: views of a block, pieces, head and tail, and its events as they come."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test


@async_test
async def test_views_of_one_block(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run(r"printf 'a\rB\033[31mred\033[0m\n10%%\r100%%\n'")
        assert result.output == "a\rBred\n10%\r100%\n"

        async def view(name: str) -> str:
            return (await conversation.read(block_id=result.block.block_id, view=name)).data

        assert await view("text") == result.output
        assert await view("ansi") == "a\rB\x1b[31mred\x1b[0m\n10%\r100%\n"
        assert await view("raw") == "a\rB\x1b[31mred\x1b[0m\r\n10%\r100%\r\n"
        assert await view("rendered") == "Bred\n100%\n"
        with pytest.raises(blockpty.BadRequest):
            await view("pretty")


@async_test
async def test_reading_in_small_pieces_gives_the_whole(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run(
            "for i in 1 2 3 4 5 6 7 8 9; do printf '\\033[3%dmzeile %d \\303\\244\\n' $i $i; done"
        )
        for view in ("text", "ansi", "raw"):
            whole = (await conversation.read(block_id="b1", view=view)).data
            pieces, cursor, eof = "", result.block.span[0], False
            while not eof:
                piece = await conversation.read(cursor, block_id="b1", view=view, max_bytes=7)
                assert piece.cursor > cursor
                pieces, cursor, eof = pieces + piece.data, piece.cursor, piece.eof
            if view != "raw":  # raw bytes are cut anywhere, also inside a character
                assert pieces == whole


@async_test
async def test_long_output_keeps_head_and_tail_and_says_how_much(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        result = await conversation.run("seq 1 300000", max_bytes=1000, timeout_ms=60000)
        assert result.truncated and result.block.out_bytes == 1988895
        assert result.output.startswith("1\n2\n") and result.output.endswith("\n300000\n")
        assert len(result.output) < 1200 and "left out" in result.output
        assert (await conversation.verify()).clean


@async_test
async def test_events_come_live_and_in_order(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        seen: list[int] = []

        async def follow() -> None:
            async for event in conversation.events():
                seen.append(event.seq)
                if event.type == "agent_block_end":
                    return

        follower = asyncio.create_task(follow())
        await conversation.run("echo hello")
        await follower
        assert seen == list(range(len(seen)))


@async_test
async def test_events_come_live_to_an_engine_that_does_not_write_them(home: Path) -> None:
    async with blockpty.Engine(home) as engine, blockpty.Engine(home) as other:
        conversation = await engine.open("c1")
        watching = await other.conversation("c1")
        status = await watching.status()
        assert not status.owner
        seen = []

        async def follow() -> None:
            async for event in watching.events(status.next_seq):
                seen.append((event.seq, event.type))
                if event.type == "eof":
                    return

        follower = asyncio.create_task(follow())
        await conversation.run("echo hello")
        assert (await watching.status()).next_seq > status.next_seq
        await conversation.close()
        await asyncio.wait_for(follower, 20)
        assert [seq for seq, _ in seen] == list(range(status.next_seq, status.next_seq + len(seen)))
        assert "agent_block_end" in [kind for _, kind in seen]


@async_test
async def test_our_marks_are_not_in_the_ansi_view(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.run("echo hello")
        shown = (await conversation.read(0, view="ansi")).data
        assert "hello" in shown and "7717" not in shown
