"""Reader of a record: stream and timeline in one order, as far as both are there, and from a place that was saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blockpty.runtime.record_reader import STEP, Position, RecordReader, resume_points
from blockpty.spool.layout import Layout
from blockpty.spool.stream import StreamReader
from blockpty.testing import FakePty


@contextmanager
def reading(directory: Path) -> Iterator[tuple[RecordReader, FakePty]]:
    terminal = FakePty()
    terminal.spawn()
    terminal.output(b"a" * STEP + b"b")
    terminal.silence()
    terminal.output(b"cd")
    terminal.silence()
    terminal.output(b"e")
    terminal.recording.save(directory)
    layout = Layout(directory)
    stream = StreamReader(layout.stream)
    reader = RecordReader(layout, stream)
    try:
        yield reader, terminal
    finally:
        reader.close()
        stream.close()


def steps(reader: RecordReader, until: Position | None = None) -> list[str | int]:
    """Return the kinds of the entries and the lengths of the pieces, in the order in which they are read."""
    found: list[str | int] = []
    while (step := reader.step(until)) is not None:
        found += [len(step.data)] if step.data else []
        found += [] if step.entry is None else [step.entry.kind]
    return found


def test_an_entry_comes_when_all_bytes_before_it_have(tmp_path: Path) -> None:
    with reading(tmp_path) as (reader, terminal):
        assert steps(reader) == []
        reader.look()
        assert steps(reader) == ["spawn", STEP, 1, "silence", 2, "silence", 1]
        assert reader.position.offset == len(terminal.recording.stream)
        assert reader.position.timeline == (tmp_path / "timeline.jsonl").stat().st_size


def test_it_stops_at_the_given_position_and_goes_on_from_there(tmp_path: Path) -> None:
    with reading(tmp_path) as (reader, _):
        reader.look()
        assert steps(reader, Position(STEP + 2, 1 << 30)) == ["spawn", STEP, 1, "silence", 1]
        assert reader.position.offset == STEP + 2
        assert steps(reader) == [1, "silence", 1]


def test_an_entry_whose_bytes_are_not_there_yet_waits(tmp_path: Path) -> None:
    with reading(tmp_path) as (reader, terminal):
        (segment,) = (tmp_path / "stream").iterdir()
        whole = terminal.recording.stream
        segment.write_bytes(whole[: STEP + 2])
        reader.look()
        assert steps(reader) == ["spawn", STEP, 1, "silence", 1]
        segment.write_bytes(whole)
        assert steps(reader) == []
        reader.look()
        assert steps(reader) == [1, "silence", 1]


def test_what_was_saved_of_other_files_is_not_gone_on_from(tmp_path: Path) -> None:
    with reading(tmp_path) as (reader, _):
        reader.look()
        steps(reader)
        state = reader.machine.state.to_dict()
        saved = {
            "points": [{"state": state, "timeline": reader.position.timeline}],
            "journal": {"nonces": [], "output": None}, "files": {},
        }  # fmt: skip
        layout, stream = Layout(tmp_path), StreamReader(tmp_path / "stream")
        for damaged in (None, {}, {**saved, "points": [{"state": {}, "timeline": 0}]}, {**saved, "files": 1}, saved):
            assert resume_points(damaged, layout, stream) == []
        stream.close()
