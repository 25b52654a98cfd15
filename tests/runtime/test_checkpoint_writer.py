"""Checkpoints of many records that are written to at the same time: spread, and none of them late."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from blockpty.runtime import checkpoint_writer
from blockpty.runtime.checkpoint_writer import CheckpointWriter
from blockpty.spool.layout import Layout
from blockpty.spool.sink import FileSink


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
