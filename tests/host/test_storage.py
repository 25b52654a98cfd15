"""A full disk stops a conversation, loses nothing, and is over when there is space again."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.errors import StorageFull
from tests.support.async_tests import async_test
from tests.support.host_driver import Spoken, kill_recorder, running_host

PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def small(home: Path) -> Iterator[Path]:
    """`<home>/conversations` on a file system of 8 MiB."""
    place = home / "conversations"
    place.mkdir(mode=0o700)
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs to mount")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr!r}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.linux
@pytest.mark.slow
@async_test
async def test_fill_and_free(small: Path, home: Path, no_splice: bool) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        ballast = small / "ballast"
        await one.sh("while read x; do seq 1 20000; done; exit 2", segment_bytes=64 * 1024)
        printed = b"\r\n" + b"".join(b"%d\r\n" % number for number in range(1, 20_001))
        for number in range(1, 6):
            fill(ballast)
            os.truncate(ballast, ballast.stat().st_size - 64 * 1024)
            await one.type(b"\r")
            while (await host.client.inspect("c1")).storage is None:
                pass
            with pytest.raises(StorageFull):
                await host.client.note("c1", "x" * 5000)
            with pytest.raises(StorageFull):
                await one.type(b"x" * 4000)
            assert len(one.stream()) < number * len(printed)
            ballast.unlink()
            await grown(one, number * len(printed))
        await one.type(b"\x04")
        assert await one.ended() == (2, None)
        assert one.stream() == printed * 5
        one.check_timeline()
        assert [entry["state"] for entry in one.entries("storage")] == ["full", "resumed"] * 5


@pytest.mark.linux
@pytest.mark.parametrize("room", [0, 4096])
def test_the_timeline_says_when_it_was(small: Path, home: Path, room: int) -> None:
    """Also when there was no room for a single entry while it lasted, and when the recorder was killed meanwhile."""

    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = await host.spoken()
            ballast = small / "ballast"
            gate = home / "gate"
            os.mkfifo(gate)
            await one.sh(f"echo ready; read x < {gate}; seq 1 20000; read x < {gate}; exit 2")
            # The timeline's own last page is full or has room.
            await fill_page(one, room)
            fill(ballast)
            before = time.time_ns() // 1_000_000
            gate.write_bytes(b"\n")
            while (await host.client.inspect("c1")).storage is None:
                pass
            with pytest.raises(StorageFull):
                await host.client.note("c1", "x")
            noticed = time.time_ns() // 1_000_000
            entries = one.entries("storage")
            assert [entry["state"] for entry in entries] == (["full"] if room else [])
            if room:
                await kill_recorder(host)
                while (await host.client.inspect("c1")).storage is None:
                    pass
            printed = b"ready\r\n" + b"".join(b"%d\r\n" % number for number in range(1, 20_001))
            assert len(one.stream()) < len(printed)
            ballast.unlink()
            await one.until(lambda: [entry["state"] for entry in one.entries("storage")] == ["full", "resumed"])
            full, resumed = one.entries("storage")
            assert before <= full["ts"] <= noticed <= resumed["ts"]
            assert full["offset"] < resumed["offset"]
            await grown(one, len(printed))
            gate.write_bytes(b"\n")
            assert await one.ended() == (2, None)
            assert one.stream() == printed
            assert len(one.entries("storage")) == 2
            one.check_timeline()

    check()


async def fill_page(one: Spoken, room: int) -> None:
    """Have the timeline end exactly at the end of a page, or `room` bytes before that (a whole page: just after)."""
    size = (one.directory / "timeline.jsonl").stat
    await one.entry("silence")
    before = size().st_size
    await one.client.note(one.name, "")
    empty = size().st_size - before
    missing = -(size().st_size + empty) % PAGE
    await one.client.note(one.name, "x" * (missing + (10 if room else 0)))
    assert bool(size().st_size % PAGE) is bool(room)


async def grown(one: Spoken, size: int) -> None:
    await one.until(lambda: len(one.stream()) >= size)


def fill(ballast: Path) -> None:
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(b"b" * 4096)


@pytest.mark.linux
@async_test
async def test_other_conversations_do_not_suffer(home: Path) -> None:
    async with running_host(home) as host:
        one, other = await host.spoken("one"), await host.spoken("other")
        await one.open("/bin/cat")
        await other.open("/bin/cat")
        shutil.rmtree(other.directory)
        await one.type(b"fine\r")
        await one.printed(b"fine\r\nfine\r\n")
