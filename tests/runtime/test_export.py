"""Exports: the structure of each format, what must not be in any of them, and the tools that open them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import shlex
import stat
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.engine.views import transform
from blockpty.errors import BadCursor, BadRequest, NotFound
from blockpty.model.block import Block
from blockpty.model.entries import Entry
from blockpty.runtime.export.recording_events import PIECE, Source
from blockpty.runtime.export.writer import SUFFIXES, ExportStopped, export
from blockpty.runtime.redactor import Redactor
from blockpty.screen import markup
from blockpty.screen.rendered import Drawing, RowStyle
from blockpty.spool.layout import Layout
from blockpty.spool.line_reader import iterate_lines
from blockpty.spool.masking import Mask
from blockpty.testing import FakePty, derive, every_split
from tests.support.async_tests import async_test

MIB = 1024 * 1024
each_format = pytest.mark.parametrize("style", SUFFIXES)


def pty() -> FakePty:
    """A shell that has shown its first prompt."""
    made = FakePty()
    made.spawn()
    made.output(made.mark("HELLO", v=1, sh="bash", f="ps0"))
    made.prompt()
    made.clock.advance(1500)
    return made


def saved(made: FakePty, directory: Path, block_id: str | None = None, begin: int = 0) -> Source:
    """Write a recording as a conversation `c` of a home, and return it, or a part of it, as a source."""
    layout = Layout(directory / "conversations" / "c")
    layout.directory.mkdir(parents=True, exist_ok=True)
    made.recording.save(layout.directory)
    layout.blocks.write_bytes(derive(made.recording).blocks)
    block = next((Block.from_dict(one) for one in iterate_lines(layout.blocks) if one["block_id"] == block_id), None)
    span = (begin, len(made.recording.stream)) if block is None else block.span
    assert span[1] is not None
    timeline = layout.timeline.stat().st_size
    return Source("c", layout, Redactor(Mask([made.NONCE])), span[0], span[1], timeline, block)


def exported(source: Source, style: str) -> str:
    result = export(source, style, 64 * MIB, threading.Event())
    assert result.data is not None and result.path is None
    return result.data


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def output_of(events: Sequence[Any]) -> str:
    return "".join(event[2] for event in events if event[1] == "o")


def small_session() -> FakePty:
    made = pty()
    made.submit("echo \u00e9")
    made.begin()
    made.output(b"\x1b[31m\xc3")
    made.clock.advance(1234)
    made.entry("tick")
    made.output(b"\xa9\x1b[0m\r\n")
    made.end(0)
    made.prompt(0)
    made.clock.advance(7)
    made.entry("resize", cols=100, rows=30, author="agent")
    made.submit("printf '\\377'; false")
    made.begin()
    made.output(b"\xff|\r\n")
    made.end(1)
    made.prompt(1)
    made.clock.advance(5)
    made.entry("exit", status=3, signal=None)
    return made


V2 = """\
{"version":2,"width":80,"height":24,"timestamp":1700000000,"title":"c","env":{"TERM":"xterm-256color","SHELL":"bash"}}
[0.000, "o", "$ "]
[1.500, "o", " . /c/1\\r\\n"]
[1.500, "m", "echo \u00e9"]
[1.500, "o", "\\u001b[31m"]
[2.734, "o", "\u00e9\\u001b[0m\\r\\n$ "]
[2.741, "r", "100x30"]
[2.741, "o", " . /c/2\\r\\n"]
[2.741, "m", "printf '\\\\377'; false"]
[2.741, "o", "\ufffd|\\r\\n$ "]
"""
V3 = """\
{"version":3,"term":{"cols":80,"rows":24,"type":"xterm-256color"},"timestamp":1700000000,"title":"c",\
"env":{"TERM":"xterm-256color","SHELL":"bash"}}
[0.000, "o", "$ "]
[1.500, "o", " . /c/1\\r\\n"]
[0.000, "m", "echo \u00e9"]
[0.000, "o", "\\u001b[31m"]
[1.234, "o", "\u00e9\\u001b[0m\\r\\n$ "]
[0.007, "r", "100x30"]
[0.000, "o", " . /c/2\\r\\n"]
[0.000, "m", "printf '\\\\377'; false"]
[0.000, "o", "\ufffd|\\r\\n$ "]
[0.000, "x", "3"]
"""


def test_asciicast_line_by_line(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    assert exported(source, "cast") == V2
    assert exported(source, "cast3") == V3


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


def test_what_is_in_a_cast_does_not_depend_on_where_it_was_cut(tmp_path: Path) -> None:
    made = pty()
    made.run("echo", "\u00e9\u65e5\U0001f600\r\n".encode())
    whole = output_of(lines_of(exported(saved(made, tmp_path), "cast"))[1:])
    assert whole == "$  . /c/1\r\n\u00e9\u65e5\U0001f600\r\n$ "
    entries = list(made.recording.entries)
    for number, cuts in enumerate(every_split(made.recording.stream)):
        ticks = [Entry(cut, 1_700_000_000_000, "tick") for cut in cuts]
        made.recording.entries = sorted([*entries, *ticks], key=lambda entry: entry.offset)
        source = saved(made, tmp_path / str(number))
        assert output_of(lines_of(exported(source, "cast"))[1:]) == whole, cuts


def test_a_cast_of_a_block_begins_with_the_screen_and_ends_with_its_status(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path, "b2")
    header, first, *rest = lines_of(exported(source, "cast3"))
    assert (header["term"]["cols"], header["term"]["rows"]) == (100, 30)
    assert header["command"] == "printf '\\377'; false"
    assert first[:2] == [0, "o"] and first[2].startswith("\x1b[H\x1b[2J") and "\u00e9" in first[2]
    assert rest == [[0, "m", "printf '\\377'; false"], [0, "o", "\ufffd|\r\n"], [0, "x", "1"]]


def test_another_shell_finds_the_terminal_as_its_screen_does(tmp_path: Path) -> None:
    made = small_session()
    made.output(b"\x1b[?1049h")
    made.spawn()
    made.output(b"new")
    events = lines_of(exported(saved(made, tmp_path), "cast3"))
    assert "\x1b[?1049l" in output_of(events[-3:]) and events[-1][1:] == ["o", "new"]
    # Its predecessor's exit status is not the recording's.
    assert "x" not in [event[1] for event in events[1:]]
    assert exported(saved(made, tmp_path), "text").endswith("new\n")


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


def test_what_a_program_wrote_stays_data(tmp_path: Path) -> None:
    made = pty()
    hostile = b"</pre><script>alert(1)</script>\r\n```\r\n# no heading\r\n`````\r\n\x1b]0;title\x07\x1b[Kx\r\n"
    made.run("echo '</pre>' '```'\n# second line", hostile)
    source = saved(made, tmp_path)
    page = exported(source, "html")
    assert "<script" not in page and page.count("</pre>") == 1 and "default-src 'none'" in page
    shown = exported(source, "markdown")
    fences = re.findall(r"^`{3,}(?=\w)", shown, re.MULTILINE)
    assert fences == ["````", "``````"]
    assert shown.count("``````") == 2 and "\x1b" not in shown
    assert shown.startswith("# c\n\n## b1: exit 0, 0.000 s\n\n")
    assert "\x1b" not in exported(source, "text")


def test_json_lines_hold_the_records_and_the_whole_output(tmp_path: Path) -> None:
    made = pty()
    big = "".join(f"{number} \u00e9\r\n" for number in range(40_000))
    made.run("big", big.encode())
    made.run("empty", b"", 2)
    source = saved(made, tmp_path)
    about, *lines = lines_of(exported(source, "jsonl"))
    assert (about["type"], about["conversation_id"], about["span"]) == ("conversation", "c", [0, source.end])
    blocks = [line for line in lines if line["type"] == "block"]
    assert [(block["block_id"], block["cmd"], block["exit_status"]) for block in blocks] == [
        ("b1", "big", 0), ("b2", "empty", 2),
    ]  # fmt: skip
    pieces = [line for line in lines if line["type"] == "output"]
    assert {line["block_id"] for line in pieces} == {"b1"} and len(pieces) > 4
    assert "".join(line["data"] for line in pieces) == big.replace("\r\n", "\n")


def test_a_piece_of_json_lines_is_what_so_many_bytes_show_whatever_the_lines(tmp_path: Path) -> None:
    chance = random.Random(3)
    lengths = [chance.choice([0, 1, 7, 90, 600, 150_000 * (number % 200 == 0)]) for number in range(9_000)]
    lines = [b"\x1b[3%dm%s\x1b[m%d\r\n" % (number % 8, b"x" * size, number) for number, size in enumerate(lengths)]
    made = pty()
    made.run("lines", b"".join(lines))
    pieces = [line for line in lines_of(exported(saved(made, tmp_path), "jsonl")) if line["type"] == "output"]
    assert "".join(line["data"] for line in pieces).encode() == transform("text", b"".join(lines))
    # Where a piece ends inside a line is known from the bytes of the stream alone.
    ends = itertools.accumulate(len(line["data"]) for line in pieces[:-1])
    seen = [len(transform("text", b"".join(lines)[:at])) for at in range(PIECE, sum(map(len, lines)), PIECE)]
    assert all(abs(end - near) < 8 for end, near in zip(ends, seen, strict=True))


def test_pages_show_what_a_person_saw(tmp_path: Path) -> None:
    made = pty()
    made.run("progress", b"  1%\r 50%\r100%\r\n\x1b[32mgreen\x1b[0m\r\n")
    made.entry("resize", cols=20, rows=5, author="agent")
    made.run("seq", b"".join(b"%d\r\n" % number for number in range(30)))
    source = saved(made, tmp_path)
    lines = ["$  . /c/1", "100%", "green", "$  . /c/2", *map(str, range(30)), "$"]
    assert exported(source, "text") == "\n".join(lines) + "\n"
    page = exported(source, "html")
    assert '<span style="color:#00cd00;background:#181818">green</span>\n' in page
    body = page.partition("<pre")[2].partition(">\n")[2].partition("</pre>")[0]
    assert [re.sub("<[^>]*>", "", line).rstrip() for line in body.splitlines()] == lines


@pytest.mark.needs("scriptreplay")
def test_scriptreplay_plays_every_byte(tmp_path: Path) -> None:
    made = small_session()
    made.run("bytes", bytes(range(256)) + b"\r\n" + "\u00e9".encode() * 3000)
    source = saved(made, tmp_path)
    result = export(source, "typescript", 1, threading.Event())
    assert result.path is not None and result.timing_path is not None
    command = ["scriptreplay", "--divisor", "1000", "--log-out", result.path, "--timing", result.timing_path]
    played = subprocess.run(command, capture_output=True, timeout=30, check=True).stdout
    exact = Mask([made.NONCE]).hide(made.recording.stream)
    # It ends with a line end of its own.
    assert played == exact + b"\n"
    timing = Path(result.timing_path).read_text().splitlines()
    counts = [int(line.split()[2]) for line in timing if line.startswith("O ")]
    assert sum(counts) == len(exact)
    assert [line for line in timing if line.startswith("S")] == ["S 0.007000 SIGWINCH ROWS=30 COLS=100"]
    assert timing[-1] == "H 0.000000 EXIT_CODE 3"


@pytest.mark.needs("asciinema", "script")
def test_asciinema_opens_a_cast(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    path = tmp_path / "x.cast"
    path.write_text(exported(source, "cast"), "utf-8")
    # It wants a terminal; script gives it one.
    command = f"env LC_ALL=C.UTF-8 asciinema cat {shlex.quote(str(path))}"
    done = subprocess.run(
        ["script", "-qec", command, "/dev/null"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stdout
    shown = done.stdout.decode().replace("\r\r\n", "\r\n")
    assert shown == output_of(lines_of(V2)[1:])


@pytest.mark.parametrize("style", ["cast", "typescript", "jsonl", "markdown", "text"])
def test_memory_does_not_grow_with_the_record(tmp_path: Path, style: str) -> None:
    made = pty()
    made.submit("big")
    made.begin()
    whole = 30 * MIB
    line = b"2026-11-21 INFO some words of a log with \xc3\xa9 in it\r\n"
    stream = bytearray(made.recording.stream)
    while len(stream) < whole:
        stream += line * 200
        made.clock.advance(5)
        made.recording.entries.append(Entry(len(stream), made.clock.now_ms, "tick"))
    made.recording.stream = bytes(stream)
    made.end()
    made.prompt()
    source = saved(made, tmp_path)
    del made, stream
    stopped = threading.Event()
    tracemalloc.start()
    try:
        result = export(source, style, 1, stopped)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.export_bytes > whole * 0.9
    assert peak < 8 * MIB


def test_an_export_that_nobody_wants_any_more_leaves_no_file(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    stopped = threading.Event()
    stopped.set()
    for style in SUFFIXES:
        with pytest.raises(ExportStopped):
            export(source, style, 1, stopped)
    assert list(source.layout.exports.iterdir()) == []


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


@pytest.mark.needs("bash")
@async_test
async def test_a_capture_holds_what_happened_meanwhile_also_over_a_restart(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", persist=True)
        with pytest.raises(NotFound, match="capture"):
            await conversation.stop_capture()
        await conversation.run("echo before")
        begun = await conversation.start_capture()
        assert (begun.bytes_captured, begun.cursor) == (0, conversation.cursor)
        assert not Path(begun.capture_file).exists()
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        await conversation.run("echo meanwhile")
        again = await conversation.start_capture()
        assert again.capture_file == begun.capture_file and again.bytes_captured > 0
        done = await conversation.stop_capture()
        await conversation.run("echo after")
        assert (await conversation.stop_capture()).bytes_captured == done.bytes_captured
        path = Path(done.capture_file)
        assert done.capture_file == begun.capture_file and path.parent == home / "exports"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        header, screen, *events = lines_of(path.read_text("utf-8"))
        assert header["version"] == 2 and screen[0] == 0 and "before" in screen[2]
        assert [event[2] for event in events if event[1] == "m"] == ["echo meanwhile"]
        assert "meanwhile" in output_of(events) and "after" not in output_of(events)
        assert events[-1][0] <= done.duration_seconds
        assert done.bytes_captured == (done.cursor - begun.cursor)
        assert (await conversation.start_capture()).capture_file != begun.capture_file
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        assert (await conversation.verify()).clean
        await conversation.close()


def test_exports_that_nobody_takes_are_removed_after_a_week(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    directory = source.layout.exports
    directory.mkdir(parents=True)
    week = 8 * 86400
    aged = {"c-old.cast": week, "c-new.cast": 3600, "c-capture-old.cast": week, ".c.part": week, ".c-new.part": 60}
    for name, age in aged.items():
        (directory / name).write_text("x")
        os.utime(directory / name, (time.time() - age,) * 2)
    (directory / "c-old-link").symlink_to(tmp_path)
    exported(source, "cast")
    left = sorted(path.name for path in directory.iterdir())
    assert left == [".c-new.part", "c-capture-old.cast", "c-new.cast", "c-old-link"]


def test_a_page_of_plain_lines_is_the_same_as_a_drawn_one() -> None:
    parts = [
        *(b"<b>&amp; line %d\r\n" % number * 700 for number in range(3)), b"x" * 300 + b"\r\n", b"\x1b[31mred\r\n",
        b"\x1b[0m", b"\x1b[?1049h hi\x1b[?1049l", b"trail   \r\n" * 900, b"\r\n" * 4000, b"abc\rde\r\n" * 900,
        b"\x1b[7m", "\u20ac\u6f22 ".encode() * 30 + b"\r\n", b"\x1b[41m\x1b[K\x1b[0m", b"step\nstep\n" * 700,
    ]  # fmt: skip
    chosen = random.Random(1)
    style = RowStyle(markup.html_line, markup.html_text, markup.html_around)
    for _ in range(40):
        data = b"".join(chosen.choices(parts, k=8))
        assert drawn(data, Drawing(80, 24, style)) == drawn(data, Drawing(80, 24, style, 1 << 40))


def test_a_page_of_coloured_lines_is_the_same_as_a_drawn_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = (
        *(b"\x1b[m", b"\x1b[0m", b"\x1b[31m", b"\x1b[1;38;5;99m", b"\x1b[38;2;1;2;3m", b"\x1b[4:3m", b"\x1b[7m"),
        *(b"\x1b[K", b"\x1b[39m", b"\x1b[0K", b"\x07", b"\x1b[8m"),
    )
    link = (b"\x1b]8;;https://a/\x07", b"\x1b]8;;\x07")
    rare = (*link, b"\x1b[44m", b"\x1b[1K", b"\t", b"\x08", "\u6f22".encode(), b"\r", b"\n")
    chosen, quick = random.Random(2), 0
    seen = Drawing._seen

    def counted(self: Drawing, data: bytes, shown: bytes | None) -> str | None:
        nonlocal quick
        found = seen(self, data, shown)
        quick += found is not None
        return found

    monkeypatch.setattr(Drawing, "_seen", counted)
    style = RowStyle(markup.html_line, markup.html_text, markup.html_around)
    for number in range(300):
        cols, rows = chosen.choice(((10, 2), (20, 3), (7, 1)))
        data = b""
        for _ in range(chosen.randint(1, 40)):
            for _ in range(chosen.choice((0, 1, 3, 6))):
                data += chosen.choice((b"<b>", b" ", b"   ", b"word", b"0123456789", "caf\u00e9 ".encode()))
                data += chosen.choice(rare) if number % 3 == 0 and chosen.random() < 0.02 else b""
                data += chosen.choice(sequences) if chosen.random() < 0.6 else b""
            data += b"\r\x1b[K\n" if number % 3 == 0 and chosen.random() < 0.02 else b"\r\n"
        whole = drawn(data, Drawing(cols, rows, style, 1 << 40))
        assert drawn(data, Drawing(cols, rows, style, 1)) == whole, data
        cut = chosen.randint(0, len(data))
        halves = Drawing(cols, rows, style, 1)
        assert halves.feed(data[:cut]) + halves.feed(data[cut:]) + halves.finish() == whole, (data, cut)
    assert quick > 100


def drawn(data: bytes, drawing: Drawing) -> str:
    return drawing.feed(data) + drawing.finish()
