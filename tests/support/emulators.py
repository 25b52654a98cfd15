"""What the tests of screens share: the third-party cases, everything that can be seen of an emulator, random output."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from blockpty.screen.emulator import Emulator
from blockpty.screen.parser import STRING
from blockpty.screen.pens import Pen

TOP = Path(__file__).resolve().parents[2]
# The cases are not part of the project. A worktree lies a directory deeper than the checkout.
_PLACES = [parent / "shared" / "fixtures" for parent in (TOP.parent, TOP.parent.parent)]
if named := os.environ.get("BLOCKPTY_FIXTURES"):
    _PLACES = [Path(named)]
FIXTURES = next((place for place in _PLACES if place.is_dir()), None)
MISSING = "the third-party cases are not here (../shared/fixtures beside the checkout, or BLOCKPTY_FIXTURES)"


def fed(data: bytes | str, cols: int = 80, rows: int = 24, **options: Any) -> Emulator:
    emulator = Emulator(cols, rows, **options)
    emulator.feed(data.encode() if isinstance(data, str) else data)
    return emulator


def text(emulator: Emulator) -> list[str]:
    """Return the rows, blanks at the end removed, without the empty ones at the end."""
    rows = [line.text for line in emulator.frame().lines]
    while rows and not rows[-1]:
        rows.pop()
    return rows


def cells(emulator: Emulator, y: int) -> list[Pen]:
    """Return how each cell of a row is drawn."""
    return [pen for run in emulator.frame().lines[y].runs for pen in [run.pen] * run.width]


def state(emulator: Emulator) -> dict[str, Any]:
    """Return everything that may matter for what follows, in a form that does not depend on how it came about."""
    return {**emulator.dump(), "frame": emulator.frame()}


_PARAMETERS = ("", "0", "1", "2", "3", "5", "7", "12", "40", "99999999999", "4:3", "38:2::1:2:3", "38;5;200", "1;31")
_MODES = (1, 3, 5, 6, 7, 9, 12, 25, 40, 45, 47, 66, 69, 1000, 1002, 1006, 1004, 1047, 1048, 1049, 2004, 2026, 77)
_WORDS = (
    *(
        "a",
        "hello world",
        "x" * 30,
        "漢字",
        "e\u0301",
        "\u200d",
        "👨\u200d👩\u200d👧",
        "❤\ufe0f",
        "─│┌",
        "lqk",
        "\u0301",
    ),
    *("\U00100005", "\u009b3D", "\u0085", "ﬁ", "Ж", "\xad", "\u1160"),
)


def random_piece(rng: random.Random) -> bytes:
    """Return one thing that a program may print."""
    kind = rng.randrange(20)
    if kind < 8:
        return rng.choice(_WORDS).encode()
    if kind < 10:
        return rng.choice([b"\r\n", b"\n", b"\r", b"\x08", b"\t", b"\x07", b"\x0b", b"\x0e", b"\x0f", b"\x7f", b"\0"])
    if kind < 14:
        count = rng.randrange(4)
        parameters = ";".join(rng.choice(_PARAMETERS) for _ in range(count))
        prefix = rng.choice(["", "", "", "", "", "?", ">", "<", "="])
        between = rng.choice(["", "", "", "", "", "", "!", " ", "$", "'", '"'])
        return f"\x1b[{prefix}{parameters}{between}{chr(rng.randrange(0x40, 0x7F))}".encode()
    if kind == 14:
        return f"\x1b[?{rng.choice(_MODES)}{rng.choice('hlhlrs')}".encode()
    if kind == 15:
        return f"\x1b[{rng.randrange(1, 30)};{rng.randrange(1, 30)}{rng.choice('Hr')}".encode()
    if kind == 16:
        return b"\x1b" + rng.choice([b"7", b"8", b"c", b"D", b"E", b"H", b"M", b"(0", b"(B", b")0", b"#8", b"=", b">"])
    if kind == 17:
        ends = [b"\x07", b"\x1b\\", b"", b"\x18"]
        starts = [b"]0;", b"]8;id=a;http://h/", b"]8;;", b"]133;A", b"P+q", b"_G", b"^", b"X", b"]7;file://h/"]
        return b"\x1b" + rng.choice(starts) + rng.choice([b"", b"word", "é漢".encode()]) + rng.choice(ends)
    if kind == 18:
        return rng.choice(
            [b"\x1b", b"\x1b[", b"\x1b[1", b"\xe6\xbc", b"\xff", b"\x1b[3\x08C", b"\x1b[1\r\n;1m", b"\x18"]
        )
    return bytes(rng.randrange(256) for _ in range(rng.randrange(1, 8)))


def random_output(rng: random.Random, pieces: int) -> bytes:
    return b"".join(random_piece(rng) for _ in range(pieces))


def shown(emulator: Emulator) -> dict[str, Any]:
    """Return what must be the same: all that may matter for what follows, but for what `redraw` leaves out."""
    state = {**emulator.dump(), "saved_modes": dict(emulator.saved_modes)}
    kept = (
        "title", "icon_title", "cwd", "zone", "alt", "x", "y", "pending", "top", "bottom", "left", "right", "shift",
        "single_shift", "guarded", "modify_other_keys", "cursor_style", "titles", "tabs", "charsets", "keyboard",
        "modes", "saved_modes", "parser", "decoder",
    )  # fmt: skip
    screens = [
        [
            (emulator.clusters.text(row.text), [emulator.brushes.pen(mark) for mark in row.attrs], row.wrapped)
            for row in rows
        ]
        for rows in (emulator.lines, emulator.other_lines, emulator.history)
    ]
    shared = {name: state[name] for name in kept}
    if shared["parser"][0] == STRING:
        # What kind of string it was is left out.
        shared["parser"] = STRING
    return {**shared, "screens": screens, "pen": emulator.brush.pen, "saved": emulator.saved}


_PURE = [
    b"abc", "漢字".encode(), "e\u0301".encode(), "\u0301".encode(), "👨\u200d👩".encode(), b"lqk", b"\xff", b"\xe6\xbc",
    b"\x1b[31m", b"\x1b[0;1;44m", b"\x1b[m", b"\x1b[0m", b"\x1b[38;5;1m", b"\x1b[K", b"\x1b[1K", b"\x1b[2K", b"\x1b[9K",
    b"\t", b"\x08", b"\x07", b"\r",
]  # fmt: skip


def pure_line(rng: random.Random) -> bytes:
    words = [rng.choice(_PURE) if rng.random() < 0.8 else b"x" * rng.randrange(60) for _ in range(rng.randrange(5))]
    return b"".join(words) + rng.choice([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\r\n"])


def output(rng: random.Random) -> bytes:
    data = b"".join(random_piece(rng) for _ in range(rng.randrange(12)))
    for _ in range(rng.randrange(3)):
        data += b"".join(pure_line(rng) for _ in range(rng.randrange(1, 120)))
        data += b"".join(random_piece(rng) for _ in range(rng.randrange(4)))
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.2 else data
