"""Asciicasts: what is in them, wherever a stream was cut, and the program that plays them."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from blockpty.model.entries import Entry
from blockpty.testing import every_split
from tests.support.exports import exported, lines_of, output_of, pty, saved, small_session

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
