"""Imports of asciicasts: every version, and what comes back of an export."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from blockpty.runtime.export.writer import write
from tests.support.async_tests import async_test
from tests.support.exports import MIB, saved, small_session
from tests.support.imports import HEADER, HEADER_3, cast, imported, text_of
from tests.support.timed_sessions import timed_session


@async_test
async def test_asciicast_2_with_markers(tmp_path: Path) -> None:
    path = cast(
        tmp_path / "a.cast", {**HEADER, "timestamp": 1_700_000_000, "title": "t", "env": {"SHELL": "/bin/zsh"}},
        [0.5, "o", "$ "], [1.0, "m", "make"], [1.0, "o", "\u001b[32mok\u20ac\u001b[0m\r\n"], [1.25, "i", "secret"],
        [2.0, "r", "100x30"], [2.5, "z", "unknown"], [3.0, "m", "ls"], [3.0, "o", "a b\r\n"],
    )  # fmt: skip
    async with imported(tmp_path / "h", path) as conversation:
        blocks = (await conversation.blocks()).blocks
        assert [(one.cmd, one.ts_begin - 1_700_000_000_000, one.kind) for one in blocks] == [
            ("make", 1000, "user"), ("ls", 3000, "user"),
        ]  # fmt: skip
        assert await text_of(conversation, "b1") == "ok\u20ac\n"
        status = await conversation.status()
        assert (status.mode, status.shell, status.cols, status.rows) == ("exited", "zsh", 100, 30)
        assert "secret" not in (conversation.layout.timeline.read_text() + await text_of(conversation))
        assert (await conversation.wait_for("a b", from_cursor=0, timeout_ms=0)).matched
        again = (await conversation.export("cast")).data
        assert again is not None
        assert [line for line in again.splitlines() if '"o"' in line] == [
            '[0.000, "o", "$ "]', '[0.500, "o", "\\u001b[32mok\u20ac\\u001b[0m\\r\\n"]', '[2.500, "o", "a b\\r\\n"]',
        ]  # fmt: skip
        async with conversation.replay(speed=0) as replay:
            moments = [moment async for moment in replay]
            # What engines have noted since is not part of it.
            assert await replay.duration_seconds() == 2.5
        assert [one.at_ms for one in moments if one.type == "block_begin"] == [500, 2500]


@async_test
async def test_asciicast_3_and_1_and_what_names_no_blocks(tmp_path: Path) -> None:
    path = cast(
        tmp_path / "a.cast", {**HEADER_3, "command": "make all"},
        [0.5, "o", "one "], [0.25, "o", "two\r\n"], [1, "x", "3"],
    )  # fmt: skip
    path.write_text(path.read_text().replace("\n", "\n# a comment\n", 1))
    async with imported(tmp_path / "h", path) as conversation:
        (block,) = (await conversation.blocks()).blocks
        assert (block.cmd, block.exit_status, block.state) == ("make all", 3, "shell_exited")
        assert await text_of(conversation, "b1") == "one two\n"
        assert (await conversation.status()).exit == {"status": 3, "signal": None}
        assert (await conversation.export("cast3")).data is not None
    one = {"version": 1, "width": 80, "height": 24, "title": "old", "stdout": [[0.5, "one "], [0.25, "two\r\n"]]}
    for name, text in (("flat", json.dumps(one)), ("pretty", json.dumps(one, indent=2))):
        path = tmp_path / f"{name}.json"
        path.write_text(text)
        async with imported(tmp_path / name, path) as conversation:
            assert await text_of(conversation, "b1") == "one two\n"
            assert (await conversation.block("b1")).block.cmd == "old"


@pytest.mark.parametrize("style", ["cast", "cast3"])
def test_what_an_asciicast_holds_comes_back(tmp_path: Path, style: str) -> None:
    for number, made in enumerate((small_session(), timed_session())):
        source = saved(made, tmp_path / f"s{number}")
        path = tmp_path / f"{number}.cast"
        write(source, style, path, threading.Event())
        again = tmp_path / f"{number}-again.cast"

        @async_test
        async def check(path: Path = path, again: Path = again) -> None:
            async with imported(again.with_suffix(".home"), path) as conversation:
                result = await conversation.export(style, max_bytes=MIB)
                assert result.data is not None
                again.write_text(result.data, "utf-8")

        check()
        first, second = ([json.loads(line) for line in one.read_text().splitlines()] for one in (path, again))
        assert first[0] | {"title": "i"} == second[0]
        assert first[1:] == second[1:]
