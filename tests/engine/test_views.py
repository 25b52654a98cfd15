"""Views: a table of raw bytes, each cut in every way, with the way back to every byte."""

from __future__ import annotations

import pytest

from blockpty.engine.views import HELD_LIMIT, STRING_LIMIT, OffsetMap, View, raw_offset, transform
from blockpty.testing import every_split
from tests.support.machines import slow_view
from tests.support.profile import some_of

RAW: list[bytes] = [
    b"", b"plain", b"a\r\nb\r\r\nc\rd\n", b"\r", b"\r\r\r", b"\x1b", b"\x1b\x1b[m", b"\x1b[1;31mred\x1b[0m", b"\x1b[",
    b"\x1b]0;title\x07x", b"\x1b]0;title\x1b\\x", b"\x1b]0;title\nx", b"\x1b]0;ti\x18tle",
    b"\x1b]0;ti\x1b[mtle", b"\x1b]0;ti",
    b"\x1bPq#0\x1b\\x", b"\x1b_app\x1b\\x", b"\x1b^pm\x1b\\x", b"\x1bXsos\x1b\\x", b"\x1b(B\x1b=\x1bM",
    b"a\x08b\x07c\x7fd\te",
    b"\r\x1b[K\n", b"\r\x1b]7717;__END__;n=a\x07\n", b"\x1b]7717;__END__;n=a\x1b\\x", b"\x1b]7717;x",
    b"a\x1b]7717;__END__;n=**********************;i=1\x07b",
    b"\x1b[" + b"1" * 257 + b"m",
    b"a\x1b]P1aF00ffb here\x1b[m", b"\x1b]Rthere\r\nand\x1b]P12",
    b"\x1b]P12345\x07c\x1b]P123456xyz\x1b\\d", b"\x1b]P0000000",
    b"\x1b[" + b"1" * 256 + b"m", b"\x1b" + b" " * 9 + b"F", b"\xc3\xa9\xff\x9b31m",
]  # fmt: skip


def viewed(name: str, raw: bytes, cuts: object = ()) -> list[tuple[int, int, int]]:
    """Return every byte of a view with the raw bytes it came from."""
    view, shown, at = View(name, 50), [], 0
    for place in [*cuts, len(raw), None]:  # type: ignore[misc]
        piece = view.finish() if place is None else view.feed(raw[at:place])
        at = at if place is None else place
        assert len(view._held) <= HELD_LIMIT
        new = [
            (code, raw_offset(name, piece, where), raw_offset(name, piece, where, after=True))
            for where, code in enumerate(piece.text)
        ]
        if name != "raw":
            places = OffsetMap(name, piece)
            assert new == [
                (code, places.raw_offset(where), places.raw_offset(where, after=True))
                for where, code in enumerate(piece.text)
            ]
        shown += new
    return shown


@pytest.mark.parametrize("name", ["raw", "ansi", "text"])
@pytest.mark.parametrize("raw", RAW, ids=lambda raw: repr(raw[:20]))
def test_bytes_and_offsets_are_the_reference_s_for_every_cut(raw: bytes, name: str) -> None:
    expected = [tuple(item) for item in slow_view(name, raw, 50)]
    for cuts in some_of(every_split(raw, pairs=20)):
        assert viewed(name, raw, cuts) == expected


def test_a_colour_of_the_linux_console_hides_no_text() -> None:
    assert transform("text", b"one \x1b]P1ff0000two\x1b[0m \x1b]Rthree\x1b[0m") == b"one two three"


@pytest.mark.parametrize("size", [STRING_LIMIT - 1, STRING_LIMIT, STRING_LIMIT + 1])
@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\", b"\x18", b"\n", b""])
def test_a_string_around_its_length_limit(size: int, end: bytes) -> None:
    raw = b"a\x1b]" + b"t" * size + end + b"b"
    expected = bytes(item.byte for item in slow_view("text", raw, 50))
    last = range(len(raw) - 6, len(raw) + 1)
    for cuts in [(), *((place,) for place in last), last, range(1, len(raw), 511)]:
        view, text, at = View("text", 50), b"", 0
        for place in [*cuts, len(raw)]:
            text, at = text + view.feed(raw[at:place]).text, place
        assert text + view.finish().text == expected


@pytest.mark.parametrize("filler", [b"\r", b"\x1b]" + b"t" * 99, b"t", b"\x1b[", b"\x1b", b"\r\x1b"])
@pytest.mark.parametrize("name", ["text", "ansi"])
def test_little_is_held_whatever_comes(name: str, filler: bytes) -> None:
    view = View(name, 0)
    view.feed(b"\x1b]0;")
    for _ in range(300):
        view.feed(filler * 100)
        assert len(view._held) <= HELD_LIMIT
