"""A connection to the host outlives the recorder at its other end: what was asked is asked again, and done once."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
from pathlib import Path

import pytest

from blockpty.errors import InternalError
from blockpty.host import spawn
from blockpty.host.client import HostClient
from tests.support.async_tests import async_test
from tests.support.host_driver import Host, Spoken, kill_recorder, reached, running_host, typed


async def _hammer(one: Spoken, count: int) -> None:
    requests = itertools.count()
    for number in range(count):
        await typed(one, b"%d\r" % number, requests)
        one.client.note(one.name, {"after": number})


@pytest.mark.linux
@pytest.mark.timeout(300)
@async_test(timeout_seconds=290)
async def test_inputs_and_notes_are_entered_once_whatever_is_killed(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty -echo; echo ready; cat")
        await one.printed(b"ready")
        hammer = asyncio.create_task(_hammer(one, 1000))
        end = len(b"".join(b"%d\r\n" % number for number in range(1000)))
        for at in sorted(random.choices(range(end), k=25)):
            await reached(one, at, 1)
            await kill_recorder(host)
        await hammer
        await one.printed(b"\n999\r\n")
        lines = [line for line in one.stream().split(b"\r\n") if not line.startswith(b"probe")]
        assert lines == [b"ready", *(b"%d" % number for number in range(1000)), b""]
        requests = [entry["req"] for entry in one.entries("input")]
        assert len(requests) == len({*requests})
        await one.until(lambda: len(one.entries("note")) >= 1000)
        assert [entry["note"]["after"] for entry in one.entries("note")] == [*range(1000)]
        one.check_timeline()


@pytest.mark.linux
@async_test
async def test_watches_survive_a_kill(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat")
        await host.client.watch_idle("c1", 400)
        await host.client.set_persist("c1", True)
        await kill_recorder(host)
        await one.until(lambda: [entry for entry in one.entries("silence") if entry["ms"] == 400])
        assert (await host.client.list())[0].persist is True


@pytest.mark.linux
@async_test
async def test_when_the_whole_host_is_killed_the_client_is_notified(home: Path) -> None:
    client = await HostClient.connect(home)
    host = Host(home, client)
    one = await host.spoken()
    opened = await one.open("/bin/cat")
    lost = asyncio.Event()
    client.on_lost = lost.set
    hello = await client.hello()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (hello.keeper, hello.recorder):
            os.kill(pid, number)
    await lost.wait()
    assert client.closed.done()
    with pytest.raises(InternalError):
        await client.hello()
    client.leave()
    # The kernel hung the shell up, and the next client gets a new host.
    async with running_host(home) as next_host:
        assert await next_host.client.list() == []
        assert (await next_host.client.hello()).keeper != hello.keeper
        again = await next_host.spoken()
        await again.sh("echo again")
        await again.until(lambda: again.entries()[-1]["kind"] == "eof")
        assert again.stream() == b"again\r\n"
    assert not any(spawn.session_members(opened.pid))
