"""Files of exports: bounded memory, nothing left by those that are abandoned, and removed after a week."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from blockpty.model.entries import Entry
from blockpty.runtime.export.writer import SUFFIXES, ExportStopped, export
from tests.support.exports import MIB, exported, pty, saved, small_session
from tests.support.profile import LONG


@pytest.mark.parametrize("style", ["cast", "typescript", "jsonl", "markdown", "text"])
def test_memory_does_not_grow_with_the_record(tmp_path: Path, style: str) -> None:
    made = pty()
    made.submit("big")
    made.begin()
    whole = (30 if LONG else 12) * MIB
    line = b"2026-11-21 INFO some words of a log with \xc3\xa9 in it\r\n"
    stream = bytearray(made.recording.stream)
    while len(stream) < whole:
        stream += line * 200
        made.clock.advance(5)
        made.recording.entries.append(Entry(len(stream), made.clock.now_ms, "tick"))
    made.recording.stream = bytes(stream)
    made.end()
    made.prompt()
    source = saved(made, tmp_path)
    del made, stream
    stopped = threading.Event()
    tracemalloc.start()
    try:
        result = export(source, style, 1, stopped)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.export_bytes > whole * 0.9
    assert peak < 8 * MIB


def test_an_abandoned_export_leaves_no_file(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    stopped = threading.Event()
    stopped.set()
    for style in SUFFIXES:
        with pytest.raises(ExportStopped):
            export(source, style, 1, stopped)
    assert list(source.layout.exports.iterdir()) == []


def test_unclaimed_exports_are_removed_after_a_week(tmp_path: Path) -> None:
    source = saved(small_session(), tmp_path)
    directory = source.layout.exports
    directory.mkdir(parents=True)
    week = 8 * 86400
    aged = {"c-old.cast": week, "c-new.cast": 3600, "c-capture-old.cast": week, ".c.part": week, ".c-new.part": 60}
    for name, age in aged.items():
        (directory / name).write_text("x")
        os.utime(directory / name, (time.time() - age,) * 2)
    (directory / "c-old-link").symlink_to(tmp_path)
    exported(source, "cast")
    left = sorted(path.name for path in directory.iterdir())
    assert left == [".c-new.part", "c-capture-old.cast", "c-new.cast", "c-old-link"]
