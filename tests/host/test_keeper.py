"""kill -9 of recorder or keeper at any point: nothing is lost, nothing is there twice, the shell does not notice."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.errors import InternalError
from blockpty.host import spawn
from blockpty.host.client import HostClient
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, Host, Spoken, death, running_host

NUMBERS = 60_000


async def kill_recorder(host: Host) -> None:
    """Kill the recorder and wait until another one answers."""
    old = (await host.client.hello()).recorder
    os.kill(old, signal.SIGKILL)
    await death(old)
    assert (await host.client.hello()).recorder != old


async def reached(one: Spoken, size: int, number: int) -> None:
    """Wait until the stream is that long, or the `number`-th shell has ended."""
    await one.until(lambda: one.length() >= size or len(one.entries("exit")) >= number)


@pytest.mark.linux
@pytest.mark.slow
@async_test(timeout_seconds=110)
async def test_a_flood_with_fifty_kills_of_the_recorder_is_complete(home: Path) -> None:
    random.seed(7)
    expected = b"".join(b"%d\r\n" % number for number in range(1, NUMBERS + 1))
    async with running_host(home) as host:
        if (await host.client.hello()).transport != "splice":
            pytest.skip("without splice a kill may lose what was read")
        one = await host.spoken()
        round_number = kills = 0
        while kills < 50:
            round_number += 1
            start = len(one.stream()) if round_number > 1 else 0
            await one.sh(f"seq 1 {NUMBERS}; exit 9", entry={"instance": round_number, "nonce": str(round_number)})
            while kills < 50 and len(one.entries("exit")) < round_number:
                await reached(one, random.randrange(start, start + len(expected)), round_number)
                await kill_recorder(host)
                kills += 1
            await one.has_ended(round_number)
            assert one.stream()[start:] == expected
        assert {entry["status"] for entry in one.entries("exit")} == {9}
        assert [entry["instance"] for entry in one.entries("spawn")] == [*range(1, round_number + 1)]
        one.check_timeline()


@pytest.mark.linux
@async_test
async def test_a_kill_of_the_keeper_leaves_the_shell_alive(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        opened = await one.open(BASH, "-c", "while read x; do echo got $x; done; exit 3")
        keepers = set()
        for number in range(5):
            hello = await host.client.hello()
            os.kill(hello.keeper, signal.SIGKILL)
            keepers.add(hello.keeper)
            await one.type(b"%d\r" % number)
            await one.printed(b"got %d\r\n" % number)
            await death(hello.keeper)
            while (await host.client.hello()).keeper == hello.keeper:
                pass
            await kill_recorder(host)
        assert len(keepers) == 5
        assert (await host.client.inspect("c1")).pid == opened.pid
        assert (await host.client.hello()).orphans == 1
        await one.type(b"\x04")
        assert await one.ended() == (None, None)
        # The new keeper is the parent of what it starts itself.
        await one.sh("exit 4")
        await one.until(lambda: len(one.entries("exit")) == 2)
        assert one.entries("exit")[1]["status"] == 4
        assert (await host.client.hello()).orphans == 0
        said = json.loads((home / "host" / "pid").read_text())
        hello = await host.client.hello()
        assert said == {"keeper": hello.keeper, "recorder": hello.recorder}


@pytest.mark.linux
@async_test
async def test_an_exit_while_no_recorder_runs_is_known(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        opened = await one.sh("echo here; read x")
        await one.printed(b"here")
        recorder = (await host.client.hello()).recorder
        os.kill(recorder, signal.SIGSTOP)
        os.kill(opened.pid, signal.SIGKILL)
        os.kill(recorder, signal.SIGKILL)
        assert await one.ended() == (None, "SIGKILL")
        assert len(one.entries("exit")) == len(one.entries("eof")) == 1


async def typed(one: Spoken, line: bytes, requests: Iterator[int]) -> None:
    """Type a line once, whatever is killed meanwhile: again if it did not go in, and look if that is unknown."""
    while True:
        try:
            answer = await one.type(line, req=f"r{next(requests)}")
        except InternalError:
            # What is typed later is printed later: when the probe is there, the line is there or never will be.
            probe = b"probe %d" % next(requests)
            await typed(one, probe + b"\r", requests)
            await one.printed(probe + b"\r\n")
            if b"\n" + line[:-1] + b"\r\n" in one.stream():
                return
        else:
            if answer.accepted == len(line):
                return
            assert answer.accepted == 0


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
async def test_an_input_that_was_under_way_is_cut(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty raw -echo; echo ready; exec sleep 1000")
        await one.printed(b"ready")
        typing = asyncio.create_task(one.type(b"w" * 1_000_000, req="big", deadline_ms=60_000))
        await one.entry("input")
        await kill_recorder(host)
        typed = await typing
        cut = await one.entry("input_cut")
        assert (cut["req"], cut["accepted"]) == ("big", typed.accepted)
        assert 0 < typed.accepted < 1_000_000


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
async def test_opening_and_closing_go_on_over_a_kill(home: Path) -> None:
    async with running_host(home) as host:
        for number in range(10):
            one = await host.spoken(f"c{number}")
            opening = asyncio.create_task(one.open("/bin/cat", entry={"nonce": f"n{number}"}))
            await asyncio.sleep(0)
            await kill_recorder(host)
            opened = await opening
            await one.type(b"x\r")
            await one.printed(b"x\r\nx\r\n")
            assert [entry["pid"] for entry in one.entries("spawn")] == [opened.pid]
            closing = asyncio.create_task(host.client.close(one.name))
            await asyncio.sleep(0)
            await kill_recorder(host)
            assert (await closing).signal == "SIGHUP"


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
