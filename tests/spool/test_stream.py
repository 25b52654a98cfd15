"""Reading a stream: several segments as one, while the recorder appends to it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from blockpty.errors import SpoolCorrupt
from blockpty.files.segments import NAME_DIGITS, segment_name
from blockpty.host.record import Stream
from blockpty.spool.checkpoint import replace
from blockpty.spool.log_start import LogStart
from blockpty.spool.stream import SEGMENT_BYTES, StreamReader

DATA = bytes(range(256)) * 3


def write(directory: Path, *segments: tuple[int, bytes]) -> Path:
    directory.mkdir(exist_ok=True)
    for base, data in segments:
        (directory / segment_name(base)).write_bytes(data)
    return directory


def cut(data: bytes, *places: int) -> list[tuple[int, bytes]]:
    return [(begin, data[begin:end]) for begin, end in itertools.pairwise((0, *places, len(data)))]


def test_a_segment_is_named_by_its_first_offset() -> None:
    assert segment_name(0) == "0" * NAME_DIGITS
    assert segment_name(SEGMENT_BYTES) == "00000000000268435456"
    assert sorted(map(segment_name, (10, 9, 2**60))) == list(map(segment_name, (9, 10, 2**60)))


def test_what_is_expected_is_read_as_ever(tmp_path: Path) -> None:
    reader = StreamReader(write(tmp_path, (256, DATA[256:512]), (512, DATA[512:])))
    reader.expect([(0, 10), (250, 260), (500, 600), (700, 10**9), (10**9, 10**9 + 1)])
    assert reader.read(256, 10**9) == DATA[256:]
    reader.close()
    reader.expect([(300, 310)])
    assert reader.read(300, 10) == DATA[300:310]
    StreamReader(tmp_path / "none").expect([(0, 1)])


@pytest.mark.parametrize("places", [(), (1,), (767,), (256, 512), (1, 2, 3), tuple(range(7, 768, 7))])
def test_every_window_is_a_slice(tmp_path: Path, places: tuple[int, ...]) -> None:
    reader = StreamReader(write(tmp_path, *cut(DATA, *places)))
    assert (reader.begin, reader.size()) == (0, len(DATA))
    assert reader.read(0, 10**9) == DATA
    chosen = random.Random(1)
    for _ in range(500):
        offset, length = chosen.randrange(0, 900), chosen.randrange(0, 900)
        assert reader.read(offset, length) == DATA[offset : offset + length]
    reader.close()


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    reader = StreamReader(tmp_path / "stream")
    assert (reader.begin, reader.size(), reader.read(0, 10)) == (0, 0, b"")
    write(tmp_path / "stream")
    assert (reader.size(), reader.read(0, 10)) == (0, b"")
    write(tmp_path / "stream", (0, b""))
    assert (reader.size(), reader.read(0, 10)) == (0, b"")
    write(tmp_path / "stream", (0, b"now"))
    assert (reader.size(), reader.read(0, 10)) == (3, b"now")
    reader.close()


@pytest.mark.parametrize("limit", [1, 2, 3, 64, 1000])
def test_a_growing_stream_is_seen_byte_by_byte(tmp_path: Path, limit: int) -> None:
    """Against the writer that the recorder uses: each byte is there at once, also the first of a new segment."""
    data = DATA[:200]
    writer = Stream(str(tmp_path), limit)
    reader = StreamReader(tmp_path / "stream", segment_bytes=limit)
    for end in range(1, len(data) + 1):
        assert writer.write(data[end - 1 : end]) == 1
        assert reader.size() == end == writer.offset
        assert reader.read(end - 1, 10) == data[end - 1 : end]
        assert reader.read(0, 10**6) == data[:end]
    segments = sorted(path.name for path in (tmp_path / "stream").iterdir())
    assert segments == [segment_name(base) for base in range(0, len(data), limit)]
    writer.close()
    reader.close()
    fresh = StreamReader(tmp_path / "stream")
    assert fresh.read(0, 10**6) == data
    fresh.close()


def test_a_segment_that_appears_during_a_read_is_read_on(tmp_path: Path) -> None:
    reader = StreamReader(write(tmp_path, (0, DATA[:256])), segment_bytes=256)
    assert reader.read(0, 1000) == DATA[:256]
    write(tmp_path, (256, DATA[256:300]))
    assert reader.read(0, 1000) == DATA[:300]
    write(tmp_path, (256, DATA[256:512]), (512, b""))
    assert reader.size() == 512
    write(tmp_path, (512, DATA[512:]))
    assert reader.read(500, 1000) == DATA[500:]
    reader.close()


def test_old_segments_may_be_gone(tmp_path: Path) -> None:
    reader = StreamReader(write(tmp_path, (256, DATA[256:512]), (512, DATA[512:])))
    assert (reader.begin, reader.size()) == (256, len(DATA))
    assert reader.read(0, 1000) == b""
    assert reader.read(255, 1) == b""
    assert reader.read(256, 1000) == DATA[256:]
    reader.close()


def test_a_missing_segment_is_never_skipped_over(tmp_path: Path) -> None:
    """What lies behind a hole keeps its offsets; a read ends before the hole."""
    reader = StreamReader(write(tmp_path, (0, DATA[:256]), (512, DATA[512:])))
    assert reader.read(0, 1000) == DATA[:256]
    assert reader.read(300, 10) == b""
    assert reader.read(512, 1000) == DATA[512:]
    reader.close()


def test_other_files_are_no_segments(tmp_path: Path) -> None:
    write(tmp_path, (0, b"good"))
    for name in ("4", "00000000000000000004.bak", ".00000000000000000004", "x" * NAME_DIGITS, "0000000000000000000004"):
        (tmp_path / name).write_bytes(b"bad")
    reader = StreamReader(tmp_path)
    assert (reader.size(), reader.read(0, 100)) == (4, b"good")
    reader.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (write(tmp_path / "stream") / segment_name(0)).symlink_to(tmp_path / "secret")
    reader = StreamReader(tmp_path / "stream")
    with pytest.raises(SpoolCorrupt):
        reader.read(0, 10)
    reader.close()


def test_a_closed_reader_can_be_used_again(tmp_path: Path) -> None:
    reader = StreamReader(write(tmp_path, *cut(DATA, 100)))
    for _ in range(3):
        assert reader.read(90, 20) == DATA[90:110]
        reader.close()
        reader.close()


def beginning_at(directory: Path, needed: int) -> None:
    """Let the record whose stream this is begin there."""
    state = {"next_block": 1, "block": None, "background": None}
    made = LogStart(needed, 0, needed, needed, state, {"output": None, "nonces": []}, {})
    replace(directory.parent / "begin.json", made.to_dict())


@pytest.mark.parametrize("known", [1, 2, 3])
def test_a_reader_releases_what_is_dropped_and_goes_on_behind_it(tmp_path: Path, known: int) -> None:
    pieces = cut(DATA, 100, 300, 600)
    directory = write(tmp_path / "stream", *pieces[:known])
    reader = StreamReader(directory, segment_bytes=10**6)
    assert reader.read(0, 10**9) == DATA[: sum(len(data) for _, data in pieces[:known])]
    write(directory, *pieces)
    beginning_at(directory, 600)
    for base in (0, 100, 300):
        (directory / segment_name(base)).unlink()
    assert (reader.begin, reader.size()) == (600, len(DATA))
    assert reader.read(600, 10**9) == DATA[600:]
    assert reader.read(0, 10) == b""


def test_a_removed_segment_can_be_read_as_long_as_it_is_open(tmp_path: Path) -> None:
    directory = write(tmp_path / "stream", *cut(DATA, 100, 300))
    reader = StreamReader(directory)
    assert reader.size() == len(DATA)
    for path in directory.iterdir():
        path.unlink()
    assert (reader.begin, reader.read(0, 10**9)) == (0, DATA)
