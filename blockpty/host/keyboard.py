"""Input into one terminal: a queue of what is to be typed, entered in the timeline before the first byte of it.

This file knows the line discipline's limits and what must not be recorded. It does not know who asked, beyond a reply.

Rules:
* first come, first typed; an input's entry is written when its turn comes, so mode and offset in it are true;
* ECHO off with ICANON on is how a program asks for a password: such an input leaves neither bytes nor length behind,
  nor does one that its sender calls secret, always or where the terminal is raw (both off);
* writing never waits. What the terminal does not take now goes in when it has room, with reading in between (a program
  that prints while it reads would otherwise block, and we with it);
* a key that stops a program (Ctrl-C where the terminal makes a signal of it) goes in on a full disk too, and its entry
  is written when there is room: the stream does not grow meanwhile, so that its offset is true;
* at the deadline the rest is forgotten and `input_cut` says how much went in.
"""

from __future__ import annotations

import base64
import contextlib
import os
import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from blockpty.host.house import SLOT_BYTES
from blockpty.host.loop import Timer
from blockpty.host.protocol import MAX_CANONICAL, Refused
from blockpty.host.record import StorageFailed, entries_since

if TYPE_CHECKING:
    from blockpty.host.terminal import Terminal

CHUNK = 65536
STUCK_SECONDS = 0.05
# The bytes that end a line for the kernel's line editor: LF, CR (which it reads as LF) and ^D.
_LINE_ENDS = bytes.maketrans(b"\r\x04", b"\n\n")
_SLOT = struct.Struct("<QQQQ")


class Input:
    """Bytes on their way into a terminal. `offset` and `timeline` are the sizes of the files at its entry."""

    __slots__ = ("data", "done", "entered", "fields", "hidden", "offset", "redacted", "reply", "timeline", "timer")

    def __init__(self, data: bytes, fields: dict[str, Any], reply: Callable[[Input | Refused], None]) -> None:
        self.data = data
        self.done = 0
        self.entered = False
        self.redacted = False
        self.hidden = False
        self.fields = fields
        self.reply = reply
        self.offset = 0
        self.timeline = 0
        self.timer: Timer | None = None


class Keyboard:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._queue: deque[Input] = deque()
        self._slot = terminal.holding.slot * SLOT_BYTES
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
            item.timer = self._terminal.desk.loop.after(deadline_ms / 1000, lambda: self._give_up(item))

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
        terminal.quiet.typing()
        if terminal.ended:
            return
        owed = terminal.failed is not None and terminal.stops(item.data)
        if not owed:
            terminal.check_storage()
        icanon, echo = terminal.modes()
        if icanon:
            check_lines(item.data)
        secret = item.fields.get("secret")
        item.redacted = secret == "always" or (not echo and (icanon or secret == "raw"))
        fields: dict[str, Any] = {"author": item.fields["author"], "req": item.fields["req"]}
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
            terminal.drain.expect()
        if item.fields.get("submit") is not None:
            fields["submit"] = item.fields["submit"]
        self._entry_at = terminal.timeline.size
        self._mark(len(item.data), 0)
        try:
            if owed:
                terminal.shortage.owe("input", fields)
            else:
                terminal.write("input", fields)
        except StorageFailed as failure:
            self._mark(0, 0)
            raise storage_full(failure) from None
        item.entered = True
        item.offset, item.timeline = terminal.stream.offset, terminal.timeline.size
        terminal.quiet.typed()

    def _feed(self, item: Input) -> bool:
        """Write what goes in. Return whether the next input may follow."""
        terminal = self._terminal
        try:
            while item.done < len(item.data):
                self._mark(len(item.data), item.done, trying=1)
                item.done += os.write(terminal.holding.master, memoryview(item.data)[item.done : item.done + CHUNK])
                self._mark(len(item.data), item.done)
                if item.done < len(item.data):
                    terminal.move()
                    if terminal.ended:
                        return False
        except BlockingIOError:
            self._mark(len(item.data), item.done)
            # The kernel does not always report room in a tty that was full; readiness alone could leave the rest here.
            terminal.desk.loop.after(STUCK_SECONDS, self._push_again)
            return False
        except OSError:
            self._cut(item)
            return True
        terminal.quiet.typed()
        self._settle(item, item)
        return True

    def _push_again(self) -> None:
        if self._queue:
            self.push()

    def _give_up(self, item: Input) -> None:
        """The deadline has passed: forget the rest and go on with the next."""
        if item in self._queue:
            self._cut(item)
            self.push()

    def _cut(self, item: Input) -> None:
        """Say how much of an input went in."""
        terminal = self._terminal
        accepted = None if item.redacted else item.done
        if not item.entered:
            item.offset = terminal.stream.offset
        fields = {"req": item.fields["req"], "accepted": accepted}
        if terminal.failed is not None:
            terminal.shortage.owe("input_cut", fields)
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
            _SLOT.pack_into(self._terminal.desk.slots, self._slot, total, done, trying, self._entry_at)

    def cut_interrupted(self) -> None:
        """Write the input_cut of an input that a killed predecessor had in hand.

        `accepted` is null when the kill came in the very act of writing: that the bytes went in cannot be known then.
        """
        if self._slot < 0:
            return
        terminal = self._terminal
        total, done, trying, entry_at = _SLOT.unpack_from(terminal.desk.slots, self._slot)
        if done < total:
            entries = [entry for _, entry in entries_since(terminal.holding.directory, entry_at)]
            known = entries and entries[0].get("kind") == "input"
            if known and not any(entry.get("kind") == "input_cut" for entry in entries):
                accepted = None if entries[0].get("redacted") or trying else done
                terminal.write("input_cut", {"req": entries[0].get("req"), "accepted": accepted})
        self._mark(0, 0)


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
        "free space; the terminal waits and goes on by itself", path=failure.path, errno=failure.name,
    )  # fmt: skip
