"""The shells' sessions lower their CPU share, where the kernel shares the processor between sessions."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from blockpty.host import autogroup
from blockpty.host.autogroup import PAUSE_SECONDS, Shares
from blockpty.host.protocol import SHELL_NICE
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, BOUND_SECONDS, running_host

# Nothing is printed, and no key is waited for.
BUSY = "nice; while ! [ -e stop ]; do sleep 0.1; done; read -r line"


@async_test
async def test_many_busy_shells_lower_their_cpu_share_and_their_host_does_not(home: Path, tmp_path: Path) -> None:
    async with running_host(home) as host:
        keeper = (await host.client.hello()).keeper
        ours = autogroup.get_nice(keeper)
        if ours is None:
            pytest.skip("this kernel has no autogroups")
        full, one, *others = [await host.spoken(name) for name in ("full", "one", "two", "three", "four")]
        waiting = [(await (await host.spoken(f"waiting{number}")).sh("read -r line")).pid for number in range(4)]
        opened = await one.sh(BUSY, cwd=str(tmp_path))
        shells = [(await full.sh(BUSY, cwd=str(tmp_path), shell_nice=0)).pid, opened.pid]
        for other in others:
            shells.append((await other.sh(BUSY, cwd=str(tmp_path), shell_nice=19)).pid)
        far = autogroup.nice_among(len(shells))
        await changed(shells[1:], far)
        # One of them is to have its full share all the same, and who reads what they print has it.
        assert (autogroup.get_nice(shells[0]), autogroup.get_nice(keeper)) == (0, ours)
        # Those that wait for a key do not count, and have theirs as soon as they need it.
        assert {autogroup.get_nice(pid) for pid in waiting} == {0}
        assert ours < far < SHELL_NICE
        # What a user sees of it: nothing.
        await one.printed(b"%d\r\n" % os.nice(0))
        (tmp_path / "stop").touch()
        await changed(shells, 0)


@pytest.mark.parametrize("editing", ["--noediting", "--posix"])
@async_test
async def test_a_job_behind_the_prompt_counts_as_work(home: Path, editing: str) -> None:
    async with running_host(home) as host:
        if autogroup.get_nice(os.getpid()) is None:
            pytest.skip("this kernel has no autogroups")
        shells = []
        for number in range(3):
            spoken = await host.spoken(f"bash{number}")
            opened = await spoken.open(BASH, "--norc", editing, "-i")
            shells.append(opened.pid)
            await spoken.type(b"sleep 60 &\r")
        await changed(shells, autogroup.nice_among(3))


async def changed(shells: list[int], nice: int) -> None:
    """Wait until the sessions of shells have a nice value."""
    async with asyncio.timeout(BOUND_SECONDS):
        # Polled, because nothing tells: without CAP_SYS_ADMIN the kernel takes ten a second, of all who ask.
        while {autogroup.get_nice(pid) for pid in shells} != {nice}:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("shells", "nice"), [(0, 0), (1, 0), (2, 0), (3, 2), (5, 4), (20, 10), (2000, 31)])
def test_all_together_count_as_two(shells: int, nice: int) -> None:
    assert autogroup.nice_among(shells) == nice
    if nice:
        assert shells * autogroup.STEP**-nice == pytest.approx(autogroup.TOGETHER, rel=0.12)


def test_only_a_change_is_asked_for() -> None:
    kernel = Kernel(endless=True)
    shares = Shares(kernel.set_nice)
    for pid in range(1, 31):
        shares.add(pid, 4 if pid % 2 else 0)
    assert kernel.asked == 0
    for pid in range(1, 31):
        shares.work(pid, 0.0, working=True)
    shares.work(31, 0.0, working=True)
    shares.remove(31, 0.0)
    taken = dict(kernel.taken)
    assert taken == dict.fromkeys(range(1, 31, 2), 4)
    # From the sixth shell on nothing changes for those that are there.
    assert kernel.taken[-12:] == [(pid, 4) for pid in range(7, 31, 2)]
    for pid in range(30, 1, -1):
        shares.remove(pid, 0.0)
    assert kernel.taken[-1] == (1, 0)


def test_what_the_kernel_does_not_take_yet_is_asked_again() -> None:
    kernel = Kernel()
    shares = Shares(kernel.set_nice)
    for pid in (1, 2, 3, 4):
        shares.add(pid, 19)
    for pid in (1, 2):
        shares.work(pid, 5.0, working=True)
    assert shares.wait(5.0) is None
    shares.work(3, 5.0, working=True)
    assert (kernel.taken, kernel.asked) == ([(1, 2)], 2)
    assert shares.wait(5.0) == pytest.approx(PAUSE_SECONDS)
    shares.work(4, 5.05, working=True)
    assert kernel.asked == 2
    for now in (5.11, 5.22, 5.33, 5.44):
        kernel.free = True
        shares.proceed(now)
    # What was asked for meanwhile is what counts.
    assert kernel.taken == [(1, 2), (2, 3), (3, 3), (1, 3), (4, 3)]
    assert shares.wait(6.0) is None


def test_who_was_collected_is_not_asked_for() -> None:
    kernel = Kernel()
    shares = Shares(kernel.set_nice)
    for pid in range(1, 6):
        shares.add(pid, 19)
        shares.work(pid, 5.0, working=True)
    asked = kernel.asked
    for pid in range(1, 6):
        shares.remove(pid, 5.01)
    assert (kernel.asked, shares.wait(5.01)) == (asked, None)


def test_who_waits_again_has_a_full_share() -> None:
    kernel = Kernel(endless=True)
    shares = Shares(kernel.set_nice)
    for pid in range(1, 6):
        shares.add(pid, 19)
        shares.work(pid, 0.0, working=True)
    kernel.taken.clear()
    shares.work(2, 1.0, working=False)
    assert kernel.taken == [(1, 3), (2, 0), (3, 3), (4, 3), (5, 3)]
    shares.work(2, 1.0, working=False)
    assert len(kernel.taken) == 5


class Kernel:
    """Takes one nice value for each time it is set free, or any number."""

    def __init__(self, *, endless: bool = False) -> None:
        self.free = True
        self._endless = endless
        self.asked = 0
        self.taken: list[tuple[int, int]] = []

    def set_nice(self, pid: int, nice: int) -> None:
        self.asked += 1
        if not self.free:
            raise OSError(errno.EAGAIN, "not yet")
        self.free = self._endless
        self.taken.append((pid, nice))


@pytest.mark.parametrize("problem", [errno.ENOENT, errno.EACCES, errno.EPERM, errno.EINVAL, errno.EROFS])
def test_where_it_cannot_be_written_nothing_fails_and_nothing_is_tried_again(problem: int) -> None:
    asked: list[int] = []

    def refuse(pid: int, nice: int) -> None:
        asked.append(pid)
        raise OSError(problem, os.strerror(problem))

    shares = Shares(refuse)
    for pid in (1, 2, 3):
        shares.add(pid, 10)
        shares.work(pid, 0.0, working=True)
    assert (asked, shares.wait(0.0)) == ([1, 2, 3], None)


def test_processes_that_have_ended_or_were_never_there() -> None:
    ended = os.posix_spawn("/bin/sh", ["sh", "-c", ":"], {})
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    shares = Shares()
    for pid in (ended, 1 << 22, (1 << 22) + 1):  # a zombie, and numbers that no process can have
        shares.add(pid, 10)
        shares.work(pid, 0.0, working=True)
    assert shares.wait(0.0) is None
    os.waitpid(ended, 0)
    assert autogroup.get_nice(ended) is None
