"""kill -9 of recorder or keeper at any point: nothing is lost, nothing is there twice, the shell does not notice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from pathlib import Path

import pytest

from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, death, kill_recorder, reached, running_host
from tests.support.profile import LONG

NUMBERS = 60_000
KILLS = 50 if LONG else 12


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.parametrize("is_piped", [False, True])
@async_test(timeout_seconds=110)
async def test_a_flood_with_many_kills_of_the_recorder_is_complete(home: Path, is_piped: bool) -> None:
    random.seed(7)
    expected = b"".join(b"%d%b" % (number, b"\n" if is_piped else b"\r\n") for number in range(1, NUMBERS + 1))
    async with running_host(home) as host:
        if (await host.client.hello()).transport != "splice":
            pytest.skip("without splice a kill may lose what was read")
        one = await host.spoken()
        round_number = kills = 0
        while kills < KILLS:
            round_number += 1
            start = len(one.stream()) if round_number > 1 else 0
            entry = {"instance": round_number, "nonce": str(round_number)}
            await one.sh(f"seq 1 {NUMBERS}; exit 9", entry=entry, is_piped=is_piped)
            while kills < KILLS and len(one.entries("exit")) < round_number:
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
