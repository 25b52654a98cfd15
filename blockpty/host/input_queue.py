"""Input queue of one terminal: each input is entered in the timeline before its first byte is typed.

This file knows the line discipline's limits and what must not be recorded. It does not know the client, beyond a reply.

Rules:
* first come, first typed; an input's entry is written when its turn comes, so mode and offset in it are true;
* ECHO off with ICANON on is how a program asks for a password: such an input leaves neither bytes nor length behind,
  nor does one that its sender calls secret, always or where the terminal is raw (both off);
* writing never waits. What the terminal does not take now goes in when it has room, with reading in between (a program
  that prints while it reads would otherwise block, and we with it);
* a key that stops a program (Ctrl-C where the terminal makes a signal of it) goes in on a full disk too, and its entry
  is written when there is room: the stream does not grow meanwhile, so that its offset is true;
* at the deadline the rest is forgotten and `input_cut` says how much went in; a paste that is cut is ended. For a
  command, and for what the engine types itself, the time counts from the last byte that went in: a shell behind a slow
  connection takes a long one slowly.
"""

from __future__ import annotations

import base64
import contextlib
import os
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from blockpty.host.context import TerminalContext
from blockpty.host.disk_full import DiskFull
from blockpty.host.input_drain import InputDrain
from blockpty.host.loop import Timer
from blockpty.host.protocol import MAX_CANONICAL, Refused
from blockpty.host.record import StorageFailed, entries_since
from blockpty.host.silence import SilenceDetector
from blockpty.host.state import SLOT_BYTES

CHUNK = 65536
# Around a paste, where the program asked for that (mode 2004).
PASTE_BEGIN = b"\x1b[200~"
PASTE_END = b"\x1b[201~"
STUCK_SECONDS = 0.05
# The bytes that end a line for the kernel's line editor: LF, CR (which it reads as LF) and ^D.
_LINE_ENDS = bytes.maketrans(b"\r\x04", b"\n\n")
_SLOT = struct.Struct("<QQQQ")


class Input:
    """Bytes on their way into a terminal.

    `offset` and `timeline` are the sizes of the files at its entry. `foreground` is the process group that had the
    terminal then, for a command.
    """

    __slots__ = (
        "data", "done", "entered", "fields", "foreground", "hidden", "offset", "redacted", "reply", "seen",
        "timeline", "timer",
    )  # fmt: skip

    def __init__(self, data: bytes, fields: dict[str, Any], reply: Callable[[Input | Refused], None]) -> None:
        self.data = data
        self.done = 0
        self.seen = 0  # what `done` was at the last look of its timer
        self.entered = False
        self.redacted = False
        self.hidden = False
        self.fields = fields
        self.reply = reply
        self.offset = 0
        self.timeline = 0
        self.foreground: int | None = None
        self.timer: Timer | None = None


class InputQueue:
    """Input of one terminal, first come, first typed."""

    def __init__(
        self, terminal: TerminalContext, silence: SilenceDetector, drain: InputDrain, disk_full: DiskFull
    ) -> None:
        self._terminal = terminal
        self._silence = silence
        self._drain = drain
        self._disk_full = disk_full
        self._queue: deque[Input] = deque()
        self._slot = terminal.shell.slot * SLOT_BYTES
        self._entry_at = 0

    @property
    def wants_room(self) -> bool:
        """Whether an input is under way that the terminal had no room for."""
        return bool(self._queue) and self._queue[0].entered

    def type(self, item: Input, deadline_ms: int) -> None:
        """Queue input; its `reply` is called when all of it went in, when it is refused, or at the deadline."""
        self._queue.append(item)
        if self._queue[0] is item:
            self.push()
        if item in self._queue:
            self._limit(item, deadline_ms / 1000)

    def _limit(self, item: Input, seconds: float) -> None:
        item.timer = self._terminal.recorder.loop.after(seconds, lambda: self._give_up(item, seconds))

    def push(self) -> None:
        """Type what the terminal takes now."""
        terminal = self._terminal
        while self._queue and not terminal.ended:
            item = self._queue[0]
            if not item.entered:
                try:
                    self._enter(item)
                except Refused as refusal:
                    self._settle(item, refusal)
                    continue
                if not item.entered:
                    return
            if not self._feed(item):
                break
        terminal.update_interest()

    def _enter(self, item: Input) -> None:
        """Write the input entry; nothing has been typed yet. Leaves it alone when the terminal turns out to be gone."""
        terminal = self._terminal
        terminal.move(whole=True)
        if terminal.ended:
            return
        self._silence.typing(is_command=item.fields.get("submit") is not None)
        if terminal.ended:
            return
        owed = terminal.failed is not None and terminal.stops(item.data)
        if not owed:
            terminal.check_storage()
        icanon, echo = terminal.modes()
        if icanon:
            check_lines(item.data)
        if echo and item.fields.get("hidden_only"):
            raise Refused(
                "bad_request", "the terminal shows what is typed, so the secret was not typed",
                "wait until the program asks for it",
            )  # fmt: skip
        secret = item.fields.get("secret")
        item.redacted = secret == "always" or (not echo and (icanon or secret == "raw"))
        fields: dict[str, Any] = {"author": item.fields["author"], "req": item.fields["req"]}
        if item.fields.get("principal") is not None:
            fields["principal"] = item.fields["principal"]
        if item.redacted:
            fields["redacted"] = True
        else:
            fields["bytes"] = len(item.data)
            try:
                fields["data"] = item.data.decode()
            except UnicodeDecodeError:
                fields["data_b64"] = base64.b64encode(item.data).decode()
        fields["echo"] = echo
        fields["icanon"] = icanon
        if not echo and (icanon or item.fields.get("program")):
            item.hidden = True
            self._drain.expect()
        if item.fields.get("submit") is not None:
            fields["submit"] = item.fields["submit"]
            item.foreground = terminal.foreground()
        self._entry_at = terminal.timeline.size
        self._mark(len(item.data), 0)
        try:
            if owed:
                self._disk_full.owe("input", fields)
            else:
                terminal.write("input", fields)
        except StorageFailed as failure:
            self._mark(0, 0)
            raise storage_full(failure) from None
        item.entered = True
        item.offset, item.timeline = terminal.stream.offset, terminal.timeline.size
        self._silence.typed()

    def _feed(self, item: Input) -> bool:
        """Write what goes in. Return whether the next input may follow."""
        terminal = self._terminal
        try:
            while item.done < len(item.data):
                self._mark(len(item.data), item.done, trying=1)
                item.done += os.write(terminal.shell.master, memoryview(item.data)[item.done : item.done + CHUNK])
                self._mark(len(item.data), item.done)
                if item.done < len(item.data):
                    terminal.move()
                    if terminal.ended:
                        return False
        except BlockingIOError:
            self._mark(len(item.data), item.done)
            # The kernel does not always report room in a tty that was full; readiness alone could leave the rest here.
            terminal.recorder.loop.after(STUCK_SECONDS, self._push_again)
            return False
        except OSError:
            self._cut(item)
            return True
        self._silence.typed()
        self._settle(item, item)
        return True

    def _push_again(self) -> None:
        if self._queue:
            self.push()

    def _give_up(self, item: Input, seconds: float) -> None:
        """The deadline has passed: forget the rest and go on with the next."""
        if item not in self._queue:
            return
        if item.done > item.seen and (item.fields.get("submit") is not None or item.fields["author"] == "engine"):
            item.seen = item.done
            self._limit(item, seconds)
            return
        self._cut_in_paste(item)
        self.push()

    def _cut(self, item: Input) -> None:
        """Say how much of an input went in."""
        terminal = self._terminal
        accepted = None if item.redacted else item.done
        if not item.entered:
            item.offset = terminal.stream.offset
        fields = {"req": item.fields["req"], "accepted": accepted}
        if terminal.failed is not None:
            self._disk_full.owe("input_cut", fields)
        else:
            with contextlib.suppress(StorageFailed):
                terminal.write("input_cut", fields)
        item.timeline = terminal.timeline.size
        self._settle(item, item)

    def _settle(self, item: Input, answer: Input | Refused) -> None:
        self._queue.remove(item)
        if item.entered:
            self._mark(0, 0)
        if item.timer is not None:
            item.timer.cancel()
        item.reply(answer)

    def cut_author(self, author: str, refusal: Refused) -> None:
        """Forget the rest of what an author is typing, and refuse its inputs that have not begun."""
        for item in [item for item in self._queue if item.fields["author"] == author]:
            if item.entered:
                self._cut_in_paste(item)
            else:
                self._settle(item, refusal)
        self.push()

    def _cut_in_paste(self, item: Input) -> None:
        """Cut an input, and end a bracketed paste in it: what is typed next would be a part of that."""
        rest = _end_of_paste(item.data, item.done)
        self._cut(item)
        if rest:
            self._queue.appendleft(Input(rest, {"author": "engine", "req": None}, lambda answer: None))

    def drop_hidden(self) -> None:
        """Forget the rest of an input that is typed with echo off: the program that it was for has ended."""
        if self._queue and self._queue[0].entered and self._queue[0].hidden:
            self._cut(self._queue[0])
            self.push()

    def end(self) -> None:
        """The shell is dead; the exit entry comes next."""
        while self._queue:
            item = self._queue[0]
            if item.entered:
                self._cut(item)
            else:
                self._settle(item, Refused("exited", "the shell has ended"))

    # -- over a kill of the recorder ------------------------------------------------------------------------------

    def _mark(self, total: int, done: int, trying: int = 0) -> None:
        """Note in shared memory how far the input in hand has got."""
        if self._slot >= 0:
            _SLOT.pack_into(self._terminal.recorder.slots, self._slot, total, done, trying, self._entry_at)

    def cut_interrupted(self) -> None:
        """Write the input_cut of an input that a killed predecessor had in hand.

        `accepted` is null when the kill came in the very act of writing: that the bytes went in cannot be known then.
        """
        if self._slot < 0:
            return
        terminal = self._terminal
        total, done, trying, entry_at = _SLOT.unpack_from(terminal.recorder.slots, self._slot)
        if done < total:
            entries = [entry for _, entry in entries_since(terminal.shell.directory, entry_at)]
            known = entries and entries[0].get("kind") == "input"
            if known and not any(entry.get("kind") == "input_cut" for entry in entries):
                accepted = None if entries[0].get("redacted") or trying else done
                terminal.write("input_cut", {"req": entries[0].get("req"), "accepted": accepted})
        self._mark(0, 0)


def _end_of_paste(data: bytes, done: int) -> bytes:
    """Return what ends a bracketed paste of which so many bytes went in; nothing for other input."""
    begin, end = data.find(PASTE_BEGIN), data.rfind(PASTE_END)
    if not 0 <= begin < done < end + len(PASTE_END):
        return b""
    return data[done : begin + len(PASTE_BEGIN)] + (data[done : end + len(PASTE_END)] if done > end else PASTE_END)


def check_lines(data: bytes) -> None:
    """Refuse a line that the kernel would cut."""
    if len(data) > MAX_CANONICAL:
        longest = max(map(len, data.translate(_LINE_ENDS).split(b"\n")))
        if longest > MAX_CANONICAL:
            raise Refused(
                "line_too_long",
                f"a line of {longest} bytes would be cut at {MAX_CANONICAL} by the terminal (canonical mode)",
                "send shorter lines, or put the text in a file",
                longest=longest, limit=MAX_CANONICAL,
            )  # fmt: skip


def storage_full(failure: StorageFailed) -> Refused:
    return Refused(
        "storage_full", f"{failure.path} cannot grow: {failure.strerror}",
        "free space; the terminal waits and resumes automatically", path=failure.path, errno=failure.name,
    )  # fmt: skip
