"""Which bytes after an input are its echo and therefore not output.

Rules of this file: the recorder says what was typed, where, and whether the terminal echoed at that moment. The
kernel's echo is known byte for byte; it is taken out at its first occurrence near the input. A line editor's echo
(ECHO off, ICANON off) is taken out only where it follows the input at once and whole. Silence ends the search.
"""

from __future__ import annotations

from typing import Final, NamedTuple

WINDOW: Final = 4096

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
        expected.append(Expectation(offset, shown, icanon))
    return expected


def _echoed(code: int) -> bytes:
    if code == 0x0A:
        return b"\r\n"
    if code < 0x20 and code != 0x09:
        return bytes((0x5E, code + 0x40))
    return bytes((code,))


class EchoFilter:
    """Takes echo out of a contiguous range of the stream."""

    def __init__(self) -> None:
        self._expected: list[Expectation] = []
        self._held = b""
        self._held_at = 0
        self._floor = 0

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
            if 0 <= found <= want.offset - at + WINDOW:
                if found > position:
                    out.append((at + position, buffer[position:found]))
                position = found + len(want.echo)
                self._expected.pop(0)
                continue
            tail = _partial(buffer, start, want)
            if tail and (not want.anywhere or len(buffer) - tail <= want.offset - at + WINDOW):
                return self._hold(buffer, at, position, len(buffer) - tail, out)
            if want.anywhere:
                if at + len(buffer) <= want.offset + WINDOW:
                    break
                # What was passed over is out already; the next echo is looked for where this one was given up.
                self._floor = want.offset + WINDOW + 1
            self._expected.pop(0)
        return self._hold(buffer, at, position, len(buffer), out)

    @property
    def held_at(self) -> int | None:
        """Stream offset of the first byte that may be echo; None when nothing is held."""
        return self._held_at if self._held else None

    def flush(self) -> list[tuple[int, bytes]]:
        """Give up looking: what is held is output."""
        held, self._held = self._held, b""
        self._expected = []
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
