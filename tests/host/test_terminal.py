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
