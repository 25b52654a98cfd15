"""A live terminal: its bytes are all in the stream, in order, and its ticks where they belong."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

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


@async_test
async def test_the_stream_is_what_a_terminal_prints(home: Path, no_splice: bool) -> None:
    async with running_host(home) as host:
        transport = (await host.client.hello()).transport
        assert transport == "read" if no_splice else transport in ("splice", "read")
        one = await host.spoken()
        await one.sh(COLOURS)
        assert await one.ended() == (0, None)
        assert one.stream() == read_raw(COLOURS)
        assert one.entries("spawn")[0]["transport"] == transport
        one.check_timeline()


@async_test
async def test_a_flood_is_complete_and_cut_into_segments(home: Path, no_splice: bool) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("seq 1 200000", segment_bytes=100_000)
        assert await one.ended() == (0, None)
        assert one.stream() == b"".join(b"%d\r\n" % number for number in range(1, 200_001))
        assert {path.stat().st_size for path in (one.directory / "stream").iterdir()} >= {100_000}
        one.check_timeline()


# What a program says on its terminal behind its output, and a last word just before it ends.
PIPED = "test -t 0 && test -t 2 && test ! -t 1 && echo pipe; seq 1 200000; echo said >&2; printf last"


@async_test
async def test_a_program_that_writes_into_a_pipe_loses_nothing(home: Path, no_splice: bool) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        piped = not no_splice and (await host.client.hello()).transport == "splice"
        await one.sh(PIPED, is_piped=True)
        assert await one.ended() == (0, None)
        end = b"\n" if piped else b"\r\n"
        numbers = b"".join(b"%d%b" % (number, end) for number in range(1, 200_001))
        printed = one.stream()
        assert printed.startswith(b"pipe\n" + numbers if piped else numbers)
        # The two are not one stream: either may come first.
        assert sorted(printed.partition(numbers)[2].replace(b"last", b"")) == sorted(b"said\r\n")
        assert printed.count(b"last") == 1
        one.check_timeline()


@pytest.mark.linux
@async_test
async def test_the_last_word_in_a_pipe_is_never_lost(home: Path) -> None:
    async with running_host(home) as host:
        for number in range(100):
            one = await host.spoken(f"c{number}")
            await one.sh(f"printf {'x' * (number * 97)}end", is_piped=True)
            assert await one.ended() == (0, None)
            assert one.stream() == b"x" * (number * 97) + b"end"


@pytest.mark.linux
@async_test
async def test_input_reaches_a_program_that_writes_into_a_pipe(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty raw -echo; printf ready; head -c 5; exit 3", is_piped=True)
        await one.printed(b"ready")
        await one.type(b"12345")
        assert await one.ended() == (3, None)
        assert one.stream() == b"ready12345"


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
