"""Runs an async test: bounded in time, and with nothing left behind.

There is no asyncio plugin for pytest here: one `asyncio.run` per test is all it takes, and a test that leaks a task,
an exception that was never retrieved or an open file should fail itself, not the one after it.

    @async_test
    async def test_greeting(home: Path) -> None: ...
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from pathlib import Path
from typing import Any, ParamSpec, overload

from blockpty.runtime import worker_threads

# The thread of watchfiles that waits for the system's events; it closes its descriptors as it ends, after its watch.
WATCHER = "notify-rs"
BOUND_SECONDS = 60.0
_tests = 0

P = ParamSpec("P")
AsyncTest = Callable[P, Awaitable[None]]
Test = Callable[P, None]


@overload
def async_test(function: AsyncTest[P]) -> Test[P]: ...
@overload
def async_test(*, timeout_seconds: float) -> Callable[[AsyncTest[P]], Test[P]]: ...
def async_test(function: AsyncTest[P] | None = None, *, timeout_seconds: float = 60.0) -> Any:
    """Make an ordinary test of a coroutine function; fixtures and parametrisation work as usual.

    Fails when the test takes longer than `timeout_seconds`, leaves a task running, leaves an exception that the event
    loop had to report, or leaves a file descriptor open. Warnings are errors by pytest's own configuration, and
    the collection at the end makes those of unclosed objects appear here.
    """

    def decorate(function: AsyncTest[P]) -> Test[P]:
        @functools.wraps(function)
        def test(*args: P.args, **kwargs: P.kwargs) -> None:
            before = _open_files()
            asyncio.run(_watched(lambda: function(*args, **kwargs), timeout_seconds))
            gc.collect()
            until = time.monotonic() + BOUND_SECONDS
            while _opened_since(before) and _watcher_runs() and time.monotonic() < until:
                os.sched_yield()
            if _opened_since(before):
                _await_workers()
                gc.collect()
            left = _opened_since(before)
            _set_aside()
            assert not left, f"file descriptors left open: {left}"

        return test

    return decorate if function is None else decorate(function)


def _set_aside() -> None:
    """Leave what has survived out of the next collections: the next test has not made it.

    To go through all of that twice in each test took two fifths of the processor time of the tests. What becomes
    garbage later is collected now and then.
    """
    global _tests
    _tests += 1
    if _tests % 100 == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


async def _watched(function: Callable[[], Awaitable[None]], timeout_seconds: float) -> None:
    loop = asyncio.get_running_loop()
    reports: list[str] = []

    def report(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        reports.append(f"{context.get('message')}: {context.get('exception')!r}")

    loop.set_exception_handler(report)
    async with asyncio.timeout(timeout_seconds):
        await function()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()]
    assert not left, f"tasks left running: {left}"
    gc.collect()
    assert not reports, f"the event loop had to report: {reports}"


def _opened_since(before: dict[int, str]) -> dict[int, str]:
    return {number: name for number, name in _open_files().items() if before.get(number) != name}


def _open_files() -> dict[int, str]:
    """Name every open descriptor of this process; where the system does not tell, its device and inode do."""
    files: dict[int, str] = {}
    for entry in os.listdir("/dev/fd"):
        try:
            files[int(entry)] = _file_name(int(entry))
        except OSError:
            continue  # the descriptor of this very listing
    return files


def _watcher_runs() -> bool:
    """Whether a thread of watchfiles has not ended; where threads have no names to read, none is waited for."""
    for thread in Path("/proc/self/task").glob("*/comm"):
        try:
            if thread.read_text().startswith(WATCHER):
                return True
        except OSError:
            continue  # it has just ended
    return False


def _await_workers() -> None:
    """Return when no worker thread is at work for a caller that has gone: each ends at its next pause."""
    for pool in (worker_threads._LONG, worker_threads._SHORT):
        together = threading.Barrier(worker_threads.THREADS)
        wait([pool.submit(together.wait, BOUND_SECONDS) for _ in range(worker_threads.THREADS)])


def _file_name(number: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:
        status = os.fstat(number)
        return f"device {status.st_dev}, inode {status.st_ino}"
