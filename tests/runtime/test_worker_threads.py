"""What goes over many bytes leaves the event loop to others, and ends when its caller goes."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import blockpty
from blockpty.runtime.worker_threads import SLICE_SECONDS, THREADS, BackgroundPace, Pace, aside, loop_clock
from tests.support.async_tests import async_test
from tests.support.counting import turns_beside

LINE = "17:00:01 svc session token refresh key expired pass auth failed secret token=ok key: 5 auth=basic"


async def replayed(conversation: blockpty.Conversation) -> None:
    async for _ in conversation.replay(speed=0):
        pass


@pytest.mark.needs("bash")
@async_test
async def test_others_have_their_turn(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "it.log"
    path.write_text(f"{LINE}\n" * 6000)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        block_id = (await conversation.run(f"cat {path}", max_bytes=1)).block.block_id
        work: list[Callable[[], Awaitable[object]]] = [
            lambda view=view: conversation.read(block_id=block_id, max_bytes=1 << 20, view=view)  # type: ignore[misc]
            for view in ("text", "ansi", "raw", "rendered")
        ]
        work.append(lambda: conversation.wait_for("not there", from_cursor=0, timeout_ms=0))
        for start in work:
            # A read in one go comes round twice, the whole of it in between.
            assert await turns_beside(start()) > 8
        work = [
            # Enough to draw: a screen alone is drawn within one slice.
            lambda: conversation.screen(format="html", at=conversation.cursor - 1000, scrollback=1000),
            lambda: conversation.diff(block_id, block_id),
            conversation.verify,
            lambda: replayed(conversation),
        ]
        for start in work:
            assert await turns_beside(start()) > 8
        result = await conversation.run(f"cat {path}", max_bytes=1 << 20)
        assert result.output == f"{LINE}\n" * 6000


@async_test
async def test_work_ends_with_its_caller() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(pace: Pace) -> None:
        begun.set()
        try:
            while True:
                pace()
        finally:
            ended.set()

    task = asyncio.ensure_future(aside(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 20)


@async_test
async def test_what_is_short_does_not_wait_for_what_is_long() -> None:
    go, began, usual = threading.Event(), threading.Semaphore(0), sys.getswitchinterval()
    begun: list[int] = []

    def work(pace: Pace) -> None:
        begun.append(1)
        began.release()
        go.wait()

    tasks = [asyncio.ensure_future(aside(work)) for _ in range(40)]
    try:
        async with asyncio.timeout(60):
            for _ in range(THREADS):
                await asyncio.to_thread(began.acquire)
            assert await aside(lambda pace: "short", long=False) == "short"
            assert await asyncio.to_thread(lambda: "another") == "another"
            tasks[-1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[-1]
        assert len(begun) == THREADS and sys.getswitchinterval() <= usual
    finally:
        go.set()
    await asyncio.gather(*tasks[:-1])
    assert len(begun) == 39  # one had not begun when its caller went
    assert sys.getswitchinterval() == usual


@pytest.mark.needs("bash")
@async_test
async def test_many_long_reads_do_not_stop_a_small_one(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "it.log"
    path.write_text(f"{LINE}\n" * 8000)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        block_id = (await conversation.run(f"cat {path}", max_bytes=1)).block.block_id
        long = [asyncio.ensure_future(conversation.read(block_id=block_id, max_bytes=1 << 20)) for _ in range(40)]
        await asyncio.sleep(0)
        small = await conversation.read(block_id=block_id, max_bytes=8192)
        done = sum(task.done() for task in long)
        for task in long:
            task.cancel()
        await asyncio.gather(*long, return_exceptions=True)
        assert small.data.startswith(LINE) and done < 20


class _Machine:
    """A processor that two threads share: a worker, and a loop that computes for a part of the time."""

    def __init__(self, share: float) -> None:
        self.now = self.loop = self.slept = 0.0
        self._share = share
        self.pace = BackgroundPace(lambda: self.loop, lambda: self.now, self._sleep)

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        self.loop += self._share * seconds

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.pass_(seconds)

    def work(self) -> float:
        """Work for a second of the clock; return for which part of it."""
        begin, slept = self.now, self.slept
        while self.now < begin + 1:
            self.pass_(SLICE_SECONDS / 10)
            self.pace.rest()
        return 1 - (self.slept - slept) / (self.now - begin)


def test_background_work_makes_way_for_a_busy_loop() -> None:
    assert _Machine(0.0).work() > 0.8
    assert _Machine(0.1).work() > 0.8
    assert _Machine(0.5).work() < 0.25
    assert _Machine(0.9).work() < 0.25


def test_the_clock_of_a_loop_is_that_of_its_thread() -> None:
    if not hasattr(time, "pthread_getcpuclockid"):
        assert loop_clock()() == 0.0
        return
    clock = loop_clock()
    before = clock()
    while clock() < before + 0.02:
        sum(range(1000))

    def elsewhere() -> None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            sum(range(1000))

    thread = threading.Thread(target=elsewhere)
    before = clock()
    thread.start()
    thread.join()
    assert clock() - before < 0.05, "what another thread computes is not counted"
