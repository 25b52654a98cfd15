"""Echo: the bytes after an input that are its own, and therefore not output.

Rules of this file: the recorder says what was typed, where, and whether the terminal echoed at that moment. The
kernel's echo is known byte for byte; it is taken out at its first occurrence near the input. A line editor's echo
(ECHO off, ICANON off) is taken out only where it follows the input at once and whole, and so is that of Enter alone:
every line of the program ends like it, and the kernel may not echo it after all. It decides a moment after the terminal
was looked at, when a line editor may have taken over. Silence ends the search.

The kernel may write lines of the program in the middle of the echo of another line (`numbnumber 41 end`, then `er 142
end`; measured in Linux, where many lines are typed at once). An echo that has come in such pieces is given up: it stays
in the output. A later line that is equal to it is the program's.
"""

from __future__ import annotations

from copy import copy
from typing import Final, NamedTuple

WINDOW: Final = 4096
# So many places of an echo are kept in mind at which it may have been torn.
_PLACES: Final = 64

_LINE_END: Final = b"\r\n"
# Characters with which the line discipline edits or ends the line; what they echo depends on what is in it.
_EDITING: Final = frozenset(b"\x04\x08\x15\x16\x17\x7f\x1a\x1c\x03\x11\x13")


class Expectation(NamedTuple):
    """Bytes expected at or after a stream offset."""

    offset: int
    echo: bytes
    anywhere: bool


def expectations(offset: int, data: bytes, echo: bool, icanon: bool) -> list[Expectation]:
    """Return what an input should look like when it comes back, one expectation a line."""
    if not echo:
        line = data[:-1]
        if icanon or not data.endswith(b"\r") or not line or not line.decode("utf-8", "replace").isprintable():
            return []
        return [Expectation(offset, line + b"\r\n", False)]
    expected = []
    for line in data.replace(b"\r", b"\n").splitlines(keepends=True):
        if any(code in _EDITING for code in line):
            break
        shown = b"".join(_echoed(code) for code in line)
        expected.append(Expectation(offset, shown, icanon and shown != _LINE_END))
    return expected


def _echoed(code: int) -> bytes:
    if code == 0x0A:
        return b"\r\n"
    if code < 0x20 and code != 0x09:
        return bytes((0x5E, code + 0x40))
    return bytes((code,))


class _Pieces:
    """Looks for one echo in pieces, line by line: the beginning of a line, and later the beginning of another goes on.

    Echoes come in order: where one may have begun, a line that is the next one's echo shows that it was torn as well.

    Attributes:
        at: how far the stream has been looked at.
        given_up: how many echoes that is, when one has come in pieces.
    """

    def __init__(self, echo: bytes, at: int) -> None:
        self._echo = echo
        self.at = at
        self.given_up = 1
        self._line = b""
        # How much of the echo the lines so far may have had.
        self._had = {0}
        # Whether the last line had the whole echo, or its rest, around or behind other text.
        self._around = False

    def copy(self) -> _Pieces:
        """Return an independent copy."""
        twin = copy(self)
        twin._had = set(self._had)
        return twin

    def feed(self, data: bytes, following: bytes) -> int | None:
        """Take what comes next; return the offset at which the echo is over, None when nothing says so.

        `following` is the echo that comes next; empty for none.
        """
        for piece in data.splitlines(keepends=True) if b"\n" in data else (data,):
            self.at += len(piece)
            # Never longer than WINDOW: no echo is looked for any further.
            self._line += piece
            if piece.endswith(b"\n"):
                line, self._line = self._line, b""
                if len(self._had) > 1 and line == following != self._echo:
                    self.given_up = 2
                    return self.at
                if self._ends(line):
                    return self.at
        return None

    def _ends(self, line: bytes) -> bool:
        echo = self._echo
        # The terminal writes the end of a line by itself, so that the echo may go on before that of the program's line.
        if self._around and line == b"\r\n":
            return True
        self._around = False
        behind = _alike(line[::-1], echo[::-1])
        for had in [*self._had]:
            if had and line == echo[had:]:
                return True
            more = had + _alike(line, echo[had:-1])
            self._had.update(range(had, more + 1))
            self._around |= more > 0 and more + behind >= len(echo) and len(line) > len(echo) - had
        if len(self._had) > _PLACES:
            self._had = {0, *sorted(self._had)[-_PLACES:]}
        return False


def _alike(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts have in common at their beginning."""
    length = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        length += 1
    return length


class EchoFilter:
    """Takes echo out of a contiguous range of the stream."""

    def __init__(self) -> None:
        self._expected: list[Expectation] = []
        self._held = b""
        self._held_at = 0
        self._floor = 0
        # Of the first that is expected.
        self._pieces: _Pieces | None = None

    def copy(self) -> EchoFilter:
        """Return an independent copy."""
        twin = EchoFilter()
        twin._expected, twin._held, twin._held_at = list(self._expected), self._held, self._held_at
        twin._floor = self._floor
        twin._pieces = self._pieces.copy() if self._pieces is not None else None
        return twin

    def expect(self, expected: list[Expectation]) -> None:
        """Add the echo of one more input."""
        self._expected += expected

    def feed(self, data: bytes, offset: int) -> list[tuple[int, bytes]]:
        """Return (offset, bytes) that are output; bytes that may be echo stay inside until it is known."""
        if not self._expected and not self._held:
            return [(offset, data)] if data else []
        buffer, at = self._held + data, self._held_at if self._held else offset
        out: list[tuple[int, bytes]] = []
        position = 0
        while self._expected and position < len(buffer):
            want = self._expected[0]
            start = max(position, want.offset - at, self._floor - at)
            if start >= len(buffer):
                break
            found = (
                buffer.find(want.echo, start)
                if want.anywhere
                else (start if buffer.startswith(want.echo, start) else -1)
            )
            last = want.offset - at + WINDOW
            tail = _partial(buffer, start, want) if found < 0 else 0
            if want.anywhere:
                torn = self._torn(want, buffer, at, start, min(found if found >= 0 else len(buffer) - tail, last))
                if torn is not None:
                    self._floor, given_up = torn
                    for _ in range(given_up):
                        self._drop()
                    continue
            if 0 <= found <= last:
                if found > position:
                    out.append((at + position, buffer[position:found]))
                position = found + len(want.echo)
                self._drop()
                continue
            if tail and (not want.anywhere or len(buffer) - tail <= last):
                return self._hold(buffer, at, position, len(buffer) - tail, out)
            if want.anywhere:
                if at + len(buffer) <= want.offset + WINDOW:
                    break
                # What was passed over is out already; the next echo is looked for where this one was given up.
                self._floor = want.offset + WINDOW + 1
            self._drop()
        return self._hold(buffer, at, position, len(buffer), out)

    def _torn(
        self, want: Expectation, buffer: bytes, at: int, start: int, end: int
    ) -> tuple[int, int] | None:  # fmt: skip
        """Return where in the stream an echo that came in pieces is over, and how many are given up; None by `end`."""
        if self._pieces is None:
            self._pieces = _Pieces(want.echo, at + start)
        begin = self._pieces.at - at
        following = self._expected[1].echo if len(self._expected) > 1 and self._expected[1].anywhere else b""
        over = self._pieces.feed(buffer[begin:end], following) if begin < end else None
        return None if over is None else (over, self._pieces.given_up)

    def _drop(self) -> None:
        """Look for the next."""
        self._expected.pop(0)
        self._pieces = None

    @property
    def held_at(self) -> int | None:
        """Stream offset of the first byte that may be echo; None when nothing is held."""
        return self._held_at if self._held else None

    def flush(self) -> list[tuple[int, bytes]]:
        """Give up looking: what is held is output."""
        held, self._held = self._held, b""
        self._expected, self._pieces = [], None
        return [(self._held_at, held)] if held else []

    def _hold(
        self, buffer: bytes, at: int, position: int, end: int, out: list[tuple[int, bytes]]
    ) -> list[tuple[int, bytes]]:
        if end > position:
            out.append((at + position, buffer[position:end]))
        self._held, self._held_at = buffer[max(position, end) :], at + max(position, end)
        return out


def _partial(buffer: bytes, start: int, want: Expectation) -> int:
    """Return how many bytes at the end may be the beginning of the echo."""
    if not want.anywhere:
        rest = buffer[start:]
        return len(rest) if want.echo.startswith(rest) else 0
    for length in range(min(len(want.echo) - 1, len(buffer) - start), 0, -1):
        if buffer.endswith(want.echo[:length]):
            return length
    return 0
