"""The emulator: any bytes are legal, however they are cut, and memory is bounded."""

from __future__ import annotations

import json
import os
import random

import pytest

from blockpty.screen import Emulator, sequences
from tests.support.emulators import random_output, state

# Bytes of the random run, 10 million for a long one.
RANDOM_BYTES = int(os.environ.get("BLOCKPTY_SCREEN_BYTES", "300000"))


def whole(emulator: Emulator) -> None:
    """Assert what must hold at any time."""
    for row in [*emulator.lines, *emulator.other_lines]:
        assert len(row.text) == len(row.attrs) == emulator.cols
        assert row.text.isascii() or not row.text.startswith("\0")
    assert len(emulator.lines) == len(emulator.other_lines) == emulator.rows
    assert 0 <= emulator.x < emulator.cols
    assert 0 <= emulator.y < emulator.rows
    assert 0 <= emulator.top <= emulator.bottom < emulator.rows
    assert 0 <= emulator.left <= emulator.right < emulator.cols
    for line in emulator.frame().lines:
        assert sum(run.width for run in line.runs) == emulator.cols


def test_random_bytes_raise_nothing() -> None:
    rng = random.Random(1)
    emulator = Emulator(40, 10)
    for _ in range(RANDOM_BYTES // 2000):
        # Half of it more likely to mean something than bytes drawn alike.
        emulator.feed(rng.randbytes(1000))
        emulator.feed(
            bytes(rng.choice(b"\x1b[]0123456789;:?>=<!$ ABCDHJKLMPSTXZhlmnrsu\\P_^\x07\r\n\x08") for _ in range(1000))
        )
        if rng.random() < 0.1:
            emulator.resize(rng.randrange(1, 60), rng.randrange(1, 20))
        whole(emulator)


@pytest.mark.parametrize("seed", range(60))
def test_cuts_do_not_matter(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randrange(1, 30), rng.randrange(1, 10)
    data = random_output(rng, 80)
    at_once = Emulator(*size)
    at_once.feed(data)
    whole(at_once)
    want = state(at_once)
    byte_by_byte = Emulator(*size)
    for byte in data:
        byte_by_byte.feed(bytes([byte]))
    assert state(byte_by_byte) == want
    for _ in range(3):
        cut = Emulator(*size)
        at = 0
        while at < len(data):
            step = rng.randrange(1, 40)
            cut.feed(data[at : at + step])
            at += step
        assert state(cut) == want


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (100_000, 100)])
def test_a_size_that_cannot_be_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cells"):
        Emulator(*size)


def test_the_tables_do_not_grow_with_what_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blockpty.screen.state._FEW_BRUSHES", 300)
    monkeypatch.setattr("blockpty.screen.state._FEW_CLUSTERS", 300)
    emulator = Emulator(80, 24)
    for number in range(3000):
        emulator.feed(b"\x1b[38;2;%d;%d;1mx\x1b]8;;http://h/%d\x07y\r" % (number % 251, number // 251, number))
    assert len(emulator.brushes) < 400
    link = emulator.frame().lines[0].runs[1].pen.link
    assert link is not None and link.uri == "http://h/2999"
    for number in range(3000):
        emulator.feed(b"\r\x1b[2Ke" + (chr(0x300 + number % 90) * (1 + number // 90)).encode())
    assert len(emulator.clusters) < 400
    assert emulator.frame().lines[0].text == "e" + chr(0x300 + 2999 % 90) * (1 + 2999 // 90)


def test_an_endless_string_is_not_collected() -> None:
    emulator = Emulator()
    for introducer in (b"\x1b]0;", b"\x1bP", b"\x1b_", b"\x1b[", b"\x1b "):
        emulator.feed(introducer)
        for _ in range(100):
            emulator.feed(b"1" * 10_000)
        assert len(json.dumps(emulator.dump()["parser"])) < 20_000
        emulator.feed(b"\x18\x1bc")
    emulator.feed(b"still here")
    assert emulator.frame().lines[0].text == "still here"


def test_what_is_remembered_of_sequences_is_bounded() -> None:
    emulator = Emulator()
    for number in range(20_000):
        emulator.feed(b"\x1b[%d;%dH" % (number % 150, number))
    assert len(sequences.KNOWN) <= 8192
    emulator.feed(b"\x1b[Ha\r\n\x1bMb")
    assert emulator.frame().lines[0].text == "b"
