"""Reading the timeline: entries of any kind, and what the recorder's own writer leaves after it was killed."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import pytest

from blockpty.host.record import Timeline
from blockpty.model.entries import DAMAGED, Entry
from blockpty.spool.timeline import TimelineReader

ENTRIES = [
    Entry(0, 1000, "spawn", {"instance": 1, "nonce": "A" * 22, "argv": ["bash", "-i"]}),
    Entry(0, 1001, "tick", {}),
    Entry(400, 1030, "silence", {"ms": 25, "icanon": False, "echo": False, "foreground": "shell", "replaced": None}),
    Entry(400, 1031, "input", {"author": "agent", "data": "é\r", "submit": {"cmd": "ls é"}}),
    Entry(400, 1031, "kind_of_a_later_version", {"what": [1, {"x": None}]}),
    Entry(2**40, 2**45, "eof", {}),
]
CONTENT = b"".join(json.dumps(entry.to_dict()).encode() + b"\n" for entry in ENTRIES)


def read(path: Path, position: int = 0) -> list[Entry]:
    reader = TimelineReader(path, position)
    try:
        return [entry for entry, _ in reader.read_new()]
    finally:
        reader.close()


def test_entries_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(CONTENT)
    assert read(path) == ENTRIES
    places = [0, *itertools.accumulate(map(len, CONTENT.splitlines(keepends=True)))]
    for number, place in enumerate(places):
        assert read(path, place) == ENTRIES[number:]


def test_torn_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    for end in range(len(CONTENT) + 1):
        path.write_bytes(CONTENT[:end])
        assert read(path) == ENTRIES[: CONTENT[:end].count(b"\n")]


def test_followed_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    reader = TimelineReader(path)
    seen: list[Entry] = []
    for end in range(len(CONTENT) + 1):
        path.write_bytes(CONTENT[:end])
        seen += [entry for entry, _ in reader.read_new()]
        assert len(seen) == CONTENT[:end].count(b"\n")
    assert seen == ENTRIES
    reader.close()


@pytest.mark.parametrize(
    "bad",
    [
        b"{}\n", b'{"offset":1,"ts":2}\n', b'{"offset":1,"kind":"tick"}\n', b'{"ts":1,"kind":"tick"}\n', b"\0\0\0\n",
        b'{"offset":null,"ts":2,"kind":"tick"}\n', b'{"offset":"x","ts":2,"kind":"tick"}\n', b"garbage\n",
        b'{"offset":[],"ts":2,"kind":"tick"}\n', b'{"offset":1,"ts":{},"kind":"tick"}\n',
    ],
    ids=repr,
)  # fmt: skip
def test_a_line_that_is_no_entry_is_passed_over(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(bad.join(CONTENT.splitlines(keepends=True)))
    reader = TimelineReader(path)
    found = reader.read_new()
    assert [entry for entry, _ in found if entry.kind != DAMAGED] == ENTRIES
    assert len(reader.damaged) == len(ENTRIES) - 1
    ranges = [tuple(entry.fields["bytes"]) for entry, _ in found if entry.kind == DAMAGED]
    content = path.read_bytes()
    assert ranges == reader.damaged and all(content[begin:end] == bad for begin, end in ranges)
    reader.close()


def test_keys_are_written_in_the_order_of_the_format() -> None:
    line = ENTRIES[2].to_dict()
    assert list(line) == ["offset", "ts", "kind", "ms", "icanon", "echo", "foreground", "replaced"]
    assert Entry.from_dict(line) == ENTRIES[2]


def test_the_writer_repairs_what_was_torn_at_any_byte(tmp_path: Path) -> None:
    """Whatever the kill left behind the last line feed is taken back, and the reader sees whole lines only."""
    path = tmp_path / "timeline.jsonl"
    last = CONTENT.rfind(b"\n", 0, len(CONTENT) - 1) + 1
    for end in range(last, len(CONTENT) + 1):
        path.write_bytes(CONTENT[:end])
        follower = TimelineReader(path)
        before = [entry for entry, _ in follower.read_new()]
        writer = Timeline(str(tmp_path))
        writer.write(2**41, "note", {"note": {"type": "owner", "epoch": 1}})
        writer.close()
        whole = ENTRIES[: CONTENT[:end].count(b"\n")]
        entries = read(path)
        assert entries[:-1] == whole and entries[-1].kind == "note"
        assert entries[-1].ts >= whole[-1].ts
        assert before + [entry for entry, _ in follower.read_new()] == entries, "a follower sees the same"
        assert follower.damaged == []
        follower.close()


def test_a_clock_that_jumps_turns_no_time_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day, now = 86_400_000, 1_700_000_000_000
    clock = [now, now + day, now + 1, now - day, now + day + 1]
    monkeypatch.setattr(time, "time_ns", lambda: clock.pop(0) * 1_000_000)
    timeline = Timeline(str(tmp_path))
    for offset in range(5):
        timeline.write(offset, "silence", {"ms": 25})
    timeline.close()
    found = [(entry.offset, entry.ts) for entry in read(tmp_path / "timeline.jsonl")]
    assert found == [(0, now), (1, now + day), (2, now + day), (3, now + day), (4, now + day + 1)]
