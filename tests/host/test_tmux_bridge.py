"""What the bridge to a tmux pane makes of tmux's replies: bytes, cut characters, and the picture at a seam."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from blockpty.host.bridge import LOST
from blockpty.host.tmux_bridge import FIELDS, RESET, PanePicture, cut_character, seam_commands, unescaped
from tests.support.bridges import bridge_started

STATE = {
    "pane_width": 10, "pane_height": 4, "cursor_x": 0, "cursor_y": 0, "history_size": 0, "alternate_on": 0,
    "cursor_flag": 1, "wrap_flag": 1, "scroll_region_upper": 0, "scroll_region_lower": 3, "window_width": 10,
    "window_height": 4,
}  # fmt: skip


def shown(lines: list[bytes], rows: list[bytes], pending: bytes = b"", **state: int) -> PanePicture:
    values = ",".join(str({**STATE, **state}.get(name, 0)) for name in FIELDS)
    return PanePicture([[values.encode()], lines, rows + [b""] * (4 - len(rows)), [pending]])


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (b"plain", b"plain"),
        (b"a\\015\\012b\\015\\012", b"a\r\nb\r\n"),
        (b"\\033[1m\\134x\\000\\177", b"\x1b[1m\\x\0\x7f"),
        ("ä€".encode(), "ä€".encode()),
    ],
)
def test_bytes_of_a_pane(value: bytes, data: bytes) -> None:
    assert unescaped(value) == data


def test_every_byte_comes_back() -> None:
    every = bytes(range(256))
    written = b"".join(b"\\%03o" % byte if byte < 32 or byte in (92, 127) else bytes([byte]) for byte in every)
    assert unescaped(written) == every


@pytest.mark.parametrize("text", ["a", "ä", "€", "\U0001f600"])
def test_a_character_that_is_cut(text: str) -> None:
    data = b"x" + text.encode()
    for end in range(1, len(data) + 1):
        whole = end in (1, len(data))
        assert cut_character(data[:end]) == (b"" if whole else data[1:end])


def test_the_picture_of_a_new_shell_has_no_blank_lines() -> None:
    picture = shown([b"one", b"$ ", b"", b""], [b"one", b"$ "], cursor_x=2, cursor_y=1)
    data = picture.drawn(history=True, fresh=True)
    assert data.startswith(b"one\r\n$ \x1b[0m") and data.count(b"\n") == 1


def test_a_seam_that_is_redone_begins_with_a_reset() -> None:
    picture = shown([b"a", b"b", b"c", b"d", b"e"], [b"b", b"c", b"d", b"e"], history_size=1, cursor_y=3, cursor_x=1)
    assert picture.drawn(history=True, fresh=False).startswith(RESET + b"a\r\nb")
    # A new size leaves what has scrolled off.
    resized = picture.drawn(history=False, fresh=False)
    assert RESET not in resized and b"a" not in resized.replace(b"\x1b[", b"")


def test_the_alternate_screen_comes_without_history() -> None:
    picture = shown([b"old", b"x", b"", b""], [b"x"], alternate_on=1, history_size=9)
    data = picture.drawn(history=True, fresh=True)
    assert data.startswith(b"\x1b[?1049h\x1b[1;1Hx") and b"old" not in data


def test_modes_and_the_region() -> None:
    modes = {"keypad_cursor_flag": 1, "mouse_sgr_flag": 1, "cursor_flag": 0, "scroll_region_upper": 1}
    picture = shown([b""], [b""], cursor_y=2, **modes)
    data = picture.drawn(history=True, fresh=True)
    for part in (b"\x1b[?1h", b"\x1b[?1006h", b"\x1b[?25l", b"\x1b[2;4r"):
        assert part in data
    # A region moves the cursor home, so its place comes last.
    assert data.endswith(b"\x1b[3;1H") and b"\x1b[?7l" not in data


def test_a_cursor_behind_the_last_column_wraps() -> None:
    picture = shown([b"0123456789", b"", b"", b""], [b"0123456789"], cursor_x=10)
    assert picture.drawn(history=True, fresh=True).endswith(b"\x1b[1;10H9")
    wide = shown(["01234567中".encode()], ["01234567中".encode()], cursor_x=10)
    assert wide.drawn(history=True, fresh=True).endswith("\x1b[1;9H中".encode())


def test_pending_bytes_are_kept_apart() -> None:
    assert shown([b""], [b""], pending=b"\\033[3").pending == b"\x1b[3"


def test_the_commands_of_a_seam_are_one_line() -> None:
    line = seam_commands("%3", 7, paused=True)
    assert "\n" not in line and line.startswith("refresh-client -A '%3:continue' ; display-message -p 'seam 7'")
    assert line.count(" ; ") == 5 and "continue" not in seam_commands("%3", 7, paused=False)


# A control client that shows one pane, and prints marks of its shell when the second seam has been asked for already.
FAKE_TMUX = """
import sys
def reply(number, *lines):
    print(f"%begin 1 {number} 1", *lines, f"%end 1 {number} 1", sep="\\n", flush=True)
print("%session-changed $1 work", flush=True)
for number, line in enumerate(sys.stdin):
    if "'seam " in line:
        again = "'seam 2'" in line
        if again:
            print("%output %1 lost\\\\033]7717;__EN", flush=True)
            print("%output %1 D__;n=x\\\\007text\\\\033]7717;__PROMPT__;n=x\\\\007$ ", flush=True)
        reply(4 * number, "seam 2" if again else "seam 1")
        for part in ("STATE", "all lines", "one row", ""):
            reply(4 * number + 1, part)
        print("%output %1 seen", "%pause %1" if not again else "%exit detached", sep="\\n", flush=True)
"""


def test_marks_in_what_is_only_in_the_picture_are_passed_on_behind_the_mark_of_the_seam(tmp_path: Path) -> None:
    state = ",".join(str(STATE.get(name, 0)) for name in FIELDS)
    program = tmp_path / "tmux"
    program.write_text(f"#!{sys.executable}\n{FAKE_TMUX.replace('STATE', state)}")
    program.chmod(0o700)
    settings = {"program": str(program), "session": "$1", "pane": "%1", "nonce": "own", "pause_after": 1}
    argv = bridge_started(tmp_path, "tmux_bridge", settings)
    near, far = pty.openpty()
    os.set_blocking(near, False)
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 4, 10, 0, 0))
    with subprocess.Popen(argv, stdin=far, stdout=far) as bridge:
        assert bridge.wait(30) == LOST
    data = os.read(near, 65536)
    os.close(near)
    os.close(far)
    first, again = data.split(b"r=paused;w=10;h=4\x07")
    assert b"__END__" not in first and first.count(b"seen") == 1
    marks = b"\x1b]7717;__END__;n=x\x07\x1b]7717;__PROMPT__;n=x\x07"
    # Nothing else of what was printed before the picture, which has it.
    assert again.startswith(marks + RESET + b"all lines") and b"lost" not in data and b"text" not in data
    assert again.endswith(b"seen")


def pane_state() -> str:
    return ",".join(str(STATE.get(name, 0)) for name in FIELDS)


def program_at(path: Path, source: str) -> str:
    path.write_text(f"#!{sys.executable}\n{REPLIES}{source}")
    path.chmod(0o700)
    return str(path)


def set_size(terminal: int, cols: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


# What both programs below have in common. `HERE` is the directory of the test.
REPLIES = """
import os, pathlib, select, sys
HERE = pathlib.Path(__file__).parent
def reply(*lines):
    print("%begin 1 1 1", *lines, "%end 1 1 1", sep="\\n", flush=True)
def picture(number):
    for part in (f"seam {number}", (HERE / "state").read_text(), "all lines", "one row", ""):
        reply(part)
"""
# The picture of the second seam waits until the test has resized the terminal.
RESIZED_MEANWHILE = """
print("%session-changed $1 work", flush=True)
for line in sys.stdin:
    if "'seam 1'" in line:
        picture(1)
        print("%pause %1", flush=True)
    elif "'seam 2'" in line:
        (HERE / "resize").read_bytes()
        picture(2)
    elif line.startswith("refresh-client -C"):
        (HERE / "asked").write_text(line)
        print("%exit detached", flush=True)
"""


def test_a_size_that_comes_while_a_picture_is_awaited_is_not_forgotten(tmp_path: Path) -> None:
    (tmp_path / "state").write_text(pane_state())
    os.mkfifo(tmp_path / "resize")
    program = program_at(tmp_path / "tmux", RESIZED_MEANWHILE)
    settings = {"program": program, "session": "$1", "pane": "%1", "nonce": "own", "pause_after": 1}
    argv = bridge_started(tmp_path, "tmux_bridge", settings)
    near, far = pty.openpty()
    set_size(far, 10, 4)
    with subprocess.Popen(argv, stdin=far, stdout=far) as bridge:
        with open(tmp_path / "resize", "wb"):
            set_size(far, 12, 6)
        data = b""
        while b"r=paused" not in data:
            data += os.read(near, 65536)
        # As an engine does at the mark of a seam.
        set_size(far, 10, 4)
        try:
            assert bridge.wait(30) == LOST
        finally:
            bridge.kill()
    os.close(near)
    os.close(far)
    assert (tmp_path / "asked").read_text() == "refresh-client -C 12x6\n"


# ssh to a tmux: the first connection ends, the second comes to nothing, the third is attached.
THREE_CONNECTIONS = """
number = len(list(HERE.glob("run*"))) + 1
log = HERE / f"run{number}"
log.touch()
if number == 2:
    (HERE / "typed").read_bytes()
    if select.select([0], [], [], 0.5)[0]:
        log.write_bytes(os.read(0, 65536))
    sys.exit(255)
if number == 4:
    sys.exit(1)
print("%session-changed $1 work", flush=True)
for line in sys.stdin:
    if "'seam 1'" in line or "'seam 2'" in line:
        picture(1 if "'seam 1'" in line else 2)
        if number == 1:
            sys.exit(255)
    elif "send-keys" in line:
        log.write_text(line)
        sys.exit(255)
"""


def test_what_is_typed_waits_for_a_connection_that_is_attached(tmp_path: Path) -> None:
    (tmp_path / "state").write_text(pane_state())
    os.mkfifo(tmp_path / "typed")
    program = program_at(tmp_path / "ssh", THREE_CONNECTIONS)
    settings = {
        "ssh": [program], "session": "$1", "pane": "%1", "nonce": "own", "pause_after": 1,
        "state": str(tmp_path / "connection"), "instance": 1,
    }  # fmt: skip
    argv = bridge_started(tmp_path, "tmux_bridge", settings)
    near, far = pty.openpty()
    set_size(far, 10, 4)
    with subprocess.Popen(argv, stdin=far, stdout=far) as bridge:
        with open(tmp_path / "typed", "wb"):
            os.write(near, b"ls\r")
        try:
            assert bridge.wait(30) == 0
        finally:
            bridge.kill()
    os.close(near)
    os.close(far)
    assert (tmp_path / "run2").read_bytes() == b""
    assert "send-keys -t %1 -H 6c 73 d" in (tmp_path / "run3").read_text()
