"""The stream is what the terminal printed, byte by byte, and the timeline says when."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from blockpty.host.record import Stream, Timeline
from tests.support.async_tests import async_test
from tests.support.host_driver import ENV, SH, running_host

COLOURS = r"printf 'a\033[31mred\033[0m\r\n\tT\b\377\200 \303\251\n\0end\n'; seq 1 500"


def read_raw(script: str) -> bytes:
    """What a terminal prints for a script, read in the plainest way."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [SH, "-c", script], stdin=slave, stdout=slave, stderr=slave, env=ENV, cwd="/", start_new_session=True
    )
    os.close(slave)
    got = b""
    while True:
        try:
            got += os.read(master, 65536)
        except OSError:
            break
    process.wait()
    os.close(master)
    return got


@pytest.mark.parametrize("no_splice", [False, True])
def test_the_stream_is_what_a_terminal_prints(home: Path, no_splice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if no_splice:
        monkeypatch.setenv("BLOCKPTY_NO_SPLICE", "1")

    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            transport = (await host.client.hello()).transport
            assert transport == "read" if no_splice else transport in ("splice", "read")
            one = await host.spoken()
            await one.sh(COLOURS)
            assert await one.ended() == (0, None)
            assert one.stream() == read_raw(COLOURS)
            assert one.entries("spawn")[0]["transport"] == transport
            one.check_timeline()

    check()


@pytest.mark.parametrize("no_splice", [False, True])
def test_a_flood_is_complete_and_cut_into_segments(
    home: Path, no_splice: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if no_splice:
        monkeypatch.setenv("BLOCKPTY_NO_SPLICE", "1")

    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = await host.spoken()
            await one.sh("seq 1 200000", segment_bytes=100_000)
            assert await one.ended() == (0, None)
            assert one.stream() == b"".join(b"%d\r\n" % number for number in range(1, 200_001))
            assert {path.stat().st_size for path in (one.directory / "stream").iterdir()} >= {100_000}
            one.check_timeline()

    check()


@async_test
async def test_two_floods_and_a_quiet_one_at_the_same_time(home: Path) -> None:
    async with running_host(home) as host:
        floods = [await host.spoken(f"flood{number}") for number in range(2)]
        quiet = await host.spoken("quiet")
        for one in floods:
            await one.sh("seq 1 100000")
        await quiet.open("/bin/cat")
        await quiet.type(b"hello\r")
        await quiet.printed(b"hello\r\nhello\r\n")
        for one in floods:
            assert await one.ended() == (0, None)
            assert one.stream() == b"".join(b"%d\r\n" % number for number in range(1, 100_001))


@async_test
async def test_a_tick_comes_before_bytes_that_come_late(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo one; read x; echo two")
        await one.printed(b"one\r\n")
        await one.entry("silence")
        before = len(one.stream())
        await one.type(b"go\r")
        assert await one.ended() == (0, None)
        typed = one.entries("input")[0]
        assert typed["offset"] == before
        assert typed["data"] == "go\r"
        assert typed["icanon"] and typed["echo"]
        assert one.stream() == b"one\r\ngo\r\ntwo\r\n"


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
