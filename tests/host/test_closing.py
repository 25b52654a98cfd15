"""The end of a shell: how it ended is known, and nothing that it said last is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from blockpty.errors import Exited, NotFound
from blockpty.host import spawn
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, running_host


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("exit 3", (3, None)),
        ("exit 255", (255, None)),
        ("kill -9 $$", (None, "SIGKILL")),
        ("kill -TERM $$", (None, "SIGTERM")),
        ("exec true", (0, None)),
        ("sleep 1000 & exit 4", (4, None)),
    ],
)
def test_exit_status(home: Path, script: str, outcome: tuple[int | None, str | None]) -> None:
    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = await host.spoken()
            opened = await one.sh(script)
            assert await one.ended() == outcome
            assert [entry["kind"] for entry in one.entries()[-2:]] == ["exit", "eof"]
            spawn.kill_session(opened.pid)

    check()


@async_test
async def test_the_last_words_are_never_lost(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        for number in range(1, 51):
            await one.sh(f"echo bye {number}; exit 7", entry={"instance": number})
            await one.has_ended(number)
        assert one.stream() == b"".join(b"bye %d\r\n" % number for number in range(1, 51))
        assert {entry["status"] for entry in one.entries("exit")} == {7}
        size = 0
        for number, entry in enumerate(one.entries("exit"), 1):
            size += len(f"bye {number}\r\n")
            assert entry["offset"] == size


@async_test
async def test_typed_exit(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open(BASH, "--norc", "--noprofile", "-i", env={"PS1": "ready> ", "TERM": "dumb"})
        await one.printed(b"ready> ")
        await one.type(b"echo bye; exit 5\r")
        assert await one.ended() == (5, None)
        assert one.stream().count(b"bye\r\n") == 1
        with pytest.raises(Exited):
            await one.type(b"x")
        with pytest.raises(NotFound):
            await host.client.input("nothing", b"x", author="agent")


@async_test
async def test_a_shell_without_a_terminal_lives_on(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo before; exec </dev/null >/dev/null 2>&1; sleep 0.6; echo after >/dev/tty; exit 6")
        assert await one.ended() == (6, None)
        kinds = [entry["kind"] for entry in one.entries() if entry["kind"] in ("exit", "eof")]
        assert sorted(kinds) == ["eof", "exit"]
        assert one.stream().startswith(b"before\r\n")


@pytest.mark.linux
@async_test
async def test_closing_ends_what_ignores_the_hangup(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        script = "trap '' HUP; (trap '' HUP TERM; echo child $BASHPID; exec sleep 1000) & sleep 1000"
        opened = await one.open(BASH, "-c", script)
        await one.printed(b"child")
        closed = await host.client.close("c1", grace_ms=10)
        assert (closed.status, closed.signal) == (None, "SIGKILL")
        assert list(spawn.session_members(opened.pid)) == []
        assert await host.client.list() == []
        assert closed.timeline == (one.directory / "timeline.jsonl").stat().st_size
        assert closed.offset == len(one.stream())


@pytest.mark.linux
@async_test
async def test_closing_a_shell_whose_children_stay(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        opened = await one.open(BASH, "-c", "(trap '' HUP; echo ready; exec sleep 1000) & read x")
        await one.printed(b"ready")
        closed = await host.client.close("c1", grace_ms=10)
        assert (closed.status, closed.signal) == (None, "SIGHUP")
        assert list(spawn.session_members(opened.pid)) == []


@pytest.mark.linux
@async_test
async def test_a_stopped_shell_can_be_closed(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat")
        await host.client.signal("c1", "STOP", target="shell")
        while not (await host.client.inspect("c1")).stopped:
            pass
        closed = await host.client.close("c1", grace_ms=60_000)
        assert (closed.status, closed.signal) == (None, "SIGHUP")


@pytest.mark.linux
@async_test
async def test_nothing_is_left_open(home: Path) -> None:
    async with running_host(home) as host:
        hello = await host.client.hello()

        def descriptors() -> list[int]:
            return [len(os.listdir(f"/proc/{pid}/fd")) for pid in (hello.keeper, hello.recorder)]

        one = await host.spoken()
        await one.sh("true")
        await one.has_ended(1)
        await host.client.hello()
        before = descriptors()
        for number in range(2, 12):
            opened = await one.sh("echo x")
            await one.has_ended(number)
            assert not os.path.exists(f"/proc/{opened.pid}")
        await host.client.hello()
        await one.sh("kill -9 $$")
        await one.has_ended(12)
        # The keeper closes its copies a moment after the recorder; opening once more comes after that.
        await one.open("/bin/cat")
        await host.client.close("c1")
        await one.open("/bin/cat")
        now = descriptors()
        assert now[0] <= before[0] + 5
        assert now[1] <= before[1] + 7


@pytest.mark.parametrize("target", ["foreground", "shell", "session"])
def test_signals_reach_their_target(home: Path, target: str) -> None:
    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = await host.spoken()
            await one.open("/bin/cat")
            await host.client.signal("c1", "SIGTERM" if target == "shell" else "TERM", target=target)  # type: ignore[arg-type]
            assert await one.ended() == (None, signal.SIGTERM.name)

    check()
