"""Bells are heard in a stream that comes in any pieces; what ends a title is none."""

from __future__ import annotations

import pytest

from blockpty.screen.bells import ONE_BELL_MS, Bells
from blockpty.screen.emulator import Emulator

SILENT = (
    b"plain", b"\x1b]0;title\x07", b"\x1b]7717;__PROMPT__;x=1\x07$ ", b"\x1b]2;a\x1b\\b", b"\x1b[31mred\x1b[m",
    b"\x1bP$qm\x1b\\", b"\x1b]8;;http://a\x07text\x1b]8;;\x07",
)  # fmt: skip
RINGING = (
    b"\x07", b"a\x07b", b"\x1b]0;title\x07\x07", b"\x1b]2;a\x1b\\\x07", b"\x1b[31m\x07", b"\x1b[\x07m",
    b"\x1b]0;cut short\x18\x07",
)  # fmt: skip


@pytest.mark.parametrize("text", [*SILENT, *RINGING])
def test_a_bell_is_heard_however_the_bytes_are_split(text: bytes) -> None:
    rings = text in RINGING
    drawn = Emulator(20, 5)
    drawn.feed(text)
    assert (drawn.bells > 0) == rings, "the emulator says the same"
    pieces = [[text], [text[at : at + 1] for at in range(len(text))]]
    pieces += [[text[:at], text[at:]] for at in range(1, len(text))]
    for one in pieces:
        bells = Bells()
        for piece in one:
            bells.feed(piece, 1000)
        assert (bells.last is not None) == rings, one


def test_many_bells_in_a_short_time_are_one() -> None:
    bells = Bells()
    heard = []
    for ts in (1000, 1001, 1000 + ONE_BELL_MS - 1, 1000 + ONE_BELL_MS, 9000):
        bells.feed(b"\x07", ts)
        heard.append(bells.last)
    assert heard == [1000, 1000, 1000, 1000 + ONE_BELL_MS, 9000]


def test_the_content_of_a_string_is_not_kept() -> None:
    bells = Bells()
    bells.feed(b"\x1b]1337;" + b"x" * 100_000, 1000)
    bells.feed(b"x" * 100_000, 1001)
    bells.feed(b"\x07", 1002)
    assert bells.last is None and len(bells._held) <= 2
