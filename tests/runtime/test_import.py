"""Imports: every format, what comes back of an export, and files that were made to do harm."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import threading
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import BadRequest, Busy, Exited, NotFound
from blockpty.model.entries import Entry
from blockpty.runtime.conversation import Conversation
from blockpty.runtime.export.writer import write
from blockpty.runtime.importing.writer import import_file
from tests.runtime.test_export import MIB, saved, small_session
from tests.runtime.test_replay import timed_session
from tests.support.async_tests import async_test

HEADER = {"version": 2, "width": 80, "height": 24}
HEADER_3 = {"version": 3, "term": {"cols": 80, "rows": 24}}


@asynccontextmanager
async def imported(home: Path, path: Path, **options: Any) -> AsyncIterator[Conversation]:
    """Give a conversation that was made of a file, in an engine of its own, and see that its record is sound."""
    async with blockpty.Engine(home) as engine:
        result = await engine.import_recording(path, "i", **options)
        conversation = await engine.conversation(result.conversation_id)
        yield conversation
        found = await conversation.verify()
        assert found.clean, found.differences
        assert result.cursor == conversation.cursor and conversation.mode == "exited"


def cast(path: Path, header: dict[str, Any], *events: Any, ends: bool = True) -> Path:
    lines = [json.dumps(one) for one in (header, *events)]
    path.write_text("\n".join(lines) + ("\n" if ends else ""), "utf-8")
    return path


async def text_of(conversation: Conversation, block_id: str | None = None) -> str:
    return (await conversation.read(block_id=block_id, max_bytes=MIB)).data


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


def counted(path: Path) -> bytes:
    """Return the bytes of a typescript that are the terminal's."""
    return path.read_bytes().partition(b"\n")[2].rpartition(b"\nScript done on ")[0]


def test_a_typescript_comes_back_byte_for_byte_with_its_blocks(tmp_path: Path) -> None:
    made = timed_session()
    # The last block prints nothing for a while before its end.
    end = made.recording.stream.rindex(b"four\r\n") + 6
    later = [replace(one, ts=one.ts + 700) if one.offset > end else one for one in made.recording.entries]
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


DEEP = "[" * 100_000
HOSTILE: list[tuple[str, bytes, str]] = [
    ("empty", b"", "no recording"),
    ("binary", bytes(range(256)) * 10, "no recording"),
    ("elf", b"\x7fELF" + bytes(100), "no recording"),
    ("prose", b"hello\nworld\n", "no recording"),
    ("an array", b"[1, 2]\n", "no asciicast"),
    ("deep", DEEP.encode(), "no asciicast"),
    ("no version", b'{"width": 80, "height": 24}\n', "no asciicast"),
    ("a later version", b'{"version": 4}\n', "version '4' is not known"),
    ("a version that is no number", b'{"version": "2"}\n', "version '2' is not known"),
    ("no size", b'{"version": 2}\n', "line 1: a terminal cannot have None columns"),
    ("no size in 3", b'{"version": 3, "term": 5}\n', "line 1: a terminal cannot have None columns"),
    ("a huge size", b'{"version": 2, "width": 1000000000, "height": 1}\n', "line 1: a terminal cannot"),
    ("a negative size", b'{"version": 2, "width": -1, "height": 1}\n', "line 1: a terminal cannot"),
    ("a flag for a size", b'{"version": 2, "width": true, "height": 1}\n', "line 1: a terminal cannot"),
    ("a time before all times", b'{"version": 2, "width": 9, "height": 9, "timestamp": -5}\n', "lies before"),
    ("a time of no clock", b'{"version": 2, "width": 9, "height": 9, "timestamp": 1e300}\n', "hundred years"),
    ("no event", b'{"version": 2, "width": 9, "height": 9}\n{}\n', "line 2: no event"),
    ("a short event", b'{"version": 2, "width": 9, "height": 9}\n[1, "o"]\n', "line 2: no event"),
    ("no JSON", b'{"version": 2, "width": 9, "height": 9}\n[0, "o", "x"]\nnonsense\n', "line 3: no event"),
    ("deep event", b'{"version": 2, "width": 9, "height": 9}\n' + DEEP.encode() + b"\n", "line 2: no event"),
    ("no text", b'{"version": 2, "width": 9, "height": 9}\n[0, "o", 5]\n', "line 2: the data"),
    ("no time", b'{"version": 2, "width": 9, "height": 9}\n["x", "o", "x"]\n', "line 2: 'x' is no time"),
    ("NaN", b'{"version": 2, "width": 9, "height": 9}\n[NaN, "o", "x"]\n', "is no time"),
    ("infinity", b'{"version": 2, "width": 9, "height": 9}\n[1e999, "o", "x"]\n', "is no time"),
    ("a time before the begin", b'{"version": 3, "term": {"cols": 9, "rows": 9}}\n[-1, "o", "x"]\n', "lies before"),
    ("many years", b'{"version": 3, "term": {"cols": 9, "rows": 9}}\n' + b'[3e9, "o", "x"]\n' * 3, "hundred years"),
    ("a bad resize", b'{"version": 2, "width": 9, "height": 9}\n[0, "r", "0x9"]\n', "line 2: a terminal"),
    ("a worse resize", b'{"version": 2, "width": 9, "height": 9}\n[0, "r", "axb"]\n', "line 2: a terminal"),
    ("version 1 without output", b'{"version": 1, "width": 9, "height": 9}', "none of version 1"),
    ("a bad event of 1", b'{"version": 1, "width": 9, "height": 9, "stdout": [[1]]}', r"stdout\[0\]: no event"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), [one[1:] for one in HOSTILE], ids=[one[0] for one in HOSTILE])
def test_hostile_files_are_refused_with_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "evil.cast"
    path.write_bytes(content)
    with pytest.raises(BadRequest, match=message) as caught:
        import_file(tmp_path / "h", "i", path, None, threading.Event())
    assert caught.value.hint and "evil.cast" in str(caught.value)
    assert list((tmp_path / "h").rglob("*")) in ([], [tmp_path / "h" / "conversations"])


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("nonsense\n", "no line of a timing file"),
        ("O x 5\n", "no delay"),
        ("O 0.1 -5\n", "no count"),
        ("O 0.1 5x\n", "no count"),
        ("O -1 5\n", "no delay"),
        ("O 99999999999 1\n", "hundred years"),
        ("S 0 SIGWINCH ROWS=0 COLS=5\n", "a terminal cannot"),
        ("0.1 x\n", "no count"),
        ("O " + "1" * 100_000 + "\n", "longer than"),
    ],
)
def test_hostile_times_are_refused_with_the_place(tmp_path: Path, times: str, message: str) -> None:
    (tmp_path / "a.log").write_bytes(b"Script started\n0123456789")
    (tmp_path / "a.log.timing").write_text(times)
    with pytest.raises(BadRequest, match=message) as caught:
        import_file(tmp_path / "h", "i", tmp_path / "a.log", None, threading.Event())
    assert "a.log.timing, line 1" in str(caught.value)


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


def test_lone_surrogates_and_titles_with_control_characters(tmp_path: Path) -> None:
    header = {**HEADER, "title": "a\nb\u001b[31m\ud800", "env": {"SHELL": "/x/\ud800"}}
    path = cast(tmp_path / "a.cast", header, [0, "o", "x\ud83dy"], [1, "m", "cmd\udc00"])
    result = import_file(tmp_path / "h", "i", path, None, threading.Event())
    assert result.imported_bytes == len("x\ufffdy".encode())


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
