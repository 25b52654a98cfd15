"""Sync policy, counted: each fdatasync of the recorder's files is seen by name."""

from __future__ import annotations

import errno
import math
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from blockpty.host import record, recovery, sync_policy
from blockpty.host.loop import Work
from blockpty.host.record import StorageFailed
from tests.support.recorder_bench import BOUND_SECONDS, MIB, Bench, ManualLoop


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch, fdatasyncs: Counter[str]) -> Counter[str]:
    monkeypatch.setattr(sync_policy, "INTERVAL_SECONDS", 0.05)
    return fdatasyncs


@pytest.mark.linux
def test_process_syncs_nothing(tmp_path: Path, forced: Counter[str]) -> None:
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "process", forced)
    bench.print(2 * MIB)
    bench.pass_interval()
    assert forced == {}


@pytest.mark.linux
@pytest.mark.parametrize("durability", ["interval", "block"])
def test_an_interval_forces_once_for_all_that_came(tmp_path: Path, forced: Counter[str], durability: str) -> None:
    (tmp_path / "c1").mkdir()
    # By its own clock, the silence after the output is always entered before the interval is over.
    bench = Bench(tmp_path / "c1", durability, forced, ManualLoop())
    stream = f"{0:020d}"
    for _ in range(10):
        bench.print(100)
    assert forced == {}
    bench.pass_interval()
    # And the names of the new files, once.
    assert forced == {stream: 1, "timeline.jsonl": 1, "stream": 1, "c1": 1, tmp_path.name: 1}
    bench.pass_interval()
    assert forced[stream] == 1, "nothing new came"
    bench.print(100)
    bench.pass_interval()
    assert forced == {stream: 2, "timeline.jsonl": 2, "stream": 1, "c1": 1, tmp_path.name: 1}


@pytest.mark.linux
def test_ticks_count_as_well(tmp_path: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_policy, "INTERVAL_SECONDS", 3600.0)
    monkeypatch.setattr(sync_policy, "INTERVAL_BYTES", 512)
    monkeypatch.setattr(sync_policy, "BEGIN_BYTES", 512)
    monkeypatch.setattr(record, "TICK_SECONDS", -1)
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "interval", forced)
    last, at = 0, 0
    for _ in range(40):
        bench.print(1)  # each byte comes with a tick of some sixty
        written = bench.terminal.stream.offset + bench.terminal.timeline.size
        if forced["timeline.jsonl"] > last:
            last, at = forced["timeline.jsonl"], written
        assert written - at < 512
    assert last > 3


@pytest.mark.linux
def test_half_a_mebibyte_does_not_wait_for_the_interval(
    tmp_path: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_policy, "INTERVAL_SECONDS", 3600.0)
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "interval", forced)
    for number in range(1, 4):
        bench.print(MIB // 2 - 100 * 1024)
        assert forced[f"{0:020d}"] == forced["timeline.jsonl"] == number - 1
        before = bench.terminal.stream.offset, bench.terminal.timeline.size
        bench.print(100 * 1024)
        while bench.terminal.sync.under_way is not None:
            bench.recorder.loop.turn()
        assert forced[f"{0:020d}"] == forced["timeline.jsonl"] == number
    noted = recovery.read_synced(str(tmp_path / "c1"))
    assert noted is not None
    # What came while it was being forced is not in it, be it only a tick.
    assert before[0] < noted.stream <= bench.terminal.stream.offset
    assert before[1] <= noted.timeline <= bench.terminal.timeline.size


@pytest.mark.linux
def test_a_mebibyte_waits_for_a_medium_that_is_slow(
    tmp_path: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the ticks of so long a flood would fill the mebibyte.
    monkeypatch.setattr(record, "TICK_SECONDS", math.inf)
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "interval", forced)
    slow, waited, good, wait = threading.Event(), [], os.fdatasync, Work.wait

    def late(fd: int) -> None:
        assert slow.wait(BOUND_SECONDS)
        good(fd)

    def noted(work: Work) -> None:
        waited.append(bench.terminal.stream.offset)
        slow.set()
        wait(work)

    monkeypatch.setattr(os, "fdatasync", late)
    monkeypatch.setattr(Work, "wait", noted)
    bench.print(MIB - 4096)
    assert (waited, forced) == ([], {}), "a slow medium does not keep the program from printing as long as that"
    bench.print(4096)
    assert MIB - 4096 < waited[0] <= MIB
    assert forced[f"{0:020d}"] >= 1
    # What came while it was being forced is not said to be there.
    noted_now = recovery.read_synced(str(tmp_path / "c1"))
    assert noted_now is not None and MIB // 2 <= noted_now.stream < MIB - 4096


@pytest.mark.linux
def test_what_a_thread_cannot_force_stops_the_program_until_it_can(
    tmp_path: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "interval", forced)
    good = os.fdatasync

    def broken(fd: int) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", broken)
    bench.print(10)
    while bench.terminal.failed is None:
        bench.recorder.loop.turn()
    assert bench.terminal.failed.name == "EIO"
    os.write(bench.slave, b"y" * 10)
    bench.terminal.move(whole=True)
    assert bench.terminal.stream.offset == 10
    monkeypatch.setattr(os, "fdatasync", good)
    while bench.terminal.failed is not None or bench.terminal.stream.offset < 20:
        bench.recorder.loop.turn()
    assert forced[f"{0:020d}"] >= 1


@pytest.mark.linux
def test_a_failure_beside_the_loop_is_raised_for_a_sync_meanwhile(
    tmp_path: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system tells once that it could not write: the next call then succeeds, and means nothing."""
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "interval", forced)
    good, failures = os.fdatasync, [OSError(errno.EIO, os.strerror(errno.EIO))]

    def once(fd: int) -> Any:
        if failures:
            raise failures.pop()
        good(fd)

    monkeypatch.setattr(os, "fdatasync", once)
    bench.print(MIB // 2 + 4096)
    assert bench.terminal.sync.under_way is not None
    with pytest.raises(StorageFailed):
        bench.terminal.sync.sync_now()
    bench.terminal.sync.sync_now()
    noted = recovery.read_synced(str(tmp_path / "c1"))
    assert noted is not None and noted.stream == bench.terminal.stream.offset


@pytest.mark.linux
def test_always_syncs_before_a_client_is_notified(tmp_path: Path, forced: Counter[str]) -> None:
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "always", forced)
    for number in range(5):
        before = forced["timeline.jsonl"]
        if number % 2:
            bench.print(10)
        else:
            bench.terminal.note(number)
        assert bench.recorder.notified[-1][1]["timeline.jsonl"] == forced["timeline.jsonl"] > before


@pytest.mark.linux
def test_a_segment_is_forced_before_the_next_begins(tmp_path: Path, forced: Counter[str]) -> None:
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "interval", forced)
    bench.print(4 * MIB + 10)
    assert (tmp_path / "c1" / "stream" / f"{4 * MIB:020d}").stat().st_size == 10
    assert forced[f"{0:020d}"] >= 4


@pytest.mark.linux
def test_what_cannot_be_forced_stops_the_program_until_it_can(
    tmp_path: Path, forced: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "always", forced)
    good = os.fdatasync

    def broken(fd: int) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", broken)
    bench.print(10)
    assert bench.terminal.failed is not None
    assert bench.terminal.failed.name == "EIO"
    size = bench.terminal.stream.offset
    os.write(bench.slave, b"y" * 10)
    bench.terminal.move(whole=True)
    assert bench.terminal.stream.offset == size == 10
    monkeypatch.setattr(os, "fdatasync", good)
    while bench.terminal.failed is not None or bench.terminal.stream.offset < 20:
        bench.recorder.loop.turn()
    timeline = (tmp_path / "c1" / "timeline.jsonl").read_text()
    assert timeline.count('"state":"full"') == timeline.count('"state":"resumed"') == 1


@pytest.mark.linux
def test_a_file_system_that_cannot_force_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(fd: int) -> Any:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fdatasync", cannot)
    (tmp_path / "c1").mkdir()
    bench = Bench(tmp_path / "c1", "always", Counter())
    bench.print(10)
    assert bench.terminal.failed is None
