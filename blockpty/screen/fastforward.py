r"""Fast-forward: the same screen as after feeding everything, without drawing what has scrolled away.

Rules of this file: only runs of *pure* output are skipped: text, TAB, BEL, BS, CR, LF, SGR and EL. With the whole
screen as scrolling region, after `rows` line feeds of such a run the cursor is on the last row wherever it was before,
and after `rows` more every row on the screen was made inside the run; with `history_rows` more so was the history. So
of a run only what follows the n-th LF from its end is fed, n = 2 * rows + history_rows, from the end of a CR LF on,
where the column is 0 and no wrap is pending. What the skipped part leaves behind otherwise is carried over: the pen,
from its last reset on; and the bells in it. Tests compare the whole state with a full feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from blockpty.screen.emulator import Emulator
from blockpty.screen.modes import REVERSE_WRAP

# Runs shorter than this are not worth looking at.
LEAST_RUN: Final = 16 * 1024
_BLOCK: Final = 256 * 1024
_PURE: Final = b"\x07\x08\t\n\r\x1b" + bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100))
_IMPURE_ESCAPE: Final = re.compile(rb"\x1b(?!\[[0-9;:]{0,255}+[mK])")
_IMPURE: Final = re.compile(
    rb"[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\xc2(?=[\x80-\x9f])|\x1b(?!\[[0-9;:]{0,255}+[mK])"
)
_SGR: Final = re.compile(rb"\x1b\[[0-9;:]{0,255}+m")


def feed(emulator: Emulator, data: bytes, least_run: int = LEAST_RUN) -> int:
    """Bring an emulator to where `emulator.feed(data)` would; return how many bytes were skipped."""
    lines = 2 * emulator.rows + (emulator.history.maxlen or 0)
    at = skipped = 0
    for begin, end in pure_runs(data, least_run):
        # Through the first line in any case: the run may begin inside a sequence, or a character.
        first = data.find(b"\n", begin, end) + 1
        to = cut(data, first, end, lines) if first else None
        if to is None:
            continue
        emulator.feed(data[at:first])
        at = first
        # Who listens for rows that scroll off must hear of each.
        if emulator.scrolled_off is None and ready(emulator):
            carry(emulator, data, first, to)
            emulator.x = 0
            skipped += to - first
            at = to
    emulator.feed(data[at:] if at else data)
    return skipped


def pure_runs(data: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of the runs of pure bytes that are long enough."""
    begin = 0
    for found in _impurities(data):
        if found - begin >= least:
            yield begin, found
        begin = found + 1
    if len(data) - begin >= least:
        yield begin, len(data)


def is_pure(data: bytes) -> bool:
    """Whether there is nothing in data that ends a run of pure bytes."""
    return next(_impurities(data), None) is None


def _impurities(data: bytes) -> Iterator[int]:
    for at in range(0, len(data), _BLOCK):
        # A sequence may go on in the next block, so the patterns see beyond the end of this one.
        end = min(at + _BLOCK, len(data))
        block = data[at : end + 1]
        quick = not block.translate(None, _PURE) and b"\xc2" not in block
        for found in (_IMPURE_ESCAPE if quick else _IMPURE).finditer(data, at, min(end + 512, len(data))):
            if found.start() >= end:
                break
            yield found.start()


def cut(data: bytes, first: int, end: int, lines: int) -> int | None:
    """Return the latest end of a CR LF with `lines` line feeds after it, or None."""
    at = end
    for _ in range(lines):
        at = data.rfind(b"\n", first, at)
        if at < 0:
            return None
    found = data.rfind(b"\r\n", first, at)
    return None if found < 0 else found + 2


def line_end(data: bytes, lines: int) -> int:
    """Return where the line ends behind which there are so many line feeds."""
    at = data.rfind(b"\n")
    for _ in range(lines):
        at = data.rfind(b"\n", 0, at)
    return at + 1


def ready(s: Emulator) -> bool:
    """Whether line feeds add up from here on: nothing is open, and the whole screen scrolls."""
    full = s.top == 0 and s.bottom == s.rows - 1 and not s.narrowed
    # Reverse wrap lets BS go up, and then line feeds do not add up.
    return full and s.between_sequences and not s.modes[REVERSE_WRAP]


def carry(s: Emulator, data: bytes, begin: int, end: int) -> None:
    """Take over what a skipped part, which ends with a line feed, leaves behind: the pen."""
    if data.find(b"\x1b", begin, end) >= 0:
        reset = max(data.rfind(b"\x1b[0m", begin, end), begin)
        reset = max(data.rfind(b"\x1b[m", reset, end), reset)
        brush = s.brush
        for sequence in _SGR.findall(data, reset, end):
            text = sequence.decode("ascii")
            brush = brush.after.get(text) or s.brushes.apply(brush, text)
        s.brush = brush
    s.bells += data.count(b"\x07", begin, end)
    s.pending = False
    s.last = ""

