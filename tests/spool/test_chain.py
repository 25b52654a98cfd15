"""The links of a timeline, from the recorder's own writer: over segments, after kills, behind damage."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from blockpty.files.lines import sealed
from blockpty.host.record import Stream, Timeline
from blockpty.spool.chain import Chain
from blockpty.spool.stream import StreamReader

SEGMENT = 100


def record(directory: Path, pieces: int = 40, *, begin: int = 0) -> None:
    """Write some output, an entry behind each piece of it, over several segments."""
    stream = Stream(str(directory), SEGMENT)
    timeline = Timeline(str(directory), stream.pieces)
    for number in range(begin, begin + pieces):
        data = b"output %d\r\n" % number
        while data:
            data = data[stream.write(data) :]
        timeline.write(stream.offset, "silence", {"ms": number})
    stream.close()
    timeline.close()


def walked(directory: Path) -> tuple[Chain, list[str]]:
    found: list[str] = []
    stream = StreamReader(directory / "stream", segment_bytes=SEGMENT)
    path = directory / "timeline.jsonl"
    chain = Chain(path, stream, lambda _, where, message: found.append(f"{where}: {message}"))
    chain.walk(path.stat().st_size)
    stream.close()
    return chain, found


def segments(directory: Path) -> list[Path]:
    return sorted((directory / "stream").iterdir())


def test_sealed_segments_are_vouched_for(tmp_path: Path) -> None:
    record(tmp_path)
    assert len(segments(tmp_path)) > 4
    chain, found = walked(tmp_path)
    assert found == [] and chain.begin == 0
    assert chain.last == sum(path.stat().st_size for path in segments(tmp_path))
    for path in segments(tmp_path):
        whole = path.read_bytes()
        path.write_bytes(bytes((whole[0] ^ 1,)) + whole[1:])
        (one,) = walked(tmp_path)[1]
        begin, _, end = one.removeprefix("stream bytes ").partition(": ")[0].partition(" to ")
        assert int(begin) <= int(path.name) < int(end)
        path.write_bytes(whole)


@pytest.mark.parametrize("kept", [None, -1, -30, -200])
def test_a_writer_goes_on_behind_what_a_killed_one_left(tmp_path: Path, kept: int | None) -> None:
    """Half a line is taken back; bytes of the stream that no entry covers yet are vouched for by the next."""
    record(tmp_path)
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(path.read_bytes()[:kept])
    record(tmp_path, begin=40)
    chain, found = walked(tmp_path)
    assert found == [] and chain.torn is None
    assert chain.last == sum(one.stat().st_size for one in segments(tmp_path))


def test_a_writer_goes_on_behind_a_damaged_line(tmp_path: Path) -> None:
    record(tmp_path)
    path = tmp_path / "timeline.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30] + b"?" + whole[-29:])
    record(tmp_path, begin=40)
    assert walked(tmp_path)[1] == [], "the reader of the entries tells of the damage, once"
    assert path.read_bytes().startswith(whole[:-30])


def test_a_record_of_an_older_version_is_vouched_for_from_where_it_goes_on(tmp_path: Path) -> None:
    record(tmp_path)
    path = tmp_path / "timeline.jsonl"
    plain = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for entry in plain:
        for name in ("sum", "prev", "crc"):
            entry.pop(name, None)
    path.write_bytes(b"".join(sealed(orjson.dumps(entry)) for entry in plain))
    assert walked(tmp_path)[0].begin is None
    end = walked(tmp_path)[0].last
    record(tmp_path, begin=40)
    chain, found = walked(tmp_path)
    assert found == [] and chain.begin == end and chain.last is not None and chain.last > chain.begin


def test_a_timeline_that_was_lost_vouches_for_the_stream_as_it_is(tmp_path: Path) -> None:
    record(tmp_path)
    (tmp_path / "timeline.jsonl").unlink()
    record(tmp_path, begin=40)
    chain, found = walked(tmp_path)
    assert found == [] and chain.begin == 0
