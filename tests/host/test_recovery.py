"""After a loss of power both files are a prefix of what happened, with all that was forced; else nothing is touched."""

from __future__ import annotations

import random
import stat
from pathlib import Path

import pytest

from blockpty.files.lines import sealed
from blockpty.host import recovery, sync_policy
from blockpty.host.recovery import SyncedSizes, note_synced, read_synced, recover
from tests.support import disk
from tests.support.async_tests import async_test
from tools.torture.power import INTERVAL, Session, _look, _whole_after

NOW = "this start"
SEGMENT = f"{0:020d}"


def line(offset: int, kind: str = "tick", more: bytes = b"") -> bytes:
    return sealed(b'{"offset":%d,"ts":1,"kind":"%s"%s}' % (offset, kind.encode(), more))


def record(place: Path, stream: bytes, timeline: bytes, forced: SyncedSizes | None) -> Path:
    (place / "stream").mkdir()
    (place / "stream" / SEGMENT).write_bytes(stream)
    (place / "timeline.jsonl").write_bytes(timeline)
    (place / "checkpoint.json").write_bytes(b"{}")
    if forced is not None:
        note_synced(str(place), -1, forced)
    return place


def found(place: Path) -> tuple[bytes, bytes]:
    return (place / "stream" / SEGMENT).read_bytes(), (place / "timeline.jsonl").read_bytes()


def test_the_note_is_what_was_noted(tmp_path: Path) -> None:
    (tmp_path / "stream").mkdir()
    assert read_synced(str(tmp_path)) is None
    descriptor = note_synced(str(tmp_path), -1, SyncedSizes("a-long-name-of-a-start", 10**15, 10**12))
    note_synced(str(tmp_path), descriptor, SyncedSizes("b", 3, 4))
    assert read_synced(str(tmp_path)) == SyncedSizes("b", 3, 4)
    path = Path(recovery.synced_path(str(tmp_path)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for damaged in (b"", b"\0" * 200, path.read_bytes().replace(b"3", b"4", 1)):
        path.write_bytes(damaged)
        assert read_synced(str(tmp_path)) is None


@pytest.mark.parametrize("forced", [None, SyncedSizes(NOW, 0, 0)])
def test_without_a_loss_of_power_nothing_is_touched(tmp_path: Path, forced: SyncedSizes | None) -> None:
    """Also not what looks like one: a program may print zeros, and damage in the middle is reported, not cut."""
    timeline = line(0, "spawn") + b"damage\n" + line(5000)
    place = record(tmp_path, b"\0" * 4096, timeline, forced)
    assert not recover(str(place), NOW)
    assert found(place) == (b"\0" * 4096, timeline) and (place / "checkpoint.json").exists()


def test_zeros_that_were_forced_stay(tmp_path: Path) -> None:
    stream = b"\0" * 1024 + b"x" * 300
    place = record(tmp_path, stream, line(0, "spawn"), SyncedSizes("before", 1024, 10))
    assert not recover(str(place), NOW)
    assert found(place)[0] == stream


@pytest.mark.parametrize(
    ("hole", "kept"), [((700, 1024), 700), ((512, 1024), 512), ((1500, 1600), 1500), ((40, 90), 1600)]
)
def test_the_stream_ends_before_its_first_hole(tmp_path: Path, hole: tuple[int, int], kept: int) -> None:
    """Zeros up to the end of a sector, or of the file, were never written; those inside a sector were printed."""
    stream = bytearray(b"x" * 1600)
    stream[slice(*hole)] = bytes(hole[1] - hole[0])
    place = record(tmp_path, bytes(stream), line(0, "spawn"), SyncedSizes("before", 0, 0))
    assert recover(str(place), NOW) == (kept < 1600)
    assert found(place)[0] == bytes(stream[:kept])
    if kept < 1600:
        aside = place / "stream" / f"{SEGMENT}.torn"
        assert aside.read_bytes() == bytes(stream[kept:]) + b"\n" and stat.S_IMODE(aside.stat().st_mode) == 0o600
        assert not (place / "checkpoint.json").exists(), "it speaks of a longer record"
        assert not recover(str(place), NOW), "and that is all there is to do"


def test_the_timeline_ends_before_what_is_missing(tmp_path: Path) -> None:
    first, second = line(0, "spawn"), line(10)
    for rest in (b"\0" * 60 + b"\n" + line(11), second[:20], line(2000), second.replace(b"10", b"11") + line(12)):
        place = tmp_path / f"{len(rest)}"
        place.mkdir()
        record(place, b"x" * 100, first + second + rest, SyncedSizes("before", 0, 0))
        assert recover(str(place), NOW)
        assert found(place) == (b"x" * 100, first + second)
        assert (place / "timeline.jsonl.torn").read_bytes() == rest + b"\n"


def test_damage_of_what_was_forced_is_damage_in_the_middle(tmp_path: Path) -> None:
    timeline = line(0, "spawn") + b"x" * 30 + b"\n" + line(10)
    place = record(tmp_path, b"x" * 100, timeline, SyncedSizes("before", 100, len(timeline)))
    assert not recover(str(place), NOW)


def test_segments_behind_a_hole_are_no_part_of_the_stream(tmp_path: Path) -> None:
    place = record(tmp_path, b"x" * 50, line(0, "spawn"), SyncedSizes("before", 0, 0))
    (place / "stream" / f"{100:020d}").write_bytes(b"y" * 50)
    assert recover(str(place), NOW)
    assert sorted(path.name for path in (place / "stream").iterdir()) == [SEGMENT, f"{100:020d}.torn"]


@pytest.mark.parametrize("boot", [b"", b',"boot":"before"', b',"boot":"this start"'])
def test_where_the_note_is_lost_the_shell_tells(tmp_path: Path, boot: bytes) -> None:
    """An older record has neither, and is left as it is."""
    timeline = line(0, "spawn", boot) + line(5000)
    place = record(tmp_path, b"x" * 10, timeline, None)
    assert recover(str(place), NOW) == (b"before" in boot)


@pytest.mark.linux
@pytest.mark.parametrize("durability", ["process", "interval", "block", "always"])
@async_test
async def test_power_is_lost_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str) -> None:
    monkeypatch.setattr(sync_policy, "INTERVAL_BYTES", INTERVAL)
    monkeypatch.setattr(sync_policy, "BEGIN_BYTES", INTERVAL // 2)
    chance = random.Random(durability)
    session = Session(tmp_path / "whole", durability, disk.conversation(), chance)
    await session.write()
    for number in range(20):
        moment = chance.randrange(len(session.medium.done) + 1)
        assert await _look(session, moment, tmp_path / f"{number}", chance) is None


@pytest.mark.linux
@pytest.mark.parametrize("call", ["pwrite", "splice", "ftruncate", "fdatasync", "replace"])
@async_test
async def test_a_call_that_fails_is_reported_and_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr("blockpty.host.terminal.RETRY_SECONDS", 0.001)
    session = Session(tmp_path / "whole", "always", disk.conversation(), random.Random(3))
    left = 2

    def fail(name: str, file: str) -> None:
        nonlocal left
        left -= name == call
        if name == call and not left:
            raise OSError(5, "Input/output error", file)

    session.medium.before = fail
    assert await _whole_after(session) is None
    assert left <= 0 and (session.refused or call == "replace")
