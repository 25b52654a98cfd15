"""The stream is what the terminal printed, byte by byte, and the timeline says when."""

from __future__ import annotations

from pathlib import Path

from blockpty.host.record import TICK_SECONDS, Stream, Timeline
from tests.support.async_tests import async_test
from tests.support.host_driver import running_host

COLOURS = r"printf 'a\033[31mred\033[0m\r\n\tT\b\377\200 \303\251\n\0end\n'; seq 1 500"


@async_test
async def test_a_conversation_goes_on_where_it_ended(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        for number in (1, 2, 3):
            opened = await one.sh(f"echo {number}", entry={"instance": number})
            assert opened.offset == 3 * (number - 1)
            await one.has_ended(number)
        assert one.stream() == b"1\r\n2\r\n3\r\n"
        assert [entry["instance"] for entry in one.entries("spawn")] == [1, 2, 3]
        one.check_timeline()


def test_a_torn_line_is_taken_back(tmp_path: Path) -> None:
    line = b'{"offset":0,"ts":5,"kind":"tick"}\n'
    torn = line + b'{"offset":7,"ts":9,"kind":"note","note":"' + b"x" * 70000
    path = tmp_path / "timeline.jsonl"
    for length in [*range(len(line), len(line) + 50), len(torn)]:
        path.write_bytes(torn[:length])
        timeline = Timeline(str(tmp_path))
        assert path.read_bytes() == line
        timeline.write(3, "eof")
        timeline.close()
        assert path.read_bytes().startswith(line + b'{"offset":3,"ts":')
    for length in range(len(line)):
        path.write_bytes(line[:length])
        Timeline(str(tmp_path)).close()
        assert path.read_bytes() == b""


def test_time_in_the_record_never_goes_back(tmp_path: Path) -> None:
    future = 1 << 50
    (tmp_path / "timeline.jsonl").write_bytes(b'{"offset":0,"ts":%d,"kind":"tick"}\n' % future)
    timeline = Timeline(str(tmp_path))
    timeline.write(1, "eof")
    assert [entry["ts"] for entry in timeline.tail()] == [future, future]
    timeline.close()


def test_a_tick_is_written_where_the_last_entry_is_not_fresh(tmp_path: Path) -> None:
    now = 5.0
    timeline = Timeline(str(tmp_path), clock=lambda: now)
    timeline.tick(0)
    now += TICK_SECONDS / 2
    timeline.tick(1)
    now += TICK_SECONDS
    timeline.tick(2)
    timeline.write(3, "eof")
    timeline.tick(3)
    assert [(entry["offset"], entry["kind"]) for entry in timeline.tail()] == [(0, "tick"), (2, "tick"), (3, "eof")]
    timeline.close()


def test_segments_are_named_by_their_first_offset(tmp_path: Path) -> None:
    stream = Stream(str(tmp_path), 10)
    data = bytes(range(95))
    while data:
        data = data[stream.write(data) :]
    stream.close()
    again = Stream(str(tmp_path), 10)
    assert again.offset == 95
    again.close()
    names = sorted(path.name for path in (tmp_path / "stream").iterdir())
    assert names == [f"{offset:020d}" for offset in range(0, 95, 10)]
    assert b"".join((tmp_path / "stream" / name).read_bytes() for name in names) == bytes(range(95))
