"""How many processes a conversation may have, and that none is left of it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from blockpty.host import cgroup, spawn
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, BOUND_SECONDS, running_host

LIMIT = 40
# Each copy waits for its own children, so that the tree stands as long as it can.
BOMB = "bomb() { bomb & bomb & wait; }; bomb"


@pytest.mark.linux
@async_test
async def test_a_fork_bomb_stays_in_its_conversation(home: Path) -> None:
    if cgroup.find_base() is None:
        pytest.skip("no pids cgroup can be made here; see the test of RLIMIT_NPROC")
    async with running_host(home) as host:
        bomb, other = await host.spoken("bomb"), await host.spoken("other")
        await other.open("/bin/cat")
        opened = await bomb.open(BASH, "--norc", "--noprofile", process_limit=LIMIT)
        place = cgroup_of(opened.pid)
        await bomb.type(f"{BOMB}\n".encode())
        await bomb.printed(b"fork: ")
        assert members(place) <= LIMIT
        assert (place / "pids.events").read_text().split() > ["max", "0"]
        await other.type(b"fine\r")
        await other.printed(b"fine\r\nfine\r\n")
        await host.client.close("bomb", grace_ms=0)
        assert not [*spawn.session_members(opened.pid)]
        # An empty cgroup is removed, at the latest when the next one is made.
        again = await host.spoken("again")
        await again.sh("exit 0")
        await again.ended()
        assert not place.exists()


def cgroup_of(pid: int) -> Path:
    base = cgroup.find_base()
    assert base is not None
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        name = line.rpartition("/")[2]
        if name.startswith(cgroup.PREFIX):
            return Path(base) / name
    raise AssertionError(f"{pid} has no cgroup of its own")


def members(place: Path) -> int:
    return len((place / "cgroup.procs").read_text().split())


@pytest.mark.linux
def test_without_a_cgroup_the_user_is_bounded() -> None:
    """What the child does between fork and exec where no cgroup could be made."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        spawn.bound_processes(None, LIMIT)
        with open("/proc/self/limits", encoding="ascii") as file:
            os.write(writer, next(line for line in file if line.startswith("Max processes")).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as limits:
        assert limits.read().split()[2] == str(LIMIT)
    os.waitpid(pid, 0)


@pytest.mark.linux
@async_test
async def test_no_bound_when_none_is_wanted(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        opened = await one.open("/bin/cat", process_limit=0)
        assert cgroup.PREFIX not in Path(f"/proc/{opened.pid}/cgroup").read_text()


def test_where_cgroups_lie(tmp_path: Path) -> None:
    """Version 1 has a hierarchy for pids; version 2 must hand the controller on, and be ours to write."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    deep = root / "user.slice/app.slice/terminal.scope"
    deep.mkdir(parents=True)
    for place in (root, deep.parents[1], deep.parents[0], deep):
        (place / "cgroup.procs").touch()
        (place / "cgroup.subtree_control").write_text("cpu memory\n")
    own.write_text("0::/user.slice/app.slice/terminal.scope\n")
    assert cgroup.find_base(str(root), str(own)) is None
    (deep.parents[0] / "cgroup.subtree_control").write_text("memory pids\n")
    assert cgroup.find_base(str(root), str(own)) == str(deep.parents[0])
    own.write_text("7:cpu,cpuacct:/\n8:pids:/a\n0::/\n")
    (root / "pids/a").mkdir(parents=True)
    assert cgroup.find_base(str(root), str(own)) is None
    (root / "pids/cgroup.procs").touch()
    assert cgroup.find_base(str(root), str(own)) == str(root / "pids")
    assert cgroup.find_base(str(root), str(tmp_path / "none")) is None


def test_what_killed_keepers_left_is_swept(tmp_path: Path) -> None:
    old, young, other = tmp_path / "blockpty-1-1", tmp_path / "blockpty-1-2", tmp_path / "else"
    for place in (old, young, other):
        place.mkdir()
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    cgroup.Cgroups(str(tmp_path)).sweep()
    assert (old.exists(), young.exists(), other.exists()) == (False, True, True)


@pytest.mark.linux
@async_test
async def test_what_a_shell_leaves_behind_is_collected(home: Path) -> None:
    """Whatever the first process of the machine does: in a container it is often one that collects nothing."""
    async with running_host(home) as host:
        one = await host.spoken()
        # Said behind the end of the process that started it.
        await one.sh("(sleep 1000 & echo left $!; exit 3); echo .; read answer")
        await one.printed(b".\r\n")
        left = int(one.stream().split()[1])
        keeper = (await host.client.hello()).keeper
        assert parent_of(left) == keeper
        os.kill(left, signal.SIGKILL)
        async with asyncio.timeout(BOUND_SECONDS):
            # Polled, because nothing reports it: a process that was not collected would still be there.
            while Path(f"/proc/{left}").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await one.type(b"done\r")
        assert await one.ended() == (0, None)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
