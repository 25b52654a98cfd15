"""What all exports are made of: times that add up, no nonce in any, and a live conversation."""

from __future__ import annotations

import asyncio
import stat
import threading
from decimal import Decimal
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import BadCursor, BadRequest, NotFound
from blockpty.runtime.export.writer import SUFFIXES, export
from tests.support.async_tests import async_test
from tests.support.exports import exported, lines_of, pty, saved

each_format = pytest.mark.parametrize("style", SUFFIXES)


def test_intervals_add_up_to_the_times_whatever_they_are(tmp_path: Path) -> None:
    made = pty()
    made.submit("many")
    made.begin()
    for number in range(1, 400):
        made.output(b"x")
        made.clock.advance(number % 7)
        made.entry("tick")
    source = saved(made, tmp_path)
    absolute, relative = (lines_of(exported(source, style))[1:] for style in ("cast", "cast3"))
    assert [event[1:] for event in absolute] == [event[1:] for event in relative]
    passed = Decimal(0)
    for at, interval in zip(absolute, relative, strict=True):
        passed += Decimal(str(interval[0]))
        assert passed == Decimal(str(at[0]))
    assert absolute[-1][0] > 2.5


@each_format
def test_no_nonce_is_in_any_format(tmp_path: Path, style: str) -> None:
    made = pty()
    nonce = made.NONCE.encode()
    made.run(f"echo {made.NONCE}", b"".join([
        b"whole " + nonce + b"\r\n",
        b"drawn together " + nonce[:9] + b"\x1b[1m" + nonce[9:] + b"\r\n",
        b"wrapped " + b"." * 63 + nonce + b"\r\n" * 40,
    ]))  # fmt: skip
    result = export(saved(made, tmp_path), style, 1, threading.Event())
    for path in (result.path, result.timing_path):
        assert path is None or nonce not in Path(path).read_bytes()
    assert result.path is not None
    kept = Path(result.path).read_bytes()
    assert b"*" * len(nonce) in kept
    assert (b"7717" in kept) is (style == "typescript")
    assert stat.S_IMODE(Path(result.path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(result.path).parent.stat().st_mode) == 0o700


@pytest.mark.needs("bash")
@async_test
async def test_a_live_conversation(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("echo one")
        middle = conversation.cursor
        await conversation.run("echo two; (exit 3)")
        assert (await conversation.export("text", block_id="b2")).data == "two\n"
        # The command, and what it printed.
        assert (await conversation.export("text", from_cursor=middle)).data.count("two") == 2  # type: ignore[union-attr]
        jsonl = await conversation.export("jsonl", to_cursor=middle)
        assert [line["block_id"] for line in lines_of(jsonl.data or "") if line["type"] == "block"] == ["b1"]
        assert (jsonl.span, jsonl.cursor) == ((0, middle), middle)

        begun = await conversation.exec_block("echo so far; read -r line")
        await conversation.wait_for("so far")
        running = lines_of((await conversation.export("jsonl", block_id=begun.block_id)).data or "")
        assert [line["type"] for line in running] == ["conversation", "block", "output"]
        assert (running[1]["state"], running[2]["data"]) == ("running", "so far\n")
        await conversation.send("\r")
        await conversation.wait_for({"token": "PROMPT"})

        file = await conversation.export("cast3", max_bytes=10)
        assert file.data is None and file.path is not None and Path(file.path).parent == home / "exports"
        lines = lines_of(Path(file.path).read_text("utf-8"))
        assert [line[2] for line in lines[1:] if line[1] == "m"][:2] == ["echo one", "echo two; (exit 3)"]

        for wrong, problem in (
            ({"format": "gif"}, BadRequest),
            ({"block_id": "b1", "to_cursor": 5}, BadRequest),
            ({"from_cursor": 9, "to_cursor": 8}, BadCursor),
            ({"to_cursor": conversation.cursor + 1}, BadCursor),
            ({"block_id": "b99"}, NotFound),
            ({"max_bytes": 0}, BadRequest),
        ):
            with pytest.raises(problem):
                await conversation.export(**wrong)  # type: ignore[arg-type]
        waiting = asyncio.create_task(conversation.export("html", max_bytes=1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
