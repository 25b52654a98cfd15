"""Recordings: written and read again, gone through in one order however they are cut, and scripted without a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.model.entries import Entry
from blockpty.testing import FakePty, ManualClock, Recording


def scripted() -> FakePty:
    terminal = FakePty()
    terminal.spawn()
    terminal.output(b"abc")
    terminal.clock.advance(5)
    terminal.silence()
    terminal.output(b"def")
    return terminal


def test_a_recording_comes_back(tmp_path: Path) -> None:
    recording = scripted().recording
    recording.save(tmp_path)
    back = Recording.load(tmp_path)
    assert back.stream == b"abcdef"
    assert [(entry.offset, entry.ts, entry.kind) for entry in back.entries] == [
        (entry.offset, entry.ts, entry.kind) for entry in recording.entries
    ]


@pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 4, 99), range(7)])
def test_steps_have_all_bytes_and_each_entry_in_its_place(cuts: tuple[int, ...]) -> None:
    recording = scripted().recording
    seen = 0
    pieces = []
    for step in recording.steps(cuts):
        if isinstance(step, Entry):
            assert step.offset == seen
            pieces.append(step.kind)
        else:
            seen += len(step)
    assert seen == len(recording.stream) and pieces == [entry.kind for entry in recording.entries]
    borders = {0, *(cut for cut in cuts if cut < 6), 3}
    assert sum(isinstance(step, bytes) for step in recording.steps(cuts)) == len(borders)


def test_time_passes_only_by_hand() -> None:
    clock = ManualClock(1000)
    assert (clock.advance(5), clock.now_ms) == (1005, 1005)
    first, second = scripted().recording.entries[0], scripted().recording.entries[-1]
    # Five by hand, and the silence itself.
    assert second.ts - first.ts == 5 + 25
