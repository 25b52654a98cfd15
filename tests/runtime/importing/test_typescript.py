"""Imports of typescripts: those that script has written, and our own byte for byte with their blocks."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import threading
from pathlib import Path

import pytest

from blockpty.model.entries import Entry
from blockpty.runtime.export.writer import write
from tests.support.async_tests import async_test
from tests.support.exports import saved
from tests.support.imports import imported, text_of
from tests.support.timed_sessions import timed_session


def counted(path: Path) -> bytes:
    """Return the bytes of a typescript that are the terminal's."""
    return path.read_bytes().partition(b"\n")[2].rpartition(b"\nScript done on ")[0]


def test_a_typescript_comes_back_byte_for_byte_with_its_blocks(tmp_path: Path) -> None:
    made = timed_session()
    # The last block prints nothing for a while before its end.
    end = made.recording.stream.rindex(b"four\r\n") + 6
    later = [one._replace(ts=one.ts + 700) if one.offset > end else one for one in made.recording.entries]
    later.append(Entry(end, later[-1].ts - 25, "tick"))
    made.recording.entries = sorted(later, key=lambda one: (one.offset, one.ts))
    made.output(bytes(range(256)) * 3)
    source = saved(made, tmp_path / "s")
    path = tmp_path / "a.typescript"
    write(source, "typescript", path, threading.Event())
    assert b"7717" in counted(path) and made.NONCE.encode() not in path.read_bytes()

    @async_test
    async def check() -> None:
        async with imported(tmp_path / "h", path) as conversation:
            blocks = (await conversation.blocks()).blocks
            assert [(one.cmd, one.exit_status) for one in blocks] == [("echo one", 0), ("slow", 3), ("echo four", 0)]
            assert await text_of(conversation, "b2") == "two\nthree\u20ac\n"
            begin = blocks[0].ts_begin
            assert [(one.ts_begin - begin, one.duration_ms) for one in blocks] == [(0, 0), (2000, 1010), (62000, 700)]
            result = await conversation.export("typescript")
            assert result.path is not None and result.timing_path is not None
            assert counted(Path(result.path)) == counted(path) == bytes(
                made.recording.stream.replace(made.NONCE.encode(), b"*" * 22)
            )
            times = [one.read_bytes() for one in (Path(result.timing_path), Path(f"{path}.timing"))]
            assert times[0] == times[1]

    check()


@pytest.mark.needs("script", "scriptreplay")
@pytest.mark.parametrize("style", ["advanced", "classic"])
@async_test
async def test_what_script_has_written(tmp_path: Path, style: str) -> None:
    log, times = tmp_path / "a.log", tmp_path / "times"
    command = "printf 'one\\r\\n\\377\\033[31m\\342'; printf '\\202\\254\\n'; exit 3"
    arguments = ["script", "-q", "-e", "-E", "never", "-m", style, "-T", str(times), "-O", str(log), "-c", command]
    done = await asyncio.create_subprocess_exec(*arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert await done.wait() == 3
    async with imported(tmp_path / "h", log, timing=times) as conversation:
        raw = await conversation.read(view="raw")
        assert raw.data_b64 is not None
        assert base64.b64decode(raw.data_b64) == b"one\r\r\n\xff\x1b[31m\xe2\x82\xac\r\n"
        if style == "advanced":
            (block,) = (await conversation.blocks()).blocks
            assert (block.exit_status, command[:20] in block.cmd) == (3, True)
