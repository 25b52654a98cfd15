"""The program on the terminal of an ssh source that survives its connection: bytes from and to a session far away.

It stands between the recorder's terminal (standard input and output) and `ssh host blockpty proxy --session`. The far
host keeps the shell and records what it prints. When the connection is lost, the bridge reconnects, and the stream
continues at the byte where it was cut.

Rules:
* ssh asks its questions (a password, a host key) on this terminal, before it is raw; a connection that is made again
  asks nothing, because its questions would stand in the output;
* output is asked for by its offset in the far stream, and written once;
* input has a number and is kept until the far record has it: it is typed once, in its order, also where a connection
  was lost behind it;
* what the way does is said in a file of ours, and never in the output;
* where the far host has no blockpty, a tmux there can keep the shell: this process becomes the bridge to it.

Frames, both ways: one letter, the length in four bytes, and so many bytes. To us: O (offset in eight bytes, output),
A (number in eight bytes: input up to it is recorded), X (JSON: how the shell ended), P. From us: I (number in eight
bytes, input), R (columns and rows in two bytes each), C (end the shell), P (answer, if you are there).

Exit status: that of the far shell, 255 when it is not known.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable
from typing import Any

from blockpty.host.bridge import (
    CLOSE_SECONDS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    LOST,
    READ_BYTES,
    begin,
    say,
    terminal_size,
    write_all,
)

# `command not found`, as a shell says it.
NO_PROGRAM = 127
# What the command on the far host says where it has made a session of tmux instead.
TMUX_OFFER = re.compile(rb"^blockpty-tmux (\$\d+) (%\d+)\r?$", re.MULTILINE)
GREETING = b"blockpty-proxy "
# Input that the far record does not have yet; beyond that no more is read from the terminal.
MOST_INPUT = 1 << 18
INPUT_BYTES = 4096
CONNECT_SECONDS = 30.0
_HEAD = struct.Struct(">cI")
_NUMBER = struct.Struct(">Q")


def framed(kind: bytes, content: bytes = b"") -> bytes:
    """Return one frame."""
    return _HEAD.pack(kind, len(content)) + content


class FrameReader:
    """Frames of what comes in pieces."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the frames that are whole now."""
        self._held += data
        frames, at = [], 0
        while len(self._held) - at >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._held, at)
            if len(self._held) - at - _HEAD.size < length:
                break
            at += _HEAD.size
            frames.append((kind, bytes(self._held[at : at + length])))
            at += length
        del self._held[:at]
        return frames


class SshBridge:
    """One far session, and the connections to it, one after the other."""

    def __init__(self, settings: dict[str, Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._settings = settings
        # A connection over which nothing has come for so long is given up; it is asked for an answer before that.
        self._silence = float(settings["silence_seconds"])
        self._cursor = 0
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._out = bytearray()
        self._peer: socket.socket | None = None
        self._ssh: subprocess.Popen[bytes] | None = None
        self._frames = FrameReader()
        self._heard = self._asked = 0.0
        self._modes = termios.tcgetattr(0)
        self._ended: int | None = None
        self._closing = 0.0
        self._connections = 0
        # What came in place of a greeting.
        self._said = b""

    def run(self, wake: int) -> int:
        """Pass bytes on both ways until the far shell has ended; return the exit status."""
        pause, problem = FIRST_PAUSE, None
        while self._ended is None:
            problem = self._connect()
            if problem is None:
                pause = FIRST_PAUSE
                self._say("up")
                self._serve(wake)
                problem = "the connection was lost"
            elif not self._connections:
                # The first one: there is nothing yet that could be resumed.
                return self._without(problem)
            self._disconnect()
            if self._ended is None:
                self._say("lost", problem)
                if self._closing:
                    return LOST
                self._pause(pause, wake)
                pause = min(LONGEST_PAUSE, 2 * pause)
        return self._ended

    # -- connections ----------------------------------------------------------------------------------------------

    def _connect(self) -> str | None:
        """Connect and attach to the session; return what is wrong."""
        ours, theirs = socket.socketpair()
        again = self._connections > 0
        options = ["-o", "BatchMode=yes"] if again else []
        argv: list[str] = [self._settings["ssh"][0], *options, *self._settings["ssh"][1:], self._settings["command"]]
        with theirs:
            # A hang-up of our terminal is not for ssh: the far shell is to be ended over it.
            hung_up = signal.signal(signal.SIGHUP, signal.SIG_IGN)
            try:
                self._ssh = subprocess.Popen(
                    argv, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE
                )
            except OSError as error:
                # It may just be being updated: the next attempt is made as if there had been no connection.
                ours.close()
                self._ssh = None
                return f"ssh cannot be started: {error.strerror}"
            finally:
                signal.signal(signal.SIGHUP, hung_up)
        greeted = threading.Event()
        if again:
            greeted.set()
        says = threading.Thread(target=_pass_on, args=(self._ssh.stderr, greeted), daemon=True)
        says.start()
        cols, rows = terminal_size()
        asked = {**self._settings["session"], "from": self._cursor, "cols": cols, "rows": rows}
        greeting = None
        with contextlib.suppress(OSError):
            ours.sendall(json.dumps(asked).encode() + b"\n")
            greeting = self._greeted(ours, again=again)
        if greeting is None:
            ours.close()
            says.join(1)
            return "no connection"
        greeted.set()
        rest, hello = greeting
        if not self._connections:
            tty.setraw(0)
            for ending in (signal.SIGHUP, signal.SIGTERM):
                signal.signal(ending, lambda number, frame: self.hang_up())
        self._connections += 1
        self._peer, self._frames, self._out = ours, FrameReader(), bytearray()
        ours.setblocking(False)
        self._heard = self._asked = self._clock()
        self._recorded(int(hello["inputs"]))
        for number, data in self._kept:
            self._out += framed(b"I", _NUMBER.pack(number) + data)
        self._take(rest)
        return None

    def _greeted(self, ours: socket.socket, *, again: bool) -> tuple[bytes, dict[str, Any]] | None:
        """Return what stands behind the greeting, and the greeting; None where none comes."""
        # The first time a person may have to answer before that.
        ours.settimeout(CONNECT_SECONDS if again else None)
        seen = b""
        while True:
            data = ours.recv(READ_BYTES)
            if not data:
                self._said = seen
                return None
            seen += data
            at = seen.find(GREETING)
            end = seen.find(b"\n", at) if at >= 0 else -1
            if end >= 0:
                return seen[end + 1 :], json.loads(seen[at + len(GREETING) : end])

    def _without(self, problem: str) -> int:
        """There was no greeting at all: the far side has no blockpty, or there is no way to it."""
        if self._ssh is None:
            os.write(2, f"{problem}\r\n".encode())
            return LOST
        status = self._ssh.wait()
        offer = TMUX_OFFER.search(self._said)
        if status == NO_PROGRAM and offer is not None:
            self._become_tmux(offer[1].decode(), offer[2].decode())
        if status == NO_PROGRAM and self._settings["plain"]:
            self._say("plain", "blockpty is not installed there")
            os.execvp(self._settings["plain"][0], self._settings["plain"])
        if status == NO_PROGRAM:
            os.write(2, b"blockpty and tmux are not installed there, and resume=always asks for one of them\r\n")
        return status if 0 < status <= LOST else LOST

    def _become_tmux(self, session: str, pane: str) -> None:
        """Go on as the bridge to a session of tmux on the far host."""
        bridge = {**self._settings["tmux"], "ssh": self._settings["ssh"], "session": session, "pane": pane}
        bridge |= {"state": self._settings["state"], "instance": self._settings["instance"]}
        path = f"{self._settings['state']}.tmux"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(bridge, file)
        # Started as this one was, with another module and other settings.
        os.execv(sys.executable, [*sys.orig_argv[:-2], "tmux_bridge", path])

    def _disconnect(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None
        if self._ssh is not None:
            self._ssh.kill()
            self._ssh.wait()

    def _pause(self, seconds: float, wake: int) -> None:
        end = self._clock() + seconds
        while not self._closing and (left := end - self._clock()) > 0:
            ready = select.select([wake, *self._terminal()], [], [], left)[0]
            if wake in ready:
                os.read(wake, 4096)
            if 0 in ready:
                self._typed()

    def _say(self, state: str, problem: str | None = None) -> None:
        say(self._settings, state, problem, self._connections)

    # -- bytes ----------------------------------------------------------------------------------------------------

    def _serve(self, wake: int) -> None:
        """Pass bytes on until the connection is lost, or the session has ended."""
        assert self._peer is not None
        size = terminal_size()
        while self._ended is None:
            now = self._clock()
            if now - self._heard > self._silence or (self._closing and now > self._closing):
                return
            if now - max(self._heard, self._asked) > self._silence / 3:
                self._asked = now
                self._out += framed(b"P")
            waits_for: list[Any] = [self._peer, wake, *self._terminal()]
            ready = select.select(waits_for, [self._peer] if self._out else [], [], self._silence / 3)[0]
            try:
                if self._peer in ready:
                    data = self._peer.recv(READ_BYTES)
                    if not data:
                        return
                    self._heard = self._clock()
                    self._take(data)
                if 0 in ready:
                    self._typed()
                if wake in ready:
                    os.read(wake, 4096)
                    if self._closing:
                        self._out += framed(b"C")
                    if terminal_size() != size:
                        size = terminal_size()
                        self._out += framed(b"R", struct.pack(">HH", *size))
                if self._out and self._peer in select.select([], [self._peer], [], 0)[1]:
                    sent = self._peer.send(self._out)
                    del self._out[:sent]
            except BlockingIOError:
                continue
            except OSError:
                return

    def _terminal(self) -> list[int]:
        return [0] if self._kept_bytes < MOST_INPUT and self._ended is None else []

    def _typed(self) -> None:
        data = os.read(0, INPUT_BYTES)
        if not data:
            raise EOFError
        self._number += 1
        self._kept.append((self._number, data))
        self._kept_bytes += len(data)
        if self._peer is not None:
            self._out += framed(b"I", _NUMBER.pack(self._number) + data)

    def _take(self, data: bytes) -> None:
        written = []
        for kind, content in self._frames.feed(data):
            if kind == b"O":
                (offset,) = _NUMBER.unpack_from(content)
                known = self._cursor - offset
                if known < 0:
                    raise ConnectionError("output is missing")
                fresh = content[_NUMBER.size + known :]
                written.append(fresh)
                self._cursor += len(fresh)
            elif kind == b"A":
                self._recorded(_NUMBER.unpack(content)[0])
            elif kind == b"X":
                how = json.loads(content)
                status = how.get("status")
                self._ended = status if isinstance(status, int) else LOST
        if written:
            write_all(b"".join(written))

    def _recorded(self, number: int) -> None:
        while self._kept and self._kept[0][0] <= number:
            self._kept_bytes -= len(self._kept.popleft()[1])

    def close(self) -> None:
        """End the connection; the far shell is ended where there is one still."""
        self._disconnect()
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, self._modes)

    def hang_up(self) -> None:
        """Have the far shell ended, and leave."""
        self._closing = self._closing or self._clock() + CLOSE_SECONDS


def _pass_on(said: Any, greeted: threading.Event) -> None:
    """Show what ssh says on its way; behind that it would stand in the output of the far shell."""
    with contextlib.suppress(OSError, ValueError), said:
        while data := os.read(said.fileno(), 4096):
            if not greeted.is_set():
                os.write(2, data)


def main(path: str) -> int:
    """Run with the settings in a private file, which is removed; return the exit status."""
    settings, reader = begin(path)
    bridge = SshBridge(settings)
    # Ctrl-C is a byte here, once we are connected; before that it ends the way there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return bridge.run(reader)
    except (EOFError, BrokenPipeError):
        return LOST
    finally:
        bridge.close()
