"""The list of blocks: both orders, pages by number, filters, those that run, and what outputs are like."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import blockpty
from blockpty.errors import BadRequest, NotFound
from blockpty.model.block import Block, ListedBlock
from blockpty.runtime import block_list
from blockpty.runtime.block_list import BlockPage, Measure, OutputMeasures, Wanted, measure_span, read_page
from blockpty.runtime.redactor import Redactor
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader
from tests.support.async_tests import async_test
from tests.support.counting import ReadBytes
from tests.support.profile import some_of

needs_bash = pytest.mark.needs("bash")


def record(seq: int, **fields: Any) -> dict[str, Any]:
    return {
        "block_id": f"b{seq}", "seq": seq, "kind": "command", "cmd": f"echo {seq}", "cwd": "/", "cwd_b64": "Lw==",
        "ts_begin": seq, "ts_end": seq + 1, "duration_ms": 1, "state": "ended", "exit_status": seq % 2, "signal": None,
        "span": [seq, seq], "out_path": f"blocks/{seq}_{seq}.out", "out_bytes": 0, "parts": 1,
        "author": "agent", "session_id": None, "degraded": None, **fields,
    }  # fmt: skip


def written(directory: Path, numbers: list[int]) -> Layout:
    layout = Layout(directory)
    lines = [json.dumps(record(seq, author="user" if seq % 3 == 0 else "agent")) for seq in numbers]
    layout.blocks.write_text("".join([f"{line}\n" for line in lines]))
    return layout


def pages(layout: Layout, wanted: Wanted, size: int, *, newest: bool) -> list[int]:
    found: list[int] = []
    number, more = 0, True
    while more:
        blocks, more = read_page(layout, Redactor(Mask(())), wanted, BlockPage(number, size, newest))
        found += [block.seq for block in blocks]
        number += 1
    return found


def test_both_orders_have_the_same_blocks(tmp_path: Path) -> None:
    # Background output ended after a block that began later.
    numbers = [1, 2, 4, 3, *range(5, 400)]
    layout = written(tmp_path, numbers)
    for size in (1, 7, 1000):
        assert pages(layout, Wanted(), size, newest=False) == numbers
        assert pages(layout, Wanted(), size, newest=True) == numbers[::-1]
    for before, after in some_of(itertools.product((None, 1, 3, 4, 200, 400, 10_000), (None, 0, 2, 3, 199, 399)), 5):
        wanted = Wanted(failed=True, author="agent", before_seq=before, after_seq=after)
        expected = [
            seq for seq in numbers
            if seq % 2 and seq % 3 and seq < (before or 10**6) and seq > (after or 0)
        ]  # fmt: skip
        assert pages(layout, wanted, 50, newest=False) == expected
        assert pages(layout, wanted, 50, newest=True) == expected[::-1]


def test_a_block_of_thousands_is_found_by_reading_a_few_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Background output ended after a block that began later.
    numbers = [*range(1, 4000), 4001, 4000, *range(4002, 8001)]
    layout = written(tmp_path, numbers)
    for number in (1, 2, 3999, 4000, 4001, 4002, 8000):
        assert block_list.find_block(layout, f"b{number}").seq == number
    for name in ("b0", "b8001", "b01", "s1", "b-1", "", "b" + "9" * 30):
        with pytest.raises(NotFound, match="no block is called"):
            block_list.find_block(layout, name)

    read = ReadBytes(monkeypatch)
    block_list.find_block(layout, "b6000")
    assert read.count < layout.blocks.stat().st_size / 2


def measured(directory: Path, output: bytes) -> Measure:
    stream = directory / "stream"
    stream.mkdir(exist_ok=True)
    (stream / f"{0:020d}").write_bytes(output)
    reader = StreamReader(stream)
    try:
        return measure_span(reader, 0, len(output))
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("output", "lines", "screen"),
    [
        (b"", 0, False),
        (b"one\r\n", 1, False),
        (b"one\r\ntwo", 2, False),
        (b"\r\n\r\n", 2, False),
        (b"10%\r20%\r100%\r\n", 1, False),
        (b"\x1b[1;31mred\x1b[0m\x1b[K\r\n\x1b[?25l\x1b[?2004h\x1b]0;title\x07", 1, False),
        (b"\x1b[?1049h\x1b[2J", 0, True),
        (b"\x1b[?25;1049h", 0, True),
        (b"one\r\n\x1b[1Atwo\r\n", 2, True),
        (b"\x1b[10;20H*", 1, True),
        (b"\x1b7\x1b[r\x1b8", 0, True),
        (b"\x1b[=5u\x1b[>1u\x1b[?u", 0, False),
        (b"a title may say anything \x1b]0;[10;20H\x07\r\n", 1, False),
    ],
)
def test_what_an_output_is_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: bytes, lines: int, screen: bool
) -> None:
    for piece in (1, 2, 3, 1024):
        monkeypatch.setattr(block_list, "_PIECE", piece)
        assert measured(tmp_path, output) == Measure(lines, screen)


def test_what_is_too_long_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_list, "MEASURED_BYTES", 100)
    assert measured(tmp_path, b"x\r\n" * 50) == Measure(None, None)
    assert measured(tmp_path, b"x\x1b[H\r\n" + b"x\r\n" * 50) == Measure(None, True)
    monkeypatch.setattr(block_list, "PAGE_BYTES", 150)
    blocks = [block_list.ListedBlock.from_dict(record(seq, span=[0, 100])) for seq in (1, 2, 3)]
    measures, reader = OutputMeasures(), StreamReader(tmp_path / "stream")
    counts = [[block.lines for block in measures.listed(blocks, reader, 0)] for _ in range(4)]
    reader.close()
    # Each call goes on with those that the one before left out.
    assert [[count is not None for count in counted] for counted in counts] == [
        [True, False, False], [True, True, False], [True, True, True], [True, True, True],
    ]  # fmt: skip


def test_a_listed_block_is_the_block() -> None:
    block = Block.from_dict(record(1))
    listed = block_list.as_listed(block)
    assert listed == block and block == listed and hash(listed) == hash(block)
    assert listed.to_dict() == block.to_dict()
    measured_one = replace(listed, lines=3, screen=False)
    assert measured_one != block and ListedBlock.from_dict(measured_one.to_dict()) == measured_one
    assert block != replace(block, seq=2) and listed != replace(block, seq=2)


@needs_bash
@async_test
async def test_a_live_conversation(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        assert (await conversation.blocks(order="newest", running=True, measure=True)).blocks == []
        await conversation.run("seq 5")
        await conversation.run("printf '\\033[2Jx'; false")
        before = (await conversation.blocks()).to_dict()
        assert all("lines" not in block and "screen" not in block for block in before["blocks"])
        command = "echo one; read -r line; export DB_PASSWORD=correct-h0rse-battery; echo $line"
        begun = await conversation.exec_block(command)
        await conversation.wait_for("one")
        # What runs is listed for who asks for it.
        assert [block.seq for block in (await conversation.blocks()).blocks] == [1, 2]
        newest = await conversation.blocks(order="newest", running=True, measure=True, page_size=2)
        assert [(block.seq, block.state, block.lines, block.screen) for block in newest.blocks] == [
            (begun.seq, "running", 1, False), (2, "ended", 1, True),
        ]  # fmt: skip
        # So that a viewer that comes now knows where its output begins and ends.
        assert newest.blocks[0].span[1] is None and newest.blocks[0].out_bytes >= len("one")
        assert "correct-h0rse" not in json.dumps(newest.to_dict())
        assert newest.next_page == 1
        rest = await conversation.blocks(order="newest", running=True, measure=True, page=1, page_size=2)
        assert [(block.seq, block.lines) for block in rest.blocks] == [(1, 5)] and rest.next_page is None
        assert isinstance(rest.blocks[0], ListedBlock) and rest.to_dict()["blocks"][0]["screen"] is False
        oldest = await conversation.blocks(running=True)
        assert [block.seq for block in oldest.blocks] == [1, 2, begun.seq]
        assert [block.seq for block in (await conversation.blocks(running=True, failed=True)).blocks] == [2]
        await conversation.enter()
        await conversation.wait_for({"token": "PROMPT"})
        ended = await conversation.blocks(order="newest", running=True, before_seq=begun.seq + 1, after_seq=1)
        assert [(block.seq, block.state) for block in ended.blocks] == [(begun.seq, "ended"), (2, "ended")]
        # The file holds the running block no more than once, and its end is the last one's.
        assert [block.seq for block in (await conversation.blocks(running=True)).blocks] == [1, 2, begun.seq]
        for wrong in ({"order": "best"}, {"author": "stranger"}, {"kind": "x"}, {"before_seq": -1}, {"after_seq": 1.5}):
            with pytest.raises(BadRequest, match=next(iter(wrong))):
                await conversation.blocks(**wrong)  # type: ignore[arg-type]
        await conversation.close()


@needs_bash
@async_test
async def test_what_comes_after_a_list_is_followed_from_its_number(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("true")
        listed = await conversation.blocks(running=True)
        assert listed.next_seq == (await conversation.status()).next_seq
        await conversation.run("false")
        after = [event async for event in conversation.events(listed.next_seq, follow=False)]
        assert after[0].seq == listed.next_seq
        assert [event.fields["block_id"] for event in after if event.type == "agent_block_begin"] == ["b2"]
        await conversation.close()


@needs_bash
@async_test
async def test_blocks_by_author_and_kind(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("true")
        await conversation.send("echo typed\r", author="user")
        await conversation.wait_for("typed")
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.exec_interactive("cat")
        await conversation.ctrl_d()
        await conversation.wait_for({"token": "PROMPT"})

        async def kinds(**filters: Any) -> list[str]:
            return [block.kind for block in (await conversation.blocks(**filters)).blocks]

        assert await kinds(author="user") == ["user"]
        assert await kinds(author="agent") == ["command", "session"]
        assert await kinds(author="agent", order="newest") == ["session", "command"]
        assert await kinds(kind="session") == ["session"]
        assert await kinds(kind="background") == []
        await conversation.close()


@needs_bash
@async_test
async def test_a_long_list_is_read_beside_the_loop(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with conversation.layout.blocks.open("a") as file:
            file.write("".join([f"{json.dumps(record(seq))}\n" for seq in range(1, 5001)]))
        threads: list[object] = []
        plain = block_list.read_page

        def noted(*args: Any) -> Any:
            try:
                threads.append(asyncio.get_running_loop())
            except RuntimeError:
                threads.append(None)
            return plain(*args)

        monkeypatch.setattr(block_list, "read_page", noted)
        found = await conversation.blocks(failed=True, filter="echo 49", page_size=1000)
        assert [block.seq for block in found.blocks] == [49, *range(491, 500, 2), *range(4901, 5000, 2)]
        assert threads == [None]
        await conversation.close()
