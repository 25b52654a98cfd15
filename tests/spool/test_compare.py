"""Comparing a second derivation with the files: every difference is found and named, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blockpty.spool.compare import MAX_DIFFERENCES, CompareSink
from blockpty.spool.journal import Journal
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader
from tests.support import disk

RECORDING = disk.conversation()
CLEAN = disk.clean(RECORDING)
EVENTS = [event for events, _, _ in disk.steps(RECORDING) for event in events]
OUTPUTS = sorted(CLEAN.outputs)


def on_disk(directory: Path) -> Layout:
    layout = disk.store(RECORDING, directory)
    layout.events.write_bytes(CLEAN.events)
    layout.blocks.write_bytes(CLEAN.blocks)
    for name, data in CLEAN.outputs.items():
        (directory / name).write_bytes(data)
    return layout


def compared(layout: Layout, *, written: tuple[int, int] | None = None) -> CompareSink:
    before = {path: path.stat().st_mtime_ns for path in layout.directory.rglob("*")}
    stream, sink = StreamReader(layout.stream), CompareSink(layout, written=written)
    open_files = len(os.listdir("/dev/fd"))
    Journal(disk.NAME, stream, sink, Mask(disk.NONCES)).append(EVENTS)
    sink.finish()
    stream.close()
    assert len(os.listdir("/dev/fd")) == open_files
    assert {path: path.stat().st_mtime_ns for path in layout.directory.rglob("*")} == before
    return sink


def test_the_same_files_do_not_differ(tmp_path: Path) -> None:
    sink = compared(on_disk(tmp_path / "c1"))
    assert sink.differences == []
    assert (sink.events, sink.blocks) == (len(EVENTS), 3)


@pytest.mark.parametrize("name", ["events.jsonl", "blocks.jsonl", *OUTPUTS])
def test_a_changed_byte_is_found(tmp_path: Path, name: str) -> None:
    """Every byte of the small files, every eleventh of the others."""
    layout = on_disk(tmp_path / "c1")
    path = layout.directory / name
    content = path.read_bytes()
    for place in range(0, len(content), 1 if len(content) < 200 else 11):
        path.write_bytes(content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :])
        (difference,) = compared(layout).differences
        assert difference["invariant"] == "I4" and name in difference["where"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda path: path.unlink(), "events.jsonl"),
        (lambda path: path.unlink(), "blocks.jsonl"),
        (lambda path: path.unlink(), OUTPUTS[0]),
        (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "events.jsonl"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "blocks.jsonl"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), OUTPUTS[1]),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "events.jsonl"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), OUTPUTS[2]),
        (lambda path: path.write_bytes(b""), "blocks.jsonl"),
    ],
)
def test_other_damage_is_found(tmp_path: Path, change: Callable[[Path], object], name: str) -> None:
    layout = on_disk(tmp_path / "c1")
    change(layout.directory / name)
    assert any(name in found["where"] or found["where"] in name for found in compared(layout).differences)


def test_what_was_never_written_may_be_missing(tmp_path: Path) -> None:
    layout = on_disk(tmp_path / "c1")
    lines = CLEAN.events.splitlines(keepends=True)
    layout.events.write_bytes(b"".join(lines[:5]))
    layout.blocks.write_bytes(b"")
    sink = compared(layout, written=(0, 0))
    assert sink.differences == []
    assert [one["where"] for one in sink.behind] == ["events.jsonl", "blocks.jsonl"]
    # What was there once must be.
    (difference,) = compared(layout, written=(layout.events.stat().st_size + 1, 0)).differences
    assert difference["where"] == "events.jsonl"
    layout.events.write_bytes(b"".join(lines[:5])[:-2] + b"x\n")
    assert len(compared(layout, written=(0, 0)).differences) == 1


def test_an_output_that_follows_from_nothing_is_found(tmp_path: Path) -> None:
    layout = on_disk(tmp_path / "c1")
    (layout.outputs / "2_1700000000001.out").write_bytes(b"never printed\n")
    (difference,) = compared(layout).differences
    assert difference["where"] == "blocks/2_1700000000001.out"


def test_at_most_a_hundred_differences(tmp_path: Path) -> None:
    sink = CompareSink(Layout(tmp_path))
    for number in range(3 * MAX_DIFFERENCES):
        sink.differ("I4", str(number), "differs")
    assert [found["where"] for found in sink.differences] == [str(number) for number in range(MAX_DIFFERENCES)]
