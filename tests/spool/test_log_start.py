"""Log start: it is read as it was written, or not at all, and only what lies before it is removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from blockpty.errors import SpoolCorrupt
from blockpty.files.segments import segment_name, segment_offsets
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, make_private
from blockpty.spool.log_start import BEGINNING, CUT_VERSION, LogStart, load_log_start, set_log_start, sweep

START = LogStart(
    offset=250, timeline=40, needed=200, readable=260,
    state={"next_block": 7, "block": {"seq": 5}, "background": None},
    journal={"output": ["blocks/5_0.out", 30, ""]},
    files={"events": [50, 12], "blocks": [20, 4]},
)  # fmt: skip


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "c1")
    for directory in (layout.directory, layout.stream, layout.outputs, layout.commands, layout.points):
        make_private(directory)
    checkpoint.replace(layout.meta, {"format": 2, "conversation_id": "c1", "created_ts": 1})
    for offset in (0, 100, 200, 300):
        (layout.stream / segment_name(offset)).write_bytes(b"x" * 100)
    for path in (layout.timeline, layout.events, layout.blocks):
        path.write_bytes(b"y" * 100)
    for seq in (3, 4, 5, 6):
        (layout.directory / f"blocks/{seq}_0.out").write_bytes(b"z" * 100)
    (layout.commands / "4_a").touch()
    (layout.points / "250-40.json").touch()
    (layout.points / "250-41.json").touch()
    return layout


def test_it_is_read_as_it_was_written(layout: Layout) -> None:
    assert load_log_start(layout.directory) is None
    set_log_start(layout, START)
    assert load_log_start(layout.directory) == START
    assert checkpoint.load_meta(layout.meta)["format"] == CUT_VERSION
    assert START.first_block() == 5
    assert replace(START, state={"next_block": 7, "block": None, "background": None}).first_block() == 7


def test_a_damaged_one_is_an_error_and_not_the_beginning(layout: Layout) -> None:
    set_log_start(layout, START)
    path = layout.directory / BEGINNING
    path.write_bytes(path.read_bytes().replace(b"250", b"251"))
    with pytest.raises(SpoolCorrupt, match=BEGINNING):
        load_log_start(layout.directory)


def test_what_lies_before_is_removed_and_nothing_else(layout: Layout) -> None:
    set_log_start(layout, START)
    for _ in range(2):
        sweep(layout, START)
        assert segment_offsets(layout.stream) == [200, 300]
        assert sorted(os.listdir(layout.outputs)) == ["5_0.out", "6_0.out"]
        assert os.listdir(layout.commands) == []
        assert os.listdir(layout.points) == ["250-41.json"]
        # Positions stay what they were: the bytes behind the start, and the line feed before it, are there.
        assert layout.timeline.read_bytes()[39:] == b"y" * 61
        assert layout.events.read_bytes()[50:] == b"y" * 50
        assert layout.blocks.read_bytes()[20:] == b"y" * 80
        assert (layout.outputs / "5_0.out").read_bytes()[30:] == b"z" * 70
