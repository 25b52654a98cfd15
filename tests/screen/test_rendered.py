"""The rendered view: what a person sees in the end; the way around the drawing gives the same text."""

from __future__ import annotations

import random
import re

import pytest

from blockpty.screen.rendered import Rendered, plain_lines
from tests.support.emulators import output, random_output

CASES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", ""),
    "a line": (b"hello\r\n", "hello\n"),
    "no line end": (b"hello", "hello"),
    "blanks at the end": (b"a  \r\n\r\n b \r\n", "a\n\n b\n"),
    "a progress bar": (b"\r 10%\r 55%\r100%\r\ndone\r\n", "100%\ndone\n"),
    "a shorter text over a longer one": (b"building...\rok\x1b[K\r\n", "ok\n"),
    "backspaces": (b"a|\b/\b-\b \bb\r\n", "ab\n"),
    "colours": (b"\x1b[31mred\x1b[m\r\n", "red\n"),
    "several bars, moved to": (b"a 1\r\nb 1\r\n\x1b[2Aa 2\x1b[K\r\nb 2\x1b[K\r\n", "a 2\nb 2\n"),
    "erased at its left edge": (b"gone\r\x1b[K\nkept\r\x1b[m\n" * 30, "\nkept\n" * 30),
    "a wrapped line is one": (b"x" * 30 + b"\r\ny\r\n", "x" * 30 + "\ny\n"),
    "a wide character wraps": ("12345678901234567\u6f22\u6f22\r\n".encode(), "12345678901234567\u6f22\u6f22\n"),
    "tabs": (b"a\tb\r\n", "a       b\n"),
    "cleared": (b"gone\r\n\x1b[H\x1b[2Jkept\r\n", "kept\n"),
    "the alternate screen": (b"before\r\n\x1b[?1049hediting\x1b[?1049lafter\r\n", "before\nafter\n"),
    "in the alternate screen": (b"before\r\n\x1b[?1049hediting", "before\n"),
    "more than the screen": (b"".join(b"%d\r\n" % n for n in range(50)), "".join(f"{n}\n" for n in range(50))),
    "a bar after much": (b"1\r\n2\r\n3\r\n4\r\n5\r\n 1%\r99%", "1\n2\n3\n4\n5\n99%"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_seen(name: str) -> None:
    data, want = CASES[name]
    for step in (1, 3, len(data) + 1):
        view = Rendered(18, 5)
        assert "".join(view.feed(data[at : at + step]) for at in range(0, len(data), step)) + view.finish() == want


@pytest.mark.parametrize("seed", range(100))
def test_the_way_around_gives_the_same(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randrange(2, 30), rng.randrange(1, 8)
    drawn, quick = Rendered(*size, least_run=1 << 40), Rendered(*size, least_run=1)
    want = got = ""
    # Where a row is full, erasing to its end takes its last character.
    full = (b"x" * (size[0] - 3) + b"\x1b[K", b"\x1b[m" + b"y" * (2 * size[0] - 3) + b"\x1b[m\x1b[0Kz")
    for number in range(3):
        some = [b"", b"\x1b[1mx\x1b[m", b"x" * 40, b"y  ", b"\x1b[K", *(full if number == 1 and seed % 3 == 0 else ())]
        ends = (b"\r\n", b"\n", b"\r\x1b[K\n") if number == 2 and seed % 5 == 0 else (b"\r\n",)
        lines = [b"%02d %s%s" % (n, rng.choice(some), rng.choice(ends)) for n in range(90)]
        data = rng.choice([output(rng), random_output(rng, 10), b""]) + b"".join(lines)
        want += drawn.feed(data)
        got += quick.feed(data)
    assert got + quick.finish() == want + drawn.finish()


@pytest.mark.parametrize("seed", range(50))
def test_plain_lines_are_those_without_colours(seed: int) -> None:
    """Whatever stands in the lines: all of quoted-printable's own signs, and sequences that are no colours."""
    rng = random.Random(seed)
    often = [b"=", b"=41", b"=\r\n", b"m", b"[", b"K", b"_", b"\xc3\xa9", b"\r\n", b"\x07", b" ", b"[m=", b"[=m"]
    colours = [b"\x1b[m", b"\x1b[K", b"\x1b[0K", b"\x1b[1;38:2:0:0:0m", b"\x1b[%sm" % (b"1" * 255)]
    rare = [b"\x1b", b"\x1b[", b"\x1b[2K", b"\x1b[?1m", b"\x1b[%sm" % (b"1" * 256), b"\x1b41m", b"\x1b\x1b[m", b"\r"]
    sound = 0
    for _ in range(200):
        pieces = rng.choices(often + colours, k=rng.randrange(30)) + rng.choices(rare, k=rng.random() < 0.3)
        rng.shuffle(pieces)
        data = b"".join(pieces) + b"\r\n"
        without = re.sub(rb"\x1b\[(?:[0-;]{0,255}m|0?K)", b"", data).replace(b"\x07", b"")
        is_plain = re.fullmatch(rb"(?:[ -~\x80-\xff]|\r\n)*", without) and b"\r\x1b" not in data
        assert plain_lines(data) == (without if is_plain else None)
        sound += bool(is_plain)
    assert 100 < sound < 200


def test_the_way_around_is_taken() -> None:
    view = Rendered()
    data = b"".join(b"\x1b[32mline %d\x1b[m\r\n" % number for number in range(30_000))
    fed = 0
    feed = view._emulator.feed

    def counting(part: bytes) -> None:
        nonlocal fed
        fed += len(part)
        feed(part)

    view._emulator.feed = counting  # type: ignore[method-assign]
    text = view.feed(data) + view.finish()
    assert text == "".join(f"line {number}\n" for number in range(30_000))
    assert fed < len(data) / 10


def test_what_is_held_does_not_grow() -> None:
    view = Rendered(80, 24)
    for _ in range(50):
        view.feed(b"x" * 5000)
    assert not view._left
    assert len(view._emulator.all_rows()) == 48
