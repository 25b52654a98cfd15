"""Names of segments: sorted by name they are sorted by offset, and nothing else in the directory is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.files.segments import NAME_DIGITS, is_segment_name, segment_name, segment_offsets


def test_names_sort_as_offsets_do() -> None:
    assert segment_name(0) == "0" * NAME_DIGITS
    assert segment_name(1 << 28) == "00000000000268435456"
    assert sorted(map(segment_name, (10, 9, 2**60))) == list(map(segment_name, (9, 10, 2**60)))


def test_only_segments_are_listed(tmp_path: Path) -> None:
    names = [segment_name(offset) for offset in (400, 0, 70)]
    others = ["archived.json", "1", "0" * (NAME_DIGITS + 1), segment_name(7) + ".torn", "\u00b2" * NAME_DIGITS]
    for name in (*names, *others):
        (tmp_path / name).touch()
    assert segment_offsets(tmp_path) == [0, 70, 400]
    assert [name for name in (*names, *others) if is_segment_name(name)] == names
    with pytest.raises(FileNotFoundError):
        segment_offsets(tmp_path / "nothing")
