"""The lazy screen: what it shows does not depend on when it is looked at; changes, torn frames, checkpoints."""

from __future__ import annotations

import json
import random

import pytest

from blockpty.screen import LazyScreen, Snapshot, lazy, snapshot
from tests.support.emulators import fed, random_output

STREAM = b"one\r\ntwo\r\nthree\r\n\x1b[1;1HONE"


class Stream:
    """A stream that grows, and counts how often it is read."""

    def __init__(self) -> None:
        self.data = b""
        self.reads = 0

    def read(self, begin: int, end: int) -> bytes:
        self.reads += 1
        assert begin < end <= len(self.data)
        return self.data[begin:end]

    def screen(self, cols: int = 20, rows: int = 5) -> LazyScreen:
        return LazyScreen(self.read, cols, rows)


def shown(taken: Snapshot) -> str:
    return snapshot.text(taken.frame)


def test_nothing_is_read_before_the_screen_is_looked_at() -> None:
    stream = Stream()
    screen = stream.screen()
    stream.data = STREAM
    screen.advance(len(STREAM))
    assert (stream.reads, screen.behind) == (0, len(STREAM))
    assert shown(screen.snapshot()) == "ONE\ntwo\nthree"
    assert (stream.reads, screen.behind) == (1, 0)
    screen.snapshot()
    assert stream.reads == 1


def test_catching_up_in_steps() -> None:
    stream = Stream()
    screen = stream.screen()
    stream.data = STREAM
    screen.advance(len(STREAM))
    left = []
    while screen.behind:
        screen.catch_up(10)
        left.append(screen.behind)
    assert left == [len(STREAM) - 10, len(STREAM) - 20, 0]
    assert shown(screen.snapshot()) == "ONE\ntwo\nthree"


@pytest.mark.parametrize("seed", range(20))
def test_looking_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "STEP", 64)
    rng = random.Random(seed)
    stream = Stream()
    stream.data = random_output(rng, 200)
    once, often = stream.screen(), stream.screen()
    at = 0
    while at < len(stream.data):
        at = min(at + rng.randrange(1, 200), len(stream.data))
        often.advance(at)
        once.advance(at)
        if rng.random() < 0.5:
            often.snapshot()
        if rng.random() < 0.1:
            size = rng.randrange(1, 30), rng.randrange(1, 9)
            often.resize(*size)
            once.resize(*size)
    assert once.snapshot().frame == often.snapshot().frame
    assert once.seqno == often.seqno


def test_changed_rows_since_a_seqno() -> None:
    stream = Stream()
    screen = stream.screen()

    def look(data: bytes, since: int | None = None) -> Snapshot:
        stream.data += data
        screen.advance(len(stream.data))
        return screen.snapshot(since)

    first = look(b"a\r\nb\r\nc")
    assert first.changed == (0, 1, 2, 3, 4)
    assert look(b"", first.seqno).changed == ()
    second = look(b"\x1b[2;1HB", first.seqno)
    assert second.changed == (1,)
    third = look(b"\x1b[4;1Hd", second.seqno)
    assert third.changed == (3,)
    assert look(b"", first.seqno).changed == (1, 3)
    # Drawn again as it was: a change of nothing.
    assert look(b"\x1b[2;1HB", third.seqno).changed == ()
    # Another colour is a change.
    assert look(b"\x1b[2;1H\x1b[31mB", third.seqno).changed == (1,)
    assert look(b"", 10**9).changed == (0, 1, 2, 3, 4)
    assert first.seqno < second.seqno < third.seqno


def test_a_row_of_the_same_text_in_another_colour_after_a_reset_is_a_change() -> None:
    stream = Stream()
    screen = stream.screen()
    stream.data = b"\x1b[31mx"
    screen.advance(len(stream.data))
    first = screen.snapshot()
    stream.data += b"\x1bc\x1b[32mx"
    screen.advance(len(stream.data))
    assert screen.snapshot(first.seqno).changed == (0,)


def test_no_torn_frames() -> None:
    stream = Stream()
    screen = stream.screen()

    def look(data: bytes) -> str:
        stream.data += data
        screen.advance(len(stream.data))
        return shown(screen.snapshot())

    assert look(b"frame 1") == "frame 1"
    assert look(b"\x1b[?2026h\x1b[2J\x1b[Hfr") == "frame 1"
    assert screen.snapshot().frame.modes.synchronized
    assert look(b"ame 2\x1b[?2026h") == "frame 1"
    assert look(b"\x1b[?2026l") == "frame 2"
    # Cut in the middle of the sequence, and one update right after the other.
    assert look(b"\x1b[?20") == "frame 2"
    assert look(b"26h\x1b[Hframe 3\x1b[?2026l\x1b[?2026h\x1b[Hfra") == "frame 3"
    before = screen.seqno
    screen.silence(screen.end)
    assert shown(screen.snapshot()) == "frame 3"
    assert screen.seqno > before
    assert look(b"\x1b[2J\x1b[Hon it goes") == "on it goes"


def test_a_held_frame_survives_a_resize_of_its_tables() -> None:
    stream = Stream()
    screen = stream.screen()
    stream.data = b"\x1b[31mred\x1b[m\x1b[?2026h" + b"".join(
        b"\x1b[38;2;%d;%d;7mx" % (n % 251, n // 251) for n in range(9000)
    )
    screen.advance(len(stream.data))
    assert screen.snapshot().frame.lines[0].runs[0].pen.fg == 1
    assert screen.snapshot().frame.lines[0].text == "red"


def test_a_checkpoint_reads_only_what_follows() -> None:
    stream = Stream()
    stream.data = STREAM
    screen = stream.screen()
    screen.advance(10)
    screen.resize(30, 6)
    dumped = json.loads(json.dumps(screen.dump()))
    assert stream.reads == 1
    again = LazyScreen.restore(stream.read, dumped)
    screen.advance(len(STREAM))
    again.advance(len(STREAM))
    assert again.snapshot().frame == screen.snapshot().frame
    assert again.seqno == screen.seqno
    # What was seen before the restart is not known any more, so every row may have changed.
    assert again.snapshot(5).changed == tuple(range(6))
    assert again.snapshot(again.seqno).changed == ()


def test_it_shows_what_the_emulator_shows() -> None:
    stream = Stream()
    stream.data = STREAM
    screen = stream.screen()
    screen.advance(len(STREAM))
    assert screen.snapshot().frame == fed(STREAM, 20, 5).frame()
