"""The conversation that an import makes: only read, as far as the file goes, in bounded memory."""

from __future__ import annotations

import json
import re
import threading
import tracemalloc
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import BadRequest, Busy, Exited, NotFound
from blockpty.runtime.importing.writer import import_file
from tests.support.async_tests import async_test
from tests.support.exports import MIB
from tests.support.imports import HEADER, HEADER_3, cast, imported


@async_test
async def test_it_can_only_be_read(tmp_path: Path) -> None:
    path = cast(tmp_path / "a.cast", HEADER, [0, "o", "x\r\n"])
    async with imported(tmp_path, path) as conversation:
        typed = (conversation.run("id"), conversation.send("x"))
        for refused in (*typed, conversation.reset(), conversation.resize(9, 9)):
            with pytest.raises(Exited) as caught:
                await refused
            assert "imported" in f"{caught.value} {caught.value.hint}"
        async with blockpty.Engine(tmp_path) as engine:
            with pytest.raises(Exited, match="imported"):
                await engine.open("i", shell="bash")
            with pytest.raises(Busy):
                await engine.import_recording(path, "i")
            (info,) = (await engine.list()).conversations
            assert (info.conversation_id, info.live) == ("i", False)
            made = await engine.import_recording(path)
            assert re.fullmatch(r"a-\d{8}-[0-9a-f]{6}", made.conversation_id)


@async_test
async def test_a_file_that_was_cut_is_kept_as_far_as_it_goes(tmp_path: Path) -> None:
    path = cast(tmp_path / "a.cast", HEADER, [0, "o", "whole\r\n"])
    with path.open("ab") as file:
        file.write(b'[1.0, "o", "ha')
    async with blockpty.Engine(tmp_path) as engine:
        result = await engine.import_recording(path, "i")
        assert result.cut and result.imported_bytes == 7
        log = tmp_path / "a.typescript"
        log.write_bytes(b"Script started on x\nabc")
        log.with_name("a.typescript.timing").write_text("O 0.1 2\nO 0.1 99\nO 0.")
        result = await engine.import_recording(log, "j")
        assert result.cut and result.imported_bytes == 3


@async_test
async def test_what_is_no_file(tmp_path: Path) -> None:
    async with blockpty.Engine(tmp_path) as engine:
        with pytest.raises(NotFound):
            await engine.import_recording(tmp_path / "nothing")
        for path in (tmp_path, Path("/dev/zero")):
            with pytest.raises(BadRequest, match="no regular file"):
                await engine.import_recording(path)
        (tmp_path / "t").write_bytes(b"Script started on now\nx")
        with pytest.raises(BadRequest, match="needs the file with its times"):
            await engine.import_recording(tmp_path / "t")
        for name in ("../x", "a/b", ""):
            with pytest.raises(BadRequest):
                await engine.import_recording(tmp_path / "t", name)
        with pytest.raises(BadRequest):
            await engine.import_recording("a\0b")


def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.cast"
    line = json.dumps([0.001, "o", "\u001b[31mline\u001b[0m\r\n" * 300])
    with path.open("w") as file:
        file.write(json.dumps(HEADER_3) + "\n")
        for _ in range(3000):
            file.write(line + "\n")
    tracemalloc.start()
    try:
        result = import_file(tmp_path / "h", "i", path, None, threading.Event())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.imported_bytes > 12 * MIB and peak < 4 * MIB
