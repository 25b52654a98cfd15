"""What is fed and printed: log lines, plain and coloured, the same in every run; and recordings made of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from blockpty.model.entries import Entry
from blockpty.testing import FakePty

PIECE = 64 * 1024
# A recorder that moves 60 MB/s writes a tick every 2 ms, that is every 120 KB.
TICK_BYTES = 2 * PIECE

_MODULES = ("http::server", "db::pool", "worker::queue", "auth", "cache::lru", "scheduler")
_LEVELS = (("INFO", "32"), ("DEBUG", "36"), ("WARN", "33"), ("ERROR", "31"), ("TRACE", "2"))


def lines(*, coloured: bool) -> Iterator[bytes]:
    """Yield log lines for ever, each ending with LF; about 100 bytes, or 150 with colours."""
    for number in itertools.count(1):
        stamp = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number * 37 % 1000:03}Z"
        level, colour = _LEVELS[number * 7 % 11 % 5]
        module = _MODULES[number * 5 % 13 % 6]
        rest = f"request {number:08} took {number * 13 % 977} ms, {number * 31 % 65536} bytes, state=ok"
        line = f"{stamp} {level:5} {module}: {rest}\n"
        if coloured:
            head = f"\x1b[2m{stamp}\x1b[0m \x1b[1;{colour}m{level:5}\x1b[0m \x1b[35m{module}\x1b[0m"
            line = f"{head}: {rest}\x1b[K\n"
        yield line.encode()


def log(size: int, *, coloured: bool) -> bytes:
    """Return at least `size` bytes of whole lines."""
    made, so_far = [], 0
    for line in lines(coloured=coloured):
        made.append(line)
        so_far += len(line)
        if so_far >= size:
            break
    return b"".join(made)


def long_block(size: int, *, coloured: bool) -> list[bytes | Entry]:
    """Return the record of one command that printed about `size` bytes, in the pieces in which an engine reads it.

    The pieces repeat and are shared, so that the list is small however much it stands for.
    """
    terminal_log = log(16 * 1024 * 1024, coloured=coloured).replace(b"\n", b"\r\n")
    whole = len(terminal_log) // PIECE
    pieces = [terminal_log[number * PIECE : (number + 1) * PIECE] for number in range(whole)]
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    pty.submit("log")
    pty.begin()
    steps: list[bytes | Entry] = list(pty.recording.steps())
    offset, ts = len(pty.recording.stream), pty.clock.now_ms
    for number in range(max(1, size // PIECE)):
        if offset // TICK_BYTES != (offset - PIECE) // TICK_BYTES:
            ts += 2
            steps.append(Entry(offset, ts, "tick", {}))
        steps.append(pieces[number % whole])
        offset += PIECE
    return steps


def short_blocks(count: int) -> list[bytes | Entry]:
    """Return the record of many commands that print one line each."""
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    for number in range(count):
        pty.run(f"echo {number}", b"%d\r\n" % number)
    # Cutting at the entries is quadratic in their number, so it is done here in one go.
    steps: list[bytes | Entry] = []
    at = 0
    for entry in pty.recording.entries:
        if entry.offset > at:
            steps.append(pty.recording.stream[at : entry.offset])
            at = entry.offset
        steps.append(entry)
    return steps
