"""Checkpoints of many records that are written to at the same time: spread, and none of them late."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blockpty.runtime import checkpoint_writer
from blockpty.runtime.checkpoint_writer import CheckpointWriter
from blockpty.spool.layout import Layout
from blockpty.spool.sink import FINISHED, FileSink
from tests.support.async_tests import async_test

if TYPE_CHECKING:
    import pytest


class Clock:
    """A loop whose time stands still."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.due: list[float] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[..., Any], *arguments: Any) -> None:
        self.due.append(when)


def test_the_checkpoints_of_many_records_are_spread(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    sink = FileSink(layout)
    clock = Clock()
    many = [CheckpointWriter(clock, layout, False, lambda last: None) for _ in range(300)]  # type: ignore[arg-type]
    for one in many:
        one.soon(sink)
    waits = [when - clock.now for when in clock.due]
    assert waits[0] == checkpoint_writer.CHECKPOINT_SECONDS, "one alone does not wait for longer"
    apart = [round(later - before, 6) for before, later in itertools.pairwise(waits)]
    assert apart[:80] == [checkpoint_writer.APART_SECONDS] * 80
    assert max(waits) <= checkpoint_writer.LATEST_SECONDS
    # 91 times until then, for 300.
    assert max(Counter(round(wait, 6) for wait in waits).values()) == 4
    sink.close()


@async_test
async def test_who_waits_for_the_syncs_has_none_of_them_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocks").mkdir()
    on_loop, real = [], os.fdatasync

    def counted(descriptor: int) -> None:
        on_loop.append(threading.current_thread() is threading.main_thread())
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", counted)
    sink = FileSink(Layout(tmp_path), syncs=True)
    writer = CheckpointWriter(asyncio.get_running_loop(), Layout(tmp_path), True, lambda last: None)
    for number in range(10 * FINISHED):
        name = f"blocks/{number + 1}_1.out"
        sink.out(name, 0, b"x")
        sink.out_end(name, 1)
        while sink.crowded:
            await writer.synced(sink)
    await writer.synced(sink)
    sink.close()
    assert len(on_loop) >= 9 * FINISHED and not any(on_loop)
