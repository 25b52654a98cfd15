"""The stream as it is drawn: a function of the record, whatever was read before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from blockpty.runtime.drawn import ELLIPSIS, DrawnStream, drawn_command
from blockpty.runtime.record_reader import Position
from blockpty.runtime.screens import ScreenReader
from blockpty.spool.layout import Layout
from blockpty.testing import FakePty
from tests.support.machines import NONCE


def record(directory: Path, *, closed: bool = True, key: bool = True, command: str = "echo one\necho two") -> FakePty:
    """Write a record of one command that a line stands for, with output before and after it."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.output(b"motd\r\n")
    pty.prompt()
    line = " . '/private/commands/1'" + " " * 40
    data = "\x1b[7717~" if key else line.rstrip() + "\r"
    submit = {"kind": "command", "cmd": command, "request": "1.1", "line": line, **({"key": True} if key else {})}
    modes = {"echo": not key, "icanon": not key}
    pty.entry("input", author="agent", req="1.1", bytes=len(data), data=data, submit=submit, **modes)
    if closed:
        pty.output((b"\r\x1b[K$ " if key else b"") + line.rstrip(None if not key else "").encode() + b"\r\n")
        if key:
            pty.output(b"\x1b[?2004l\r")
            pty.begin(l=1)
        pty.output(b"one\r\ntwo\r\n")
        pty.end()
        pty.prompt()
    else:
        pty.output(b"\r\x1b[K$ . '/priv")
    pty.recording.save(directory)
    return pty


def everything(stream: DrawnStream, size: int) -> bytes:
    return stream.read(0, size)


@pytest.mark.parametrize("key", [True, False])
def test_the_command_stands_in_the_place_of_the_line(tmp_path: Path, key: bool) -> None:
    pty = record(tmp_path, key=key)
    raw = pty.recording.stream
    stream = DrawnStream(Layout(tmp_path))
    drawn = everything(stream, len(raw))
    stream.close()
    assert len(drawn) == len(raw)
    assert b"/private/" in raw and b"/private/" not in drawn
    assert b"echo one\r\necho" in drawn
    # Nothing else is touched: the output stands where it stood.
    assert drawn.index(b"one\r\ntwo") == raw.index(b"one\r\ntwo") or not key


def test_pieces_are_what_the_whole_is(tmp_path: Path) -> None:
    pty = record(tmp_path)
    size = len(pty.recording.stream)
    stream = DrawnStream(Layout(tmp_path))
    whole = everything(stream, size)
    chance = random.Random(7)
    for _ in range(300):
        begin = chance.randrange(size)
        length = chance.randrange(1, size)
        fresh = DrawnStream(Layout(tmp_path))
        assert fresh.read(begin, length) == whole[begin : begin + length]
        fresh.close()
    stream.close()


def test_nothing_of_an_echo_is_read_before_it_is_whole(tmp_path: Path) -> None:
    pty = record(tmp_path, closed=False)
    stream = DrawnStream(Layout(tmp_path))
    size = len(pty.recording.stream)
    begin = next(entry.offset for entry in pty.recording.entries if entry.kind == "input")
    assert everything(stream, size) == pty.recording.stream[:begin]
    assert stream.settled(size) == begin
    # The shell is gone: the rest never comes, and what there is is shown.
    pty.entry("exit", status=None, signal="SIGKILL")
    pty.recording.save(tmp_path)
    fresh = DrawnStream(Layout(tmp_path))
    assert everything(fresh, size) == pty.recording.stream
    fresh.close()
    stream.close()


def test_a_screen_drawn_in_steps_is_the_one_drawn_at_once(tmp_path: Path) -> None:
    pty = record(tmp_path)
    size = len(pty.recording.stream)
    timeline = (tmp_path / "timeline.jsonl").stat().st_size

    def reader() -> tuple[ScreenReader, DrawnStream]:
        stream = DrawnStream(Layout(tmp_path))
        return ScreenReader(
            Layout(tmp_path), lambda begin, end: stream.read(begin, end - begin), settled=stream.settled
        ), stream

    stepwise, first = reader()
    for offset in range(1, size + 1):
        seen = stepwise.bring(Position(offset, timeline)).snapshot()
        once, second = reader()
        assert once.bring(Position(offset, timeline)).snapshot().frame == seen.frame, offset
        once.close()
        second.close()
    stepwise.close()
    first.close()


def test_a_command_without_room_is_cut(tmp_path: Path) -> None:
    pty = record(tmp_path, command="echo " + "x" * 500)
    stream = DrawnStream(Layout(tmp_path))
    drawn = everything(stream, len(pty.recording.stream))
    stream.close()
    assert len(drawn) == len(pty.recording.stream) and ELLIPSIS in drawn


@pytest.mark.parametrize(("command", "drawn"), [
    ("a\nb\n", b"a\r\nb"), ("a\x1b[31m", b"a^[[31m"), ("a\tb", b"a\tb"), ("é", "é".encode()),
])  # fmt: skip
def test_how_a_command_is_drawn(command: str, drawn: bytes) -> None:
    assert drawn_command(command) == drawn
