"""A snapshot at any cut, and the bytes behind it, give what the whole stream gives."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from blockpty.screen import Emulator
from blockpty.screen.redraw import redraw
from tests.support.emulators import FIXTURES, MISSING, TOP, random_output, shown
from tests.support.profile import LONG, some_of

CUTS = 15 if LONG else 5


def cases() -> list[Any]:
    streams = sorted((TOP / "tests" / "streams").glob("*/stream/*"))
    if FIXTURES is not None:
        streams += sorted((FIXTURES / "alacritty-ref").glob("*/alacritty.recording"))
        streams += sorted((FIXTURES / "xtermjs-escape-files").glob("*.in"))
    return [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in streams]


def size_of(path: Path) -> tuple[int, int]:
    if (size := path.with_name("size.json")).exists():
        read = json.loads(size.read_text("utf-8"))
        return read["columns"], read["screen_lines"]
    return 80, 24


@pytest.mark.parametrize("path", cases())
def test_a_snapshot_at_any_cut_and_the_tail_are_the_whole_stream(path: Path) -> None:
    data, size = path.read_bytes(), size_of(path)
    whole = Emulator(*size)
    whole.feed(data)
    rng = random.Random(len(data))
    cuts = sorted(rng.sample(range(len(data) + 1), min(CUTS, len(data) + 1)))
    first, at = Emulator(*size), 0
    for cut in cuts:
        first.feed(data[at:cut])
        at = cut
        again = Emulator(*size)
        again.feed(redraw(first))
        assert shown(again) == shown(first), cut
        again.feed(data[cut:])
        assert shown(again) == shown(whole), cut


@pytest.mark.parametrize("seed", some_of(range(150)))
def test_a_snapshot_of_anything_is_the_same_screen(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randrange(1, 30), rng.randrange(1, 10)
    first, again = Emulator(*size), Emulator(*size)
    first.feed(random_output(rng, 60))
    again.feed(redraw(first))
    assert shown(again) == shown(first)


def test_what_is_repeated_after_a_snapshot() -> None:
    first, again = Emulator(20, 3), Emulator(20, 3)
    first.feed(b"\x1b[31mab\x1b(0q")
    again.feed(redraw(first))
    for emulator in (first, again):
        emulator.feed(b"\x1b[3bX")
    assert shown(again) == shown(first)
    assert again.lines[0].text.startswith("ab\u2500\u2500\u2500\u2500")


def test_there_are_recordings_of_others() -> None:
    if FIXTURES is None:
        pytest.skip(MISSING)
    assert len(cases()) > 50
