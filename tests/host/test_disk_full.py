"""What else than a full disk can keep a record from growing, and that it is over by itself."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import StorageFull
from tests.support.async_tests import async_test
from tests.support.host_driver import running_host

KIB = 1024


@pytest.mark.linux
@async_test
async def test_files_that_may_not_grow(home: Path) -> None:
    """EFBIG: the recorder's own limit, lifted and lowered from outside, stands for a quota."""
    async with running_host(home) as host:
        recorder = (await host.client.hello()).recorder
        _, hard = resource.prlimit(recorder, resource.RLIMIT_FSIZE)
        one = await host.spoken()
        await one.sh("seq 1 20000; exit 2")
        await one.ended()
        whole = one.stream()
        gate = home / "gate"
        os.mkfifo(gate)
        two = await host.spoken("two")
        await two.sh(f"read x < {gate}; seq 1 20000; exit 2")
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (64 * KIB, hard))
        gate.write_bytes(b"\n")
        full = await two.entry("storage")
        assert (full["state"], full["errno"]) == ("full", "EFBIG")
        assert 0 < len(two.stream()) <= 64 * KIB
        # There is no space until this test makes some: the refusal does not wait for it.
        with pytest.raises(StorageFull) as refused:
            await two.type(b"x\r")
        assert refused.value.details["errno"] == "EFBIG"
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (hard, hard))
        assert (await two.entry("storage", 2))["state"] == "resumed"
        assert await two.ended() == (2, None)
        assert two.stream() == whole
        two.check_timeline()


@pytest.mark.linux
@async_test
async def test_closing_does_not_wait_for_space(home: Path) -> None:
    """The shell is gone, and its end is entered when there is space."""
    async with running_host(home) as host:
        recorder = (await host.client.hello()).recorder
        _, hard = resource.prlimit(recorder, resource.RLIMIT_FSIZE)
        one = await host.spoken()
        opened = await one.sh("seq 1 100000; read x")
        await one.printed(b"100000\r\n")
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (0, hard))
        with pytest.raises(StorageFull):
            await host.client.close(one.name, grace_ms=100)
        with pytest.raises(ProcessLookupError):
            os.kill(opened.pid, 0)
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (hard, hard))
        await one.has_ended(1)
        one.check_timeline()


@async_test
async def test_a_removed_directory_is_made_again(home: Path) -> None:
    """With all that was in stream and timeline; the program in the terminal does not notice."""
    async with running_host(home) as host:
        one = await host.spoken()
        # Two of them: one could be opened by the second `read` before it is closed by who let the first one pass.
        gates = [home / "gate1", home / "gate2"]
        for gate in gates:
            os.mkfifo(gate)
        await one.sh(f"seq 1 2000; read x < {gates[0]}; seq 2001 4000; read x < {gates[1]}; exit 2")
        await one.entry("silence")
        for gate in gates:
            remove(one.directory)
            gate.write_bytes(b"\n")
            await one.until(lambda: one.directory.exists() and (one.directory / "timeline.jsonl").exists())
            await one.entry("silence")
        assert await one.ended() == (2, None)
        assert one.stream() == b"".join(b"%d\r\n" % number for number in range(1, 4001))
        assert {entry["state"] for entry in one.entries("storage")} == {"restored"}
        assert one.entries()[0]["kind"] == "spawn"
        one.check_timeline()


@async_test
async def test_an_engine_goes_on_in_a_directory_that_was_removed(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1")
        await conversation.run("echo one")
        remove(conversation.directory)
        assert (await conversation.run("echo two")).output == "two\n"
        begun = await conversation.exec_block("echo three; read x; echo four")
        await conversation.wait_for("three", from_cursor=begun.cursor)
        remove(conversation.directory)
        await conversation.send("\n")
        done = await conversation.wait_for({"token": "PROMPT"})
        assert done.matched
        assert (await conversation.block("b3")).block.out_bytes == len("three\n\nfour\n")
        assert next(block.cmd for block in (await conversation.blocks()).blocks) == "echo one"
        assert [info.conversation_id for info in (await engine.list()).conversations] == ["c1"]
        states = [event.fields["state"] async for event in conversation.events(follow=False) if event.type == "storage"]
        # Once more when it happens while a file is just being made again.
        assert set(states) == {"restored"} and len(states) >= 2
        read = await conversation.read(block_id="b3")
        assert read.data == "three\n\nfour\n"


def remove(directory: Path) -> None:
    """Remove a directory in which the host may just be making a file again."""
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.linux
@async_test
async def test_closing_keeps_what_waits_for_space(home: Path) -> None:
    """The stream may not grow and the timeline may: the end is not entered before what was printed is in the stream."""
    async with running_host(home) as host:
        recorder = (await host.client.hello()).recorder
        _, hard = resource.prlimit(recorder, resource.RLIMIT_FSIZE)
        one = await host.spoken()
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (64 * KIB, hard))
        opened = await one.sh("yes")
        await one.entry("storage")
        with pytest.raises(StorageFull):
            await host.client.close(one.name, grace_ms=100)
        with pytest.raises(ProcessLookupError):
            os.kill(opened.pid, 0)
        assert len(one.stream()) == 64 * KIB
        resource.prlimit(recorder, resource.RLIMIT_FSIZE, (hard, hard))
        await one.has_ended(1)
        assert len(one.stream()) > 64 * KIB
        one.check_timeline()
        assert (await host.client.hello()).recorder == recorder
        assert "Traceback" not in (home / "host" / "host.log").read_text()
