"""Fast-forward: the whole state is that of a full feed, and long output is really skipped."""

from __future__ import annotations

import os
import random

import pytest

from blockpty.screen import Emulator, fastforward
from tests.support.emulators import fed, output, state

# Random cases; some thousands for a long run.
CASES = int(os.environ.get("BLOCKPTY_SCREEN_CASES", "300"))


def test_random_output_gives_the_state_of_a_full_feed() -> None:
    skipped = 0
    for seed in range(CASES):
        rng = random.Random(seed)
        size = rng.randrange(1, 40), rng.randrange(1, 10), rng.choice([0, 0, 3, 10])
        full, fast = Emulator(*size), Emulator(*size)
        for _ in range(rng.randrange(1, 4)):
            data = output(rng)
            full.feed(data)
            at = 0
            while at < len(data):
                step = rng.choice([1, 50, 500, 5000, 10**6])
                skipped += bool(fastforward.feed(fast, data[at : at + step], rng.choice([1, 10, 100])))
                at += step
            assert state(fast) == state(full), seed
    assert skipped > CASES, "hardly anything was skipped, so hardly anything was tested"


LINES = b"".join(b"\x1b[3%dmline %d\x1b[m\r\n" % (number % 8, number) for number in range(20_000))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"\x1b[1;44m", b"\x1b[5b"),
        (b"\x1b]0;title\x07", b"tail"),
        (b"\x1b]0;unfinished", b"\x07"),
        (b"\x1b[?1049h", b"\x1b[?1049l"),
        (b"\x1b[4h\x1b[20h\x1b[?7l", b"end"),
        (b"\x1b)0\x0e", b"lqk"),
        (b"\xe6\xbc", b"\xe6"),
        (b"\x1b[?69h\x1b[?69l", b""),
        (b"\x1b[?2026h", b"\x1b[?2026l"),
    ],
    ids=repr,
)
def test_a_long_run_is_skipped_exactly(before: bytes, after: bytes) -> None:
    full, fast = fed(before + LINES + after), Emulator()
    skipped = fastforward.feed(fast, before + LINES + after)
    assert skipped > len(LINES) * 0.9
    assert state(fast) == state(full)


@pytest.mark.parametrize(
    "before",
    [b"\x1b[2;5r", b"\x1b[?69h\x1b[3;9s", b"\x1b[?45h", b"\x1bPq", b"\x1b_G"],
    ids=["margins", "left and right margins", "reverse wrap", "inside DCS", "inside APC"],
)
def test_where_the_argument_does_not_hold_nothing_is_skipped(before: bytes) -> None:
    lines = b"".join(b"line %d\r\n" % number for number in range(3000))
    full, fast = fed(before + lines), Emulator()
    assert fastforward.feed(fast, before + lines) == 0
    assert state(fast) == state(full)


def test_nothing_is_repeated_after_line_feeds() -> None:
    data = b"".join(b"word%d\r\n" % number for number in range(9000)) + b"\x1b[K\r\n" * 9000 + b"\x1b[3b"
    full, fast = fed(data), Emulator()
    assert fastforward.feed(fast, data) > 0
    assert state(fast) == state(full)
    assert fast.frame().lines[-1].text == ""


def test_all_rows_that_scroll_off_are_reported() -> None:
    """A listener must be notified of each row, so nothing is skipped."""
    rows: list[str] = []
    emulator = Emulator(20, 5, 0)
    emulator.scrolled_off = lambda row: rows.append(row.text.rstrip())
    fastforward.feed(emulator, b"".join(b"%d\r\n" % number for number in range(9000)))
    assert rows == [str(number) for number in range(len(rows))]
    assert len(rows) == 9000 - 4
