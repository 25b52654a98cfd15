"""Drain of hidden input: only what a writer writes flushes it, and the FIFO is gone after that."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.support.recorder_bench import Bench


@pytest.mark.linux
def test_a_writer_that_ends_before_it_writes_flushes_nothing(tmp_path: Path) -> None:
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "process")
    fifo = tmp_path / "c1" / "drain"
    bench.terminal.drain.expect()
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    watched = bench.terminal.drain._fd
    os.close(os.open(fifo, os.O_WRONLY))
    bench.recorder.loop.turn()
    assert fifo.exists()
    # It does not keep the loop busy: the next thing that is due is a timer.
    over: list[None] = []
    bench.recorder.loop.after(0.0, lambda: over.append(None))
    bench.recorder.loop.turn()
    assert over
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(watched)
    writer = os.open(fifo, os.O_WRONLY)
    os.write(writer, b".")
    bench.recorder.loop.turn()
    assert not fifo.exists()
    os.close(writer)


@pytest.mark.linux
def test_a_predecessors_fifo_is_served(tmp_path: Path) -> None:
    (tmp_path / "c1").mkdir()
    fifo = tmp_path / "c1" / "drain"
    os.mkfifo(fifo, 0o600)
    bench = Bench(tmp_path / "c1", "process")
    writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    os.write(writer, b".")
    os.close(writer)
    bench.recorder.loop.turn()
    assert not fifo.exists()
