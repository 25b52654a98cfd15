"""Scrollback from the stream: pages, limit, resizes, checkpoints; always what a screen that kept it would have."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from blockpty.screen import Emulator, frames
from blockpty.screen.protocol import Line
from blockpty.screen.scrollback import Resize, page
from tests.support.emulators import fed, output

NUMBERS = b"".join(b"%d\r\n" % number for number in range(5000))


def reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda begin, end: data[begin:end]


def kept(data: bytes, cols: int, rows: int, limit: int) -> list[Line]:
    emulator = fed(data, cols, rows, history_rows=limit)
    return [frames.line(emulator, row) for row in emulator.history]


def test_pages_go_up_to_the_limit() -> None:
    # The last 3 numbers are on the screen of 4 rows, with the row of the cursor.
    first = page(reader(NUMBERS), 0, len(NUMBERS), size=(20, 4), count=3, limit=8)
    assert first.text.split() == ["4994", "4995", "4996"]
    assert first.more
    second = page(reader(NUMBERS), 0, len(NUMBERS), size=(20, 4), before=3, count=3, limit=8)
    assert second.text.split() == ["4991", "4992", "4993"]
    assert second.more
    last = page(reader(NUMBERS), 0, len(NUMBERS), size=(20, 4), before=6, count=3, limit=8)
    assert last.text.split() == ["4989", "4990"]
    assert not last.more
    none = page(reader(NUMBERS), 0, len(NUMBERS), size=(20, 4), before=9, count=3, limit=8)
    assert none.lines == () and not none.more


def test_the_top_of_what_there_is() -> None:
    data = b"1\r\n2\r\n3\r\n4\r\n"
    got = page(reader(data), 0, len(data), size=(20, 2), count=10)
    assert got.text.split() == ["1", "2", "3"]
    assert not got.more


@pytest.mark.parametrize("seed", range(40))
def test_a_page_is_what_a_screen_that_kept_it_has(seed: int) -> None:
    rng = random.Random(seed)
    cols, rows = rng.randrange(1, 30), rng.randrange(1, 8)
    data = b"".join(output(rng) for _ in range(3))
    want = kept(data, cols, rows, 1000)
    before, count = rng.randrange(20), rng.randrange(1, 20)
    got = page(reader(data), 0, len(data), size=(cols, rows), before=before, count=count)
    newest = max(0, len(want) - before)
    oldest = max(0, len(want) - before - count)
    assert list(got.lines) == want[oldest:newest]
    assert got.more == (oldest > 0)


def test_resizes_and_a_checkpoint() -> None:
    data = b"0123456789" * 6 + b"\r\n" + b"a\r\n" * 5
    emulator = Emulator(20, 3, 100)
    emulator.feed(data[:30])
    dumped = emulator.dump()
    emulator.feed(data[30:62])
    emulator.resize(15, 3)
    emulator.feed(data[62:])
    want = [frames.line(emulator, row) for row in emulator.history]
    got = page(reader(data), 30, len(data), checkpoint=dumped, resizes=[Resize(62, 15, 3)])
    assert list(got.lines) == want
    assert got.text.startswith("0123456789" * 6 + "\n")


def test_a_program_may_clear_it() -> None:
    data = NUMBERS + b"\x1b[3Jx\r\ny"
    got = page(reader(data), 0, len(data), size=(20, 4))
    assert got.text == "4997\n"
