"""Derived files are written at known places: what is right stays, what is not is written again, what is over is cut."""

from __future__ import annotations

import random
import stat
from pathlib import Path

import pytest

from blockpty.engine.machine import Machine
from blockpty.spool.journal import Journal
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.sink import FileSink, hold
from blockpty.spool.stream import StreamReader
from blockpty.testing import Recording
from tests.support import disk

RECORDING = disk.conversation()
CLEAN = disk.clean(RECORDING)
LINES = CLEAN.events.splitlines(keepends=True)


def derive(layout: Layout) -> FileSink:
    """Derive everything through a new sink, which is still open then."""
    sink, stream = FileSink(layout), StreamReader(layout.stream)
    journal = Journal(disk.NAME, stream, sink, Mask(disk.NONCES))
    for events, _, _ in disk.steps(RECORDING):
        journal.append(events)
    stream.close()
    sink.settle()
    return sink


def stored(tmp_path: Path, events: bytes) -> Layout:
    layout = disk.store(RECORDING, tmp_path / "c1")
    layout.events.write_bytes(events)
    return layout


def torn(layout: Layout) -> bytes:
    path = Path(f"{layout.events}.torn")
    if not path.exists():
        return b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_bytes()


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    layout = stored(tmp_path, CLEAN.events)
    before = layout.events.stat().st_mtime_ns
    sink = derive(layout)
    sink.close()
    assert layout.events.stat().st_mtime_ns == before
    assert disk.derived_files(layout) == CLEAN and not torn(layout)


@pytest.mark.parametrize("end", [0, 1, len(LINES[0]), len(LINES[0]) + 20, len(CLEAN.events) - 1])
def test_a_torn_line_is_made_whole(tmp_path: Path, end: int) -> None:
    layout = stored(tmp_path, CLEAN.events[:end])
    derive(layout).close()
    assert disk.derived_files(layout) == CLEAN and not torn(layout), "nothing was lost that had to be kept"


def test_damage_in_a_line_is_set_aside_and_repaired_in_place(tmp_path: Path) -> None:
    wrong = LINES[2].replace(b"cursor", b"c\x00rsor")
    assert wrong != LINES[2]
    layout = stored(tmp_path, CLEAN.events.replace(LINES[2], wrong))
    derive(layout).close()
    assert disk.derived_files(layout) == CLEAN
    assert wrong in torn(layout)


@pytest.mark.parametrize("more", [b"x", LINES[0], b"{half", LINES[0] * 50])
def test_what_stands_behind_the_end_is_set_aside_and_cut(tmp_path: Path, more: bytes) -> None:
    layout = stored(tmp_path, CLEAN.events + more)
    derive(layout).close()
    assert disk.derived_files(layout) == CLEAN
    assert torn(layout) == more + b"\n"


def test_lines_of_another_length_give_way(tmp_path: Path) -> None:
    layout = stored(tmp_path, LINES[0] + b'{"seq":1,"what":"was derived from bytes that are lost"}\n' + CLEAN.events)
    derive(layout).close()
    assert disk.derived_files(layout) == CLEAN
    assert b"bytes that are lost" in torn(layout)


def test_a_checkpoint_vouches_for_every_byte(tmp_path: Path) -> None:
    """Each flipped bit of a file that is vouched for is found, and each byte that is missing."""
    layout = disk.store(RECORDING, tmp_path / "c1")
    sink = derive(layout)
    marks = sink.marks()
    sink.close()
    assert hold(layout, marks, whole=True)
    chance = random.Random(6)
    for path in (layout.events, layout.blocks, *layout.outputs.iterdir()):
        whole = path.read_bytes()
        for _ in range(20):
            place = chance.randrange(len(whole))
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
            assert not hold(layout, marks, whole=True), path
            assert hold(layout, marks, whole=False)
            path.write_bytes(whole[:place])
            assert not hold(layout, marks, whole=False), path
        path.unlink()
        assert not hold(layout, marks, whole=False), path
        path.write_bytes(whole + b"more")
        # Only what may still grow may be longer.
        ended = path.parent == layout.outputs and path != layout.directory / marks["open"][0]
        assert hold(layout, marks, whole=True) != ended
        path.write_bytes(whole)


def test_no_record_and_no_bytes(tmp_path: Path) -> None:
    layout = disk.store(Recording(), tmp_path / "c1")
    sink = FileSink(layout)
    sink.settle()
    assert hold(layout, sink.marks(), whole=True)
    sink.close()
    assert Machine().state.next_event == 0
