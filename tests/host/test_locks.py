"""One host of a home, one writer of a record: what becomes of them when directories go, move or are replaced."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from blockpty.errors import Busy, StorageFull
from blockpty.host.client import Hello, HostClient
from tests.support.async_tests import async_test
from tests.support.host_driver import BOUND_SECONDS, Host, Spoken, death, kill_recorder, running_host

pytestmark = pytest.mark.linux


@pytest.mark.parametrize("what", ["host", "host/host.sock"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_host_whose_socket_was_removed_is_found_again(home: Path, what: str, killed: bool) -> None:
    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = await host.spoken()
            opened = await one.open("/bin/cat")
            hello = await host.client.hello()
            path = home / what
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            if killed:
                # The keeper knows the old socket only, and so does what it starts.
                os.kill(hello.recorder, signal.SIGKILL)
                await death(hello.recorder)
            async with running_host(home) as again:
                assert (await again.client.hello()).keeper == hello.keeper
                assert [item.pid for item in await again.client.list()] == [opened.pid]
                other = Spoken(again.client, "c1", one.directory)
                await other.subscribe()
                await other.type(b"x\r")
                await other.printed(b"x\r\nx\r\n")

    check()


async def left(hello: Hello, *shells: int) -> None:
    """Wait until a host and what it ran have ended."""
    for pid in (*shells, hello.recorder, hello.keeper):
        await death(pid)


@async_test
async def test_a_host_whose_home_was_removed_ends_its_shells(home: Path) -> None:
    """And writes nothing into the home that takes the place."""
    client = await HostClient.connect(home)
    host = Host(home, client)
    one = await host.spoken()
    opened = await one.sh("trap '' HUP; while :; do echo OLD; done", segment_bytes=4096)
    hello = await client.hello()
    await one.printed(b"OLD")
    # In one step: a host that comes in between makes again what it writes.
    home.rename(home.with_name("old"))
    shutil.rmtree(home.with_name("old"), ignore_errors=True)
    home.mkdir(mode=0o700)
    async with running_host(home) as fresh:
        assert (await fresh.client.hello()).keeper != hello.keeper
        other = await fresh.spoken()
        await other.open("/bin/cat")
        await other.type(b"x\r")
        await other.printed(b"x\r\nx\r\n")
        await left(hello, opened.pid)
        await fresh.client.close("c1")
        assert other.stream() == b"x\r\nx\r\n"
        assert len(other.entries("spawn")) == 1
        assert [path.name for path in (home / "conversations").iterdir()] == ["c1"]
    client.leave()


@async_test
async def test_a_host_whose_home_was_moved_says_so_in_the_record(home: Path) -> None:
    client = await HostClient.connect(home)
    host = Host(home, client)
    one = await host.spoken()
    opened = await one.open("/bin/cat")
    hello = await client.hello()
    moved = home.with_name("moved")
    home.rename(moved)
    await left(hello, opened.pid)
    client.leave()
    found = Spoken(client, "c1", moved / "conversations" / "c1")
    assert [entry["note"] for entry in found.entries("note")] == [{"type": "home_gone"}]
    assert found.entries("exit")[0]["signal"] == "SIGHUP"
    found.check_timeline()
    async with running_host(moved) as again:
        two = await again.spoken()
        await two.open("/bin/cat")


def _written(directory: Path) -> list[str]:
    """Return the kinds of a timeline's entries but for those that its own host writes in its own time."""
    lines = (directory / "timeline.jsonl").read_bytes().splitlines()
    return [kind for line in lines if (kind := json.loads(line)["kind"]) not in ("tick", "silence")]


@async_test
async def test_a_record_that_another_host_writes_is_left_alone(home: Path, tmp_path: Path) -> None:
    """Its directory was moved into another home while the shell ran."""
    other_home = tmp_path / "other"
    async with running_host(home) as host, running_host(other_home) as other:
        one = await host.spoken()
        await one.open("/bin/cat")
        await one.type(b"before\r")
        await one.printed(b"before\r\nbefore\r\n")
        (other_home / "conversations").mkdir(mode=0o700, exist_ok=True)
        moved = other_home / "conversations" / "c1"
        one.directory.rename(moved)
        two = Spoken(other.client, "c1", moved)
        for killed in (False, True):
            if killed:
                # The lock travels with the descriptors.
                await kill_recorder(other)
                await kill_recorder(host)
            known = _written(moved)
            with pytest.raises(Busy, match="another PTY host"):
                await two.open("/bin/cat")
            with pytest.raises(Busy, match="another PTY host"):
                await two.type(b"x")
            with pytest.raises(Busy, match="another PTY host"):
                await other.client.note("c1", {"type": "lost"})
            assert not await other.client.recover("c1")
            assert _written(moved) == known
        moved.rename(one.directory)
        closed = False
        async with asyncio.timeout(BOUND_SECONDS):
            while not closed:
                # Until the recorder has found the files again.
                with contextlib.suppress(StorageFull):
                    await host.client.close("c1")
                    closed = True
        one.directory.rename(moved)
        await two.open("/bin/cat")
        two.check_timeline()
