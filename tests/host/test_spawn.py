"""A shell gets exactly what was asked for, and a failure to start says why."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from blockpty.errors import SpawnFailed
from blockpty.host import spawn
from blockpty.host.spawn import is_working
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, ENV, SH, running_host


@async_test
async def test_size_directory_and_session(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        opened = await one.sh("stty size; pwd; ps -o pid=,sid= -p $$ | tr -s ' '; umask", cols=132, rows=43, cwd="/usr")
        await one.ended()
        size, directory, process, mask = one.stream().decode().split("\r\n")[:4]
        assert (size, directory, mask) == ("43 132", "/usr", "0022")
        assert process.split() == [str(opened.pid), str(opened.pid)]


@pytest.mark.linux
def test_a_process_works_that_computes_or_waits_for_a_child_of_its_group() -> None:
    """A job in a process group of its own does not count, and neither does a child that has ended."""
    busy = subprocess.Popen([SH, "-c", "while :; do :; done"])
    waits = subprocess.Popen([SH, "-c", "cat; :"], stdin=subprocess.PIPE)
    job = "set -m; (sleep 1000) & set +m; read x; kill $!"
    reads = subprocess.Popen([BASH, "-c", job], stdin=subprocess.PIPE)
    children = [busy, waits, reads]
    try:
        for child, works in zip(children, [True, True, False], strict=True):
            while is_working(child.pid) is not works:
                assert child.poll() is None
    finally:
        for child in children:
            if child.stdin is not None:
                child.stdin.close()
        busy.kill()
        for child in children:
            child.wait()
    assert not is_working(busy.pid)


@pytest.mark.linux
@async_test
async def test_the_environment_is_exact(home: Path) -> None:
    poison = {"LD_PRELOAD": "", "A": "b=c", "EMPTY": "", "RAW": os.fsdecode(b"\xff\xfe"), "PATH": ENV["PATH"]}
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat", "/proc/self/environ", env=poison)
        await one.ended()
        assert dict(item.split(b"=", 1) for item in one.stream().split(b"\0")[:-1]) == {
            os.fsencode(name): os.fsencode(value) for name, value in poison.items()
        }


@pytest.mark.linux
@async_test
async def test_only_the_terminal_is_open(home: Path) -> None:
    async with running_host(home) as host:
        others = [await host.spoken(f"other{number}") for number in range(3)]
        for other in others:
            await other.open("/bin/cat")
        one = await host.spoken()
        await one.open("/bin/ls", "-l", "/proc/self/fd")
        await one.ended()
        found = dict(re.findall(r"(\d+) -> (\S+)\r\n", one.stream().decode()))
        assert re.fullmatch(r"/dev/pts/\d+", found["0"])
        # 3 is the directory that ls reads.
        assert found.pop("3").endswith("/fd")
        assert found == dict.fromkeys("012", found["0"])


@pytest.mark.linux
@async_test
async def test_signals_and_modes_are_as_at_a_login(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("grep -E 'Sig(Ign|Blk)' /proc/self/status; stty -a")
        await one.ended()
        text = one.stream().decode()
        assert re.findall(r"Sig\w+:\s+(\w+)", text) == ["0" * 16] * 2
        assert " iutf8" in text and "-iutf8" not in text
        assert "-ixon" in text


@async_test
async def test_a_name_for_a_path(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("-login", "-c", "echo $0", executable=BASH)
        assert await one.ended() == (0, None)
        assert one.stream() == b"-login\r\n"


@async_test
async def test_what_cannot_be_started_says_why(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        with pytest.raises(SpawnFailed, match="/no/such/shell cannot be used: No such file") as failed:
            await one.open("/no/such/shell")
        assert failed.value.details == {"stage": "exec", "path": "/no/such/shell", "errno": "ENOENT"}
        with pytest.raises(SpawnFailed, match="the directory /no/such/place cannot be used: No such file"):
            await one.sh("true", cwd="/no/such/place")
        with pytest.raises(SpawnFailed, match=r"Permission denied|Is a directory"):
            await one.open("/etc")
        assert one.entries() == []
        await one.sh("exit 0")
        assert await one.ended() == (0, None)


@pytest.mark.parametrize("shell", [7, 8, 9, 15, 16])
def test_the_shell_is_hung_up_before_its_jobs(monkeypatch: pytest.MonkeyPatch, shell: int) -> None:
    jobs = [number for number in range(7, 33) if number != shell]
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(spawn, "session_members", lambda *_: ((number, number) for number in [*jobs, shell]))
    monkeypatch.setattr(os, "killpg", lambda group, number: sent.append((group, number)))
    assert spawn.signal_session(shell, -1, signal.SIGHUP, signal.SIGCONT)
    assert sent[:2] == [(shell, signal.SIGHUP), (shell, signal.SIGCONT)]
    assert sorted(group for group, _ in sent[::2]) == sorted([*jobs, shell])


@pytest.mark.parametrize(
    ("image", "own", "is_copy"),
    [
        ("zsh\0-i\0@7f00", "zsh\0-i\0@7f00", True),
        ("sleep\0001\0@7e00", "zsh\0-i\0@7f00", False),
        ("zsh\0-i\0@7e00", "zsh\0-i\0@7f00", False),  # another shell, called in the same way
        ("zsh\0-i\0@0", "zsh\0-i\0@7f00", True),  # just executing its program
        (None, "zsh\0-i\0@7f00", True),
        ("zsh\0-i\0@0", "zsh\0-i\0@0", False),  # the system shows no addresses
    ],
)
def test_a_copy_of_a_shell_is_not_another_program(
    image: str | None, own: str, is_copy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn, "program_image", {10: own, 11: image}.get)
    assert spawn.is_copy(11, 10) is is_copy
    assert not spawn.is_copy(10, 10)
