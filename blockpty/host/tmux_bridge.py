"""The program on the terminal of a tmux source: the bytes of one pane, from and to a tmux server in control mode.

It stands between the recorder's terminal (standard input and output, raw) and `tmux -C attach`. It draws nothing of
tmux: control mode has no status line, and passes on what the program in the pane has written, byte for byte.

The tmux server may be on another host: `ssh_bridge.py` has made a session of ours there, where that host has tmux and
no blockpty. Then tmux runs through ssh, a lost connection is made again, and the session ends with the conversation.

Rules:
* attach first, then capture. The commands of one line run with no output of the pane in between, and their replies
  stand in the same stream as the output: what comes before them is in the capture, what comes after is not. That is the
  seam, and it is exact;
* a seam is redone where the stream cannot go on: tmux has paused us (we were too slow), the size has changed, the
  alternate screen in which we attached was left, or the connection was made again. It begins with a mark, and with the
  reset that every terminal obeys;
* marks of our hooks are passed on also where the output around them is only in the picture: they draw nothing, and
  without them a block would have no end. They stand behind the mark of the seam, so these blocks are known to be less
  than exact;
* the size of the pane is tmux's. The mark names a new one, and nothing is written until our terminal has it;
* our client never counts for the size of a window that another client shows (ignore-size).

Exit status: 0 when the pane is gone, 255 when the connection to it is (detached, or the server has ended).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import time
import tty
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from blockpty.host.bridge import (
    CLOSE_SECONDS,
    FAR_PATH,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    LOST,
    READ_BYTES,
    begin,
    say,
    terminal_size,
    write_all,
)

# Of a client of tmux that finds no such session.
REFUSED = 1
# How long our terminal may take to get a new size; without an engine nothing gives it one.
SIZE_SECONDS = 1.0
# Sizes that follow each other closer than that are one.
SETTLED_SECONDS = 0.1
KEYS_AT_ONCE = 256
FAR_TMUX = FAR_PATH + '; exec tmux "$@"'
LOGIN_SHELL = 'exec "$SHELL" -l'
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
_OUR_MARK = re.compile(rb"\x1b\]7717;__(?!SEAM)[A-Z0-9_]+;[^\x07\x18\x1a\x1b]*\x07")
_LONGEST_MARK = 8192
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
    """Contents of a pane at a seam, as the replies to `seam_commands` say it."""

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
    """One pane between control clients, one after the other, and the terminal of this process."""

    def __init__(self, settings: dict[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.pane: str = settings["pane"]
        self._settings = settings
        self._nonce: str = settings["nonce"]
        self._session: bytes = settings["session"].encode()
        # The arguments of ssh where tmux is on another host.
        self._ssh: list[str] = settings.get("ssh") or []
        self._number = 0
        self._fresh = True
        # In a session of ours the shell begins when we see all of its output.
        self._started = not self._ssh
        self._size = self._window = (0, 0)
        # The size of our terminal that tmux was asked to give the pane, until the terminal has the pane's size again.
        self._requested: tuple[int, int] | None = None
        # The size before it was changed for a moment, and the one that it has for that, until it has the first again;
        # and the connection over which it was asked for that.
        self._shaken: tuple[tuple[int, int], tuple[int, int]] | None = None
        self._restored = 0
        self._ended: int | None = None
        self._closing = 0.0
        self._connections = 0
        self._connect()

    def _connect(self) -> None:
        """Start a control client; what its server says is known of this one only. Raises OSError."""
        flags = f"ignore-size,pause-after={self._settings['pause_after']}"
        # A hang-up of our terminal is not for the client: the far session is to be ended over it.
        hung_up = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            self._client = subprocess.Popen(
                self._tmux("-C", "attach-session", "-E", "-f", flags, "-t", self._settings["session"]),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            )  # fmt: skip
        finally:
            signal.signal(signal.SIGHUP, hung_up)
        assert self._client.stdin is not None and self._client.stdout is not None  # they are pipes
        self._in, self._out = self._client.stdin.fileno(), self._client.stdout.fileno()
        self._held = b""
        self._block: list[bytes] | None = None
        self._attached = False
        self._end: tuple[bytes, bytes] = (b"", b"")
        self._others: set[bytes] = set()
        # Replies of a seam that have come; None when none is under way. Output before its heading is part of it.
        self._replies: list[list[bytes]] | None = None
        self._asked = 0
        self._awaits_seam, self._torn = True, False
        # What the pane prints until then: marks, and the end, in which one may have begun.
        self._marks: list[bytes] = []
        self._unseen = b""
        self._reason: str | None = "attached" if self._fresh else "reconnected"
        self._started_in_alternate = False
        self._tail = b""
        self._resized_at: float | None = None

    def _tmux(self, *arguments: str) -> list[str]:
        """Return the arguments that run tmux, here or on the other host."""
        if not self._ssh:
            return [self._settings["program"], *arguments]
        # A connection that is made again asks nothing: its questions would stand in the output.
        options = [] if self._fresh else ["-o", "BatchMode=yes"]
        return [self._ssh[0], *options, *self._ssh[1:], shlex.join(["exec", "sh", "-c", FAR_TMUX, "sh", *arguments])]

    # -- the loop -------------------------------------------------------------------------------------------------

    def run(self, wake: int) -> int:
        """Work until the pane, or the last way to it, is gone; return the exit status."""
        pause = FIRST_PAUSE
        while (ended := self._serve(wake)) is None:
            status = self._leave()
            if not self._connections or not self._ssh or self._closing:
                return LOST
            if status == REFUSED:
                # tmux itself says that there is no such session any more.
                return 0
            if not self._awaits_seam:
                pause = FIRST_PAUSE
            reason = "the connection was lost"
            while reason:
                self._say("lost", reason)
                self._rest(pause, wake)
                pause = min(LONGEST_PAUSE, 2 * pause)
                if self._closing:
                    return LOST
                reason = self._connect_again()
        return ended

    def _connect_again(self) -> str:
        """Start another client; return why that cannot be: ssh itself may just be being updated."""
        try:
            self._connect()
        except OSError as error:
            return f"ssh cannot be started: {error.strerror}"
        return ""

    def _serve(self, wake: int) -> int | None:
        """Work until the pane is gone, and return the exit status, or until the client is: None."""
        while self._ended is None:
            wait = None if self._resized_at is None else max(0.0, self._resized_at - self._clock())
            if self._closing:
                wait = max(0.0, self._closing - self._clock())
            # What is typed before tmux has attached us stays in the terminal: the connection may not come to be.
            ready = select.select([self._out, wake, *([0] if self._attached else [])], [], [], wait)[0]
            try:
                if wake in ready:
                    os.read(wake, 4096)
                    if self._closing and self._ssh:
                        self._command(f"kill-session -t '{self._settings['session']}'")
                    else:
                        self._terminal_resized()
                if self._out in ready:
                    data = os.read(self._out, READ_BYTES)
                    if not data:
                        return None
                    self._take(data)
                if 0 in ready:
                    self._typed(os.read(0, 65536))
                if self._resized_at is not None and self._clock() >= self._resized_at:
                    self._resized_at = None
                    self._seam("resized")
            except BrokenPipeError:
                return None
            if self._closing and self._clock() >= self._closing:
                return LOST
        return self._ended

    def _rest(self, seconds: float, wake: int) -> None:
        """Wait before the next attempt; what is typed meanwhile waits in the terminal."""
        until = self._clock() + seconds
        while not self._closing and (left := until - self._clock()) > 0:
            if select.select([wake], [], [], left)[0]:
                os.read(wake, 4096)

    def _say(self, state: str, reason: str) -> None:
        """Say what the connection to another host does."""
        if self._ssh:
            say(self._settings, state, reason, self._connections)

    def hang_up(self) -> None:
        """Have a session of ours on another host ended, and leave."""
        self._closing = self._closing or self._clock() + CLOSE_SECONDS

    def _leave(self) -> int:
        """End the client, and return its exit status."""
        client = self._client
        assert client.stdin is not None and client.stdout is not None  # they are pipes
        client.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(1)
        client.kill()
        client.stdout.close()
        return client.wait()

    def close(self) -> None:
        """Leave the tmux server; the pane stays as it is."""
        self._leave()

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
            if not self._fresh:
                self._keep_marks(data)
            return
        written.append(data)
        if self._started_in_alternate and _LEFT_ALTERNATE.search(data):
            self._flush(written)
            self._seam("alternate_left")

    def _keep_marks(self, data: bytes) -> None:
        data, end = self._unseen + data, 0
        for mark in _OUR_MARK.finditer(data):
            self._marks.append(mark[0])
            end = mark.end()
        self._unseen = data[max(end, len(data) - _LONGEST_MARK) :]

    @staticmethod
    def _flush(written: list[bytes]) -> None:
        if written:
            write_all(b"".join(written))
            written.clear()

    def _notified(self, line: bytes) -> None:
        words = line.split(b" ")
        if words[0] == b"%session-changed" and not self._asked:
            # Not before: tmux may run commands that were sent earlier before it has attached us.
            self._attached = True
            self._connections += 1
            self._say("up", "tmux keeps the shell; blockpty is not installed there")
            self._seam(self._reason or "attached")
        elif words[0] == b"%session-changed" and words[1] != self._session:
            # The client was switched to another session, whose panes are all that it gets now.
            self._ended = LOST
        elif words[0] == b"%pause" and words[1:2] == [self.pane.encode()]:
            self._seam("paused", paused=True)
        elif words[0] in (b"%layout-change", b"%window-close", b"%unlinked-window-close", b"%window-pane-changed"):
            size = "#{pane_id} #{pane_width} #{pane_height} #{pane_dead}"
            self._command(f"display-message -p -t {self.pane} 'size {size}'")
        elif words[0] == b"%exit" and not self._ssh:
            # From another host it is asked for with the next connection.
            self._ended = self._end_of(line)

    def _end_of(self, line: bytes) -> int:
        """Return the exit status for a control client that has ended: whether the pane has, or only the way to it.

        tmux gives no reason for a detached client, nor for one whose session has ended.
        """
        if line != b"%exit":
            return LOST
        asked = self._tmux("display-message", "-p", "-t", self.pane, "#{pane_id}")
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
        elif first[0] == b"started":
            self._started = True
        elif first[0] == b"size":
            # Without the pane's id there is no such pane any more.
            if first[1] != self.pane.encode() or first[4] == b"1":
                self._ended = 0
            elif (int(first[2]), int(first[3])) != self._size and not self._awaits_seam:
                self._resized_at = self._clock() + SETTLED_SECONDS

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
        before = self._size
        self._size, self._window, reason = picture.size, picture.window, self._reason or "resized"
        # Before the mark, at which an engine gives our terminal the size of the pane.
        found = terminal_size()
        write_all(self._mark(reason) + b"".join(self._marks))
        self._marks, self._unseen = [], b""
        requested = self._await_size(before, found)
        # What the program has begun to write, and the pane does not show yet.
        begun = picture.pending or cut_character(self._tail)
        write_all(picture.drawn(history=reason != "resized", fresh=self._fresh) + self._mark("drawn") + begun)
        self._fresh, self._awaits_seam, self._reason = False, False, None
        if requested is not None:
            self._shaken = None
            self._request_size(*requested)
        else:
            self._shake(reason)
        if not self._started:
            self._command(f"respawn-pane -k -t {self.pane} '{LOGIN_SHELL}' ; display-message -p started")
        self._started_in_alternate = bool(picture.state["alternate_on"]) and reason != "resized"

    def _shake(self, reason: str) -> None:
        """Give the pane another size for a moment after each new connection.

        A prompt may have been drawn while we did not see it: at a new size the shell draws it again.
        """
        if self._shaken is not None and self._size == self._shaken[1]:
            # Also where the connection was lost within that moment. Once over each: another client may decide.
            if self._restored == self._connections:
                self._shaken = None
            else:
                self._restored = self._connections
                self._ask_size(*self._shaken[0])
        elif reason == "reconnected":
            self._shaken = self._size, (self._size[0], self._size[1] - 1 or 2)
            self._ask_size(*self._shaken[1])
        else:
            self._shaken = None

    def _mark(self, reason: str) -> bytes:
        """Return the mark at which a new picture begins (`reason`), or behind which it is `drawn`."""
        self._number += 1
        fields = f"n={self._nonce};i={os.getpid()};s={self._number};c=0;r={reason};w={self._size[0]};h={self._size[1]}"
        return f"\x1b]7717;__SEAM__;{fields}\x07".encode()

    def _await_size(self, before: tuple[int, int], found: tuple[int, int]) -> tuple[int, int] | None:
        """Return when our terminal has the pane's size, so that what follows is drawn for that.

        `found` is what the terminal had just before the mark. Returns the size that a user has given it meanwhile:
        neither the one `before`, nor one already requested.
        """
        known = (before, self._size, self._requested)
        requested = None if self._fresh or found in known else found
        deadline = self._clock() + SIZE_SECONDS
        while (size := terminal_size()) != self._size:
            if not self._fresh and size not in known:
                requested = size
            if self._clock() >= deadline:
                return requested
            time.sleep(0.002)
        # From now on the same size is a new request.
        self._requested = None
        return requested

    # -- to tmux --------------------------------------------------------------------------------------------------

    def _terminal_resized(self) -> None:
        """Our terminal was given a size: ask for it, where no other client decides, and see what the pane gets."""
        cols, rows = terminal_size()
        # One that comes while a picture is awaited is seen when that is drawn.
        if (cols, rows) != self._size and not self._awaits_seam:
            self._request_size(cols, rows)

    def _request_size(self, cols: int, rows: int) -> None:
        self._requested = cols, rows
        self._ask_size(cols, rows)

    def _ask_size(self, cols: int, rows: int) -> None:
        # Other panes of the window keep their place.
        width, height = self._window[0] + cols - self._size[0], self._window[1] + rows - self._size[1]
        self._command(f"refresh-client -C {max(1, width)}x{max(1, height)}")
        # Where the pane keeps its size, ours is to be that again.
        self._resized_at = self._clock() + SETTLED_SECONDS

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


def main(path: str) -> int:
    """Run with the settings in a private file, which is removed: it holds the secret of our marks."""
    settings, reader = begin(path)
    tty.setraw(0)
    # Ctrl-C is a byte here; a signal that was meant for the program in the pane must not end the way to it.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    bridge = Bridge(settings)
    if settings.get("ssh"):
        for ending in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(ending, lambda number, frame: bridge.hang_up())
    try:
        return bridge.run(reader)
    except BrokenPipeError:
        return LOST
    finally:
        bridge.close()
