"""The program on the terminal of a tmux source: the bytes of one pane, from and to a tmux server in control mode.

It runs as a script of its own, with the standard library only, between the recorder's terminal (standard input and
output, raw) and `tmux -C attach`. It draws nothing of tmux: control mode has no status line, and passes on what the
program in the pane has written, byte for byte.

Rules:
* attach first, then capture. The commands of one line run with no output of the pane in between, and their replies
  stand in the same stream as the output: what comes before them is in the capture, what comes after is not. That is the
  seam, and it is exact;
* a seam is redone where the stream cannot go on: tmux has paused us (we were too slow), the size has changed, or the
  alternate screen in which we attached was left. It begins with a mark, and with the reset that every terminal obeys;
* the size of the pane is tmux's. The mark names a new one, and nothing is written until our terminal has it;
* our client never counts for the size of a window that another client shows (ignore-size).

Exit status: 0 when the pane is gone, 255 when the connection to it is (detached, or the server has ended).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty
import unicodedata
from collections.abc import Sequence
from typing import Any

LOST = 255
# How long our terminal may take to get a new size; without an engine nothing gives it one.
SIZE_SECONDS = 1.0
# Sizes that follow each other closer than that are one.
SETTLED_SECONDS = 0.1
KEYS_AT_ONCE = 256
READ_BYTES = 1 << 18
FIELDS = (
    "pane_width", "pane_height", "cursor_x", "cursor_y", "history_size", "alternate_on", "cursor_flag",
    "keypad_cursor_flag", "keypad_flag", "insert_flag", "wrap_flag", "origin_flag", "mouse_standard_flag",
    "mouse_button_flag", "mouse_all_flag", "mouse_sgr_flag", "mouse_utf8_flag", "scroll_region_upper",
    "scroll_region_lower", "bracket_paste_flag", "window_width", "window_height",
)  # fmt: skip
# What a set flag is, and what an unset one is; a new terminal has the other.
SET = {
    "keypad_cursor_flag": b"\x1b[?1h", "keypad_flag": b"\x1b=", "insert_flag": b"\x1b[4h",
    "mouse_standard_flag": b"\x1b[?1000h", "mouse_button_flag": b"\x1b[?1002h", "mouse_all_flag": b"\x1b[?1003h",
    "mouse_sgr_flag": b"\x1b[?1006h", "mouse_utf8_flag": b"\x1b[?1005h", "bracket_paste_flag": b"\x1b[?2004h",
}  # fmt: skip
UNSET = {"wrap_flag": b"\x1b[?7l", "cursor_flag": b"\x1b[?25l"}
RESET = b"\x1bc"

_OCTAL = re.compile(rb"\\([0-7]{3})")
_SEQUENCE = re.compile(rb"\x1b\[[0-9;:]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x0e\x0f]")
_LEFT_ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)l")
_BYTES = {b"%03o" % byte: bytes([byte]) for byte in range(256)}


def unescaped(value: bytes) -> bytes:
    """Return the bytes of a pane that tmux has written as `\\ooo` where they are no printable ASCII."""
    if b"\\" not in value:
        return value
    value = value.replace(b"\\015\\012", b"\r\n").replace(b"\\033", b"\x1b")
    return _OCTAL.sub(lambda found: _BYTES[found.group(1)], value) if b"\\" in value else value


def cut_character(data: bytes) -> bytes:
    """Return the beginning of a UTF-8 character with which data ends, b"" where it ends with a whole one."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[-back:] if length > back else b""
        if byte < 0x80:
            break
    return b""


class PanePicture:
    """What a pane shows at a seam, as the replies to `seam_commands` say it."""

    def __init__(self, replies: Sequence[Sequence[bytes]]) -> None:
        state, lines, visible, pending = replies
        values = (state[0] if state else b"").decode("ascii", "replace").split(",")
        numbers = (int(value) if value.isdecimal() else None for value in values)
        self.state = dict.fromkeys(FIELDS) | dict(zip(FIELDS, numbers, strict=False))
        self.lines = [*lines]
        self.rows = [*visible]
        self.pending = unescaped(b"\n".join(pending))
        cols, rows = self.state["pane_width"], self.state["pane_height"]
        self.size = (cols or 80, rows or 24)
        self.window = (self.state["window_width"] or self.size[0], self.state["window_height"] or self.size[1])

    def drawn(self, *, history: bool, fresh: bool) -> bytes:
        """Return what draws it on a terminal of this size.

        `history`: with all that has scrolled off, unless the alternate screen is picture. `fresh`: on a terminal that
        has picture nothing yet.
        """
        if self.state["alternate_on"]:
            body = b"\x1b[?1049h" + self._placed()
        elif history:
            body = self._scrolled()
        else:
            body = self._placed()
        start = b"" if fresh else RESET if history or self.state["alternate_on"] else b"\x1b[0m\x1b[r\x1b[H\x1b[2J"
        # tmux writes line drawing as a second character set.
        sets = b"\x1b)0" if b"\x0e" in body else b""
        return start + sets + body + b"\x1b[0m" + self._modes() + self._cursor()

    def _scrolled(self) -> bytes:
        """All lines in order; blank ones below the last text stand for nothing where nothing has scrolled."""
        lines = self.lines
        blank = 0
        for row in reversed(self.rows):
            if _SEQUENCE.sub(b"", row).strip():
                break
            blank += 1
        below = self.size[1] - 1 - (self.state["cursor_y"] or 0)
        drop = min(blank, below) if not self.state["history_size"] else 0
        return b"\r\n".join(lines[: len(lines) - drop] if drop else lines)

    def _placed(self) -> bytes:
        return b"".join(b"\x1b[%d;1H" % (number + 1) + row for number, row in enumerate(self.rows[: self.size[1]]))

    def _modes(self) -> bytes:
        state = self.state
        found = [what for name, what in SET.items() if state[name]]
        found += [what for name, what in UNSET.items() if state[name] == 0]
        upper, lower = state["scroll_region_upper"], state["scroll_region_lower"]
        if upper is not None and lower is not None and (upper, lower) != (0, self.size[1] - 1):
            found.append(b"\x1b[%d;%dr" % (upper + 1, lower + 1))
        return b"".join(found)

    def _cursor(self) -> bytes:
        state, (cols, _) = self.state, self.size
        x, y = state["cursor_x"] or 0, state["cursor_y"] or 0
        if state["origin_flag"]:
            return b"\x1b[?6h\x1b[%d;%dH" % (y + 1 - (state["scroll_region_upper"] or 0), min(x, cols - 1) + 1)
        if x < cols:
            return b"\x1b[%d;%dH" % (y + 1, x + 1)
        # Behind the last column: the next character begins a new line, as it does after one that was printed there.
        text = _SEQUENCE.sub(b"", self.rows[y] if y < len(self.rows) else b"").decode("utf-8", "replace")
        last = text[-1:] or " "
        wide = 2 if unicodedata.east_asian_width(last) in "WF" else 1
        return b"\x1b[%d;%dH" % (y + 1, cols - wide + 1) + last.encode()


def seam_commands(pane: str, number: int, *, paused: bool) -> str:
    """Return the line whose replies are a seam: a heading, then what `PanePicture` takes."""
    state = ",".join(f"#{{{name}}}" for name in FIELDS)
    go_on = f"refresh-client -A '{pane}:continue' ; " if paused else ""
    return (
        f"{go_on}display-message -p 'seam {number}' ; display-message -p -t {pane} '{state}' ; "
        f"capture-pane -p -e -J -S - -t {pane} ; capture-pane -p -e -N -t {pane} ; capture-pane -p -P -C -t {pane}"
    )


SEAM_REPLIES = 4


class Bridge:
    """One pane between a control client and the terminal of this process."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.pane: str = settings["pane"]
        self._nonce: str = settings["nonce"]
        self._session: bytes = settings["session"].encode()
        self._program: str = settings["program"]
        flags = f"ignore-size,pause-after={settings['pause_after']}"
        self._client = subprocess.Popen(
            [self._program, "-C", "attach-session", "-E", "-f", flags, "-t", settings["session"]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
        )  # fmt: skip
        assert self._client.stdin is not None and self._client.stdout is not None  # they are pipes
        self._in, self._out = self._client.stdin.fileno(), self._client.stdout.fileno()
        self._held = b""
        self._block: list[bytes] | None = None
        self._end: tuple[bytes, bytes] = (b"", b"")
        self._others: set[bytes] = set()
        # Replies of a seam that have come; None when none is under way. Output before its heading is part of it.
        self._replies: list[list[bytes]] | None = None
        self._asked = 0
        self._awaits_seam, self._torn = True, False
        self._reason: str | None = "attached"
        self._number = 0
        self._fresh = True
        self._started_in_alternate = False
        self._tail = b""
        self._size = self._window = (0, 0)
        self._resized_at: float | None = None
        self._ended: int | None = None

    # -- the loop -------------------------------------------------------------------------------------------------

    def run(self, wake: int) -> int:
        """Work until the pane or the way to it is gone; return the exit status."""
        while self._ended is None:
            wait = None if self._resized_at is None else max(0.0, self._resized_at - time.monotonic())
            ready = select.select([0, self._out, wake], [], [], wait)[0]
            if wake in ready:
                os.read(wake, 4096)
                self._terminal_resized()
            if self._out in ready:
                data = os.read(self._out, READ_BYTES)
                if not data:
                    return LOST
                self._take(data)
            if 0 in ready:
                self._typed(os.read(0, 65536))
            if self._resized_at is not None and time.monotonic() >= self._resized_at:
                self._resized_at = None
                self._seam("resized")
        return self._ended

    def close(self) -> None:
        """Leave the tmux server; the pane stays as it is."""
        with contextlib.suppress(OSError):
            os.close(self._in)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._client.wait(1)
        self._client.kill()

    def _command(self, line: str) -> None:
        data = memoryview(line.encode() + b"\n")
        while data:
            data = data[os.write(self._in, data) :]

    # -- from tmux ------------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        lines = (self._held + data).split(b"\n")
        self._held = lines.pop()
        written: list[bytes] = []
        for line in lines:
            if self._block is not None:
                if line in self._end:
                    block, self._block = self._block, None
                    self._flush(written)
                    self._reply(block, failed=line == self._end[1])
                else:
                    self._block.append(line)
            elif line.startswith((b"%output ", b"%extended-output ")):
                self._output(line, written)
            elif line.startswith(b"%begin "):
                rest = line[len(b"%begin") :]
                self._block, self._end = [], (b"%end" + rest, b"%error" + rest)
            else:
                self._flush(written)
                self._notified(line)
        self._flush(written)

    def _output(self, line: bytes, written: list[bytes]) -> None:
        if line.startswith(b"%output "):
            _, pane, value = line.split(b" ", 2)
        else:
            head, _, value = line.partition(b" : ")
            pane = head.split(b" ", 2)[1]
        if pane != self.pane.encode():
            if pane not in self._others:
                # Paused for us alone: with "off" tmux would stop reading from it while no other client shows it.
                self._others.add(pane)
                self._command(f"refresh-client -A '{pane.decode()}:pause'")
            return
        data = unescaped(value)
        self._tail = (self._tail + data)[-3:]
        if self._awaits_seam:
            self._torn |= self._replies is not None
            return
        written.append(data)
        if self._started_in_alternate and _LEFT_ALTERNATE.search(data):
            self._flush(written)
            self._seam("alternate_left")

    @staticmethod
    def _flush(written: list[bytes]) -> None:
        if written:
            write_all(b"".join(written))
            written.clear()

    def _notified(self, line: bytes) -> None:
        words = line.split(b" ")
        if words[0] == b"%session-changed" and not self._asked:
            # Not before: tmux may run commands that were sent earlier before it has attached us.
            self._seam("attached")
        elif words[0] == b"%session-changed" and words[1] != self._session:
            # The client was switched to another session, whose panes are all that it gets now.
            self._ended = LOST
        elif words[0] == b"%pause" and words[1:2] == [self.pane.encode()]:
            self._seam("paused", paused=True)
        elif words[0] in (b"%layout-change", b"%window-close", b"%unlinked-window-close", b"%window-pane-changed"):
            size = "#{pane_id} #{pane_width} #{pane_height} #{pane_dead}"
            self._command(f"display-message -p -t {self.pane} 'size {size}'")
        elif words[0] == b"%exit":
            self._ended = self._end_of(line)

    def _end_of(self, line: bytes) -> int:
        """Return the exit status for a control client that has ended: whether the pane has, or only the way to it.

        tmux gives no reason for a detached client, nor for one whose session has ended.
        """
        if line != b"%exit":
            return LOST
        asked = [self._program, "display-message", "-p", "-t", self.pane, "#{pane_id}"]
        found = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return LOST if found.stdout.strip() == self.pane.encode() else 0

    def _reply(self, block: list[bytes], *, failed: bool) -> None:
        if self._replies is not None:
            if failed:
                self._ended = 0
            self._replies.append(block)
            if len(self._replies) == SEAM_REPLIES:
                replies, self._replies = self._replies, None
                if self._torn:
                    # The replies are of different moments.
                    self._seam(self._reason or "resized")
                elif self._ended is None:
                    self._show(PanePicture(replies))
            return
        first = block[0].split(b" ") if block else [b""]
        if failed and block and b"can't find pane" in block[0]:
            self._ended = 0
        elif first[0] == b"seam" and first[1:] == [b"%d" % self._asked]:
            self._replies, self._torn = [], False
        elif first[0] == b"size":
            # Without the pane's id there is no such pane any more.
            if first[1] != self.pane.encode() or first[4] == b"1":
                self._ended = 0
            elif (int(first[2]), int(first[3])) != self._size and not self._awaits_seam:
                self._resized_at = time.monotonic() + SETTLED_SECONDS

    # -- seams ----------------------------------------------------------------------------------------------------

    def _seam(self, reason: str, *, paused: bool = False) -> None:
        """Ask for what the pane shows; what it prints until the answer is in the answer."""
        self._asked += 1
        self._awaits_seam, self._replies, self._resized_at = True, None, None
        # A pause loses bytes, and the first one draws everything: neither is made less by a change of the size.
        if self._reason is None or reason != "resized":
            self._reason = reason
        self._command(seam_commands(self.pane, self._asked, paused=paused))

    def _show(self, picture: PanePicture) -> None:
        self._size, self._window, reason = picture.size, picture.window, self._reason or "resized"
        write_all(self._mark(reason))
        self._await_size()
        # What the program has begun to write, and the pane does not show yet.
        begun = picture.pending or cut_character(self._tail)
        write_all(picture.drawn(history=reason != "resized", fresh=self._fresh) + self._mark("drawn") + begun)
        self._fresh, self._awaits_seam, self._reason = False, False, None
        self._started_in_alternate = bool(picture.state["alternate_on"]) and reason != "resized"

    def _mark(self, reason: str) -> bytes:
        """Return the mark at which a new picture begins (`reason`), or behind which it is `drawn`."""
        self._number += 1
        fields = f"n={self._nonce};i={os.getpid()};s={self._number};c=0;r={reason};w={self._size[0]};h={self._size[1]}"
        return f"\x1b]7717;__SEAM__;{fields}\x07".encode()

    def _await_size(self) -> None:
        """Return when our terminal has the pane's size, so that what follows is drawn for that."""
        deadline = time.monotonic() + SIZE_SECONDS
        while terminal_size() != self._size and time.monotonic() < deadline:
            time.sleep(0.002)

    # -- to tmux --------------------------------------------------------------------------------------------------

    def _terminal_resized(self) -> None:
        """Our terminal was given a size: ask for it, where no other client decides, and see what the pane gets."""
        cols, rows = terminal_size()
        if (cols, rows) == self._size or self._awaits_seam:
            return
        # Other panes of the window keep their place.
        width, height = self._window[0] + cols - self._size[0], self._window[1] + rows - self._size[1]
        self._command(f"refresh-client -C {max(1, width)}x{max(1, height)}")
        # Where the pane keeps its size, ours is to be that again.
        self._resized_at = time.monotonic() + SETTLED_SECONDS

    def _typed(self, data: bytes) -> None:
        if not data:
            self._ended = LOST
        for at in range(0, len(data), KEYS_AT_ONCE):
            keys = " ".join(f"{byte:x}" for byte in data[at : at + KEYS_AT_ONCE])
            # In copy mode keys would go to that.
            self._command(
                f"if-shell -F -t {self.pane} '#{{pane_in_mode}}' 'copy-mode -q -t {self.pane}' ; "
                f"send-keys -t {self.pane} -H {keys}"
            )


def write_all(data: bytes) -> None:
    """Write to the terminal; waits while the recorder cannot take it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def terminal_size() -> tuple[int, int]:
    """Return columns and rows of our terminal."""
    rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    return cols, rows


def main(path: str) -> int:
    """Run with the settings in a private file, which is removed: it holds the secret of our marks."""
    with open(path, "rb") as file:
        settings = json.load(file)
    os.unlink(path)
    # Known by this name to what looks for programs that wait for input (readers.py): we pass keys on.
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as name:
        name.write("blockpty-bridge")
    tty.setraw(0)
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGWINCH, lambda number, frame: None)
    # Ctrl-C is a byte here; a signal that was meant for the program in the pane must not end the way to it.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    bridge = Bridge(settings)
    try:
        return bridge.run(reader)
    except BrokenPipeError:
        return LOST
    finally:
        bridge.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
